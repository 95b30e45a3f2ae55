// Package storetest has a disk that exists only in memory and fails on command, for
// tests and for the simulation of a whole node. A store over it is a real one; only
// what a power cut leaves of it is decided here.
package storetest

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"syscall"

	"homeagent/memory/store"
)

// Disk keeps what reached it and what a sync made durable. Its methods may be called
// from any goroutine; one store at a time may be open over it.
type Disk struct {
	mu sync.Mutex
	// base is all that is durable; tail the commits after it, in order.
	base map[string][]byte
	mark store.Mark
	tail [][]store.Write

	full       bool
	failSync   bool
	failCommit bool
	syncs      int
}

// New returns an empty disk.
func New() *Disk { return &Disk{base: map[string][]byte{}} }

// Open opens a store with what is on the disk. After a Cut the store that was open
// before must be closed first.
func (d *Disk) Open() (*store.DB, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tail = nil
	pairs := make(map[string][]byte, len(d.base))
	for k, v := range d.base {
		pairs[k] = v
	}
	return store.Open("", store.Options{
		InMemory: true, Free: d.free, Image: &store.Image{Pairs: pairs, Mark: d.mark},
		Faults: store.Faults{Commit: d.commit, Sync: d.sync, Written: d.written, Synced: d.synced},
	})
}

// errPower is what happens to a disk whose power is gone.
var errPower = errors.New("the simulated disk failed")

// Full makes the disk full, or gives it room again: writes are refused with
// store.ErrDiskLow.
func (d *Disk) Full(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// FailSync makes the next sync fail, as a disk that lost a page does: the store is
// broken from then on, and what was not synced before is not known to be there.
func (d *Disk) FailSync() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failSync = true
}

// FailCommit makes the next commit fail before anything of it is written.
func (d *Disk) FailCommit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failCommit = true
}

// Unsynced is how many commits no sync has covered yet.
func (d *Disk) Unsynced() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tail)
}

// Syncs is how many syncs there were.
func (d *Disk) Syncs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs
}

// Cut is a power cut: of the commits that no sync covered the first kept ones are
// found afterwards, and the rest is lost. A commit that was torn halfway is one that
// is lost: what the store does with such a tail is to cut it.
func (d *Disk) Cut(kept int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, list := range d.tail[:min(max(kept, 0), len(d.tail))] {
		d.fold(list)
	}
	d.tail, d.full, d.failSync, d.failCommit = nil, false, false, false
}

// Break flips one bit of a durable record. It returns false when there is no such
// key; key has the byte of its space.
func (d *Disk) Break(key []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok := d.base[string(key)]
	if !ok || len(v) == 0 {
		return false
	}
	broken := append([]byte(nil), v...)
	broken[len(broken)-1] ^= 1
	d.base[string(key)] = broken
	return true
}

func (d *Disk) fold(list []store.Write) {
	for _, w := range list {
		key := string(w.Space.Key(w.Key))
		if w.Delete {
			delete(d.base, key)
			continue
		}
		d.base[key] = w.Value
	}
}

func (d *Disk) free(string) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return 0, nil
	}
	return math.MaxInt64, nil
}

func (d *Disk) commit(uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failCommit {
		d.failCommit = false
		return errPower
	}
	return nil
}

func (d *Disk) sync(uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failSync {
		d.failSync = false
		return fmt.Errorf("%w: %w", store.ErrBroken, syscall.EIO)
	}
	return nil
}

func (d *Disk) written(_ uint64, list []store.Write) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tail = append(d.tail, list)
}

// synced makes the tail durable. Commits that came while the sync ran are taken for
// covered too; a caller that cares keeps commits and syncs apart, as the ledger does.
func (d *Disk) synced(m store.Mark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, list := range d.tail {
		d.fold(list)
	}
	d.tail, d.mark = nil, m
	// The stamp of a store in memory begins anew with each Open.
	d.mark.Commit = 0
	d.syncs++
}

package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// DB is the open store of a node. All methods are safe for concurrent use.
type DB struct {
	opt Options
	// reserve is opt.Reserve as SetReserve left it.
	reserve atomic.Int64
	root    string
	files   string
	b       *badger.DB
	mark    *markFile

	// write serialises commits.
	write  sync.Mutex
	commit atomic.Uint64
	cause  cause
	// place is what the names of the store's files meant when it was opened; nil in
	// memory.
	place map[string]os.FileInfo
	sizes sizes
	// format is that of the data; see Upgraded.
	format atomic.Int64

	inbox, journal atomic.Uint64

	// syncing serialises syncs; the fields below belong to it.
	syncing   sync.Mutex
	marked    Mark
	markFlush time.Time
	logs      map[string]bool
	syncLog   func(path string) error
	syncs     atomic.Uint64

	// life counts users, so that Close waits for them: a read of a closed badger
	// is a fault of the process.
	life   sync.Mutex
	idle   *sync.Cond
	users  int
	closed bool
	done   chan struct{}
	// closeLimit bounds the wait for badger in Close; ended gets what badger said.
	closeLimit time.Duration
	ended      chan error

	report Report
}

// Open opens the store in dir, which is created if it is not there; one process
// at a time, which the caller ensures by a lock of its own. A store that lacks
// what it promised is refused with a *DamageError, a newer one with ErrFormat, a
// disk without room to open with ErrDiskLow.
func Open(dir string, opt Options) (*DB, error) {
	opt.fill()
	db := &DB{
		opt: opt, root: dir, files: filepath.Join(dir, dbName), logs: map[string]bool{}, syncLog: syncFile,
		done: make(chan struct{}), closeLimit: closeLimit, ended: make(chan error, 1),
	}
	db.idle = sync.NewCond(&db.life)
	db.reserve.Store(opt.Reserve)
	var g *guard
	if !opt.InMemory {
		var err error
		if g, err = db.prepare(); err != nil {
			return nil, fmt.Errorf("open store %s: %w", dir, err)
		}
	}
	b, err := badger.Open(db.badgerOptions())
	if err != nil {
		err = &DamageError{Items: []Damage{{File: dbName, What: err.Error()}}, Copy: db.report.Copy}
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	db.b = b
	if err := db.load(); err != nil {
		_ = b.Close()
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	if err := db.settle(g); err != nil {
		_ = b.Close()
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return db, nil
}

// Format returns the version of the layout of the data: 1 up to the version of this
// program. Whoever owns records that an older format keeps in another way rewrites
// them and calls Upgraded.
func (db *DB) Format() int { return int(db.format.Load()) }

// Upgraded notes durably that the data has the format of this program. All that was
// rewritten must be synced before. A crash before it returns leaves the old format,
// and the upgrade is done again.
func (db *DB) Upgraded() error {
	if db.Format() == formatVersion {
		return nil
	}
	if err := writeFormat(db.root, formatVersion); err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	db.format.Store(formatVersion)
	return nil
}

// SetReserve changes the free disk space in bytes below which writes are
// refused, from the next write on; zero means no reserve.
func (db *DB) SetReserve(bytes int64) { db.reserve.Store(max(bytes, 0)) }

// prepare runs the guard over the folder.
func (db *DB) prepare() (*guard, error) {
	if err := os.MkdirAll(db.root, 0o700); err != nil {
		return nil, err
	}
	free, err := db.opt.Free(db.root)
	if err != nil {
		return nil, err
	}
	if floor := min(openFloor, db.opt.Reserve); free < floor {
		return nil, fmt.Errorf("%w: %d bytes free, %d needed to open", ErrDiskLow, free, floor)
	}
	g := &guard{
		root: db.root, db: db.files, log: db.opt.Logger,
		budget: db.opt.VerifyBytes, salvage: db.opt.Salvage,
	}
	if err := g.prepare(); err != nil {
		return nil, err
	}
	db.report = g.report
	return g, nil
}

// settle takes over the state of an opened badger and compares it with what the
// guard had found.
func (db *DB) settle(g *guard) error {
	last, err := db.readStamp()
	if err != nil {
		return err
	}
	db.commit.Store(last)
	if g == nil {
		db.format.Store(formatVersion)
		return nil
	}
	db.format.Store(int64(g.format))
	if err := db.settlePlace(); err != nil {
		return err
	}
	if last < g.last && len(g.report.Lost) == 0 {
		return g.damaged([]Damage{{"db", "badger does not show commits that are in its files", last + 1, g.last}})
	}
	mark, m, err := openMark(filepath.Join(db.root, markName))
	if err != nil {
		return err
	}
	if len(g.report.Lost) > 0 {
		m.Commit = last
		if err := mark.write(m, true); err != nil {
			_ = mark.close()
			return err
		}
	}
	db.mark, db.marked = mark, m
	db.inbox.Store(m.Inbox)
	db.journal.Store(m.Journal)
	return nil
}

func (db *DB) readStamp() (uint64, error) {
	txn := db.b.NewTransaction(false)
	defer txn.Discard()
	item, err := txn.Get(stampKey)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	v, err := item.ValueCopy(nil)
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("%w: stamp of %d bytes", ErrRecord, len(v))
	}
	return binary.BigEndian.Uint64(v), nil
}

// enter counts a user in; leave must follow.
func (db *DB) enter() error {
	db.life.Lock()
	defer db.life.Unlock()
	if db.closed {
		return ErrClosed
	}
	db.users++
	return nil
}

func (db *DB) leave() {
	db.life.Lock()
	db.users--
	if db.users == 0 {
		db.idle.Broadcast()
	}
	db.life.Unlock()
}

// closeLimit is how long Close waits for badger, which tries its last flush
// again for ever while the folder cannot be written.
const closeLimit = 30 * time.Second

// brokenCloseLimit is how long it waits for a store that is broken already.
const brokenCloseLimit = 3 * time.Second

// Close refuses new work, waits for running reads and writes, syncs, and closes.
// A store that cannot be closed within half a minute, or within seconds when it is
// broken, is left as it is, with ErrStuck: what was synced is on disk, and the
// process should end. Only an orderly Close leaves the note that lets the next Open
// go without a copy of the write-ahead files. A second Close waits for the first and returns nil.
func (db *DB) Close() error {
	db.life.Lock()
	if db.closed {
		db.life.Unlock()
		<-db.done
		return nil
	}
	db.closed = true
	stuck := db.drain()
	db.life.Unlock()
	defer close(db.done)
	if stuck != nil {
		return fmt.Errorf("close store: %w", stuck)
	}

	errSync := db.sync(true)
	if db.Broken() != nil {
		db.closeLimit = min(db.closeLimit, brokenCloseLimit)
	}
	errClose := db.closeBadger()
	if db.mark != nil {
		if err := db.mark.close(); errClose == nil {
			errClose = err
		}
	}
	if err := errors.Join(errSync, errClose); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	if db.opt.InMemory {
		return nil
	}
	text := strconv.FormatUint(db.commit.Load(), 10) + "\n"
	if err := writeDurable(filepath.Join(db.root, cleanName), []byte(text)); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// drain waits until nobody uses the store; db.life is held. In a broken store a user
// may wait for a disk that never answers: then it is given up.
func (db *DB) drain() error {
	if db.users == 0 {
		return nil
	}
	begin, stop := time.Now(), make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				db.idle.Broadcast()
			}
		}
	}()
	for db.users > 0 {
		if db.Broken() != nil && time.Since(begin) > brokenCloseLimit {
			return fmt.Errorf("%w: the disk holds a write up", ErrStuck)
		}
		db.idle.Wait()
	}
	return nil
}

// load fills a store in memory from its image.
func (db *DB) load() error {
	if db.opt.Image == nil || !db.opt.InMemory {
		return nil
	}
	batch := db.b.NewWriteBatch()
	defer batch.Cancel()
	for key, value := range db.opt.Image.Pairs {
		if err := batch.Set([]byte(key), value); err != nil {
			return err
		}
	}
	if err := batch.Flush(); err != nil {
		return err
	}
	m := db.opt.Image.Mark
	db.marked = m
	db.inbox.Store(m.Inbox)
	db.journal.Store(m.Journal)
	return nil
}

func (db *DB) closeBadger() error {
	if db.opt.InMemory {
		return db.b.Close()
	}
	go func() { db.ended <- db.b.Close() }()
	t := time.NewTimer(db.closeLimit)
	defer t.Stop()
	select {
	case err := <-db.ended:
		return err
	case <-t.C:
		return fmt.Errorf("%w within %s", ErrStuck, db.closeLimit)
	}
}

// Promise notes the highest inbox sequence and the number of journal entries
// that the commits so far hold; the next Sync writes them into the mark. The
// ledger alone calls it, after the commit.
func (db *DB) Promise(inbox, journal uint64) {
	db.inbox.Store(inbox)
	db.journal.Store(journal)
}

// Promised returns the mark as of the last sync or Open.
func (db *DB) Promised() Mark {
	db.syncing.Lock()
	defer db.syncing.Unlock()
	return db.marked
}

// Report returns what Open found.
func (db *DB) Report() Report { return db.report }

// Salvaging reports whether the store was opened with Options.Salvage.
func (db *DB) Salvaging() bool { return db.opt.Salvage }

// Stats are figures of the store since Open.
type Stats struct {
	// Commits is the number of the last commit since the store was made.
	Commits uint64
	// Syncs counts the syncs that reached the disk.
	Syncs uint64
	// Bytes is what the database occupies on disk; zero in memory.
	Bytes int64
	// Free is the free space of the disk; negative when unknown.
	Free int64
	// DiskLow is true while writes are refused for want of space.
	DiskLow bool
	// Reserve is the free space below which writes are refused.
	Reserve int64
}

// occupied sums what the files of a folder occupy; those that go meanwhile count
// nothing.
func occupied(dir string) (sum int64) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			sum += usedSpace(info)
		}
	}
	return sum
}

// Stats returns the figures of the moment; it asks the system for the free space.
func (db *DB) Stats() Stats {
	s := Stats{Commits: db.commit.Load(), Syncs: db.syncs.Load(), Free: -1, Reserve: db.reserve.Load()}
	if db.enter() != nil {
		return s
	}
	defer db.leave()
	if !db.opt.InMemory {
		s.Bytes = occupied(db.files)
	}
	if free, err := db.opt.Free(db.root); err == nil {
		s.Free, s.DiskLow = free, free < db.reserve.Load()
	}
	return s
}

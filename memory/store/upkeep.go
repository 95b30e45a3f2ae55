package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
)

// Reclaim runs fn like Update, but may eat into half of the reserve: what it
// deletes makes room. fn should delete more than it writes.
func (db *DB) Reclaim(fn func(Txn) error) error {
	return db.update(fn, db.reserve.Load()/2)
}

// sizes caches what each space takes in each table; tables never change.
type sizes struct {
	mu     sync.Mutex
	tables map[uint64]map[Space]int64
}

// Sizes returns the bytes of keys and values of each space, with old versions that
// no compaction has removed yet. Tables are read once in their life; the first call
// after Open reads all of them.
func (db *DB) Sizes(ctx context.Context) (map[Space]int64, error) {
	if err := db.enter(); err != nil {
		return nil, err
	}
	defer db.leave()
	db.sizes.mu.Lock()
	defer db.sizes.mu.Unlock()
	out := map[Space]int64{}
	known := db.sizes.tables
	db.sizes.tables = map[uint64]map[Space]int64{}
	since := uint64(0)
	var check checker
	for _, info := range db.b.Tables() {
		if db.opt.InMemory {
			break
		}
		if err := ctx.Err(); err != nil {
			maps.Copy(db.sizes.tables, known)
			return nil, err
		}
		t, ok := known[info.ID]
		if !ok {
			var err error
			if t, err = check.spaces(table.NewFilename(info.ID, db.files), info.ID); err != nil {
				if os.IsNotExist(err) {
					continue // compacted away meanwhile; its content shows in another
				}
				return nil, fmt.Errorf("sizes: %w", err)
			}
		}
		db.sizes.tables[info.ID] = t
		for s, n := range t {
			out[s] += n
		}
		since = max(since, info.MaxVersion)
	}
	db.sizeSince(since, out)
	return out, nil
}

// sizeSince adds what is newer than all tables: it is in memory and in the
// write-ahead files.
func (db *DB) sizeSince(since uint64, out map[Space]int64) {
	txn := db.b.NewTransaction(false)
	defer txn.Discard()
	opt := badger.DefaultIteratorOptions
	opt.PrefetchValues = false
	opt.SinceTs = since
	it := txn.NewIterator(opt)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		out[Space(item.Key()[0])] += item.EstimatedSize()
	}
}

// spaces sums a table by space.
func (c *checker) spaces(path string, id uint64) (out map[Space]int64, err error) {
	data, err := c.read(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil { // as in checker.table
			err = fmt.Errorf("%w: unreadable", errTable)
		}
	}()
	t, err := table.OpenInMemoryTable(data, id, &table.Options{Compression: options.None, BlockSize: 4 << 10})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errTable, err)
	}
	it := t.NewIterator(0)
	defer func() { _ = it.Close() }()
	out = map[Space]int64{}
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Key()
		if len(key) > 0 {
			out[Space(key[0])] += int64(len(key) + len(it.Value().Value))
		}
	}
	return out, nil
}

// Compact gives back the space of what was deleted. A light one only lets badger
// collect its value log. A full one also writes the newest state down and merges
// all levels, which reads and writes the whole store.
func (db *DB) Compact(ctx context.Context, full bool) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	if db.opt.InMemory {
		return nil
	}
	for {
		err := db.b.RunValueLogGC(0.5)
		if errors.Is(err, badger.ErrNoRewrite) || errors.Is(err, badger.ErrRejected) {
			break
		}
		if err != nil {
			return fmt.Errorf("collect value log: %w", err)
		}
	}
	if !full {
		return nil
	}
	// Badger does not merge a few tables that are all in level 0; each round adds one.
	for range levelZeroTables + 1 {
		if err := db.rotate(ctx); err != nil {
			return err
		}
		if err := db.b.Flatten(1); err != nil {
			return fmt.Errorf("merge levels: %w", err)
		}
		if !slices.ContainsFunc(db.b.Tables(), func(t badger.TableInfo) bool { return t.Level == 0 }) {
			break
		}
	}
	return nil
}

// fillerKey is overwritten to fill a memory table.
var fillerKey = Meta.KeyString("filler")

// rotate has badger write its memory table into a table file. Badger does that only
// for a full one, so it is filled: one key, overwritten, of which a compaction
// leaves a few bytes.
func (db *DB) rotate(ctx context.Context) error {
	first := db.b.MaxVersion()
	filler := make([]byte, MaxValue)
	for i := 0; i*len(filler) <= memTableSize; i++ {
		binary.BigEndian.PutUint64(filler, uint64(i))
		value := filler
		if (i+1)*len(filler) > memTableSize {
			value = nil
		}
		if err := db.Reclaim(func(txn Txn) error { return txn.Put(fillerKey, bytes.Clone(value)) }); err != nil {
			return fmt.Errorf("rotate: %w", err)
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, info := range db.b.Tables() {
			if info.MaxVersion >= first {
				return nil
			}
		}
		if err := db.Broken(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

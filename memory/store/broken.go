package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// cause holds why a store is broken.
type cause struct {
	mu  sync.Mutex
	err error
	// hints are the moments at which badger could not write a table.
	hints []time.Time
}

// hintsToBreak failures to write a table within hintsWithin break the store: badger
// tries for ever, and writers would wait for it as long.
const (
	hintsToBreak = 3
	hintsWithin  = time.Minute
)

// Broken returns why nothing can be stored any more, wrapping ErrBroken, or nil.
// It never becomes nil again: what is on disk is known at the next Open.
func (db *DB) Broken() error {
	db.cause.mu.Lock()
	defer db.cause.mu.Unlock()
	return db.cause.err
}

// fail breaks the store for good and returns the cause; the first one counts.
func (db *DB) fail(err error) error {
	db.cause.mu.Lock()
	first := db.cause.err == nil
	if first {
		db.cause.err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	err = db.cause.err
	db.cause.mu.Unlock()
	if first {
		db.opt.Logger.Error("store broken", "error", err)
		if db.opt.Broken != nil {
			db.opt.Broken(err)
		}
	}
	return err
}

// Check looks whether the store is still where it was opened, which no write would
// tell: badger writes into mapped files, and a file that was removed takes writes
// until it is closed. It returns what Broken does.
func (db *DB) Check() error {
	if err := db.Broken(); err != nil {
		return err
	}
	if err := db.enter(); err != nil {
		return nil // closed, which is no fault
	}
	defer db.leave()
	return db.checkPlace()
}

// checkPlace costs two looks at a name.
func (db *DB) checkPlace() error {
	if db.place == nil {
		return nil
	}
	for _, name := range []string{markName, dbName} {
		there, err := os.Stat(filepath.Join(db.root, name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			return db.fail(fmt.Errorf("%s of the store is gone", name))
		case err != nil:
			return db.fail(err)
		case !os.SameFile(there, db.place[name]):
			return db.fail(fmt.Errorf("%s of the store was replaced", name))
		}
	}
	return nil
}

// settlePlace notes which files the store was opened with.
func (db *DB) settlePlace() error {
	place := map[string]os.FileInfo{}
	for _, name := range []string{markName, dbName} {
		info, err := os.Stat(filepath.Join(db.root, name))
		if err != nil {
			return err
		}
		place[name] = info
	}
	db.place = place
	return nil
}

// hear takes note of what badger says about a failure of its own.
func (db *DB) hear(format string, args []any) {
	if !strings.Contains(format, "flushing memtable") && !strings.Contains(format, "doCompact") {
		return
	}
	for _, arg := range args {
		err, ok := arg.(error)
		if !ok || errors.Is(err, syscall.ENOSPC) {
			continue // room may come back, and badger tries again
		}
		if db.hint(time.Now()) {
			_ = db.fail(fmt.Errorf("tables cannot be written: %w", err))
		}
	}
}

// hint counts a failure and reports whether they are too many.
func (db *DB) hint(now time.Time) bool {
	c := &db.cause
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.hints) == hintsToBreak {
		c.hints = c.hints[1:]
	}
	c.hints = append(c.hints, now)
	return len(c.hints) == hintsToBreak && now.Sub(c.hints[0]) < hintsWithin
}

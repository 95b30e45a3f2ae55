package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Sync makes every commit that returned before the call durable and then writes
// the mark. Calls that find their commits already covered return at once, so
// that several callers share one sync. After a failed sync the store is broken:
// the system may have dropped the pages, and a later sync would lie.
func (db *DB) Sync() error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	return db.sync(false)
}

// sync does the work of Sync; with final the mark is flushed too.
func (db *DB) sync(final bool) error {
	db.syncing.Lock()
	defer db.syncing.Unlock()
	if err := db.Broken(); err != nil {
		return err
	}
	// The order matters: a promise is made after its commit, so the commit number
	// read last covers the promise read first.
	next := Mark{Inbox: db.inbox.Load(), Journal: db.journal.Load()}
	next.Commit = db.commit.Load()
	if next != db.marked {
		if err := db.syncTo(next); err != nil {
			return err
		}
	}
	if final && db.mark != nil {
		return db.mark.flush()
	}
	return nil
}

func (db *DB) syncTo(next Mark) error {
	if db.opt.Faults.Sync != nil {
		if err := db.opt.Faults.Sync(next.Commit); err != nil {
			if errors.Is(err, ErrBroken) {
				return db.fail(err)
			}
			return fmt.Errorf("sync: %w", err)
		}
	}
	if db.mark == nil {
		db.synced(next)
		return nil
	}
	if err := db.checkPlace(); err != nil {
		return err
	}
	if err := db.syncFiles(); err != nil {
		return db.fail(fmt.Errorf("sync: %w", err))
	}
	now := time.Now()
	flush := db.opt.MarkEvery < 0 || now.Sub(db.markFlush) >= db.opt.MarkEvery
	if err := db.mark.write(next, flush); err != nil {
		return db.fail(fmt.Errorf("sync: %w", err))
	}
	if flush {
		db.markFlush = now
	}
	db.synced(next)
	return nil
}

func (db *DB) synced(m Mark) {
	db.marked = m
	db.syncs.Add(1)
	if db.opt.Faults.Synced != nil {
		db.opt.Faults.Synced(m)
	}
}

// syncFiles syncs the write-ahead files. Badger's own Sync covers the current one
// alone: a file that was full since the last sync waits for its flush into a
// table, unsynced. Nor does badger make the name of a new file durable.
func (db *DB) syncFiles() error {
	names, err := numbered(db.files, ".mem")
	if err != nil {
		return err
	}
	if !fsyncCoversMapped {
		if err := db.b.Sync(); err != nil {
			return err
		}
	}
	seen := make(map[string]bool, len(names))
	fresh := false
	for i, name := range names {
		full, known := db.logs[name]
		fresh = fresh || !known
		current := i == len(names)-1
		if !full && (!current || fsyncCoversMapped) {
			// A file that is gone has been flushed into a table, which is synced.
			if err := db.syncLog(filepath.Join(db.files, name)); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
		seen[name] = !current
	}
	db.logs = seen
	if fresh {
		return syncDir(db.files)
	}
	return nil
}

// fsyncCoversMapped: on Linux one fsync of the file writes what was changed through
// its mapping. It replaces badger's Sync there, which also syncs the value log,
// always empty here, and holds a lock meanwhile.
const fsyncCoversMapped = runtime.GOOS == "linux"

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBrokenByItsPlace(t *testing.T) {
	cases := []struct {
		name string
		do   func(t *testing.T, root string)
		text string
	}{
		{"folder removed", func(t *testing.T, root string) {
			if err := os.RemoveAll(root); err != nil {
				t.Fatal(err)
			}
		}, "is gone"},
		{"folder moved away", func(t *testing.T, root string) {
			if err := os.Rename(root, root+".away"); err != nil {
				t.Fatal(err)
			}
		}, "is gone"},
		{"copy put in its place", func(t *testing.T, root string) {
			if err := os.Rename(root, root+".away"); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(root, os.DirFS(root+".away")); err != nil {
				t.Fatal(err)
			}
		}, "was replaced"},
		{"write-ahead files removed", func(t *testing.T, root string) {
			if err := os.RemoveAll(filepath.Join(root, dbName)); err != nil {
				t.Fatal(err)
			}
		}, "db of the store is gone"},
	}
	for _, c := range cases {
		for _, by := range []string{"sync", "check", "write"} {
			t.Run(c.name+" seen by "+by, func(t *testing.T) {
				t.Parallel()
				root := filepath.Join(t.TempDir(), "store")
				var told []error
				o := Options{Broken: func(err error) { told = append(told, err) }}
				if by != "write" {
					o.Free = func(string) (int64, error) { return 1 << 40, nil }
				}
				db := open(t, root, o)
				put(t, db, Task, "a", "1")
				if err := errors.Join(db.Sync(), db.Check()); err != nil {
					t.Fatal(err)
				}
				c.do(t, root)
				// Badger takes the write: it writes into mapped files. Only the question how
				// much room there is may fail.
				err := db.Update(func(tx Txn) error { return tx.Put(Task.KeyString("b"), []byte("2")) })
				switch {
				case by != "write" && err != nil:
					t.Fatal(err)
				case by == "sync" || by == "write" && err == nil:
					err = db.Sync()
				case by == "check":
					err = db.Check()
				}
				if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), c.text) {
					t.Fatalf("err = %v, want %q", err, c.text)
				}
				wantBroken(t, db, told)
				closeBroken(t, db)
			})
		}
	}
}

// wantBroken wants that the store refuses everything and has told it once.
func wantBroken(t *testing.T, db *DB, told []error) {
	t.Helper()
	if err := db.Update(func(tx Txn) error { return tx.Put(Task.KeyString("c"), nil) }); Code(err) != "store_broken" {
		t.Errorf("a write in a broken store: %v", err)
	}
	if err := db.Sync(); Code(err) != "store_broken" {
		t.Errorf("a sync of a broken store: %v", err)
	}
	if db.Broken() == nil || db.Check() == nil {
		t.Error("the store is well again")
	}
	if len(told) != 1 || !errors.Is(told[0], ErrBroken) {
		t.Errorf("told %v", told)
	}
}

// closeBroken gives badger the folder back, without which its goroutines stay.
func closeBroken(t *testing.T, db *DB) {
	t.Helper()
	db.closeLimit = time.Millisecond
	closing := db.Close()
	if Code(closing) != "store_broken" {
		t.Errorf("Close: %v", closing)
	}
	if err := os.MkdirAll(db.files, 0o700); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(closing, ErrStuck) {
		return // Close heard the end itself
	}
	if err := <-db.ended; err != nil {
		t.Logf("badger ended with %v", err)
	}
}

func TestBrokenByASync(t *testing.T) {
	var told []error
	db := open(t, "", Options{
		InMemory: true, Broken: func(err error) { told = append(told, err) },
		Faults: Faults{Sync: func(n uint64) error {
			if n == 2 {
				return fmt.Errorf("%w: %w", ErrBroken, syscall.EIO)
			}
			return nil
		}},
	})
	put(t, db, Task, "a", "1")
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	put(t, db, Task, "b", "2")
	if err := db.Sync(); !errors.Is(err, syscall.EIO) || !errors.Is(err, ErrBroken) {
		t.Fatalf("sync: %v", err)
	}
	wantBroken(t, db, told)
}

func TestBrokenByTables(t *testing.T) {
	db := memory(t)
	const text = "error flushing memtable to disk: %v, retrying"
	for range 10 {
		db.hear(text, []any{&os.PathError{Op: "write", Err: syscall.ENOSPC}})
		db.hear("something else: %v", []any{syscall.EIO})
	}
	db.hear(text, []any{syscall.EROFS})
	db.hear(text, []any{syscall.EROFS})
	if err := db.Broken(); err != nil {
		t.Fatalf("broken too early: %v", err)
	}
	db.hear(text, []any{syscall.EROFS})
	if err := db.Broken(); !errors.Is(err, syscall.EROFS) {
		t.Fatalf("Broken() = %v", err)
	}
	other := memory(t)
	now := time.Now()
	for i := range 10 {
		if other.hint(now.Add(time.Duration(i) * hintsWithin)) {
			t.Fatal("failures far apart break the store")
		}
	}
}

// A write that the disk holds up for ever must not hold up the end of the process.
func TestCloseWithAHeldWrite(t *testing.T) {
	db, err := Open("", quiet(Options{InMemory: true}))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.enter(); err != nil {
		t.Fatal(err)
	}
	_ = db.fail(syscall.EIO)
	if err := db.Close(); !errors.Is(err, ErrStuck) {
		t.Errorf("Close: %v", err)
	}
	db.leave()
	if err := db.b.Close(); err != nil {
		t.Error(err)
	}
}

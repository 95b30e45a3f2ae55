package store

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("STORE_WRITER_DIR"); dir != "" {
		writerChild(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func quiet(o Options) Options {
	o.Logger = slog.New(slog.DiscardHandler)
	return o
}

func open(t *testing.T, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(dir, quiet(o))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func memory(t *testing.T) *DB {
	t.Helper()
	return open(t, "", Options{InMemory: true})
}

func put(t *testing.T, db *DB, space Space, key, value string) {
	t.Helper()
	err := db.Update(func(txn Txn) error { return txn.Put(space.KeyString(key), []byte(value)) })
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func get(t *testing.T, db *DB, space Space, key string) string {
	t.Helper()
	var out []byte
	err := db.View(func(txn Txn) (err error) {
		out, err = txn.Get(space.KeyString(key))
		return err
	})
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	return string(out)
}

// crashed fills a store with n synced commits and returns a copy of its folder
// as a kill would have left it.
func crashed(t *testing.T, n int) string {
	t.Helper()
	live := t.TempDir()
	db := open(t, live, Options{})
	fill(t, db, 0, n)
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	out := snapshot(t, live)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func fill(t *testing.T, db *DB, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		put(t, db, Event, fmt.Sprintf("k%06d", i), fmt.Sprintf("value %d", i))
	}
}

// snapshot copies a live folder.
func snapshot(t *testing.T, live string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(out, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	return out
}

// one returns the only or first file in db that has the suffix.
func one(t *testing.T, dir, suffix string) string {
	t.Helper()
	names, err := numbered(filepath.Join(dir, dbName), suffix)
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s file in %s: %v", suffix, dir, err)
	}
	return filepath.Join(dir, dbName, names[0])
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	b := make([]byte, 1)
	if _, err := file.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x40
	if _, err := file.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

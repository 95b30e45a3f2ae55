package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func benchDB(b *testing.B, o Options) *DB {
	b.Helper()
	db, err := Open(b.TempDir(), quiet(o))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return db
}

// BenchmarkCommit commits without sync: what a step of a journal costs.
func BenchmarkCommit(b *testing.B) {
	db := benchDB(b, Options{})
	value := make([]byte, 256)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		err := db.Update(func(txn Txn) error { return txn.Put(Event.KeyUint(uint64(i)), value) })
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSync commits n times for each sync, with the ways to flush the mark.
func BenchmarkSync(b *testing.B) {
	for _, every := range []time.Duration{time.Second, -1} {
		for _, n := range []int{1, 16} {
			b.Run(fmt.Sprintf("mark=%v/group=%d", every, n), func(b *testing.B) {
				db := benchDB(b, Options{MarkEvery: every})
				value := make([]byte, 256)
				for i := 0; b.Loop(); i++ {
					for k := range n {
						err := db.Update(func(txn Txn) error { return txn.Put(Event.KeyUint(uint64(i*n+k)), value) })
						if err != nil {
							b.Fatal(err)
						}
					}
					if err := db.Sync(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkFsync is the floor: one small write and one fsync of a plain file.
func BenchmarkFsync(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	data := make([]byte, 256)
	for i := 0; b.Loop(); i++ {
		if _, err := file.WriteAt(data, int64(i)*256); err != nil {
			b.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		db, err := Open(dir, quiet(Options{}))
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"homeagent/configs"
	"homeagent/configs/kvtest"
)

func TestReopenKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, Options{})
	if !db.Report().Fresh {
		t.Error("a new store is not reported as fresh")
	}
	fill(t, db, 0, 100)
	db.Promise(7, 9)
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir, Options{})
	if r := again.Report(); !r.Clean || r.Fresh || r.Copy != "" {
		t.Errorf("after an orderly stop: %+v", r)
	}
	if m := again.Promised(); m != (Mark{Commit: 100, Inbox: 7, Journal: 9}) {
		t.Errorf("mark = %+v", m)
	}
	if got := get(t, again, Event, "k000099"); got != "value 99" {
		t.Errorf("got %q", got)
	}
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	db := memory(t)
	boom := errors.New("boom")
	err := db.Update(func(txn Txn) error {
		if err := txn.Put(Task.KeyString("a"), []byte("1")); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("err = %v", err)
	}
	err = db.View(func(txn Txn) error {
		_, err := txn.Get(Task.KeyString("a"))
		return err
	})
	if !errors.Is(err, ErrNotFound) {
		t.Fatalf("the write of a failed transaction is there: %v", err)
	}
	if n := db.Stats().Commits; n != 0 {
		t.Errorf("%d commits, want 0", n)
	}
}

func TestRefusals(t *testing.T) {
	db := memory(t)
	cases := []struct {
		name string
		do   func(Txn) error
		want error
		code string
	}{
		{"unknown space", func(x Txn) error { return x.Put([]byte("?a"), nil) }, ErrSpace, "unknown_space"},
		{"badger's own space", func(x Txn) error { return x.Put([]byte("!badger!x"), nil) }, ErrSpace, "unknown_space"},
		{"empty key", func(x Txn) error { return x.Put([]byte("t"), nil) }, ErrEmptyKey, "empty_key"},
		{"no key", func(x Txn) error { return x.Delete(nil) }, ErrEmptyKey, "empty_key"},
		{"stamp", func(x Txn) error { return x.Put(stampKey, []byte("x")) }, ErrSpace, "unknown_space"},
		{"value", func(x Txn) error { return x.Put(Task.KeyString("a"), make([]byte, MaxValue+1)) }, ErrTooBig, "too_big"},
		{"long key", func(x Txn) error { return x.Put(Task.Key(make([]byte, maxKey)), nil) }, ErrTooBig, "too_big"},
		{"transaction", func(x Txn) error {
			for i := range 4 {
				if err := x.Put(Task.KeyUint(uint64(i)), make([]byte, MaxValue)); err != nil {
					return err
				}
			}
			return nil
		}, ErrTooBig, "too_big"},
		{"count", func(x Txn) error {
			for i := range MaxWrites + 1 {
				if err := x.Put(Task.KeyUint(uint64(i)), nil); err != nil {
					return err
				}
			}
			return nil
		}, ErrTooBig, "too_big"},
		{"scan", func(x Txn) error {
			for _, err := range x.Scan(Range{Space: '?'}) {
				return err
			}
			return nil
		}, ErrSpace, "unknown_space"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := db.Update(c.do)
			if !errors.Is(err, c.want) || Code(err) != c.code {
				t.Fatalf("err = %v (code %s), want %v (%s)", err, Code(err), c.want, c.code)
			}
			if n := db.Stats().Commits; n != 0 {
				t.Fatalf("a refused transaction was committed")
			}
		})
	}
	err := db.View(func(txn Txn) error { return txn.Put(Task.KeyString("a"), nil) })
	if !errors.Is(err, ErrReadOnly) {
		t.Errorf("write in a view: %v", err)
	}
}

// TestLimitsFitBadger commits transactions at the limits: badger must take what
// this package lets through.
func TestLimitsFitBadger(t *testing.T) {
	db := memory(t)
	if b := db.b; MaxTransaction+64<<10 > b.MaxBatchSize() || MaxWrites+8 > b.MaxBatchCount() {
		t.Fatalf("limits %d, %d against badger's %d, %d", MaxTransaction, MaxWrites, b.MaxBatchSize(), b.MaxBatchCount())
	}
	err := db.Update(func(txn Txn) error {
		for i := range MaxWrites {
			if err := txn.Put(Task.KeyUint(uint64(i)), []byte("12345678")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("most writes: %v", err)
	}
	err = db.Update(func(txn Txn) error {
		for i := range 2 {
			if err := txn.Put(Task.KeyUint(uint64(i)), make([]byte, MaxValue-64)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("most bytes: %v", err)
	}
}

func TestScan(t *testing.T) {
	db := memory(t)
	for _, key := range []string{"a1", "a2", "a3", "b1", "b\xff", "c"} {
		put(t, db, Block, key, "v"+key)
	}
	put(t, db, Space('a'), "other", "x")
	put(t, db, Config, "other", "x")
	b := func(s string) []byte { return []byte(s) }
	cases := []struct {
		name string
		r    Range
		want []string
	}{
		{"all", Range{}, []string{"a1", "a2", "a3", "b1", "b\xff", "c"}},
		{"prefix", Range{Prefix: b("a")}, []string{"a1", "a2", "a3"}},
		{"from", Range{From: b("a3")}, []string{"a3", "b1", "b\xff", "c"}},
		{"from below prefix", Range{Prefix: b("b"), From: b("a")}, []string{"b1", "b\xff"}},
		{"to", Range{To: b("b1")}, []string{"a1", "a2", "a3"}},
		{"limit", Range{Limit: 2}, []string{"a1", "a2"}},
		{"reverse", Range{Reverse: true}, []string{"c", "b\xff", "b1", "a3", "a2", "a1"}},
		{"reverse prefix", Range{Prefix: b("b"), Reverse: true}, []string{"b\xff", "b1"}},
		{"reverse to", Range{To: b("b1"), Reverse: true, Limit: 1}, []string{"a3"}},
		{"reverse from", Range{From: b("b1"), Reverse: true}, []string{"c", "b\xff", "b1"}},
		{"none", Range{Prefix: b("zz")}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.r.Space = Block
			var got []string
			err := db.View(func(txn Txn) error {
				for item, err := range txn.Scan(c.r) {
					if err != nil {
						return err
					}
					v, err := item.Value()
					if err != nil {
						return err
					}
					if string(v) != "v"+string(item.Key()) {
						t.Errorf("key %q has value %q", item.Key(), v)
					}
					got = append(got, string(item.Key()))
				}
				return nil
			})
			if err != nil || !slices.Equal(got, c.want) {
				t.Fatalf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestScanInUpdate(t *testing.T) {
	db := memory(t)
	put(t, db, Task, "a", "1")
	err := db.Update(func(txn Txn) error {
		if err := txn.Put(Task.KeyString("b"), []byte("2")); err != nil {
			return err
		}
		n := 0
		for _, err := range txn.Scan(Range{Space: Task}) {
			if err != nil {
				return err
			}
			n++
			for _, err := range txn.Scan(Range{Space: Task}) {
				if !errors.Is(err, ErrScanOpen) {
					t.Errorf("second scan: %v", err)
				}
			}
		}
		if n != 2 {
			t.Errorf("scan saw %d keys, want its own write too", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDiskReserve(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 30)
	opt := Options{Reserve: 100 << 20, Free: func(string) (int64, error) { return free.Load(), nil }}
	db := open(t, t.TempDir(), opt)
	put(t, db, Task, "a", "1")
	free.Store(100<<20 + 10)
	err := db.Update(func(txn Txn) error { return txn.Put(Task.KeyString("b"), []byte("2")) })
	if !errors.Is(err, ErrDiskLow) || Code(err) != "disk_low" {
		t.Fatalf("below the reserve: %v", err)
	}
	if !db.Stats().DiskLow && free.Load() < opt.Reserve {
		t.Error("stats do not say disk low")
	}
	if get(t, db, Task, "a") != "1" {
		t.Error("reads fail below the reserve")
	}
	db.SetReserve(10 << 20)
	put(t, db, Task, "c", "3")
	db.SetReserve(opt.Reserve)
	free.Store(1 << 30)
	put(t, db, Task, "b", "2")
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	if n := db.Stats().Bytes; n <= 0 || n > 8<<20 {
		t.Errorf("three small values occupy %d bytes", n)
	}
	if n := db.Stats().Commits; n != 3 {
		t.Errorf("%d commits, want 3", n)
	}
	free.Store(1 << 20)
	if _, err := Open(t.TempDir(), quiet(opt)); !errors.Is(err, ErrDiskLow) {
		t.Errorf("open on a full disk: %v", err)
	}
}

func TestFaults(t *testing.T) {
	boom := errors.New("boom")
	var failCommit, failSync bool
	db := open(t, t.TempDir(), Options{Faults: Faults{
		Commit: func(uint64) error {
			if failCommit {
				return boom
			}
			return nil
		},
		Sync: func(uint64) error {
			if failSync {
				return boom
			}
			return nil
		},
	}})
	put(t, db, Task, "a", "1")
	failCommit = true
	err := db.Update(func(txn Txn) error { return txn.Put(Task.KeyString("b"), nil) })
	if !errors.Is(err, boom) {
		t.Fatalf("commit: %v", err)
	}
	failCommit, failSync = false, true
	if err := db.Sync(); !errors.Is(err, boom) {
		t.Fatalf("sync: %v", err)
	}
	if m := db.Promised(); m.Commit != 0 {
		t.Fatalf("a failed sync moved the mark: %+v", m)
	}
	failSync = false
	put(t, db, Task, "b", "2")
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	if m := db.Promised(); m.Commit != 2 {
		t.Fatalf("mark %+v, want commit 2", m)
	}
}

func TestSyncIsShared(t *testing.T) {
	var syncs atomic.Int64
	db := open(t, t.TempDir(), Options{Faults: Faults{Sync: func(uint64) error { syncs.Add(1); return nil }}})
	fill(t, db, 0, 10)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if err := db.Sync(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := syncs.Load(); n != 1 {
		t.Errorf("%d syncs for one state, want 1", n)
	}
}

// TestSyncReachesRotatedLogs fills several memory tables between two syncs: a
// sync must reach the current write-ahead file and those that were full before.
func TestSyncReachesRotatedLogs(t *testing.T) {
	db := open(t, t.TempDir(), Options{})
	var synced []string
	db.syncLog = func(path string) error {
		synced = append(synced, filepath.Base(path))
		return syncFile(path)
	}
	value := bytes.Repeat([]byte("x"), 300<<10)
	current, rotated := "", 0
	for i := range 200 {
		err := db.Update(func(txn Txn) error { return txn.Put(Payload.KeyUint(uint64(i)), value) })
		if err != nil {
			t.Fatal(err)
		}
		synced = nil
		if err := db.Sync(); err != nil {
			t.Fatal(err)
		}
		names, err := numbered(db.files, ".mem")
		if err != nil || len(names) == 0 {
			t.Fatalf("write-ahead files %v, %v", names, err)
		}
		last := names[len(names)-1]
		if fsyncCoversMapped && !slices.Contains(synced, last) {
			t.Fatalf("current file %s was not synced: %v", last, synced)
		}
		if current != "" && current != last && slices.Contains(names, current) {
			rotated++
			if !slices.Contains(synced, current) {
				t.Fatalf("full file %s was not synced: %v", current, synced)
			}
		}
		current = last
	}
	if rotated == 0 {
		t.Fatal("no full file was seen: the test shows nothing")
	}
}

func TestCloseWaitsForTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := Open("", quiet(Options{InMemory: true}))
		if err != nil {
			t.Fatal(err)
		}
		tx, err := db.Begin(true)
		if err != nil {
			t.Fatal(err)
		}
		var closed atomic.Bool
		go func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			closed.Store(true)
		}()
		synctest.Wait()
		if closed.Load() {
			t.Fatal("Close did not wait for an open transaction")
		}
		if err := tx.Put(Task.KeyString("b"), []byte("2")); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatalf("commit of a transaction begun before Close: %v", err)
		}
		tx.Discard()
		if err := tx.Commit(); !errors.Is(err, ErrClosed) {
			t.Errorf("second commit: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if !closed.Load() {
			synctest.Wait()
		}
		if !closed.Load() {
			t.Error("Close did not end")
		}
	})
}

func TestCloseOfAFolderThatIsGone(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, Options{})
	if err := db.Update(func(tx Txn) error { return tx.Put(Task.KeyString("a"), []byte("1")) }); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	db.closeLimit = time.Millisecond
	if err := db.Close(); !errors.Is(err, ErrStuck) || !errors.Is(err, ErrBroken) || Code(err) != "store_broken" {
		t.Errorf("Close: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, cleanName)); err == nil {
		t.Error("a stop that did not end is noted as an orderly one")
	}
	// The flush ends when there is a folder again; without it its goroutine stays.
	if err := os.MkdirAll(db.files, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := <-db.ended; err != nil {
		t.Logf("badger ended with %v", err)
	}
}

func TestClosedRefuses(t *testing.T) {
	db := open(t, t.TempDir(), Options{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	_, errBegin := db.Begin(false)
	for name, err := range map[string]error{
		"view": db.View(func(Txn) error { return nil }), "update": db.Update(func(Txn) error { return nil }),
		"sync": db.Sync(), "begin": errBegin, "kv": db.KV(Config).Put("a", nil),
	} {
		if !errors.Is(err, ErrClosed) || Code(err) != "store_closed" {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, Options{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s%d\n", formatPrefix, formatVersion+1)
	if err := os.WriteFile(filepath.Join(dir, formatName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, quiet(Options{})); !errors.Is(err, ErrFormat) || Code(err) != "store_format" {
		t.Fatalf("err = %v", err)
	}
}

func TestSpacesAreDeclaredOnce(t *testing.T) {
	seen := map[Space]bool{}
	for _, s := range Spaces() {
		if seen[s.Space] || s.Name == "" || s.Owner == "" || s.What == "" || !s.Space.Known() {
			t.Errorf("row %+v", s)
		}
		seen[s.Space] = true
	}
	if len(seen) < 14 || Space('!').Known() || Space(0).Known() {
		t.Errorf("table has %d rows", len(seen))
	}
}

func TestKV(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		kvtest.Run(t, func(t *testing.T) configs.KV { return memory(t).KV(Config) })
	})
	t.Run("disk", func(t *testing.T) {
		kvtest.Run(t, func(t *testing.T) configs.KV { return open(t, t.TempDir(), Options{}).KV(Secret) })
	})
}

func TestKVPutIsSynced(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, Options{})
	if err := db.KV(Config).Put("core.a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if m := db.Promised(); m.Commit != 1 {
		t.Fatalf("Put returned with the mark at %+v", m)
	}
}

func TestUnderSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := Open("", quiet(Options{InMemory: true}))
		if err != nil {
			t.Fatal(err)
		}
		put(t, db, Task, "a", "1")
		if err := db.Sync(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if get(t, db, Task, "a") != "1" {
			t.Error("value lost")
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSeal(t *testing.T) {
	record := Seal(3, []byte("key"), []byte("payload"))
	v, p, err := Unseal([]byte("key"), record)
	if err != nil || v != 3 || string(p) != "payload" {
		t.Fatalf("got %d, %q, %v", v, p, err)
	}
	if _, _, err := Unseal([]byte("kez"), record); !errors.Is(err, ErrRecord) {
		t.Errorf("another key: %v", err)
	}
	for i := range record {
		bad := bytes.Clone(record)
		bad[i] ^= 1
		if _, _, err := Unseal([]byte("key"), bad); !errors.Is(err, ErrRecord) {
			t.Errorf("flipped byte %d: %v", i, err)
		}
		if _, _, err := Unseal([]byte("key"), record[:i]); !errors.Is(err, ErrRecord) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

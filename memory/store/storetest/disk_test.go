package storetest

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"homeagent/memory/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, d *Disk) *store.DB {
	t.Helper()
	db, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func put(db *store.DB, key string) error {
	return db.Update(func(tx store.Txn) error { return tx.Put(store.Task.KeyString(key), []byte(key)) })
}

// wants lists which of the keys a to e are there.
func wants(t *testing.T, db *store.DB, want string) {
	t.Helper()
	got := ""
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		err := db.View(func(tx store.Txn) error {
			ok, err := tx.Has(store.Task.KeyString(k))
			if ok {
				got += k
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got != want {
		t.Errorf("there is %q, want %q", got, want)
	}
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestCutLosesTheTail(t *testing.T) {
	for kept, want := range []string{"ab", "abc", "abcd", "abcd"} {
		d := New()
		db := open(t, d)
		do(t, put(db, "a"), put(db, "b"))
		db.Promise(7, 9)
		do(t, db.Sync(), put(db, "c"), put(db, "d"))
		if d.Unsynced() != 2 || d.Syncs() != 1 {
			t.Fatalf("%d unsynced, %d syncs", d.Unsynced(), d.Syncs())
		}
		d.Cut(kept)
		do(t, db.Close())
		again := open(t, d)
		wants(t, again, want)
		if m := again.Promised(); m.Inbox != 7 || m.Journal != 9 {
			t.Errorf("mark %+v", m)
		}
		do(t, put(again, "e"), again.Sync(), again.Close())
		wants(t, open(t, d), want+"e")
	}
}

func TestFaults(t *testing.T) {
	d := New()
	db := open(t, d)
	d.Full(true)
	if err := put(db, "a"); !errors.Is(err, store.ErrDiskLow) {
		t.Errorf("full: %v", err)
	}
	d.Full(false)
	d.FailCommit()
	if err := put(db, "a"); !errors.Is(err, errPower) {
		t.Errorf("commit: %v", err)
	}
	do(t, put(db, "a"), db.Sync())
	d.FailSync()
	do(t, put(db, "b"))
	if err := db.Sync(); !errors.Is(err, store.ErrBroken) {
		t.Errorf("sync: %v", err)
	}
	if err := put(db, "c"); !errors.Is(err, store.ErrBroken) {
		t.Errorf("after a failed sync: %v", err)
	}
	d.Cut(0)
	_ = db.Close()
	wants(t, open(t, d), "a")
	if d.Break(store.Task.KeyString("zz")) || !d.Break(store.Task.KeyString("a")) {
		t.Error("Break")
	}
}

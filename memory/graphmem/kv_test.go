package graphmem

import (
	"context"
	"errors"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/hidal-go/hidalgo/kv"
	"github.com/hidal-go/hidalgo/kv/flat"
	"github.com/hidal-go/hidalgo/kv/kvtest"
	hidaloptions "github.com/hidal-go/hidalgo/kv/options"

	"homeagent/memory/store"
)

// ownedDB closes the store with the adapter, as hidalgo's suite expects.
type ownedDB struct {
	*flatDB
}

func (o ownedDB) Close() error { return o.db.Close() }

// openStore opens a store in dir, in memory when dir is empty, for the test.
func openStore(t testing.TB, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(dir, store.Options{InMemory: dir == "", Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestConformance(t *testing.T) {
	kvtest.RunTestLocal(t, flat.UpgradeOpenPath(func(path string) (flat.KV, error) {
		db, err := store.Open(path, store.Options{Reserve: -1})
		if err != nil {
			return nil, err
		}
		// Neighbours on both sides prove that the adapter stays in its prefix.
		err = db.Update(func(txn store.Txn) error {
			return errors.Join(txn.Put([]byte("e\xff"), []byte("before")), txn.Put([]byte("gr"), []byte("after")),
				txn.Put([]byte("i1"), []byte("after")))
		})
		if err != nil {
			return nil, err
		}
		return ownedDB{newFlatDB(db, []byte("gq"))}, nil
	}), nil)
}

func TestPrefixReachesBadger(t *testing.T) {
	db := openStore(t, "")
	f := newFlatDB(db, []byte("gq"))
	ctx := context.Background()
	if err := f.Update(ctx, func(tx flat.Tx) error {
		return errors.Join(tx.Put(ctx, flat.Key("a1"), nil), tx.Put(ctx, flat.Key("b1"), nil), tx.Put(ctx, flat.Key("b2"), nil))
	}); err != nil {
		t.Fatal(err)
	}
	tx, err := f.Tx(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	it, ok := tx.Scan(ctx, hidaloptions.WithPrefixFlat(flat.Key("b"))).(*flatIterator)
	if !ok {
		t.Fatal("the prefix option wrapped the iterator instead of reaching it")
	}
	defer it.Close()
	n := 0
	for it.Next(ctx) {
		n++
	}
	if n != 2 || string(it.pref) != "b" {
		t.Fatalf("scanned %d keys with prefix %q, want 2 with b", n, it.pref)
	}
}

func TestErrorMapping(t *testing.T) {
	other := errors.New("disk")
	for _, c := range []struct{ in, want error }{
		{nil, nil},
		{badger.ErrKeyNotFound, kv.ErrNotFound},
		{store.ErrNotFound, kv.ErrNotFound},
		{store.ErrReadOnly, kv.ErrReadOnly},
		{badger.ErrConflict, kv.ErrConflict},
		{badger.ErrReadOnlyTxn, kv.ErrReadOnly},
		{other, other},
	} {
		if got := mapError(c.in); got != c.want { //nolint:errorlint // hidalgo compares by identity
			t.Errorf("mapError(%v) = %v, want %v", c.in, got, c.want)
		}
	}
}

func TestJoinedTransaction(t *testing.T) {
	db := openStore(t, "")
	f := newFlatDB(db, []byte("gq"))
	ctx := context.Background()
	txn, err := db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	defer txn.Discard()
	if err := txn.Put([]byte("x1"), []byte("other space")); err != nil {
		t.Fatal(err)
	}
	err = f.join(txn.Txn, func() error {
		return f.Update(ctx, func(tx flat.Tx) error { return tx.Put(ctx, flat.Key("k"), flat.Value("v")) })
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := func() (n int) {
		_ = db.View(func(txn store.Txn) error {
			for _, k := range []string{"x1", "gqk"} {
				if _, err := txn.Get([]byte(k)); err == nil {
					n++
				}
			}
			return nil
		})
		return n
	}
	if n := seen(); n != 0 {
		t.Fatalf("%d keys visible before the owner committed", n)
	}
	if err := txn.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := seen(); n != 2 {
		t.Fatalf("%d of 2 keys visible after the commit", n)
	}
}

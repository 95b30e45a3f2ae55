package graphmem

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/hidal-go/hidalgo/kv/flat"

	"homeagent/memory/store"
)

// flatDB presents the keys of an open store that begin with prefix as a hidalgo
// flat store. It does not own the store: Close leaves it open.
type flatDB struct {
	db     *store.DB
	prefix []byte
	// joined, when set, is handed out for every read-write transaction, whose
	// Commit then does nothing: the one who set it commits. Only the single
	// writer of the graph sets and reads it.
	joined *store.Txn
	// write serialises the other read-write transactions: the store detects no
	// conflicts.
	write sync.Mutex
}

var _ flat.KV = (*flatDB)(nil)

func newFlatDB(db *store.DB, prefix []byte) *flatDB {
	return &flatDB{db: db, prefix: bytes.Clone(prefix)}
}

func (d *flatDB) Close() error { return nil }

func (d *flatDB) Tx(_ context.Context, rw bool) (flat.Tx, error) {
	if rw && d.joined != nil {
		return &flatTx{txn: *d.joined, prefix: d.prefix}, nil
	}
	if rw {
		d.write.Lock()
	}
	own, err := d.db.Begin(rw)
	if err != nil {
		if rw {
			d.write.Unlock()
		}
		return nil, err
	}
	t := &flatTx{txn: own.Txn, prefix: d.prefix, own: own}
	if rw {
		t.unlock = d.write.Unlock
	}
	return t, nil
}

func (d *flatDB) View(ctx context.Context, fn func(tx flat.Tx) error) error {
	return flat.View(ctx, d, fn)
}

func (d *flatDB) Update(ctx context.Context, fn func(tx flat.Tx) error) error {
	return flat.Update(ctx, d, fn)
}

// join runs fn while every read-write transaction of d is txn.
func (d *flatDB) join(txn store.Txn, fn func() error) error {
	d.joined = &txn
	defer func() { d.joined = nil }()
	return fn()
}

type flatTx struct {
	txn    store.Txn
	prefix []byte
	own    *store.Tx // nil when joined: its owner ends it
	unlock func()
}

var _ flat.Tx = (*flatTx)(nil)

// key returns the key inside the store in a slice of its own: it must stay as it
// is until the transaction ends.
func (t *flatTx) key(k flat.Key) []byte {
	out := make([]byte, 0, len(t.prefix)+len(k))
	out = append(out, t.prefix...)
	return append(out, k...)
}

func (t *flatTx) Commit(context.Context) error {
	if t.own == nil {
		return nil
	}
	defer t.end()
	return mapError(t.own.Commit())
}

func (t *flatTx) Close() error {
	if t.own != nil {
		t.own.Discard()
	}
	t.end()
	return nil
}

func (t *flatTx) end() {
	if t.unlock != nil {
		t.unlock()
		t.unlock = nil
	}
}

func (t *flatTx) Get(_ context.Context, k flat.Key) (flat.Value, error) {
	if len(k) == 0 {
		return nil, flat.ErrNotFound
	}
	v, err := t.txn.Get(t.key(k))
	if err != nil {
		return nil, mapError(err)
	}
	return v, nil
}

func (t *flatTx) GetBatch(ctx context.Context, keys []flat.Key) ([]flat.Value, error) {
	return flat.GetBatch(ctx, t, keys)
}

func (t *flatTx) Put(_ context.Context, k flat.Key, v flat.Value) error {
	return mapError(t.txn.Put(t.key(k), v))
}

func (t *flatTx) Del(_ context.Context, k flat.Key) error {
	return mapError(t.txn.Delete(t.key(k)))
}

func (t *flatTx) Scan(_ context.Context, opts ...flat.IteratorOption) flat.Iterator {
	return flat.ApplyIteratorOptions(&flatIterator{tx: t}, opts)
}

// mapError turns errors of the store and of badger into those hidalgo compares by identity.
func mapError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNotFound), errors.Is(err, badger.ErrKeyNotFound):
		return flat.ErrNotFound
	case errors.Is(err, badger.ErrConflict):
		return flat.ErrConflict
	case errors.Is(err, store.ErrReadOnly), errors.Is(err, badger.ErrReadOnlyTxn):
		return flat.ErrReadOnly
	default:
		return err
	}
}

// flatIterator opens badger's iterator at the first step, so that the prefix
// given by WithPrefix reaches badger and prunes tables. Values are not
// prefetched: most scans want keys.
type flatIterator struct {
	tx    *flatTx
	it    *badger.Iterator
	pref  flat.Key
	began bool
	valid bool
	err   error
}

var (
	_ flat.Seeker         = (*flatIterator)(nil)
	_ flat.PrefixIterator = (*flatIterator)(nil)
)

func (i *flatIterator) open() {
	if i.it != nil {
		return
	}
	opt := badger.DefaultIteratorOptions
	opt.PrefetchValues = false
	opt.Prefix = i.tx.key(i.pref)
	i.it = i.tx.txn.Raw().NewIterator(opt)
}

func (i *flatIterator) Reset() {
	i.began, i.valid, i.err = false, false, nil
}

func (i *flatIterator) WithPrefix(pref flat.Key) flat.Iterator {
	if i.it != nil {
		i.it.Close()
		i.it = nil
	}
	i.Reset()
	i.pref = pref.Clone()
	return i
}

func (i *flatIterator) Seek(_ context.Context, key flat.Key) bool {
	i.open()
	i.began = true
	i.it.Seek(i.tx.key(key))
	i.valid = i.it.Valid()
	return i.valid
}

func (i *flatIterator) Next(context.Context) bool {
	i.open()
	switch {
	case !i.began:
		i.began = true
		i.it.Rewind()
	case i.it.Valid():
		i.it.Next()
	}
	i.valid = i.it.Valid()
	return i.valid
}

func (i *flatIterator) Key() flat.Key {
	if !i.valid {
		return nil
	}
	return i.it.Item().Key()[len(i.tx.prefix):]
}

func (i *flatIterator) Val() flat.Value {
	if !i.valid {
		return nil
	}
	v, err := i.it.Item().ValueCopy(nil)
	if err != nil {
		i.err = err
		return nil
	}
	return v
}

func (i *flatIterator) Err() error { return i.err }

func (i *flatIterator) Close() error {
	if i.it != nil {
		i.it.Close()
		i.it = nil
	}
	i.valid = false
	return i.err
}

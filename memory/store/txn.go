package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"
)

// Txn is a transaction on a snapshot. It belongs to the function it was given
// to and to one goroutine at a time. It is a small value; copies are the same
// transaction.
type Txn struct {
	db *DB
	b  *badger.Txn
	// w is nil in a View.
	w *writes
}

// writes is what a write transaction has gathered.
type writes struct {
	size, count int
	scanning    bool
	// raw is set when the transaction was handed out as badger's own.
	raw bool
	// log holds the writes when Faults.Written wants them.
	log []Write
}

// Write is one encoded write. The key has no space byte.
type Write struct {
	Space  Space
	Key    []byte
	Value  []byte
	Delete bool
}

// View runs fn on a snapshot. Slices handed out by scans are valid only as they
// say; those of Get belong to the caller.
func (db *DB) View(fn func(Txn) error) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	b := db.b.NewTransaction(false)
	defer b.Discard()
	return fn(Txn{db: db, b: b})
}

// Update runs fn as the only writer and commits when it returns nil: all its
// writes take effect or none. It does not sync. An error of fn is returned as it
// is; ErrTooBig, ErrDiskLow and a fault hook's error mean that nothing was
// written; ErrBroken means that it is not known.
func (db *DB) Update(fn func(Txn) error) error { return db.update(fn, db.reserve.Load()) }

func (db *DB) update(fn func(Txn) error, reserve int64) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	db.write.Lock()
	defer db.write.Unlock()
	b := db.b.NewTransaction(true)
	defer b.Discard()
	txn := Txn{db: db, b: b, w: &writes{}}
	if err := fn(txn); err != nil {
		return err
	}
	return db.commitLocked(txn, reserve)
}

// Apply commits encoded writes as one transaction, like Update.
func (db *DB) Apply(list []Write) error {
	return db.Update(func(txn Txn) error { return txn.Apply(list) })
}

// Tx is a transaction whose end is in the hands of its owner. Others' commits
// are not held up before Commit; it must be the only writer of what it writes.
type Tx struct {
	Txn
	ended bool
}

// Begin starts a transaction; with write it may write. Commit or Discard must
// follow, or Close waits for ever.
func (db *DB) Begin(write bool) (*Tx, error) {
	if err := db.enter(); err != nil {
		return nil, err
	}
	tx := &Tx{Txn: Txn{db: db, b: db.b.NewTransaction(write)}}
	if write {
		tx.w = &writes{}
	}
	return tx, nil
}

// Commit ends the transaction with the rules of Update.
func (t *Tx) Commit() error {
	if t.ended {
		return ErrClosed
	}
	defer t.Discard()
	if t.w == nil {
		return nil
	}
	t.db.write.Lock()
	defer t.db.write.Unlock()
	return t.db.commitLocked(t.Txn, t.db.reserve.Load())
}

// Discard ends the transaction without effect. After Commit or Discard it does
// nothing.
func (t *Tx) Discard() {
	if t.ended {
		return
	}
	t.ended = true
	t.b.Discard()
	t.db.leave()
}

// commitLocked stamps and commits; db.write is held.
func (db *DB) commitLocked(txn Txn, reserve int64) error {
	if txn.w.count == 0 && !txn.w.raw {
		return nil
	}
	if err := db.Broken(); err != nil {
		return err
	}
	if err := db.room(int64(txn.w.size), reserve); err != nil {
		return err
	}
	next := db.commit.Load() + 1
	if db.opt.Faults.Commit != nil {
		if err := db.opt.Faults.Commit(next); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	err := txn.b.Set(stampKey, binary.BigEndian.AppendUint64(nil, next))
	if err == nil {
		err = txn.b.Commit()
	}
	switch {
	case err == nil:
		db.commit.Store(next)
		if db.opt.Faults.Written != nil {
			db.opt.Faults.Written(next, txn.w.log)
		}
		return nil
	case errors.Is(err, badger.ErrTxnTooBig):
		return fmt.Errorf("%w: %w", ErrTooBig, err)
	}
	return db.fail(fmt.Errorf("commit: %w", err))
}

// room refuses a write of size bytes that would eat into the reserve.
func (db *DB) room(size, reserve int64) error {
	if reserve == 0 {
		return nil
	}
	free, err := db.opt.Free(db.root)
	if err != nil {
		if gone := db.checkPlace(); gone != nil {
			return gone
		}
		return fmt.Errorf("free space: %w", err)
	}
	if free-size < reserve {
		return fmt.Errorf("%w: %d bytes free, reserve %d", ErrDiskLow, free, reserve)
	}
	return nil
}

// Writable reports whether the transaction may write.
func (t Txn) Writable() bool { return t.w != nil }

// Raw returns badger's transaction, for an engine that brings its own way of
// iterating. It is for reading: the limits of this package do not see what is
// written through it.
func (t Txn) Raw() *badger.Txn {
	if t.w != nil {
		t.w.raw = true
	}
	return t.b
}

// Get returns the value of key, in a slice of the caller's own, or ErrNotFound.
// Writes of the same transaction are seen.
func (t Txn) Get(key []byte) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	item, err := t.b.Get(key)
	if err != nil {
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil, ErrNotFound
		}
		return nil, fmt.Errorf("get %q: %w", key, err)
	}
	return item.ValueCopy(nil)
}

// Has reports whether key has a value.
func (t Txn) Has(key []byte) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	_, err := t.b.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Put sets key to value. Both slices must stay unchanged until the transaction
// has ended. The caller must not go on with the transaction after an error.
func (t Txn) Put(key, value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w: value of %d bytes", ErrTooBig, len(value))
	}
	if err := t.take(key, len(value)); err != nil {
		return err
	}
	t.note(key, value, false)
	return t.set(t.b.Set(key, value))
}

// Delete removes key; what is not there is no error. The slice must stay
// unchanged until the transaction has ended.
func (t Txn) Delete(key []byte) error {
	if err := t.take(key, 0); err != nil {
		return err
	}
	t.note(key, nil, true)
	return t.set(t.b.Delete(key))
}

// note keeps a write for a simulated disk.
func (t Txn) note(key, value []byte, deleted bool) {
	if t.db.opt.Faults.Written != nil {
		t.w.log = append(t.w.log, Write{Space: Space(key[0]), Key: key[1:], Value: value, Delete: deleted})
	}
}

// Apply makes encoded writes part of the transaction.
func (t Txn) Apply(list []Write) error {
	for _, w := range list {
		key := w.Space.Key(w.Key)
		var err error
		if w.Delete {
			err = t.Delete(key)
		} else {
			err = t.Put(key, w.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take counts a write against the limits.
func (t Txn) take(key []byte, value int) error {
	if t.w == nil {
		return ErrReadOnly
	}
	if err := checkKey(key); err != nil {
		return err
	}
	if bytes.Equal(key, stampKey) {
		return fmt.Errorf("%w: the stamp belongs to the store", ErrSpace)
	}
	t.w.size += len(key) + value + writeCost
	t.w.count++
	if t.w.size > MaxTransaction || t.w.count > MaxWrites {
		return fmt.Errorf("%w: %d writes of %d bytes", ErrTooBig, t.w.count, t.w.size)
	}
	return nil
}

func (t Txn) set(err error) error {
	if errors.Is(err, badger.ErrTxnTooBig) {
		return fmt.Errorf("%w: %w", ErrTooBig, err)
	}
	return err
}

// Range selects keys of one space. Keys in it have no space byte.
type Range struct {
	Space Space
	// Prefix limits the scan to keys that begin with it.
	Prefix []byte
	// From is the first key, inclusive; nil means from the beginning.
	From []byte
	// To is the end, exclusive; nil means to the end.
	To []byte
	// Reverse goes from the end to the beginning.
	Reverse bool
	// Limit is the most items; zero means all.
	Limit int
}

// Item is one step of a scan; it and its slices are valid until the next step.
type Item struct{ item *badger.Item }

// Key returns the key without the space byte.
func (i Item) Key() []byte { return i.item.Key()[1:] }

// FullKey returns the key with the space byte.
func (i Item) FullKey() []byte { return i.item.Key() }

// Value returns the value without a copy.
func (i Item) Value() ([]byte, error) {
	var out []byte
	err := i.item.Value(func(v []byte) error {
		out = v
		return nil
	})
	return out, err
}

// Scan walks a range lazily: each step reads one key, and a value only when it is
// asked for. In a write transaction it sees the writes made before the scan
// began, and only one scan may be open at a time.
func (t Txn) Scan(r Range) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if !r.Space.Known() {
			yield(Item{}, fmt.Errorf("%w: %#02x", ErrSpace, byte(r.Space)))
			return
		}
		if t.w != nil {
			if t.w.scanning {
				yield(Item{}, ErrScanOpen)
				return
			}
			t.w.scanning = true
			defer func() { t.w.scanning = false }()
		}
		opt := badger.DefaultIteratorOptions
		opt.PrefetchValues = false
		opt.Reverse = r.Reverse
		opt.Prefix = r.Space.Key(r.Prefix)
		it := t.b.NewIterator(opt)
		defer it.Close()
		n := 0
		for r.start(it, opt.Prefix); it.Valid(); it.Next() {
			key := it.Item().Key()[1:]
			if r.before(key) {
				continue
			}
			if r.past(key) || r.Limit > 0 && n == r.Limit {
				return
			}
			n++
			if !yield(Item{it.Item()}, nil) {
				return
			}
		}
	}
}

// start moves it to the first key that may be in the range.
func (r Range) start(it *badger.Iterator, prefix []byte) {
	switch {
	case !r.Reverse && r.From != nil && bytes.Compare(r.From, r.Prefix) > 0:
		it.Seek(r.Space.Key(r.From))
	case !r.Reverse:
		it.Rewind()
	case r.To != nil && bytes.HasPrefix(r.To, r.Prefix):
		it.Seek(r.Space.Key(r.To))
	default:
		// No key has this many bytes of 0xff behind its prefix.
		it.Seek(append(bytes.Clone(prefix), bytes.Repeat([]byte{0xff}, 32)...))
	}
}

// before reports a key that comes before the range in the scan's direction.
func (r Range) before(key []byte) bool {
	if r.Reverse {
		return r.To != nil && bytes.Compare(key, r.To) >= 0
	}
	return r.From != nil && bytes.Compare(key, r.From) < 0
}

// past reports a key that comes after the range in the scan's direction.
func (r Range) past(key []byte) bool {
	if r.Reverse {
		return r.From != nil && bytes.Compare(key, r.From) < 0
	}
	return r.To != nil && bytes.Compare(key, r.To) >= 0
}

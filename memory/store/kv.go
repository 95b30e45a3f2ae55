package store

import (
	"errors"
	"fmt"
)

// kvVersion is the record version of values written by KV.
const kvVersion = 1

// KV is one key space as a small durable map from text to bytes. It implements
// configs.KV. It is safe for concurrent use.
type KV struct {
	db    *DB
	space Space
}

// KV returns the map over space, which must be declared and must have no other
// writer.
func (db *DB) KV(space Space) *KV { return &KV{db: db, space: space} }

// Get returns the value of key, which belongs to the caller, and whether there
// is one.
func (kv *KV) Get(key string) (value []byte, found bool, err error) {
	if key == "" {
		return nil, false, ErrEmptyKey
	}
	full := kv.space.KeyString(key)
	err = kv.db.View(func(txn Txn) error {
		record, err := txn.Get(full)
		if err != nil {
			return err
		}
		value, err = kv.open(full, record)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil, false, nil
	}
	return value, err == nil, err
}

// Put stores value under key; when it returns nil the value is on disk.
func (kv *KV) Put(key string, value []byte) error {
	if key == "" {
		return ErrEmptyKey
	}
	full := kv.space.KeyString(key)
	record := Seal(kvVersion, full, value)
	return kv.write(func(txn Txn) error { return txn.Put(full, record) })
}

// Delete removes key; what is not there is no error.
func (kv *KV) Delete(key string) error {
	if key == "" {
		return ErrEmptyKey
	}
	full := kv.space.KeyString(key)
	return kv.write(func(txn Txn) error {
		if found, err := txn.Has(full); err != nil || !found {
			return err
		}
		return txn.Delete(full)
	})
}

func (kv *KV) write(fn func(Txn) error) error {
	if err := kv.db.Update(fn); err != nil {
		return err
	}
	return kv.db.Sync()
}

// Iterate calls fn for every key that begins with prefix, in ascending order. The
// value is valid only during the call. An error of fn ends the iteration and is
// returned as it is. fn must not write to the store.
func (kv *KV) Iterate(prefix string, fn func(key string, value []byte) error) error {
	return kv.db.View(func(txn Txn) error {
		for item, err := range txn.Scan(Range{Space: kv.space, Prefix: []byte(prefix)}) {
			if err != nil {
				return err
			}
			record, err := item.Value()
			if err != nil {
				return err
			}
			value, err := kv.open(item.FullKey(), record)
			if err != nil {
				return err
			}
			if err := fn(string(item.Key()), value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (kv *KV) open(key, record []byte) ([]byte, error) {
	version, value, err := Unseal(key, record)
	if err != nil {
		return nil, err
	}
	if version != kvVersion {
		return nil, fmt.Errorf("%w: version %d of %q", ErrRecord, version, key)
	}
	return value, nil
}

package configs

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// KV is the small store the registry keeps its values in. The node's store
// offers one for plain values and one for sealed secrets, each over its own
// key space.
//
// Obligations of an implementation:
//   - Every method may be called from any goroutine.
//   - A value handed to Put is copied before Put returns; a value handed out by
//     Get belongs to the caller.
//   - When Put or Delete returns nil the change survives a crash of the process,
//     and every later Get and Iterate sees it.
//   - Errors mean that the store could not answer; a missing key is not an error.
//
// configs/kvtest holds the suite each implementation passes.
type KV interface {
	// Get returns the value of key and whether there is one. A stored empty
	// value is reported as present.
	Get(key string) (value []byte, found bool, err error)

	// Put stores value under key, in place of an earlier one. The key is not
	// empty.
	Put(key string, value []byte) error

	// Delete removes key. Removing what is not there is no error.
	Delete(key string) error

	// Iterate calls fn for every key that starts with prefix, in ascending byte
	// order of the keys; an empty prefix means all. The keys are the full ones,
	// prefix included. The value is valid only during the call. An error of fn
	// ends the iteration and is returned unchanged. fn must not write to the
	// store.
	Iterate(prefix string, fn func(key string, value []byte) error) error
}

// MapKV is a KV that lives in memory and is lost with the process. It serves
// commands that look at the defaults without opening a store, and tests.
type MapKV struct {
	mu     sync.RWMutex
	values map[string][]byte
}

// NewMapKV returns an empty MapKV.
func NewMapKV() *MapKV { return &MapKV{values: map[string][]byte{}} }

// Get implements KV; it never fails.
func (m *MapKV) Get(key string) ([]byte, bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	value, found := m.values[key]
	return slices.Clone(value), found, nil
}

// Put implements KV; it fails only for an empty key.
func (m *MapKV) Put(key string, value []byte) error {
	if key == "" {
		return ErrEmptyKey
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = slices.Clone(value)
	return nil
}

// Delete implements KV; it never fails.
func (m *MapKV) Delete(key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return nil
}

// Iterate implements KV over a copy taken at the call.
func (m *MapKV) Iterate(prefix string, fn func(key string, value []byte) error) error {
	m.mu.RLock()
	snapshot := maps.Clone(m.values)
	m.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(snapshot)) {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if err := fn(key, slices.Clone(snapshot[key])); err != nil {
			return err
		}
	}
	return nil
}

// Package shelf keeps what was read lately, for engines that read much the
// same again and again.
//
// A shelf has two generations. What is put or asked for stands among the
// young; when they are many they become the old, and those of the old that
// nobody asked for meanwhile go. So it holds at most twice its size, without a
// list to keep in order.
package shelf

import "cmp"

// DefaultSize is how many values a generation holds where nothing else is said.
const DefaultSize = 512

// Shelf keeps values by key. The zero value is empty and ready. It is not safe
// for concurrent use: its owner has a lock, which often covers more than the
// shelf.
type Shelf[K comparable, V any] struct {
	// Size is how many values a generation holds; zero means DefaultSize.
	Size int

	young, old map[K]V
}

// Get returns the value of key and keeps it young.
func (s *Shelf[K, V]) Get(key K) (V, bool) {
	if v, ok := s.young[key]; ok {
		return v, true
	}
	v, ok := s.old[key]
	if ok {
		s.Put(key, v)
	}
	return v, ok
}

// Put keeps a value.
func (s *Shelf[K, V]) Put(key K, v V) {
	if s.young == nil || len(s.young) >= cmp.Or(s.Size, DefaultSize) {
		s.old, s.young = s.young, make(map[K]V)
	}
	s.young[key] = v
}

// Len is how many values are kept; one that stands in both generations counts
// twice.
func (s *Shelf[K, V]) Len() int { return len(s.young) + len(s.old) }

// Clear forgets everything.
func (s *Shelf[K, V]) Clear() { s.young, s.old = nil, nil }

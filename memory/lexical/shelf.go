package lexical

import "sync"

// shelfSize is how many texts a generation of the shelf holds; a text takes some
// 250 bytes.
const shelfSize = 4096

// shelf keeps texts that searches read before: the neighbours of what was found are
// hundreds of small reads, more than half of the time of a search. Only texts that
// have one after them stand here, since their records never change again. The zero
// value is empty. Safe for concurrent use; the texts are not to be changed.
type shelf struct {
	mu         sync.Mutex
	young, old map[uint64]*text
}

// get returns nil for a text that is not on the shelf.
func (s *shelf) get(n uint64) *text {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.young[n]; ok {
		return t
	}
	t, ok := s.old[n]
	if ok {
		s.add(n, t)
	}
	return t
}

// clear forgets everything.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.young, s.old = nil, nil
}

func (s *shelf) put(n uint64, t *text) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(n, t)
}

// add puts a text among the young; when they are many they become the old, and those
// that were not asked for since go. The lock is held.
func (s *shelf) add(n uint64, t *text) {
	if s.young == nil || len(s.young) >= shelfSize {
		s.old, s.young = s.young, make(map[uint64]*text)
	}
	s.young[n] = t
}

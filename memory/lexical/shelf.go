package lexical

import (
	"sync"

	"homeagent/memory/shelf"
)

// structures keeps the structure of texts that searches read before: the neighbours of what was found are hundreds of small
// reads, more than half of the time of a search. Only texts that have one after them stand here, since their records never
// change again. A block of texts takes some 16 kB and covers blockSize numbers, so that a generation of the shelf covers
// 128,000 texts in 8 MB. The zero value is empty. Safe for concurrent use.
type structures struct {
	mu     sync.Mutex
	blocks shelf.Shelf[uint32, *shelfBlock]
}

type shelfBlock struct {
	have  [blockSize / 64]uint64
	texts [blockSize]structure
}

// get returns false for a text that is not on the shelf.
func (s *structures) get(n uint64) (structure, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blocks.Get(uint32(n / blockSize))
	i := n % blockSize
	if !ok || b.have[i/64]&(1<<(i%64)) == 0 {
		return structure{}, false
	}
	return b.texts[i], true
}

// clear forgets everything.
func (s *structures) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocks.Clear()
}

func (s *structures) put(n uint64, t structure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, i := uint32(n/blockSize), n%blockSize
	b, ok := s.blocks.Get(key)
	if !ok {
		b = &shelfBlock{}
		s.blocks.Put(key, b)
	}
	b.texts[i] = t
	b.have[i/64] |= 1 << (i % 64)
}

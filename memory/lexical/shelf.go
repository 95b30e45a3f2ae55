package lexical

import "sync"

// shelfSize is how many blocks of texts a generation of the shelf holds; a block takes some 16 kB and covers blockSize
// numbers, so that a generation covers 128,000 texts in 8 MB.
const shelfSize = 512

// shelf keeps the structure of texts that searches read before: the neighbours of what was found are hundreds of small
// reads, more than half of the time of a search. Only texts that have one after them stand here, since their records never
// change again. The zero value is empty. Safe for concurrent use.
type shelf struct {
	mu         sync.Mutex
	young, old map[uint32]*shelfBlock
}

type shelfBlock struct {
	have  [blockSize / 64]uint64
	texts [blockSize]structure
}

// get returns false for a text that is not on the shelf.
func (s *shelf) get(n uint64) (structure, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, i := s.block(uint32(n/blockSize)), n%blockSize
	if b == nil || b.have[i/64]&(1<<(i%64)) == 0 {
		return structure{}, false
	}
	return b.texts[i], true
}

// clear forgets everything.
func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.young, s.old = nil, nil
}

func (s *shelf) put(n uint64, t structure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, i := uint32(n/blockSize), n%blockSize
	b := s.block(key)
	if b == nil {
		b = &shelfBlock{}
		s.add(key, b)
	}
	b.texts[i] = t
	b.have[i/64] |= 1 << (i % 64)
}

// block returns a block and keeps it young; nil when it is not there. The lock is held.
func (s *shelf) block(key uint32) *shelfBlock {
	if b, ok := s.young[key]; ok {
		return b
	}
	b := s.old[key]
	if b != nil {
		s.add(key, b)
	}
	return b
}

// add puts a block among the young; when they are many they become the old, and those
// that were not asked for since go. The lock is held.
func (s *shelf) add(key uint32, b *shelfBlock) {
	if s.young == nil || len(s.young) >= shelfSize {
		s.old, s.young = s.young, make(map[uint32]*shelfBlock)
	}
	s.young[key] = b
}

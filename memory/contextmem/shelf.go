package contextmem

import (
	"sync"

	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	// shelfSize is how many events a generation of the shelf holds, enough for the windows of a few conversations, and
	// shelfText the most tokens of one: at most some 4 MiB altogether, a quarter with talk of the usual length.
	shelfSize = 256
	shelfText = 2048
)

// kept is an event as windows need it. It is frozen.
type kept struct {
	record *messages.EventRecord
	tokens int // by EstimateEvent
}

// shelf keeps the events of windows: that of the next turn is the same but for its ends, and to read and decode sixty
// events takes longer than all else a window does. An event never changes, and who removes one takes it off the lists that
// windows walk in the same transaction, so that it is not asked for any more. The zero value is empty. Safe for concurrent
// use.
type shelf struct {
	mu         sync.Mutex
	young, old map[place]*kept
}

type place struct{ agent, event string }

func (s *shelf) get(txn store.Txn, agent, event string) (*kept, error) {
	at := place{agent, event}
	if k := s.look(at); k != nil {
		return k, nil
	}
	r, err := Get(txn, agent, event)
	if err != nil {
		return nil, err
	}
	k := &kept{record: r, tokens: EstimateEvent(r.GetEvent())}
	if k.tokens <= shelfText {
		s.mu.Lock()
		s.add(at, k)
		s.mu.Unlock()
	}
	return k, nil
}

func (s *shelf) look(at place) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.young[at]; ok {
		return k
	}
	k := s.old[at]
	if k != nil {
		s.add(at, k)
	}
	return k
}

// add puts an event among the young; when they are many they become the old, and those that were not asked for since go.
// The lock is held.
func (s *shelf) add(at place, k *kept) {
	if s.young == nil || len(s.young) >= shelfSize {
		s.old, s.young = s.young, make(map[place]*kept)
	}
	s.young[at] = k
}

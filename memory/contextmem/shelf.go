package contextmem

import (
	"sync"

	"homeagent/memory/shelf"
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

// keptEvents holds the events of windows: that of the next turn is the same but for its ends, and to read and decode sixty
// events takes longer than all else a window does. An event never changes, and who removes one takes it off the lists that
// windows walk in the same transaction, so that it is not asked for any more. Safe for concurrent use.
type keptEvents struct {
	mu    sync.Mutex
	shelf shelf.Shelf[place, *kept]
}

type place struct{ agent, event string }

func (s *keptEvents) get(txn store.Txn, agent, event string) (*kept, error) {
	at := place{agent, event}
	s.mu.Lock()
	k, ok := s.shelf.Get(at)
	s.mu.Unlock()
	if ok {
		return k, nil
	}
	r, err := Get(txn, agent, event)
	if err != nil {
		return nil, err
	}
	k = &kept{record: r, tokens: EstimateEvent(r.GetEvent())}
	if k.tokens <= shelfText {
		s.mu.Lock()
		s.shelf.Put(at, k)
		s.mu.Unlock()
	}
	return k, nil
}

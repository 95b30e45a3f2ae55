package recall

import (
	"errors"
	"sync"

	"homeagent/memory/contextmem"
	"homeagent/memory/ledger"
	"homeagent/memory/lexical"
	"homeagent/memory/shelf"
	"homeagent/memory/store"
	"homeagent/messages"
)

// shelfText is the longest text of a gist that is kept, in bytes: at most 4 MiB altogether, half a MiB with talk of the
// usual length.
const shelfText = 2 << 10

// gist is what the rules need to know of an event. It is not changed once made.
type gist struct {
	text  string
	plain string // of text; see plain
	kind  messages.EventKind
	// speaker is who said it, for people; task is the one in which.
	speaker, task string
	// asks: it does nothing but ask; memory: what was said before.
	asks, memory bool
	taint        messages.Taint
}

func newGist(e *messages.Event) *gist {
	g := &gist{text: lexical.EventText(e), kind: e.GetKind(), speaker: speaker(e), task: e.GetTaskId(), taint: taint(e)}
	g.plain = plain(g.text)
	if g.kind == messages.EventKind_EVENT_KIND_INPUT {
		g.asks, g.memory = lexical.OnlyAsks(g.text), asksMemory(g.text)
	}
	return g
}

// taint is foreign when anything of an event is, or is not known to be otherwise.
func taint(e *messages.Event) messages.Taint {
	if foreign(e.GetTaint()) {
		return messages.Taint_TAINT_FOREIGN
	}
	for _, b := range e.GetBlocks() {
		if foreign(b.GetTaint()) {
			return messages.Taint_TAINT_FOREIGN
		}
	}
	return messages.Taint_TAINT_RECALLED
}

func foreign(t messages.Taint) bool {
	return t == messages.Taint_TAINT_FOREIGN || t == messages.Taint_TAINT_UNSPECIFIED
}

// gists keeps the gists of events that were looked at before: a conversation brings up much the same ones turn after turn.
// An event is never changed; that it is still there is asked each time. The zero value is empty. Safe for concurrent use.
type gists struct {
	mu   sync.Mutex
	kept shelf.Shelf[string, *gist]
}

// get returns the gist of an event, or contextmem.ErrNotFound.
func (s *gists) get(txn store.Txn, agent, id string) (*gist, error) {
	key := ledger.EventKey(agent, id)
	if g := s.look(string(key)); g != nil {
		there, err := txn.Has(key)
		switch {
		case err != nil:
			return nil, err
		case !there:
			return nil, contextmem.ErrNotFound
		}
		return g, nil
	}
	r, err := contextmem.Get(txn, agent, id)
	if err != nil {
		return nil, err
	}
	g := newGist(r.GetEvent())
	if len(g.text) <= shelfText {
		s.keep(string(key), g)
	}
	return g, nil
}

func (s *gists) look(key string) *gist {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, _ := s.kept.Get(key)
	return g
}

func (s *gists) keep(key string, g *gist) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Put(key, g)
}

// echoes reports a question that asks memory, and the agent's answer to one: they repeat what is stored, and would be
// found before it.
func (s *gists) echoes(txn store.Txn, agent string, g *gist, before string) (bool, error) {
	if g.kind == messages.EventKind_EVENT_KIND_INPUT {
		return g.memory, nil
	}
	if g.kind != messages.EventKind_EVENT_KIND_RESPONSE || before == "" {
		return false, nil
	}
	q, err := s.get(txn, agent, before)
	if errors.Is(err, contextmem.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return q.memory, nil
}

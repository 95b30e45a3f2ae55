package context

import (
	"fmt"
	"time"

	"homeagent/actors/kit"
	"homeagent/memory/contextmem"
	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	// maxReaders is how many windows are read at the same time.
	maxReaders = 4
	// defaultEvents of a window that names no number, maxEvents of any.
	defaultEvents = 100
	maxEvents     = 5000
)

type state struct {
	waiting []kit.Event
	reading map[uint64]kit.Event
	job     uint64
	failed  uint64
	out     []kit.Effect
}

// New makes the machine of one incarnation.
func New() kit.Machine { return &state{reading: map[uint64]kit.Event{}} }

// Step implements kit.Machine.
func (s *state) Step(_ time.Time, e kit.Event) []kit.Effect {
	s.out = nil
	switch m := e.Msg.(type) {
	case kit.Started:
		s.out = append(s.out, kit.Ready{})
	case *messages.ContextWindow:
		s.waiting = append(s.waiting, e)
	case events:
		s.onEvents(m)
	case *messages.Drain:
		s.out = append(s.out, e.Reply(&messages.Ok{}))
	}
	s.next()
	return s.out
}

func (s *state) next() {
	for len(s.reading) < maxReaders && len(s.waiting) > 0 {
		e := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.job++
		s.reading[s.job] = e
		s.out = append(s.out, read{job: s.job, window: window(e.Msg.(*messages.ContextWindow))})
	}
}

func window(m *messages.ContextWindow) contextmem.Window {
	w := contextmem.Window{
		Agent: m.GetAgent(), Conversation: m.GetConversation(),
		Events: int(m.GetMaxEvents()), Tokens: int(m.GetMaxTokens()),
	}
	if w.Agent == "" {
		w.Agent = "main"
	}
	if w.Events <= 0 {
		w.Events = defaultEvents
	}
	w.Events = min(w.Events, maxEvents)
	return w
}

func (s *state) onEvents(m events) {
	e, ok := s.reading[m.job]
	if !ok {
		panic("context: a result without a request")
	}
	delete(s.reading, m.job)
	if m.err != nil {
		s.failed++
		s.out = append(s.out, kit.Log{Level: kit.Warn, Text: "context was not read", Attrs: []any{"error", m.err.Error()}},
			e.Reply(&messages.ContextEvents{Error: &messages.Error{
				Code: store.Code(m.err), Message: "The context could not be read.", Hint: "See the log; `homed doctor` checks the store.",
			}}))
		return
	}
	res := &messages.ContextEvents{}
	for _, r := range m.list {
		res.Events = append(res.Events, r.GetEvent())
	}
	s.out = append(s.out, e.Reply(res), kit.State{Word: "running", Summary: fmt.Sprintf("%d windows read, %d failed", s.job, s.failed)})
}

// Show implements kit.Shower.
func (s *state) Show() any {
	return map[string]any{"waiting": len(s.waiting), "reading": len(s.reading), "windows": s.job, "failed": s.failed}
}

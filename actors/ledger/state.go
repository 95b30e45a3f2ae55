package ledger

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// maxGroup is how many requests one visit of the engine takes at most.
const maxGroup = 1024

type state struct {
	waiting []kit.Event
	busy    []kit.Event
	groups  uint64
	largest int
	failed  uint64
	out     []kit.Effect
}

// New makes the machine of one incarnation.
func New() kit.Machine { return &state{} }

// answers is what the worker brings back: one message for each request, in order.
type answers []proto.Message

// Step implements kit.Machine.
func (s *state) Step(_ time.Time, e kit.Event) []kit.Effect {
	s.out = nil
	switch m := e.Msg.(type) {
	case kit.Started:
		s.out = append(s.out, kit.Ready{})
	case *messages.LedgerExecute, *messages.LedgerPending, *messages.TaskQuery, *messages.LedgerStats:
		s.waiting = append(s.waiting, e)
	case answers:
		s.onAnswers(m)
	case *messages.Drain:
		s.out = append(s.out, e.Reply(&messages.Ok{}))
	}
	s.next()
	return s.out
}

func (s *state) onAnswers(a answers) {
	for i, e := range s.busy {
		done, isDone := a[i].(*messages.LedgerDone)
		if done.GetError() != nil {
			s.failed++
		}
		if x, ok := e.Msg.(*messages.LedgerExecute); ok && x.GetSilent() && isDone && done.GetError() == nil {
			continue
		}
		s.out = append(s.out, e.Reply(a[i]))
	}
	s.busy = nil
}

// next hands what waits to the engine when it is idle.
func (s *state) next() {
	if s.busy != nil || len(s.waiting) == 0 {
		return
	}
	n := min(len(s.waiting), maxGroup)
	s.busy = s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	if len(s.waiting) == 0 {
		s.waiting = nil
	}
	s.groups++
	s.largest = max(s.largest, n)
	visit := visit{Requests: make([]proto.Message, n)}
	for i, e := range s.busy {
		visit.Requests[i] = e.Msg.(proto.Message)
	}
	s.out = append(s.out, visit, kit.State{Word: "running", Summary: fmt.Sprintf("%d groups, largest %d", s.groups, s.largest)})
}

// Show implements kit.Shower.
func (s *state) Show() any {
	return map[string]any{"waiting": len(s.waiting), "in_engine": len(s.busy), "groups": s.groups, "largest": s.largest, "failed": s.failed}
}

package ledger

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

const (
	// maxGroup is how many requests one visit of the engine takes at most.
	maxGroup = 1024
	// maxHeld is how many requests wait for room on the disk at most.
	maxHeld = 16384
	// roomEvery is how often the disk is tried while it is low.
	roomEvery = time.Second
	// keepFirst is the pause before the first round of retention and upkeep, keepEvery that between rounds, keepSoon that
	// before a round that is to follow, keepBusy that before the engine is asked again whether it is idle; after keepMost
	// questions it is interrupted for one pass.
	keepFirst = 20 * time.Second
	keepEvery = time.Minute
	keepSoon  = time.Second
	keepBusy  = 50 * time.Millisecond
	keepMost  = 100
)

// Params of the machine.
type Params struct {
	// Keep has retention and upkeep run.
	Keep bool
}

type state struct {
	waiting []kit.Event
	busy    []kit.Event
	// held waits, in order, for room on the disk; low is true from the first refusal until all of it is written.
	held []kit.Event
	low  bool
	// tried is true while what waits for room is with the engine again.
	tried   bool
	groups  uint64
	largest int
	failed  uint64
	out     []kit.Effect

	params Params
	// retaining is true while the engine removes what is too old, keeping while the files are looked after; put counts how
	// often a pass made way for work.
	retaining bool
	keeping   bool
	put       int
	// due has a pass go before the next visit.
	due    bool
	passes uint64
}

// New makes the machine of one incarnation.
func New(p Params) kit.Machine { return &state{params: p} }

// room tries the disk again.
type room struct{}

// round is due: retention, then upkeep.
type round struct{}

// retained is what a pass of retention brings back.
type retained struct {
	More bool
	Err  error
}

// kept is what upkeep brings back.
type kept struct {
	Again bool
	Err   error
}

// answers is what the worker brings back: one message for each request, in order.
type answers []proto.Message

// Step implements kit.Machine.
func (s *state) Step(_ time.Time, e kit.Event) []kit.Effect {
	s.out = nil
	switch m := e.Msg.(type) {
	case kit.Started:
		s.out = append(s.out, kit.Ready{})
		if s.params.Keep {
			s.later(keepFirst)
		}
	case *messages.LedgerExecute, *messages.LedgerPending, *messages.TaskQuery, *messages.LedgerStats:
		s.take(e)
	case room:
		s.retry()
	case answers:
		s.onAnswers(m)
	case round:
		s.onRound()
	case retained:
		s.onRetained(m)
	case kept:
		s.onKept(m)
	case *messages.Drain:
		s.out = append(s.out, e.Reply(&messages.Ok{}))
	case kit.Stopping:
		s.last()
		return s.out
	}
	s.next()
	return s.out
}

// take lines a request up. While the disk is low, what depends on order lines up behind what waits for room; inputs do
// not wait: whoever hands one over learns at once that it was not accepted.
func (s *state) take(e kit.Event) {
	switch {
	case !s.low || !ordered(e.Msg):
		s.waiting = append(s.waiting, e)
	case len(s.held) >= maxHeld:
		s.out = append(s.out, e.Reply(&messages.LedgerDone{Error: &messages.Error{
			Code: "disk_low", Message: "The disk is almost full, and too much waits for room.", Hint: "Make room on the disk of the data folder.",
		}}))
	default:
		s.held = append(s.held, e)
	}
}

// ordered tells whether a request must not overtake others: a step of a turn, or a read that must see the steps.
func ordered(m any) bool {
	switch m := m.(type) {
	case *messages.LedgerPending:
		return true
	case *messages.LedgerExecute:
		for _, op := range m.GetOps() {
			if op.GetAccept() != nil {
				return false
			}
		}
		return true
	}
	return false
}

// retry takes what waits for room to the engine again, ahead of what came later.
func (s *state) retry() {
	if s.busy != nil || s.retaining {
		s.out = append(s.out, kit.After{Key: "room", D: roomEvery, Msg: room{}})
		return
	}
	s.tried = true
	n := min(len(s.held), maxGroup)
	s.waiting = append(s.held[:n:n], s.waiting...)
	s.held = s.held[n:]
}

// hold keeps the requests that the disk had no room for, ahead of those that came meanwhile. Only a write that found room
// has the others tried at once: an input that was refused, or a read, says nothing about it, and the clock tries again.
func (s *state) hold(refused []kit.Event, wrote bool) {
	tried := s.tried
	s.tried = false
	switch {
	case len(refused) > 0:
		if !s.low {
			s.out = append(s.out, kit.Log{Level: kit.Warn, Text: "the disk is low: writes wait for room"})
		}
		s.low = true
		s.held = append(refused, s.held...)
		s.out = append(s.out, kit.After{Key: "room", D: roomEvery, Msg: room{}})
	case s.low && len(s.held) > 0 && wrote:
		s.retry()
	case s.low && len(s.held) > 0:
		if !tried {
			return // the clock runs
		}
		s.out = append(s.out, kit.After{Key: "room", D: roomEvery, Msg: room{}})
	case s.low && !s.anyOrdered():
		s.low = false
		s.out = append(s.out, kit.Log{Level: kit.Info, Text: "there is room on the disk again"})
	}
}

func (s *state) anyOrdered() bool {
	for _, e := range s.waiting {
		if ordered(e.Msg) {
			return true
		}
	}
	return false
}

func (s *state) onAnswers(a answers) {
	busy := s.busy
	s.busy = nil
	wrote := false
	var refused []kit.Event
	for i, e := range busy {
		done, isDone := a[i].(*messages.LedgerDone)
		if done.GetError().GetCode() == "disk_low" && ordered(e.Msg) {
			refused = append(refused, e)
			continue
		}
		if len(refused) > 0 && ordered(e.Msg) && !isDone {
			refused = append(refused, e) // a read that would miss what is held
			continue
		}
		if done.GetError() != nil {
			s.failed++
		}
		wrote = wrote || isDone && done.GetError() == nil && !fullyRefused(done)
		if x, ok := e.Msg.(*messages.LedgerExecute); ok && x.GetSilent() && isDone && done.GetError() == nil {
			continue
		}
		s.out = append(s.out, e.Reply(a[i]))
	}
	s.hold(refused, wrote)
}

// fullyRefused tells that each operation was refused by itself: nothing was written.
func fullyRefused(d *messages.LedgerDone) bool {
	for _, r := range d.GetResults() {
		if r.GetError() == nil {
			return false
		}
	}
	return len(d.GetResults()) > 0
}

// next hands what waits to the engine when it is idle.
func (s *state) next() {
	if s.busy != nil || s.retaining {
		return
	}
	if s.due {
		s.startPass()
		return
	}
	if len(s.waiting) == 0 {
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

// last hands over all that still waits: what was sent to this actor before its end is written, behind what is in the
// engine now. Nobody is left to be answered.
func (s *state) last() {
	left := append(s.held, s.waiting...)
	s.held, s.waiting = nil, nil
	if len(left) == 0 {
		return
	}
	visit := visit{Requests: make([]proto.Message, len(left))}
	for i, e := range left {
		visit.Requests[i] = e.Msg.(proto.Message)
	}
	s.out = append(s.out, visit)
}

// Show implements kit.Shower.
func (s *state) Show() any {
	return map[string]any{
		"waiting": len(s.waiting), "in_engine": len(s.busy), "wait_for_room": len(s.held), "groups": s.groups, "largest": s.largest,
		"failed": s.failed, "passes": s.passes,
	}
}

package graph

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/memory/graphmem"
	"homeagent/memory/store"
	"homeagent/messages"
)

// maxFacts of one batch, as CommitFacts says.
const maxFacts = 100

type state struct {
	waiting []kit.Event
	busy    *kit.Event
	batches uint64
	stored  uint64
	failed  uint64
	out     []kit.Effect
}

// New makes the machine of one incarnation.
func New() kit.Machine { return &state{} }

// Step implements kit.Machine.
func (s *state) Step(now time.Time, e kit.Event) []kit.Effect {
	s.out = nil
	switch m := e.Msg.(type) {
	case kit.Started:
		s.out = append(s.out, kit.Ready{}, kit.State{Word: "idle", Summary: s.summary()})
	case *messages.CommitFacts:
		s.onCommit(e, m)
	case written:
		s.onWritten(m)
	case *messages.Drain:
		s.out = append(s.out, e.Reply(&messages.Ok{}))
	}
	s.next(now)
	return s.out
}

func (s *state) onCommit(e kit.Event, m *messages.CommitFacts) {
	if err := check(m); err != nil {
		s.out = append(s.out, e.Reply(&messages.CommitFactsResult{Error: err}))
		return
	}
	s.waiting = append(s.waiting, e)
}

func check(m *messages.CommitFacts) *messages.Error {
	if n := len(m.GetFacts()); n == 0 || n > maxFacts {
		return &messages.Error{
			Code: "bad_batch", Message: fmt.Sprintf("A batch has %d facts.", n),
			Hint: fmt.Sprintf("Send 1 to %d facts at a time.", maxFacts),
		}
	}
	for _, f := range m.GetFacts() {
		if f.GetFactId() == "" && m.GetKey() == "" {
			return &messages.Error{Code: "bad_batch", Message: "The batch has no key and a fact has no id.", Hint: "Give the batch a key."}
		}
	}
	return nil
}

// next hands what waits to the engine when it is idle.
func (s *state) next(now time.Time) {
	if s.busy != nil || len(s.waiting) == 0 {
		return
	}
	e := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.becomeWriting(&e, now)
}

func (s *state) becomeWriting(e *kit.Event, now time.Time) {
	s.busy = e
	s.out = append(s.out, write{facts: facts(e.Msg.(*messages.CommitFacts), now)}, kit.State{Word: "writing"})
}

func (s *state) becomeIdle() {
	s.busy = nil
	s.out = append(s.out, kit.State{Word: "idle", Summary: s.summary()})
}

func (s *state) summary() string {
	return fmt.Sprintf("%d batches, %d facts stored, %d failed", s.batches, s.stored, s.failed)
}

func (s *state) onWritten(w written) {
	if s.busy == nil {
		panic("graph: a result without a request")
	}
	e := *s.busy
	res := &messages.CommitFactsResult{}
	for _, o := range w.outcomes {
		res.FactIds = append(res.FactIds, o.ID)
		res.Closed = append(res.Closed, o.Closed...)
		if !o.Known {
			s.stored++
		}
	}
	s.batches++
	if w.err != nil {
		s.failed++
		res.Error = fault(w.err)
		s.out = append(s.out, kit.Log{Level: kit.Warn, Text: "facts were not stored", Attrs: []any{"error", w.err.Error()}})
	}
	s.out = append(s.out, e.Reply(res))
	s.becomeIdle()
}

// facts makes the engine's facts of a batch.
func facts(m *messages.CommitFacts, now time.Time) []graphmem.Fact {
	out := make([]graphmem.Fact, 0, len(m.GetFacts()))
	for i, f := range m.GetFacts() {
		g := graphmem.Fact{
			ID: f.GetFactId(), Subject: f.GetSubject(), Predicate: f.GetPredicate(), Object: f.GetObject(),
			SubjectType: f.GetSubjectType(), ObjectType: f.GetObjectType(), Functional: f.GetFunctional(),
			Source: f.GetSource(), Confidence: f.GetConfidence(),
			ValidFrom: at(f.GetValidFromUs()), ValidTo: at(f.GetValidToUs()), LearnedAt: at(f.GetLearnedUs()),
		}
		if g.ID == "" {
			g.ID = m.GetKey() + "/f" + strconv.Itoa(i)
		}
		if g.LearnedAt.IsZero() {
			g.LearnedAt = now.UTC()
		}
		out = append(out, g)
	}
	return out
}

func at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// fault tells of an error of the engine without its internals.
func fault(err error) *messages.Error {
	if errors.Is(err, graphmem.ErrInvalid) {
		_, reason, _ := strings.Cut(err.Error(), graphmem.ErrInvalid.Error()+": ")
		return &messages.Error{
			Code: "invalid_fact", Message: "A fact is not complete: " + reason + ".",
			Hint: "Each fact needs a subject, a predicate and an object; confidence is 0 to 1.",
		}
	}
	return &messages.Error{
		Code: store.Code(err), Message: "Facts could not be stored.",
		Hint: "The same batch again stores what is missing.",
	}
}

// Show implements kit.Shower.
func (s *state) Show() any {
	return map[string]any{"waiting": len(s.waiting), "writing": s.busy != nil, "batches": s.batches, "stored": s.stored, "failed": s.failed}
}

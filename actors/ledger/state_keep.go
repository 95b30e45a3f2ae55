package ledger

import (
	"time"

	"homeagent/actors/kit"
)

// later sets the clock for the next round; there is one.
func (s *state) later(d time.Duration) {
	s.out = append(s.out, kit.After{Key: "round", D: d, Msg: round{}})
}

// onRound takes the next pass of retention when nobody waits for the engine, and in the end though somebody does: a node
// that is never idle must not grow for ever.
func (s *state) onRound() {
	switch {
	case s.retaining || s.keeping:
		s.later(keepSoon)
	case s.busy == nil && len(s.waiting) == 0:
		s.startPass()
	case s.put >= keepMost:
		s.due = true // next takes it between two visits
	default:
		s.put++
		s.later(keepBusy)
	}
}

func (s *state) startPass() {
	s.put, s.due = 0, false
	s.retaining = true
	s.passes++
	s.out = append(s.out, retain{})
}

// onRetained goes on with the next pass, or with the files when there is nothing more to remove. A pass that failed says
// nothing new when the disk is low or the store is broken; upkeep tells which.
func (s *state) onRetained(m retained) {
	s.retaining = false
	if m.Err != nil {
		s.out = append(s.out, kit.Log{Level: kit.Warn, Text: "old records were not removed", Attrs: []any{"error", m.Err.Error()}})
	}
	if m.More && m.Err == nil {
		s.later(keepBusy)
		return
	}
	s.keeping = true
	s.out = append(s.out, upkeep{})
}

func (s *state) onKept(m kept) {
	s.keeping = false
	switch {
	case m.Err != nil:
		s.out = append(s.out, kit.Log{Level: kit.Error, Text: "the store was not looked after", Attrs: []any{"error", m.Err.Error()}})
		s.later(keepEvery)
	case m.Again:
		s.later(keepSoon)
	default:
		s.later(keepEvery)
	}
}

package timers

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	engine "homeagent/memory/timers"
	"homeagent/messages"
)

// wait is a question to another actor.
type wait struct{ done func(proto.Message) }

// ask sends a question; done gets its answer, or an Error when none comes.
func (s *state) ask(to *messages.Address, m proto.Message, done func(proto.Message)) {
	s.last++
	corr := "ask/" + strconv.FormatUint(s.last, 10)
	s.waits[corr] = &wait{done}
	s.add(kit.Send{To: to, Corr: corr, Msg: m}, kit.After{Key: corr, D: answerIn, Msg: late{corr}})
}

func (s *state) answered(corr string, m proto.Message) {
	w := s.waits[corr]
	if w == nil {
		return // it came too late, or twice
	}
	delete(s.waits, corr)
	s.add(kit.CancelAfter{Key: corr})
	w.done(m)
}

// store has ledger write a timer and sync; done gets nil once it is on disk.
func (s *state) store(r *messages.TimerRecord, done func(*messages.Error)) {
	op, err := engine.Put(r)
	if err != nil {
		s.add(kit.Log{Level: kit.Error, Text: "a timer cannot be encoded", Attrs: []any{"error", err.Error()}})
		done(&messages.Error{Code: "internal", Message: "The timer could not be stored.", Hint: "See the log."})
		return
	}
	s.write(op, done)
}

func (s *state) write(op *messages.LedgerOp, done func(*messages.Error)) {
	s.ask(s.p.Ledger, &messages.LedgerExecute{Sync: true, Ops: []*messages.LedgerOp{op}}, func(m proto.Message) {
		switch m := m.(type) {
		case *messages.LedgerDone:
			done(m.GetError())
		case *messages.Error:
			done(m)
		}
	})
}

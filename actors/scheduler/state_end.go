package scheduler

import (
	"strings"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// end is an end being written.
type end struct {
	op        *messages.EndTask
	published []*messages.AgentEvent
	asks      []func(ended bool) []kit.Effect // who waits for it to be on disk
}

func (s *state) onFinished(m *messages.Finished) {
	t := s.byTurn(m.GetTaskId(), m.GetGeneration())
	if t == nil {
		return
	}
	s.endHost(t, m)
	s.dispatch()
}

// endHost ends a task whose turn is over, with the inputs that had joined it.
func (s *state) endHost(t *task, m *messages.Finished) {
	answered := map[string]bool{}
	for _, j := range m.GetSteered() {
		answered[j] = true
	}
	stopped := m.GetEnd() == messages.End_END_STOPPED || t.stopped
	steers := t.steers
	t.steers = nil
	var own []*task
	for _, j := range sortedKeys(s.steered) {
		st := s.steered[j]
		switch {
		case st.joined != t.id():
		case answered[j]:
			s.finish(st, m.GetEnd(), m.GetReason(), m.GetText(), t.id(), nil)
		case stopped:
			s.finish(st, messages.End_END_STOPPED, "stop", stoppedText, t.id(), nil)
		default:
			delete(s.steered, j)
			own = append(own, st)
		}
	}
	if m.GetEnd() != messages.End_END_ANSWERED && (t.begun || t.turn != nil || t.phase == parked) {
		s.releaseApprovals(t)
	}
	s.finish(t, m.GetEnd(), m.GetReason(), m.GetText(), "", m.GetUsage())
	for _, st := range own {
		s.requeue(st, "steer_not_answered")
	}
	for _, st := range steers {
		if in := s.tasks[st.input.GetId()]; t.stopped && in != nil {
			s.finishStopped(in)
			s.add(st.ask.Reply(notRun(st.input)))
			continue
		}
		s.ownTask(st)
	}
}

// finish ends a task: its end is written first and published when it is on disk.
func (s *state) finish(t *task, how messages.End, reason, text, by string, usage *messages.Usage) {
	id := t.id()
	if t.phase == ending {
		return
	}
	s.remove(t)
	s.unsay(t)
	t.phase = ending
	ended := &messages.TaskEnded{TaskId: id, End: how, Reason: reason, Text: text, By: by, Usage: usage}
	e := &end{
		op: &messages.EndTask{
			TaskId: id, End: how, Reason: reason, Text: text, By: by, AtUs: s.now.UnixMicro(), Usage: usage,
		},
		published: []*messages.AgentEvent{s.event(t, "ended", func(c *messages.TaskChange) { c.Ended, c.By = ended, by })},
	}
	if reason == "crash_loop" {
		e.published = append(e.published, s.errorEvent(t, reason, text))
	}
	s.ends[id] = e
	if s.collected != nil {
		*s.collected = append(*s.collected, id)
		return
	}
	s.writeEnd(id)
}

// remove takes a task out of wherever it stands.
func (s *state) remove(t *task) {
	s.dequeue(t)
	s.disarm(t)
	delete(s.steered, t.id())
	delete(s.parked, t.id())
	if s.slot == t {
		s.slot = nil
	}
	if s.current == t {
		s.current = nil
	}
	if t.cancel != nil {
		s.add(kit.CancelAfter{Key: "cancel/" + t.id()})
	}
	for i, o := range s.stack {
		if o == t {
			s.stack = append(s.stack[:i:i], s.stack[i+1:]...)
			break
		}
	}
}

func (s *state) writeEnd(id string) {
	if e := s.ends[id]; e != nil {
		s.add(s.ledger("end/"+id, endOp(e)))
	}
}

func endOp(e *end) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_End{End: e.op}}
}

func endOf(corr string) (string, bool) { return strings.CutPrefix(corr, "end/") }

// collect gathers the ends of what do ends, to be written together.
func (s *state) collect(do func()) []string {
	var ids []string
	s.collected = &ids
	do()
	s.collected = nil
	return ids
}

func (s *state) writeEnds(ids []string) {
	for _, id := range ids {
		s.writeEnd(id)
	}
}

func (s *state) onLedgerDone(e kit.Event, m *messages.LedgerDone) {
	if m.GetError() != nil {
		if e.Corr == "" {
			s.add(kit.Log{Level: kit.Warn, Text: "a task state was not written", Attrs: []any{"code", m.GetError().GetCode()}})
			return
		}
		s.refused(e.Corr, m.GetError())
		return
	}
	if id, ok := endOf(e.Corr); ok {
		s.ended(id)
		return
	}
	switch {
	case s.stopping[stopOf(e.Corr)] != nil:
		s.stopWritten(e.Corr)
	case s.edits[e.Corr] != nil:
		s.edited(e.Corr, nil)
	}
}

// ended publishes an end that is on disk.
func (s *state) ended(id string) {
	e := s.ends[id]
	if e == nil {
		return
	}
	s.drop(id)
	s.counters.Ended[endName(e.op.GetEnd())]++
	for _, ev := range e.published {
		s.add(kit.Publish{Event: ev})
	}
	for _, ask := range e.asks {
		s.add(ask(true)...)
	}
}

// endRefused writes an end again, unless ledger says that it never can: then somebody else has ended the task.
func (s *state) endRefused(id string, err *messages.Error) {
	e := s.ends[id]
	if e == nil {
		return
	}
	switch err.GetCode() {
	case "already_ended", "unknown_input":
		s.drop(id)
		s.add(kit.Log{Level: kit.Error, Text: "an end was refused", Attrs: []any{"task", id, "code", err.GetCode()}})
		for _, ask := range e.asks {
			s.add(ask(false)...)
		}
	default:
		s.add(kit.After{Key: "end/" + id, D: retryEnd, Msg: retry{id}})
	}
}

func (s *state) drop(id string) {
	delete(s.ends, id)
	delete(s.tasks, id)
	s.remember(id)
}

// remember keeps the ids of the latest ends, so that an offer that comes again does not run again.
func (s *state) remember(id string) {
	s.recent[id] = struct{}{}
	s.order = append(s.order, id)
	if len(s.order) > recentEnds {
		delete(s.recent, s.order[0])
		s.order = s.order[1:]
	}
}

// arm sets the timer of a task that must not wait for ever; it reports false when its deadline has passed.
func (s *state) arm(t *task) bool {
	left, ok := s.untilDeadline(t)
	if !ok {
		return true
	}
	if left <= 0 {
		return false
	}
	s.add(kit.After{Key: "expire/" + t.id(), D: left, Msg: expire{t.id()}})
	return true
}

// disarm takes the timer of arm back.
func (s *state) disarm(t *task) {
	if t.input.GetDeadlineUs() != 0 && !t.begun {
		s.add(kit.CancelAfter{Key: "expire/" + t.id()})
	}
}

func (s *state) expired(t *task) {
	s.finish(t, messages.End_END_EXPIRED, "deadline", "Its deadline passed before it could begin.", "", nil)
}

// onExpire ends a task that still waits.
func (s *state) onExpire(id string) {
	t := s.tasks[id]
	if t == nil || t.phase != waiting || t.begun {
		return
	}
	if !t.queued && t != s.slot { // its asker still waits for whether it joins a turn
		return
	}
	if left, ok := s.untilDeadline(t); ok && left > 0 { // the clock was set back
		s.arm(t)
		return
	}
	s.expired(t)
	s.dispatch()
}

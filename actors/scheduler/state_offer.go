package scheduler

import (
	"strconv"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func (s *state) onOffer(e kit.Event, m *messages.Offer) {
	in := m.GetInput()
	if t := s.tasks[in.GetId()]; t != nil {
		s.add(e.Reply(s.outcome(t)))
		return
	}
	if _, ended := s.recent[in.GetId()]; ended {
		s.add(e.Reply(&messages.InputOutcome{InputId: in.GetId(), Outcome: messages.Outcome_OUTCOME_STARTED}))
		return
	}
	s.counters.Offered++
	if l := in.GetLevel(); l > 0 {
		s.counters.Interrupts[strconv.Itoa(int(l))]++
	}
	t := &task{input: in, sequence: m.GetSequence(), since: s.now, arrived: s.now}
	s.tasks[in.GetId()] = t
	s.publishInput(t)
	if !s.stopped.IsZero() && in.GetCreatedUs() <= s.stopped.UnixMicro() && in.GetSource() == messages.InputSource_INPUT_SOURCE_PERSON {
		s.add(e.Reply(&messages.InputOutcome{InputId: in.GetId(), Outcome: messages.Outcome_OUTCOME_QUEUED, Position: 1}))
		s.finish(t, messages.End_END_STOPPED, "stop", "Stopped before it ran.", "", nil)
		return
	}
	if first := s.duplicateOf(t); first != nil {
		s.add(e.Reply(&messages.InputOutcome{InputId: in.GetId(), Outcome: messages.Outcome_OUTCOME_DUPLICATE}))
		s.finish(t, messages.End_END_DUPLICATE, "repeated", "The same input is already being worked on.", first.input.GetId(), nil)
		return
	}
	if s.steers(t) {
		st := &steer{input: in, ask: e}
		s.current.steers = append(s.current.steers, st)
		if s.current.phase == running {
			s.sendSteer(s.current, st)
		}
		return
	}
	s.admit(t)
	s.add(e.Reply(s.outcome(t)))
}

// admit queues a task and lets it run or preempt if it may.
func (s *state) admit(t *task) {
	s.enqueue(t, false)
	if s.current == nil {
		s.dispatch()
	} else if s.consider(t) {
		s.publish(t, "preempting", nil)
		return
	}
	if t.phase == waiting {
		s.publish(t, "queued", func(c *messages.TaskChange) { c.Position = s.position(t) })
	}
}

// outcome tells where a task stands, as the answer to its offer.
func (s *state) outcome(t *task) *messages.InputOutcome {
	o := &messages.InputOutcome{InputId: t.input.GetId()}
	switch {
	case t == s.slot:
		o.Outcome = messages.Outcome_OUTCOME_PREEMPTING
	case s.steered[t.input.GetId()] != nil:
		o.Outcome = messages.Outcome_OUTCOME_STEERED
	case t.phase == waiting:
		o.Outcome, o.Position = messages.Outcome_OUTCOME_QUEUED, s.position(t)
	default:
		o.Outcome = messages.Outcome_OUTCOME_STARTED
	}
	return o
}

// duplicateOf finds an unfinished input that a new one repeats.
func (s *state) duplicateOf(t *task) *task {
	in := t.input
	if in.GetIdempotencyKey() != "" || in.GetSource() != messages.InputSource_INPUT_SOURCE_PERSON {
		return nil
	}
	for _, id := range sortedKeys(s.tasks) {
		o := s.tasks[id]
		if o == t || o.phase == ending || s.now.Sub(o.arrived) > s.p.DuplicateWindow {
			continue
		}
		if sameSpeaker(o.input, in) && sameParts(o.input.GetParts(), in.GetParts()) {
			return o
		}
	}
	return nil
}

func sameSpeaker(a, b *messages.Input) bool {
	return a.GetPrincipal().GetId() == b.GetPrincipal().GetId() &&
		a.GetChannel() == b.GetChannel() && a.GetConversation() == b.GetConversation()
}

func sameParts(a, b []*messages.Part) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].GetText() != b[i].GetText() || a[i].GetPayload().GetId() != b[i].GetPayload().GetId() {
			return false
		}
	}
	return true
}

// steers tells whether a new input joins the running turn.
func (s *state) steers(t *task) bool {
	c := s.current
	if c == nil || c.phase != running && c.phase != spawning || c.cancel != nil || s.slot != nil {
		return false
	}
	in := t.input
	if in.GetMode() != messages.Mode_MODE_STEER || in.GetSource() != messages.InputSource_INPUT_SOURCE_PERSON {
		return false
	}
	return sameSpeaker(c.input, in) && in.GetLevel() <= effective(c)
}

func (s *state) sendSteer(t *task, st *steer) {
	st.sent = true
	s.add(kit.Send{To: t.turn, Msg: &messages.Steer{Input: st.input, Generation: t.gen}})
}

func (s *state) onSteerTaken(m *messages.SteerTaken) {
	host := s.byGeneration(m.GetGeneration())
	if host == nil {
		return
	}
	if !m.GetTaken() {
		s.steerRefused(m.GetGeneration(), m.GetInputId())
		return
	}
	st := host.takeSteer(m.GetInputId())
	t := s.tasks[m.GetInputId()]
	if st == nil || t == nil {
		return
	}
	t.joined = host.input.GetId()
	s.steered[t.input.GetId()] = t
	s.counters.Steered++
	s.add(s.ledger("", s.setTask(t, messages.TaskState_TASK_STATE_STEERED)),
		st.ask.Reply(&messages.InputOutcome{InputId: t.input.GetId(), Outcome: messages.Outcome_OUTCOME_STEERED}))
	s.publish(t, "steered", func(c *messages.TaskChange) { c.By = t.joined })
}

// steerRefused makes an input that a turn did not take a task of its own.
func (s *state) steerRefused(gen uint64, input string) {
	host := s.byGeneration(gen)
	if host == nil {
		return
	}
	if st := host.takeSteer(input); st != nil {
		s.ownTask(st)
	}
}

func (s *state) ownTask(st *steer) {
	t := s.tasks[st.input.GetId()]
	if t == nil {
		return
	}
	s.admit(t)
	s.add(st.ask.Reply(s.outcome(t)))
}

func (t *task) takeSteer(input string) *steer {
	for i, st := range t.steers {
		if st.input.GetId() == input {
			t.steers = append(t.steers[:i:i], t.steers[i+1:]...)
			return st
		}
	}
	return nil
}

func (s *state) byGeneration(gen uint64) *task {
	if s.current != nil && s.current.gen == gen {
		return s.current
	}
	for _, t := range s.stack {
		if t.gen == gen {
			return t
		}
	}
	return nil
}

package scheduler

import (
	"strconv"
	"time"

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
	t := s.newTask(in, m.GetSequence())
	s.tasks[in.GetId()] = t
	s.publishInput(t)
	if m.GetStopped() || s.stoppedBefore(in, m.GetSequence()) {
		s.add(e.Reply(notRun(in)))
		s.finishStopped(t)
		return
	}
	if first := s.duplicateOf(t); first != nil {
		s.add(e.Reply(&messages.InputOutcome{InputId: in.GetId(), Outcome: messages.Outcome_OUTCOME_DUPLICATE}))
		s.finish(t, messages.End_END_DUPLICATE, "repeated", "The same input is already being worked on.", first.id(), nil)
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

// notRun answers the offer of an input that ends without running.
func notRun(in *messages.Input) *messages.InputOutcome {
	return &messages.InputOutcome{InputId: in.GetId(), Outcome: messages.Outcome_OUTCOME_QUEUED, Position: 1}
}

// admit queues a task and lets it run or preempt if it may.
func (s *state) admit(t *task) {
	s.enqueue(t, false)
	switch {
	case t.phase == ending: // too late for its deadline
		return
	case s.current == nil:
		s.dispatch()
	case s.consider(t):
		return
	}
	if t.phase == waiting && t != s.slot {
		s.publish(t, "queued", func(c *messages.TaskChange) { c.Position = s.position(t) })
	}
}

// outcome tells where a task stands, as the answer to its offer.
func (s *state) outcome(t *task) *messages.InputOutcome {
	o := &messages.InputOutcome{InputId: t.id()}
	switch {
	case t == s.slot:
		o.Outcome = messages.Outcome_OUTCOME_PREEMPTING
	case s.steered[t.id()] != nil:
		o.Outcome = messages.Outcome_OUTCOME_STEERED
	case t.queued:
		o.Outcome, o.Position = messages.Outcome_OUTCOME_QUEUED, s.position(t)
	case t.phase == waiting || t.phase == ending && !t.begun:
		return notRun(t.input)
	default:
		o.Outcome = messages.Outcome_OUTCOME_STARTED
	}
	return o
}

// untilDeadline is how long a task that has not begun may still wait; false when there is no end to it.
func (s *state) untilDeadline(t *task) (time.Duration, bool) {
	if t.input.GetDeadlineUs() == 0 || t.begun {
		return 0, false
	}
	return time.UnixMicro(t.input.GetDeadlineUs()).Sub(s.now), true
}

// sameSpeaker tells whether an input may join the turn of another: the same principal in the same conversation, or
// anybody there where the channel lets them. Strangers without a name are nobody's same.
func sameSpeaker(a, b *messages.Input) bool {
	if a.GetChannel() != b.GetChannel() || a.GetConversation() != b.GetConversation() {
		return false
	}
	if a.GetJoint() && b.GetJoint() {
		return true
	}
	return a.GetPrincipal().GetId() != "" && a.GetPrincipal().GetId() == b.GetPrincipal().GetId()
}

// steers tells whether a new input joins the running turn.
func (s *state) steers(t *task) bool {
	c := s.current
	if c == nil || c.phase != running && c.phase != spawning || c.cancel != nil || s.slot != nil || s.draining {
		return false
	}
	in := t.input
	if in.GetMode() != messages.Mode_MODE_STEER || in.GetSource() != messages.InputSource_INPUT_SOURCE_PERSON {
		return false
	}
	if left, ok := s.untilDeadline(t); ok && left <= 0 {
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
	t.joined = host.id()
	s.steered[t.id()] = t
	s.counters.Steered++
	s.add(s.ledger("", s.setTask(t, messages.TaskState_TASK_STATE_STEERED)),
		st.ask.Reply(&messages.InputOutcome{InputId: t.id(), Outcome: messages.Outcome_OUTCOME_STEERED}))
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
	if t == nil || t.phase == ending {
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

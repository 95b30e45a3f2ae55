package scheduler

import (
	"slices"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

const (
	stoppedText   = "Stopped."
	notRunText    = "Stopped before it ran."
	stopLimit     = 1500 * time.Millisecond // a stop is answered by then, on disk or not
	cancelLimit   = 10 * time.Second        // a turn that has not ended by then is ended
	stopsKept     = 24 * time.Hour          // for tasks that a node which was down finds at its start
	transit       = time.Minute             // as long an input may be on its way from where it was made
	maxStops      = 256
	maxStopEnds   = 1024 // ends in one transaction with the moment of the stop
	stopPrefix    = "stop/"
	childrenWords = "children/"
)

// stopping is a stop that is not answered yet.
type stopping struct {
	ask      kit.Event
	result   *messages.StopResult
	children bool // residents have not answered yet
	writing  bool // it is not on disk yet
	answered bool
	ends     []string
}

// stopLate answers a stop that takes too long to write.
type stopLate struct{ id string }

// stopOf is the stop that a correlation is about.
func stopOf(corr string) string {
	if id, ok := strings.CutPrefix(corr, stopPrefix); ok {
		return id
	}
	id, _ := strings.CutPrefix(corr, childrenWords)
	return id
}

// onStop ends what runs, what is suspended, what is parked and what waits, and has the agent pass the stop on to its
// residents. What waits ends with the moment of the stop in one transaction; that moment also ends, after a restart,
// turns whose end did not get to disk, and inputs made before the stop that come after it.
func (s *state) onStop(e kit.Event, m *messages.StopAll) {
	id := s.number()
	st := &stopping{
		ask: e, children: true, writing: true,
		result: &messages.StopResult{Quota: m.GetWaitingElsewhere()},
	}
	s.stopping[id] = st
	s.noteStop(m.GetConversation())
	match := func(t *task) bool {
		return m.GetConversation() == "" || t.input.GetConversation() == m.GetConversation()
	}
	st.ends = s.collect(func() { s.stopTasks(match, st.result) })
	s.add(
		kit.Send{To: s.p.AgentActor, Corr: childrenWords + id, Msg: m},
		kit.After{Key: stopPrefix + id, D: stopLimit, Msg: stopLate{id}},
		kit.Log{Level: kit.Info, Text: "stop", Attrs: []any{
			"by", m.GetPrincipal().GetId(), "conversation", m.GetConversation(),
			"stopped", st.result.GetStopped(), "quota", st.result.GetQuota(),
		}},
	)
	s.writeStop(id)
	s.dispatch()
}

// stopTasks ends all tasks that match: turns first, so that nothing that ends lets another one begin.
func (s *state) stopTasks(match func(*task) bool, res *messages.StopResult) {
	for i := len(s.stack) - 1; i >= 0; i-- {
		if t := s.stack[i]; match(t) && s.cancelTurn(t) {
			res.Stopped++
		}
	}
	if t := s.current; t != nil && match(t) && s.cancelTurn(t) {
		res.Stopped++
	}
	for _, id := range sortedKeys(s.parked) {
		if t := s.parked[id]; match(t) {
			t.stopped = true
			s.finishStopped(t)
			res.Stopped++
		}
	}
	var wait []*task
	if s.slot != nil && match(s.slot) {
		wait = append(wait, s.slot)
	}
	for l := topLevel; l >= 0; l-- {
		for t := range s.levels[l].all() {
			if match(t) {
				wait = append(wait, t)
			}
		}
	}
	for _, t := range wait {
		s.finishStopped(t)
		res.Quota++
	}
	s.stopSteers(match, res)
}

// stopSteers ends what is on its way into a turn and has not joined it.
func (s *state) stopSteers(match func(*task) bool, res *messages.StopResult) {
	if s.current == nil {
		return
	}
	steers := s.current.steers
	s.current.steers = nil
	for _, st := range steers {
		t := s.tasks[st.input.GetId()]
		if t == nil || !match(t) {
			s.current.steers = append(s.current.steers, st)
			continue
		}
		s.finishStopped(t)
		s.add(st.ask.Reply(notRun(st.input)))
		res.Quota++
	}
}

// finishStopped ends a task whose turn does not run; one that has run before may have others that joined it.
func (s *state) finishStopped(t *task) { s.finishNotRun(t, "stop") }

func (s *state) finishNotRun(t *task, reason string) {
	if t.begun {
		s.endHost(t, &messages.Finished{End: messages.End_END_STOPPED, Reason: reason, Text: stoppedText})
		return
	}
	s.finish(t, messages.End_END_STOPPED, reason, notRunText, "", nil)
}

// cancelTurn ends a running or suspended task; it reports false when that is under way already.
func (s *state) cancelTurn(t *task) bool {
	t.stopped = true
	if t.cancel != nil || t.phase == ending {
		return false
	}
	if t.turn == nil && (t.phase == suspended || t.unread) {
		s.endHost(t, &messages.Finished{End: messages.End_END_STOPPED, Reason: "stop", Text: stoppedText})
		return true
	}
	t.cancel = &messages.Cancel{Generation: t.gen, End: messages.End_END_STOPPED, Reason: "stop"}
	if t.turn != nil {
		s.sendCancel(t)
	}
	return true
}

func (s *state) sendCancel(t *task) {
	s.add(
		kit.Send{To: t.turn, Msg: t.cancel},
		kit.After{Key: "cancel/" + t.id(), D: cancelLimit, Msg: slow{t.id(), t.gen}},
	)
}

// onSlow ends a turn that does not end by itself: its actor is stopped, and the agent tells that it is gone.
func (s *state) onSlow(m slow) {
	if t := s.byTurn(m.task, m.gen); t != nil && t.cancel != nil && t.turn != nil {
		s.add(kit.Log{Level: kit.Warn, Text: "a turn does not end when told and is stopped", Attrs: []any{"task", t.id()}},
			kit.Stop{Who: t.turn})
	}
}

// noteStop keeps the moment of a stop, and forgets those that it makes void or that are long past.
func (s *state) noteStop(conversation string) {
	now, old := s.now.UnixMicro(), s.now.Add(-stopsKept).UnixMicro()
	kept := []*messages.StopMoment{}
	for _, m := range s.stops {
		if conversation == "" || m.GetConversation() == conversation || m.GetAtUs() < old {
			continue
		}
		kept = append(kept, m)
	}
	if len(kept) >= maxStops {
		kept = kept[len(kept)-maxStops+1:]
	}
	s.stops = append(kept, &messages.StopMoment{Conversation: conversation, AtUs: now, Sequence: s.sequence})
}

// stoppedBefore tells whether a stop has taken an input: it was accepted before the stop, or made just before it and was
// on its way. What was made long before (a mail of yesterday) was not on its way; what the kernel says is of no
// conversation. A moment that lies in the future tells that the clock was set back; then the time at which an input was
// made says nothing.
func (s *state) stoppedBefore(in *messages.Input, sequence uint64) bool {
	for _, m := range s.stops {
		if m.GetConversation() != "" && m.GetConversation() != in.GetConversation() {
			continue
		}
		if sequence <= m.GetSequence() {
			return true
		}
		before := m.GetAtUs() - in.GetCreatedUs()
		if in.GetSource() != messages.InputSource_INPUT_SOURCE_KERNEL && m.GetAtUs() <= s.now.UnixMicro() &&
			before >= 0 && before <= transit.Microseconds() {
			return true
		}
	}
	return false
}

// writeStop writes the moment of a stop and the ends of what it took.
func (s *state) writeStop(id string) {
	st := s.stopping[id]
	ops := []*messages.LedgerOp{{Op: &messages.LedgerOp_Stops{Stops: &messages.NoteStops{
		Agent: s.p.Agent.GetAgent(), Moments: slices.Clone(s.stops),
	}}}}
	var rest []string
	if len(st.ends) > maxStopEnds {
		st.ends, rest = st.ends[:maxStopEnds], st.ends[maxStopEnds:]
	}
	for _, t := range st.ends {
		if e := s.ends[t]; e != nil {
			ops = append(ops, endOp(e))
		}
	}
	s.add(s.ledger(stopPrefix+id, ops...))
	s.writeEnds(rest)
}

// stopWritten publishes the ends that went to disk with a stop.
func (s *state) stopWritten(corr string) {
	id := stopOf(corr)
	st := s.stopping[id]
	st.writing = false
	for _, t := range st.ends {
		s.ended(t)
	}
	st.ends = nil
	s.stopSettled(id)
}

// stopRefused goes on when a part of a stop was refused: the moment is written again, each end for itself, so that one
// that can not be written does not keep back the others. Residents that do not answer are not waited for.
func (s *state) stopRefused(corr string, err *messages.Error) {
	id := stopOf(corr)
	st := s.stopping[id]
	if strings.HasPrefix(corr, childrenWords) {
		st.children = false
		s.stopSettled(id)
		return
	}
	s.add(kit.Log{Level: kit.Error, Text: "a stop was not written", Attrs: []any{"code", err.GetCode()}},
		kit.After{Key: "again/" + id, D: retryEnd, Msg: stopAgain{id}})
	s.writeEnds(st.ends)
	st.ends = nil
}

// stopAgain writes the moment of a stop again.
type stopAgain struct{ id string }

func (s *state) onStopAgain(id string) {
	if s.stopping[id] != nil {
		s.writeStop(id)
	}
}

// onChildrenStopped adds what the residents have stopped.
func (s *state) onChildrenStopped(corr string, m *messages.StopResult) {
	id := stopOf(corr)
	st := s.stopping[id]
	if st == nil {
		return
	}
	st.children = false
	if !st.answered {
		st.result.Stopped += m.GetStopped()
		st.result.Quota += m.GetQuota()
	}
	s.stopSettled(id)
}

// stopSettled answers a stop that is on disk here and with the residents, and forgets it.
func (s *state) stopSettled(id string) {
	st := s.stopping[id]
	if st.children || st.writing {
		return
	}
	s.stopDone(id)
	delete(s.stopping, id)
}

// stopDone answers a stop, once.
func (s *state) stopDone(id string) {
	st := s.stopping[id]
	if st == nil || st.answered {
		return
	}
	st.answered = true
	s.add(kit.CancelAfter{Key: stopPrefix + id})
	s.add(st.ask.Reply(st.result))
}

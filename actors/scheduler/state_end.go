package scheduler

import (
	"strings"

	"homeagent/actors/kit"
	"homeagent/messages"
)

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
	id := t.input.GetId()
	answered := map[string]bool{}
	for _, j := range m.GetSteered() {
		answered[j] = true
	}
	steers := t.steers
	t.steers = nil
	var own []*task
	for _, j := range sortedKeys(s.steered) {
		st := s.steered[j]
		if st.joined != id {
			continue
		}
		delete(s.steered, j)
		if answered[j] || m.GetEnd() == messages.End_END_STOPPED {
			s.finish(st, m.GetEnd(), m.GetReason(), m.GetText(), id, nil)
		} else {
			own = append(own, st)
		}
	}
	s.finish(t, m.GetEnd(), m.GetReason(), m.GetText(), "", m.GetUsage())
	for _, st := range own {
		s.requeue(st)
	}
	for _, st := range steers {
		s.ownTask(st)
	}
}

// finish ends a task: its end is written first and published when it is on disk.
func (s *state) finish(t *task, how messages.End, reason, text, by string, usage *messages.Usage) {
	id := t.input.GetId()
	if t.phase == ending {
		return
	}
	s.remove(t)
	t.phase = ending
	ended := &messages.TaskEnded{TaskId: id, End: how, Reason: reason, Text: text, By: by, Usage: usage}
	s.ends[id] = &end{
		ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_End{End: &messages.EndTask{
			TaskId: id, End: how, Reason: reason, Text: text, By: by, AtUs: s.now.UnixMicro(), Usage: usage,
		}}}},
		published: []*messages.AgentEvent{s.event(t, "ended", func(c *messages.TaskChange) { c.Ended, c.By = ended, by })},
	}
	s.writeEnd(id)
}

// remove takes a task out of wherever it stands.
func (s *state) remove(t *task) {
	s.dequeue(t)
	delete(s.steered, t.input.GetId())
	if s.slot == t {
		s.slot = nil
	}
	if s.current == t {
		s.current = nil
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
		s.add(s.ledger("end/"+id, e.ops...))
	}
}

func endOf(corr string) (string, bool) { return strings.CutPrefix(corr, "end/") }

func (s *state) onLedgerDone(e kit.Event, m *messages.LedgerDone) {
	id, ok := endOf(e.Corr)
	if !ok {
		if m.GetError() != nil {
			s.add(kit.Log{Level: kit.Warn, Text: "a task state was not written", Attrs: []any{"code", m.GetError().GetCode()}})
		}
		return
	}
	if m.GetError() != nil {
		s.add(kit.After{Key: e.Corr, D: retryEnd, Msg: retry{id}})
		return
	}
	w := s.ends[id]
	if w == nil {
		return
	}
	delete(s.ends, id)
	delete(s.tasks, id)
	s.remember(id)
	for _, ev := range w.published {
		s.counters.Ended[endName(ev.GetTask().GetEnded().GetEnd())]++
		s.add(kit.Publish{Event: ev})
	}
}

// onError handles a request that was answered with an error instead of its answer.
func (s *state) onError(e kit.Event, m *messages.Error) {
	if id, ok := endOf(e.Corr); ok {
		s.add(kit.After{Key: e.Corr, D: retryEnd, Msg: retry{id}})
		return
	}
	id, lost := strings.CutPrefix(e.Corr, "reload/")
	if e.Corr == corrLoad || lost {
		s.add(kit.Log{Level: kit.Error, Text: "pending tasks were not read", Attrs: []any{"code", m.GetCode()}},
			kit.After{Key: e.Corr, D: retryEnd, Msg: reread{e.Corr, id}})
	}
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

// onStop ends what runs, what is suspended and what waits, and has the agent pass the stop on to its residents.
func (s *state) onStop(e kit.Event, m *messages.StopAll) {
	s.stopped = s.now
	res := &messages.StopResult{}
	match := func(t *task) bool {
		return m.GetConversation() == "" || t.input.GetConversation() == m.GetConversation()
	}
	var waitingTasks []*task
	if s.slot != nil && match(s.slot) {
		waitingTasks = append(waitingTasks, s.slot)
	}
	for l := 4; l >= 0; l-- {
		for _, t := range s.levels[l] {
			if match(t) {
				waitingTasks = append(waitingTasks, t)
			}
		}
	}
	for _, t := range waitingTasks {
		s.finish(t, messages.End_END_STOPPED, "stop", "Stopped before it ran.", "", nil)
		res.Quota++
	}
	for i := len(s.stack) - 1; i >= 0; i-- {
		if t := s.stack[i]; match(t) && s.cancelTurn(t) {
			res.Stopped++
		}
	}
	if t := s.current; t != nil && match(t) && s.cancelTurn(t) {
		res.Stopped++
	}
	if m.GetConversation() == "" {
		s.add(kit.Send{To: s.p.AgentActor, Msg: m})
	}
	s.add(e.Reply(res))
	s.dispatch()
}

// cancelTurn ends a running or suspended task; it reports false when that is under way already.
func (s *state) cancelTurn(t *task) bool {
	if t.cancel != nil || t.phase == ending {
		return false
	}
	t.cancel = &messages.Cancel{Generation: t.gen, End: messages.End_END_STOPPED, Reason: "stop"}
	if t.turn == nil {
		if t.phase == suspended || t.unread {
			s.endHost(t, &messages.Finished{End: messages.End_END_STOPPED, Reason: "stop", Text: "Stopped."})
		}
		return true
	}
	s.add(kit.Send{To: t.turn, Msg: t.cancel})
	return true
}

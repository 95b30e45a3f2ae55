package scheduler

import (
	"sort"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// effective is the level a task has against others, with its age.
func effective(t *task) int32 {
	level := t.input.GetLevel()
	limit := int32(1)
	if t.input.GetPersonWaits() {
		limit = 3
	}
	return max(level, min(limit, level+min(t.preempted, 2)))
}

// defence is the level with which the running task meets a candidate.
func defence(t, candidate *task) int32 {
	if candidate.input.GetMode() == messages.Mode_MODE_INTERRUPT &&
		candidate.input.GetPrincipal().GetId() == t.input.GetPrincipal().GetId() {
		return t.input.GetLevel()
	}
	return effective(t)
}

// mayPreempt tells whether a candidate may take the place of the running task, and otherwise how long the cooldown
// still stands in its way.
func (s *state) mayPreempt(candidate *task) (bool, time.Duration) {
	t := s.current
	if effective(candidate) <= defence(t, candidate) {
		return false, 0
	}
	left := s.p.Cooldown - s.now.Sub(t.lastCut)
	if t.lastCut.IsZero() || left <= 0 || candidate.input.GetLevel() == 4 ||
		candidate.input.GetPersonWaits() && !t.input.GetPersonWaits() {
		return true, 0
	}
	return false, left
}

// enqueue puts a waiting task in its queue, at the head when it was displaced.
func (s *state) enqueue(t *task, head bool) {
	t.phase = waiting
	l := t.input.GetLevel()
	if head {
		s.levels[l] = append([]*task{t}, s.levels[l]...)
		return
	}
	s.levels[l] = append(s.levels[l], t)
}

// requeue makes an input that had joined a turn a task of its own, in the order it was accepted.
func (s *state) requeue(t *task) {
	t.joined = ""
	s.enqueue(t, false)
	q := s.levels[t.input.GetLevel()]
	sort.SliceStable(q, func(i, j int) bool { return q[i].sequence < q[j].sequence })
	s.add(s.ledger("", s.setTask(t, messages.TaskState_TASK_STATE_QUEUED)))
	s.publish(t, "queued", func(c *messages.TaskChange) { c.Position = s.position(t) })
}

// dequeue takes a waiting task out of its queue.
func (s *state) dequeue(t *task) {
	q := s.levels[t.input.GetLevel()]
	for i, o := range q {
		if o == t {
			s.levels[t.input.GetLevel()] = append(q[:i:i], q[i+1:]...)
			return
		}
	}
}

// position is the place of a waiting task among all that would run before it, from 1.
func (s *state) position(t *task) int32 {
	var n int32
	if s.slot != nil && s.slot != t {
		n++
	}
	for l := 4; l >= 0; l-- {
		for _, o := range s.levels[l] {
			n++
			if o == t {
				return n
			}
		}
	}
	return 1
}

// rearm asks anew whether the head of the highest queue may preempt what runs.
func (s *state) rearm() {
	if s.current == nil {
		s.dispatch()
		return
	}
	for l := 4; l > 0; l-- {
		if len(s.levels[l]) == 0 {
			continue
		}
		s.consider(s.levels[l][0])
		return
	}
}

// consider lets a waiting task preempt what runs if it may; it reports whether a preemption is under way for it.
func (s *state) consider(t *task) bool {
	if s.current == nil || s.current.phase == ending {
		return false
	}
	if s.slot != nil {
		if effective(t) <= effective(s.slot) {
			return false
		}
		ok, _ := s.mayPreempt(t)
		if !ok {
			return false
		}
		s.enqueue(s.slot, true)
		s.take(t)
		return true
	}
	ok, left := s.mayPreempt(t)
	if !ok {
		if left > 0 {
			s.add(kit.After{Key: "rearm", D: left, Msg: tick{}})
		}
		return false
	}
	s.take(t)
	if s.current.phase == running {
		s.suspend()
	}
	return true
}

// suspend asks the running turn to make place for the task in the slot.
func (s *state) suspend() {
	c := s.current
	c.phase = suspending
	s.add(kit.Send{To: c.turn, Msg: &messages.Preempt{
		Generation: c.gen, ByLevel: effective(s.slot), ByInput: s.slot.input.GetId(),
	}})
}

// take moves a waiting task into the immediate slot.
func (s *state) take(t *task) {
	s.dequeue(t)
	s.slot = t
}

// dispatch starts the next task when nothing runs.
func (s *state) dispatch() {
	if s.current != nil || !s.loaded {
		return
	}
	t := s.next()
	if t == nil {
		return
	}
	s.current = t
	t.since = s.now
	switch {
	case t.unread:
		t.phase = spawning
	case t.turn != nil:
		t.phase = running
		s.add(kit.Send{To: t.turn, Msg: &messages.Resume{Generation: t.gen}})
	default:
		s.spawn(t)
	}
	s.rearm()
}

// next takes the task that is to run now.
func (s *state) next() *task {
	if t := s.slot; t != nil {
		s.slot = nil
		return t
	}
	var head *task
	for l := 4; l > 0 && head == nil; l-- {
		if len(s.levels[l]) > 0 {
			head = s.levels[l][0]
		}
	}
	if n := len(s.stack); n > 0 && (head == nil || effective(s.stack[n-1]) >= effective(head)) {
		t := s.stack[n-1]
		s.stack = s.stack[:n-1]
		return t
	}
	if head == nil && len(s.levels[0]) > 0 {
		head = s.levels[0][0]
	}
	if head != nil {
		s.dequeue(head)
	}
	return head
}

// spawn has the agent start the turn of a task.
func (s *state) spawn(t *task) {
	s.gen++
	t.gen, t.phase, t.turn = s.gen, spawning, nil
	t.starts++
	var deadline int64
	if s.p.TurnDeadline > 0 {
		deadline = s.now.Add(s.p.TurnDeadline).UnixMicro()
	}
	s.counters.Started++
	s.add(
		s.ledger("", s.setTask(t, messages.TaskState_TASK_STATE_RUNNING)),
		kit.Send{To: s.p.AgentActor, Corr: "spawn/" + t.input.GetId(), Msg: &messages.SpawnTurn{Start: &messages.StartTurn{
			Task: &messages.PendingTask{
				Input: t.input, Sequence: t.sequence, State: messages.TaskState_TASK_STATE_RUNNING,
				Starts: t.starts, Preempted: t.preempted, Journal: t.journal,
			},
			Agent: s.p.Agent, Level: effective(t), Generation: t.gen, Scheduler: s.self,
			DeadlineUs: deadline, MaxRounds: s.p.MaxRounds,
		}}},
	)
	t.journal = nil
	if t.wasCut {
		t.wasCut = false
		s.counters.Resumed++
		s.publish(t, "resumed", nil)
		return
	}
	s.publish(t, "started", nil)
}

func (s *state) onSpawned(m *messages.TurnSpawned) {
	t := s.byTurn(m.GetTaskId(), m.GetGeneration())
	if t == nil || t.phase != spawning {
		return
	}
	if m.GetError() != nil {
		s.lost(t, m.GetError().GetMessage())
		return
	}
	t.turn, t.phase = m.GetTurn(), running
	if c := t.cancel; c != nil {
		t.cancel = nil
		s.add(kit.Send{To: t.turn, Msg: c})
		return
	}
	for _, st := range t.steers {
		s.sendSteer(t, st)
	}
	if s.slot != nil {
		s.suspend()
	}
}

// byTurn finds the task of a turn's message; nil when the message is of an older turn.
func (s *state) byTurn(id string, gen uint64) *task {
	if t := s.tasks[id]; t != nil && t.gen == gen && t.phase != ending {
		return t
	}
	return nil
}

func (s *state) onSuspended(m *messages.Suspended) {
	t := s.byTurn(m.GetTaskId(), m.GetGeneration())
	if t == nil || t != s.current {
		return
	}
	t.turnPhase = m.GetPhase()
	s.push(t)
	s.dispatch()
}

// push lays the current task on the stack.
func (s *state) push(t *task) {
	t.phase, t.since, t.lastCut = suspended, s.now, s.now
	t.wasCut = t.turn == nil
	t.preempted++
	s.stack = append(s.stack, t)
	s.current = nil
	s.counters.Suspended++
	s.counters.MaxDepth = max(s.counters.MaxDepth, int32(len(s.stack)))
	if len(s.stack) > maxDepth {
		s.counters.Anomalies++
	}
	by := ""
	if s.slot != nil {
		by = s.slot.input.GetId()
	}
	s.add(s.ledger("", s.setTask(t, messages.TaskState_TASK_STATE_SUSPENDED)))
	s.publish(t, "suspended", func(c *messages.TaskChange) { c.By = by })
}

func (s *state) onResumed(m *messages.Resumed) {
	t := s.byTurn(m.GetTaskId(), m.GetGeneration())
	if t == nil {
		return
	}
	s.counters.Resumed++
	s.add(s.ledger("", &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: &messages.SetTask{
		TaskId: t.input.GetId(), State: messages.TaskState_TASK_STATE_RUNNING, Level: effective(t), Preempted: t.preempted, Resumed: true,
	}}}))
	s.publish(t, "resumed", nil)
}

// onLost reads the journal of a task whose turn failed, to start it again. One that a person stopped ends.
func (s *state) onLost(m *messages.TurnLost) {
	t := s.byTurn(m.GetTaskId(), m.GetGeneration())
	switch {
	case t == nil:
	case m.GetFailure() == "":
		t.turn = nil
		s.endHost(t, &messages.Finished{End: messages.End_END_STOPPED, Reason: "stop", Text: "Stopped."})
		s.dispatch()
	default:
		s.lost(t, m.GetFailure())
	}
}

func (s *state) lost(t *task, failure string) {
	t.turn = nil
	for _, st := range t.steers {
		if st.sent {
			st.sent = false
		}
	}
	if c := t.cancel; c != nil {
		s.endHost(t, &messages.Finished{End: c.GetEnd(), Reason: c.GetReason()})
		s.dispatch()
		return
	}
	s.publishError(t, "turn_failed", "The turn failed and is started again from its journal.", failure)
	if t.starts >= maxStarts {
		s.endHost(t, &messages.Finished{
			End: messages.End_END_FAILED, Reason: "crash_loop", Text: "This task failed three times and was ended.",
		})
		s.dispatch()
		return
	}
	t.unread = true
	switch {
	case t.phase == suspended:
		t.wasCut = true
	case s.slot != nil:
		s.push(t)
		s.dispatch()
	default:
		t.phase = spawning
	}
	s.load("reload/"+t.input.GetId(), t.input.GetId())
}

// reload starts a lost turn again from what ledger holds.
func (s *state) reload(p *messages.PendingTask) {
	t := s.tasks[p.GetInput().GetId()]
	if t == nil || t.turn != nil || t.phase == ending {
		return
	}
	t.journal, t.unread = p.GetJournal(), false
	if t == s.current && t.phase == spawning {
		s.spawn(t)
	}
}

// sortStack orders what was suspended or running before a restart: lower levels deeper, later inputs on top.
func (s *state) sortStack() {
	sort.SliceStable(s.stack, func(i, j int) bool {
		a, b := s.stack[i], s.stack[j]
		if ea, eb := effective(a), effective(b); ea != eb {
			return ea < eb
		}
		return a.sequence < b.sequence
	})
}

package scheduler

import (
	"strconv"
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

// insists tells whether a candidate interrupts a task of its own principal by name.
func insists(candidate, t *task) bool {
	return candidate.input.GetMode() == messages.Mode_MODE_INTERRUPT &&
		candidate.input.GetPrincipal().GetId() == t.input.GetPrincipal().GetId()
}

// defence is the level with which the running task meets a candidate.
func defence(t, candidate *task) int32 {
	if insists(candidate, t) {
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
	if t.lastCut.IsZero() || left <= 0 || candidate.input.GetLevel() == topLevel ||
		candidate.input.GetPersonWaits() && !t.input.GetPersonWaits() {
		return true, 0
	}
	return false, left
}

// level is the queue that a task waits in.
func (s *state) level(t *task) *queue {
	return &s.levels[min(max(t.input.GetLevel(), 0), topLevel)]
}

// enqueue puts a waiting task in its queue, at the head or in the order in which inputs were accepted. One that came too
// late for its deadline ends.
func (s *state) enqueue(t *task, head bool) {
	t.phase = waiting
	if !s.arm(t) {
		s.expired(t)
		return
	}
	if head {
		s.front--
		t.rank = s.front
	}
	t.queued = true
	s.level(t).insert(t)
}

// requeue makes an input that had joined a turn, or that a decision lets go on, wait for a turn of its own.
func (s *state) requeue(t *task, reason string) {
	t.joined, t.since = "", s.now
	s.enqueue(t, false)
	if t.phase == ending {
		return
	}
	s.add(s.ledger("", s.setTask(t, messages.TaskState_TASK_STATE_QUEUED)))
	s.publish(t, "requeued", func(c *messages.TaskChange) { c.Position, c.Reason = s.position(t), reason })
}

// dequeue takes a waiting task out of its queue.
func (s *state) dequeue(t *task) {
	if t.queued {
		t.queued = false
		s.level(t).remove(t)
	}
}

// position is the place of a waiting task among all that would run before it, from 1.
func (s *state) position(t *task) int32 {
	if t == s.slot {
		return 1
	}
	n := 1
	if s.slot != nil {
		n++
	}
	own := s.level(t)
	for l := topLevel; &s.levels[l] != own; l-- {
		n += s.levels[l].n
	}
	return int32(n + own.index(t))
}

// highest is the head of the highest queue of interrupts.
func (s *state) highest() *task {
	for l := topLevel; l > 0; l-- {
		if t := s.levels[l].head(); t != nil {
			return t
		}
	}
	return nil
}

// rearm asks anew whether what waits may preempt what runs.
func (s *state) rearm() {
	if s.current == nil {
		s.dispatch()
		return
	}
	s.considerAll()
}

// considerAll asks in the order in which interrupts wait. The first one that may preempt need not be the first one: what
// stands before it may be held off by the cooldown, which is never in a person's way over background work, or meet the
// running task at its aged level, which is no defence against an interrupt of its own principal. Where no such task waits
// in a level, its head speaks for all.
func (s *state) considerAll() {
	for l := topLevel; l > 0 && s.current != nil; l-- {
		q := &s.levels[l]
		if head := q.head(); head == nil {
			continue
		} else if s.consider(head) {
			return
		}
		if q.special == 0 || int32(l) <= s.current.input.GetLevel() && q.aged == 0 {
			continue
		}
		for t := range q.all() {
			if special(t) && s.consider(t) {
				return // the queue has changed
			}
		}
	}
}

// reconsider asks whether another one may preempt than was asked about last: what was at the head may be gone, or what was
// in the slot.
func (s *state) reconsider() {
	if s.current == nil || s.slot != nil {
		return
	}
	now := [2]*task{s.current, s.highest()}
	if now == s.asked {
		return
	}
	s.asked = now
	s.considerAll()
}

// consider lets a waiting task preempt what runs if it may; it reports whether a preemption is under way for it.
func (s *state) consider(t *task) bool {
	if s.current == nil || s.current.phase == ending {
		return false
	}
	ok, left := s.mayPreempt(t)
	if s.slot != nil {
		if !ok || effective(t) <= effective(s.slot) {
			return false
		}
		displaced := s.slot
		s.enqueue(displaced, true)
		if displaced.queued {
			s.publish(displaced, "requeued", func(c *messages.TaskChange) { c.Position, c.Reason = s.position(displaced), "displaced" })
		}
		s.take(t)
		return true
	}
	if !ok {
		if due := s.now.Add(left); left > 0 && !due.Equal(s.armed) {
			s.armed = due
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

// take moves a waiting task into the immediate slot and says for whom it is to make place.
func (s *state) take(t *task) {
	s.dequeue(t)
	s.slot, s.asked = t, [2]*task{}
	s.cut = cut{by: t.id(), level: effective(t), reason: "level"}
	if insists(t, s.current) {
		s.cut.reason = "interrupt"
	}
	victim := s.current.id()
	s.publish(t, "preempting", func(c *messages.TaskChange) { c.Victim, c.Reason = victim, s.cut.reason })
	s.add(kit.Log{Level: kit.Info, Text: "task makes place", Attrs: []any{
		"victim", victim, "victim_level", effective(s.current), "by", t.id(), "by_level", s.cut.level, "reason", s.cut.reason,
	}})
}

// suspend asks the running turn to make place for the task in the slot.
func (s *state) suspend() {
	c := s.current
	c.phase = suspending
	s.add(kit.Send{To: c.turn, Msg: &messages.Preempt{
		Generation: c.gen, ByLevel: effective(s.slot), ByInput: s.slot.id(),
	}})
}

// dispatch starts the next task when nothing runs.
func (s *state) dispatch() {
	for s.current == nil && s.loaded && !s.draining {
		t := s.next()
		if t == nil {
			return
		}
		if left, ok := s.untilDeadline(t); ok && left <= 0 {
			s.expired(t)
			continue
		}
		s.run(t)
	}
}

// run gives a task the running slot.
func (s *state) run(t *task) {
	s.disarm(t)
	s.current = t
	t.since, t.rank = s.now, 0
	switch {
	case t.unread:
		t.phase = spawning
		s.read(t)
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
	head := s.highest()
	if n := len(s.stack); n > 0 && (head == nil || effective(s.stack[n-1]) >= effective(head)) {
		t := s.stack[n-1]
		s.stack = s.stack[:n-1]
		return t
	}
	if head == nil {
		head = s.levels[0].head()
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
		kit.Send{To: s.p.AgentActor, Corr: "spawn/" + t.id(), Msg: &messages.SpawnTurn{Start: &messages.StartTurn{
			Task: &messages.PendingTask{
				Input: t.input, Sequence: t.sequence, State: messages.TaskState_TASK_STATE_RUNNING,
				Starts: t.starts, Preempted: t.preempted, Journal: t.journal,
			},
			Agent: s.p.Agent, Level: effective(t), Generation: t.gen, Scheduler: s.self,
			DeadlineUs: deadline, MaxRounds: s.p.MaxRounds,
		}}},
	)
	t.journal, t.begun = nil, true
	switch {
	case t.wasCut:
		s.resumed(t)
	case t.approved:
		t.approved = false
		s.publish(t, "resumed", func(c *messages.TaskChange) { c.Reason = "approval" })
	default:
		s.publish(t, "started", nil)
	}
}

// resumed notes that a suspended task goes on; what this process did not suspend it does not count.
func (s *state) resumed(t *task) {
	if t.cutHere {
		s.counters.Resumed++
	}
	t.wasCut, t.cutHere = false, false
	s.publish(t, "resumed", nil)
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
	if t.cancel != nil {
		s.sendCancel(t)
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
	if t := s.tasks[id]; t != nil && gen != 0 && t.gen == gen && t.phase != ending {
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
	s.stack = append(s.stack, t)
	s.current = nil
	if t.wasCut { // it was lost before it went on
		s.add(s.ledger("", s.setTask(t, messages.TaskState_TASK_STATE_SUSPENDED)))
		return
	}
	t.wasCut, t.cutHere = true, true
	t.preempted++
	s.counters.Suspended++
	s.counters.Preempts[strconv.Itoa(int(s.cut.level))]++
	s.counters.MaxDepth = max(s.counters.MaxDepth, int32(len(s.stack)))
	if len(s.stack) > maxDepth {
		s.counters.Anomalies++
		s.add(kit.Log{Level: kit.Warn, Text: "the stack is deeper than there are levels", Attrs: []any{"depth", len(s.stack)}})
	}
	why := s.cut
	s.add(s.ledger("", s.setTask(t, messages.TaskState_TASK_STATE_SUSPENDED)))
	s.publish(t, "suspended", func(c *messages.TaskChange) { c.By, c.Reason = why.by, why.reason })
}

func (s *state) onResumed(m *messages.Resumed) {
	t := s.byTurn(m.GetTaskId(), m.GetGeneration())
	if t == nil || !t.wasCut {
		return
	}
	s.resumed(t)
	s.add(s.ledger("", &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: &messages.SetTask{
		TaskId: t.id(), State: messages.TaskState_TASK_STATE_RUNNING, Level: effective(t), Preempted: t.preempted, Resumed: true,
	}}}))
}

// onLost reads the journal of a task whose turn failed, to start it again. One that a person stopped ends.
func (s *state) onLost(m *messages.TurnLost) {
	t := s.byTurn(m.GetTaskId(), m.GetGeneration())
	switch {
	case t == nil:
	case m.GetFailure() == "":
		t.turn = nil
		s.endHost(t, &messages.Finished{End: messages.End_END_STOPPED, Reason: "stop", Text: stoppedText})
		s.dispatch()
	default:
		s.lost(t, m.GetFailure())
	}
}

// lost notes that a turn is gone. It is started again from its journal, which ledger tells, unless it is to end anyway.
func (s *state) lost(t *task, failure string) {
	t.turn, t.gen = nil, 0
	for _, st := range t.steers {
		st.sent = false
	}
	if c := t.cancel; c != nil {
		s.endHost(t, &messages.Finished{End: c.GetEnd(), Reason: c.GetReason(), Text: stoppedText})
		s.dispatch()
		return
	}
	s.publishError(t, "turn_failed", "The turn failed and is started again from its journal.", failure)
	s.publish(t, "requeued", func(c *messages.TaskChange) { c.Reason = "turn_lost" })
	t.unread = true
	switch {
	case t.phase == suspended:
	case s.slot != nil:
		s.push(t)
		s.dispatch()
	default:
		t.phase = spawning
		s.read(t)
	}
}

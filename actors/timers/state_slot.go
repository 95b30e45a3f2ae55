package timers

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	engine "homeagent/memory/timers"
	"homeagent/messages"
)

// phase of a slot that is under way.
type phase int

const (
	// verifying: did the slot that an earlier process was handing over become a task?
	verifying phase = iota + 1
	// asking: is the task of an earlier slot still there?
	asking
	// handing: the input is with channels.
	handing
	// writing: what became of the slot is with ledger.
	writing
)

// run is a slot that is under way.
type run struct {
	phase phase
	// schedule by which the slot was found: when the timer has another by the end, its next slot stands.
	schedule *engine.Schedule
	slot     time.Time
	// passed are older slots that passed with this one.
	passed int
	// reason it runs: on_time or late.
	reason string
	// task is the input id of the slot, since when it is handed over.
	task  string
	since time.Time
	// result is what is written.
	result *messages.TimerSlot
}

// Outcomes and reasons of slots.
const (
	outcomeRan     = "ran"
	outcomeMissed  = "skipped_missed"
	outcomeOverlap = "skipped_overlap"
	outcomePaused  = "skipped_paused"
	outcomeRefused = "refused"

	reasonOnTime = "on_time"
	reasonLate   = "late"
	reasonHand   = "by_hand"
)

// check begins what is due.
func (s *state) check() {
	if !s.loaded || s.draining {
		return
	}
	for _, id := range s.ids() {
		if s.runs >= maxRuns {
			return
		}
		if t := s.timers[id]; t.waiting() && t.get().GetNextUs() <= s.now.UnixMicro() {
			s.begin(t)
		}
	}
}

// begin decides about the slots of a timer that have come. The latest is the one that may run.
func (s *state) begin(t *timer) {
	next := time.UnixMicro(t.get().GetNextUs()).UTC()
	slot, n := t.schedule.Passed(next.Add(-time.Microsecond), s.now)
	if n == 0 { // the rules of its zone changed after it was promised
		slot, n = next, 1
	}
	s.runs++
	r := &run{schedule: t.schedule, slot: slot, passed: n - 1, reason: reasonOnTime}
	t.run = r
	if s.now.Sub(slot) > s.p.Grace {
		r.reason = reasonLate
		if t.get().GetMissed() != messages.MissedPolicy_MISSED_POLICY_RUN_ONCE {
			s.end(t, outcomeMissed, "not_running", "")
			return
		}
	}
	r.phase = handing
	if t.get().GetOverlap() != messages.OverlapPolicy_OVERLAP_POLICY_QUEUE && t.get().GetLastTask() != "" {
		r.phase = asking
	}
	s.advance(t)
}

// advance does the step at which a slot stands, also again.
func (s *state) advance(t *timer) {
	if s.draining {
		return
	}
	switch r := t.run; r.phase {
	case verifying:
		s.ask(s.p.Ledger, &messages.TaskQuery{InputId: r.task}, s.still(t, s.onVerified))
	case asking:
		s.ask(s.p.Ledger, &messages.TaskQuery{InputId: t.get().GetLastTask()}, s.still(t, s.onEarlier))
	case handing:
		s.handOver(t)
	case writing:
		s.writeEnd(t)
	}
}

// still drops an answer whose slot is no longer under way.
func (s *state) still(t *timer, do func(*timer, proto.Message)) func(proto.Message) {
	r := t.run
	return func(m proto.Message) {
		if t.run == r && s.timers[t.get().GetTimerId()] == t {
			do(t, m)
		}
	}
}

func (s *state) retry(t *timer, d time.Duration) {
	id := t.get().GetTimerId()
	s.add(kit.After{Key: "again/" + id, D: d, Msg: again{Corr: id}})
}

// verify finds out about a slot that an earlier process was handing over.
func (s *state) verify(t *timer) {
	s.runs++
	slot := time.UnixMicro(t.record.GetPendingUs()).UTC()
	t.run = &run{phase: verifying, schedule: t.schedule, slot: slot, task: t.record.GetPendingTask(), reason: reasonOnTime}
	if next := t.get().GetNextUs(); t.schedule != nil && next != 0 && next < slot.UnixMicro() {
		_, n := t.schedule.Passed(time.UnixMicro(next-1), slot)
		t.run.passed = max(n-1, 0)
	}
	s.advance(t)
}

func (s *state) onVerified(t *timer, m proto.Message) {
	switch m := m.(type) {
	case *messages.TaskStatus:
		if time.UnixMicro(m.GetAcceptedUs()).Sub(t.run.slot) > s.p.Grace {
			t.run.reason = reasonLate
		}
		s.end(t, outcomeRan, t.run.reason, t.run.task)
	case *messages.Error:
		if m.GetCode() != "unknown_input" {
			s.retry(t, askAgain)
			return
		}
		// It was never accepted: it is a slot like any other. The intent stands until the outcome replaces it.
		t.run = nil
		s.runs--
	}
}

// onEarlier hears of the task of an earlier slot.
func (s *state) onEarlier(t *timer, m proto.Message) {
	switch m := m.(type) {
	case *messages.TaskStatus:
		if m.GetState() != messages.TaskState_TASK_STATE_ENDED {
			s.end(t, outcomeOverlap, "earlier_"+stateWord(m.GetState()), "")
			return
		}
	case *messages.Error:
		if m.GetCode() != "unknown_input" {
			s.retry(t, askAgain)
			return
		}
	}
	t.run.phase = handing
	s.advance(t)
}

// slotKey is the idempotency key of a slot.
func slotKey(id string, slot time.Time) string {
	return "timer:" + id + ":" + strconv.FormatInt(slot.Unix(), 10)
}

// handOver writes the intent and then gives the input to channels. Both go through ledger in this order, so that the
// input is never on disk without the intent.
func (s *state) handOver(t *timer) {
	r := t.run
	id := t.get().GetTimerId()
	key := slotKey(id, r.slot)
	if r.task == "" {
		r.task, r.since = taskID(s.now, key), s.now
		record := proto.CloneOf(t.record)
		record.PendingUs, record.PendingTask = r.slot.UnixMicro(), r.task
		t.record = record
		op, err := engine.Put(record)
		if err != nil {
			s.end(t, outcomeRefused, "internal", "")
			return
		}
		s.add(kit.Send{To: s.p.Ledger, Msg: &messages.LedgerExecute{Silent: true, Ops: []*messages.LedgerOp{op}}})
	}
	in := s.input(t, key, r.task, due{slot: r.slot, late: r.reason == reasonLate, passed: r.passed})
	s.ask(s.p.Channels, &messages.SubmitInput{Input: in}, s.still(t, s.onHanded))
}

// onHanded hears what became of an input.
func (s *state) onHanded(t *timer, m proto.Message) {
	r := t.run
	err, _ := m.(*messages.Error)
	if res, ok := m.(*messages.SubmitResult); ok {
		if err = res.GetError(); err == nil {
			s.end(t, outcomeRan, r.reason, res.GetInputId())
			return
		}
	}
	if passing(err.GetCode()) && s.now.Sub(r.since) < tryFor {
		s.retry(t, max(time.Duration(err.GetRetryAfterMs())*time.Millisecond, askAgain))
		return
	}
	s.add(s.refusal(t, err))
	s.end(t, outcomeRefused, err.GetCode(), "")
}

// passing tells that a refusal may be over in a while; a channel may still have to register.
func passing(code string) bool {
	switch code {
	case "bad_input", "too_large", "unknown_agent", "invalid_operation", "too_big":
		return false
	}
	return true
}

// refusal tells people that a slot came to nothing.
func (s *state) refusal(t *timer, err *messages.Error) kit.Publish {
	m := t.get()
	return kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_AGENT_ERROR, Agent: m.GetAgent(), Channel: m.GetChannel(), Conversation: m.GetConversation(),
		Text: "The timer " + label(m) + " is due and cannot run: " + err.GetMessage(),
		Detail: &messages.AgentEvent_Error{Error: &messages.Error{
			Code: "timer_refused", Message: "The timer " + label(m) + " is due and cannot run: " + err.GetMessage(), Hint: err.GetHint(),
			Details: map[string]string{"timer": m.GetTimerId(), "reason": err.GetCode()},
		}},
	}}
}

// end notes what became of a slot and has it written. Whatever changes the timer meanwhile builds on it.
func (s *state) end(t *timer, outcome, reason, task string) {
	r := t.run
	r.phase = writing
	r.result = &messages.TimerSlot{
		TimerId: t.get().GetTimerId(), Name: t.get().GetName(), SlotUs: r.slot.UnixMicro(), Outcome: outcome, Reason: reason,
		TaskId: task, Passed: uint64(r.passed), //nolint:gosec // at most MaxPassed
	}
	record := proto.CloneOf(t.record)
	record.PendingUs, record.PendingTask, record.TakenUs = 0, "", s.now.UnixMicro()
	m := record.GetTimer()
	m.LastUs, m.LastOutcome, m.LastReason = r.result.GetSlotUs(), outcome, reason
	m.Skipped += r.result.GetPassed()
	if outcome == outcomeRan {
		m.LastTask = task
		m.Runs++
	} else {
		m.Skipped++
	}
	if reason == "unknown_agent" && m.GetKind() != messages.TimerKind_TIMER_KIND_ONCE {
		m.Paused = true // whom it is for is gone
	}
	if t.schedule != nil && t.schedule == r.schedule {
		m.NextUs = nextAfter(t.schedule, m.GetLastUs())
	}
	r.result.NextUs = m.GetNextUs()
	t.record = record
	s.writeEnd(t)
}

func (s *state) writeEnd(t *timer) {
	r := t.run
	s.store(t.record, func(err *messages.Error) {
		switch {
		case t.run != r || s.timers[t.get().GetTimerId()] != t: // it was deleted
		case err != nil:
			s.retry(t, askAgain)
		default:
			t.run = nil
			s.runs--
			s.count(r.result)
			s.tell(t, r.result)
			s.show()
		}
	})
}

func (s *state) count(slot *messages.TimerSlot) {
	s.counts.Skipped += slot.GetPassed()
	switch slot.GetOutcome() {
	case outcomeRan:
		s.counts.Ran++
	case outcomeRefused:
		s.counts.Refused++
	default:
		s.counts.Skipped++
	}
}

// tell publishes what became of a slot, and a notice when slots were missed.
func (s *state) tell(t *timer, slot *messages.TimerSlot) {
	m := t.get()
	text := slotText(m, slot, s.zone(t))
	s.add(kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_TIMER, TaskId: slot.GetTaskId(), Agent: m.GetAgent(), Channel: m.GetChannel(),
		Conversation: m.GetConversation(), Text: text, Detail: &messages.AgentEvent_Timer{Timer: slot},
	}})
	if slot.GetOutcome() == outcomeMissed || slot.GetReason() == reasonLate || slot.GetPassed() > 0 {
		s.add(s.notice("timer_missed", text))
	}
}

// zone in which the times of a timer are shown.
func (s *state) zone(t *timer) *time.Location { return s.zoneFor(t.get()) }

func (s *state) zoneFor(t *messages.Timer) *time.Location {
	if t.GetZone() != "" {
		if l, err := engine.Zone(t.GetZone()); err == nil {
			return l
		}
	}
	return s.p.Zone
}

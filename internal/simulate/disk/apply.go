package disk

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
)

// apply executes one operation as memory/ledger does.
func (d *Disk) apply(now time.Time, op *messages.LedgerOp) (*messages.LedgerResult, error) {
	none := &messages.LedgerResult{}
	switch o := op.GetOp().(type) {
	case *messages.LedgerOp_Accept:
		return d.accept(now, o.Accept)
	case *messages.LedgerOp_SetTask:
		return none, d.setTask(o.SetTask)
	case *messages.LedgerOp_Journal:
		return d.append(o.Journal)
	case *messages.LedgerOp_Output:
		return d.output(o.Output)
	case *messages.LedgerOp_Sent:
		return none, d.sent(now, o.Sent)
	case *messages.LedgerOp_End:
		return d.end(now, o.End)
	case *messages.LedgerOp_Events:
		return none, d.addEvents(now, o.Events.GetEvents())
	case *messages.LedgerOp_PutAgent:
		a := o.PutAgent.GetAgent()
		if err := checkID("agent", a.GetAgent()); err != nil {
			return nil, err
		}
		put(d, d.agents, a.GetAgent(), a)
		return none, nil
	case *messages.LedgerOp_DeleteAgent:
		if err := checkID("agent", o.DeleteAgent.GetAgent()); err != nil {
			return nil, err
		}
		drop(d, d.agents, o.DeleteAgent.GetAgent())
		return none, nil
	case *messages.LedgerOp_Write:
		return none, d.write(o.Write)
	case *messages.LedgerOp_Edit:
		return none, d.edit(o.Edit)
	case *messages.LedgerOp_Stops:
		return none, d.noteStops(o.Stops)
	default:
		return nil, invalid("unknown operation")
	}
}

func (d *Disk) accept(now time.Time, a *messages.AcceptInput) (*messages.LedgerResult, error) {
	in := a.GetInput()
	if err := checkID("input id", in.GetId()); err != nil {
		return &messages.LedgerResult{Error: ledger.Fault(err)}, nil
	}
	if len(in.GetParts()) == 0 {
		return &messages.LedgerResult{Error: ledger.Fault(invalid("input %s has no content", in.GetId()))}, nil
	}
	key := in.GetPrincipal().GetId() + "\x00" + in.GetIdempotencyKey()
	if in.GetIdempotencyKey() != "" {
		if k := d.keys[key]; k != nil {
			return &messages.LedgerResult{Accepted: &messages.Accepted{InputId: k.GetInputId(), Sequence: k.GetSequence(), Duplicate: true}}, nil
		}
	}
	if t := d.tasks[in.GetId()]; t != nil {
		return &messages.LedgerResult{Accepted: &messages.Accepted{InputId: in.GetId(), Sequence: t.GetSequence(), Duplicate: true}}, nil
	}
	if a.GetLimit() > 0 && int64(d.count.accepted-d.count.ended) >= a.GetLimit() {
		return &messages.LedgerResult{Error: ledger.Fault(ledger.ErrQueueFull)}, nil
	}
	next := d.count.inbox + 1
	at := now.UnixMicro()
	put(d, d.inbox, next, &messages.InboxRecord{Sequence: next, Input: in, AcceptedUs: at})
	put(d, d.tasks, in.GetId(), &messages.TaskRecord{
		Sequence: next, State: messages.TaskState_TASK_STATE_QUEUED, Level: in.GetLevel(), Agent: agentOr(in.GetAgent()),
	})
	put(d, d.open, next, in.GetId())
	if in.GetIdempotencyKey() != "" {
		put(d, d.keys, key, &messages.KeyRecord{InputId: in.GetId(), Sequence: next, AtUs: at})
	}
	d.count.inbox = next
	d.count.accepted++
	return &messages.LedgerResult{Accepted: &messages.Accepted{InputId: in.GetId(), Sequence: next}}, nil
}

func (d *Disk) task(id string) (*messages.TaskRecord, error) {
	if err := checkID("task id", id); err != nil {
		return nil, err
	}
	t := d.tasks[id]
	if t == nil {
		return nil, fmt.Errorf("%w: %s", ledger.ErrUnknownTask, id)
	}
	return t, nil
}

// running returns a copy of a task that has not ended.
func (d *Disk) running(id string) (*messages.TaskRecord, error) {
	t, err := d.task(id)
	if err != nil {
		return nil, err
	}
	if t.GetState() == messages.TaskState_TASK_STATE_ENDED {
		return nil, fmt.Errorf("%w: %s as %s", ledger.ErrEnded, id, t.GetEnd())
	}
	return clone(t), nil
}

func (d *Disk) setTask(s *messages.SetTask) error {
	t, err := d.running(s.GetTaskId())
	if err != nil {
		return err
	}
	switch s.GetState() {
	case messages.TaskState_TASK_STATE_RUNNING:
		countStart(t, s)
	case messages.TaskState_TASK_STATE_QUEUED, messages.TaskState_TASK_STATE_SUSPENDED,
		messages.TaskState_TASK_STATE_PARKED, messages.TaskState_TASK_STATE_STEERED:
	default:
		return invalid("state %s of %s", s.GetState(), s.GetTaskId())
	}
	if s.GetState() == messages.TaskState_TASK_STATE_STEERED && s.GetJoined() == "" {
		return invalid("%s is steered into no task", s.GetTaskId())
	}
	t.State, t.Joined, t.Level, t.Preempted = s.GetState(), s.GetJoined(), s.GetLevel(), s.GetPreempted()
	put(d, d.tasks, s.GetTaskId(), t)
	return nil
}

// countStart counts the starts without a result in between.
func countStart(t *messages.TaskRecord, s *messages.SetTask) {
	switch {
	case s.GetClean():
		t.Starts = max(0, t.GetStarts()-1)
	case s.GetResumed():
	case t.GetResult() > t.GetStartedAt():
		t.Starts, t.StartedAt = 1, t.GetResult()
	default:
		t.Starts++
	}
}

// isResult tells entries that show that a turn got on.
func isResult(k messages.JournalKind) bool {
	switch k {
	case messages.JournalKind_JOURNAL_KIND_RESPONSE, messages.JournalKind_JOURNAL_KIND_TOOL_RESULT,
		messages.JournalKind_JOURNAL_KIND_STEERED, messages.JournalKind_JOURNAL_KIND_COMMITTED,
		messages.JournalKind_JOURNAL_KIND_DETACHED, messages.JournalKind_JOURNAL_KIND_PARKED:
		return true
	default:
		return false
	}
}

func (d *Disk) edit(e *messages.EditInput) error {
	id := e.GetTaskId()
	t, err := d.running(id)
	if err != nil {
		return err
	}
	if t.GetState() != messages.TaskState_TASK_STATE_QUEUED || t.GetJournal() > 0 {
		return fmt.Errorf("%w: %s", ledger.ErrNotWaiting, id)
	}
	if e.Level != nil && (e.GetLevel() < 0 || e.GetLevel() > 3) {
		return invalid("level %d of %s", e.GetLevel(), id)
	}
	record := clone(d.inbox[t.GetSequence()])
	if len(e.GetParts()) > 0 {
		record.Input.Parts = e.GetParts()
	}
	if e.Level != nil {
		record.Input.Level = proto.Int32(e.GetLevel())
		t.Level = e.GetLevel()
	}
	put(d, d.inbox, t.GetSequence(), record)
	put(d, d.tasks, id, t)
	return nil
}

func (d *Disk) noteStops(n *messages.NoteStops) error {
	agent := agentOr(n.GetAgent())
	if err := checkID("agent", agent); err != nil {
		return err
	}
	if len(n.GetMoments()) > 1024 {
		return invalid("%d stops of %s", len(n.GetMoments()), agent)
	}
	if len(n.GetMoments()) == 0 {
		drop(d, d.stops, agent)
		return nil
	}
	put(d, d.stops, agent, n.GetMoments())
	return nil
}

func (d *Disk) append(e *messages.JournalEntry) (*messages.LedgerResult, error) {
	id := e.GetTaskId()
	t, err := d.running(id)
	if err != nil {
		return nil, err
	}
	if e.GetKind() == messages.JournalKind_JOURNAL_KIND_UNSPECIFIED {
		return nil, invalid("journal entry of %s has no kind", id)
	}
	t.Journal++
	if isResult(e.GetKind()) {
		t.Result = t.Journal
	}
	d.count.journal++
	entry := clone(e)
	entry.Sequence = t.GetJournal()
	list := d.journal[id]
	// The capacity is cut, so that a list that was taken back is not written over.
	put(d, d.journal, id, append(list[:len(list):len(list)], entry))
	put(d, d.tasks, id, t)
	return &messages.LedgerResult{Sequence: t.GetJournal()}, nil
}

func (d *Disk) output(o *messages.OutputIntent) (*messages.LedgerResult, error) {
	if err := checkID("output id", o.GetOutputId()); err != nil {
		return nil, err
	}
	if o.GetChannel() == "" || len(o.GetParts()) == 0 {
		return nil, invalid("output %s lacks channel or content", o.GetOutputId())
	}
	if old := d.outputs[o.GetOutputId()]; old != nil {
		return &messages.LedgerResult{Known: true, Receipt: old.GetReceipt()}, nil
	}
	put(d, d.unsent, o.GetOutputId(), true)
	put(d, d.outputs, o.GetOutputId(), &messages.OutputRecord{Intent: o})
	return &messages.LedgerResult{}, nil
}

func (d *Disk) sent(now time.Time, r *messages.OutputReceipt) error {
	if err := checkID("output id", r.GetOutputId()); err != nil {
		return err
	}
	o := d.outputs[r.GetOutputId()]
	if o == nil {
		return fmt.Errorf("%w: %s", ledger.ErrUnknownOutput, r.GetOutputId())
	}
	if o.GetReceipt() != nil {
		return nil
	}
	r = clone(r)
	if r.GetAtUs() == 0 {
		r.AtUs = now.UnixMicro()
	}
	drop(d, d.unsent, r.GetOutputId())
	put(d, d.outputs, r.GetOutputId(), &messages.OutputRecord{Intent: o.GetIntent(), Receipt: r})
	return nil
}

func (d *Disk) end(now time.Time, e *messages.EndTask) (*messages.LedgerResult, error) {
	if e.GetEnd() == messages.End_END_UNSPECIFIED || e.GetReason() == "" {
		return nil, invalid("end of %s lacks end or reason", e.GetTaskId())
	}
	t, err := d.task(e.GetTaskId())
	if err != nil {
		return nil, err
	}
	if t.GetState() == messages.TaskState_TASK_STATE_ENDED {
		if t.GetEnd() == e.GetEnd() && t.GetReason() == e.GetReason() && t.GetBy() == e.GetBy() {
			return &messages.LedgerResult{}, nil
		}
		return nil, fmt.Errorf("%w: %s as %s (%s)", ledger.ErrEnded, e.GetTaskId(), t.GetEnd(), t.GetReason())
	}
	drop(d, d.open, t.GetSequence())
	t = clone(t)
	t.State = messages.TaskState_TASK_STATE_ENDED
	t.End, t.Reason, t.Text, t.By = e.GetEnd(), e.GetReason(), e.GetText(), e.GetBy()
	t.Usage, t.EndedUs = e.GetUsage(), e.GetAtUs()
	if t.GetEndedUs() == 0 {
		t.EndedUs = now.UnixMicro()
	}
	d.count.ended++
	put(d, d.tasks, e.GetTaskId(), t)
	return &messages.LedgerResult{Ended: true}, nil
}

func (d *Disk) addEvents(now time.Time, list []*messages.Event) error {
	for _, e := range list {
		if err := checkID("event id", e.GetEventId()); err != nil {
			return err
		}
		if e.GetKind() == messages.EventKind_EVENT_KIND_UNSPECIFIED {
			return invalid("event %s has no kind", e.GetEventId())
		}
		agent := agentOr(e.GetAgent())
		if err := checkID("agent", agent); err != nil {
			return err
		}
		if has(d.events[agent], e.GetEventId()) {
			continue
		}
		kept := clone(e)
		kept.Agent = agent
		for _, b := range kept.GetBlocks() {
			if b.GetStoredUs() == 0 {
				b.StoredUs = now.UnixMicro()
			}
		}
		d.count.events++
		put(d, d.events, agent, insert(d.events[agent], &messages.EventRecord{Event: kept, Number: d.count.events}))
	}
	return nil
}

func (d *Disk) write(w *messages.RawWrite) error {
	if w.GetSpace() == 0 || w.GetSpace() > 255 {
		return invalid("space %d", w.GetSpace())
	}
	space := store.Space(w.GetSpace())
	switch space {
	case store.Meta, store.Inbox, store.Idempotency, store.Task, store.Journal, store.Output,
		store.Block, store.Payload, store.Event, store.Agent, store.Config, store.Secret:
		return fmt.Errorf("%w: %s", ledger.ErrOwned, space)
	default:
	}
	key := string(append([]byte{byte(space)}, w.GetKey()...))
	if w.Value == nil {
		drop(d, d.raw, key)
		return nil
	}
	put(d, d.raw, key, w.GetValue())
	return nil
}

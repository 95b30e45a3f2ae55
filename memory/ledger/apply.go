package ledger

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/store"
	"homeagent/messages"
)

// batch is one request under way.
type batch struct {
	txn   store.Txn
	now   time.Time
	count counters
	index Indexer
	late  bool // there is an index that follows later
	due   [][]*messages.EventRecord
}

// apply executes one operation. An error refuses the whole request.
func (b *batch) apply(op *messages.LedgerOp) (*messages.LedgerResult, error) {
	none := &messages.LedgerResult{}
	switch o := op.GetOp().(type) {
	case *messages.LedgerOp_Accept:
		return b.accept(o.Accept)
	case *messages.LedgerOp_SetTask:
		return none, b.setTask(o.SetTask)
	case *messages.LedgerOp_Journal:
		return b.appendJournal(o.Journal)
	case *messages.LedgerOp_Output:
		return none, b.putOutput(o.Output)
	case *messages.LedgerOp_Sent:
		return none, b.markSent(o.Sent)
	case *messages.LedgerOp_End:
		return b.end(o.End)
	case *messages.LedgerOp_Events:
		return none, b.appendEvents(o.Events.GetEvents())
	case *messages.LedgerOp_PutAgent:
		return none, b.putAgent(o.PutAgent.GetAgent())
	case *messages.LedgerOp_DeleteAgent:
		return none, b.deleteAgent(o.DeleteAgent.GetAgent())
	case *messages.LedgerOp_Write:
		return none, b.write(o.Write)
	case *messages.LedgerOp_Edit:
		return none, b.editInput(o.Edit)
	case *messages.LedgerOp_Stops:
		return none, b.noteStops(o.Stops)
	default:
		return nil, invalid("unknown operation")
	}
}

// accept takes an input in. What is wrong with the input itself, or with the
// room for it, refuses this operation alone.
func (b *batch) accept(a *messages.AcceptInput) (*messages.LedgerResult, error) {
	in := a.GetInput()
	if err := checkInput(in); err != nil {
		return &messages.LedgerResult{Error: Fault(err)}, nil
	}
	known, err := b.known(in)
	if err != nil || known != nil {
		return &messages.LedgerResult{Accepted: known}, err
	}
	if a.GetLimit() > 0 && b.count.open() >= a.GetLimit() {
		return &messages.LedgerResult{Error: Fault(ErrQueueFull)}, nil
	}
	next := b.count.inbox + 1
	at := b.now.UnixMicro()
	record, err := store.EncodeRecord(version, inboxKey(next), &messages.InboxRecord{
		Sequence: next, Input: in, AcceptedUs: at,
	})
	if err != nil {
		return nil, err
	}
	if len(record) > store.MaxValue {
		return &messages.LedgerResult{Error: Fault(store.ErrTooBig)}, nil
	}
	if err := b.txn.Put(inboxKey(next), record); err != nil {
		return nil, err
	}
	err = b.putTask(in.GetId(), &messages.TaskRecord{
		Sequence: next, State: messages.TaskState_TASK_STATE_QUEUED,
		Level: in.GetLevel(), Agent: agentOr(in.GetAgent()),
	})
	if err != nil {
		return nil, err
	}
	key := openKey(next)
	if err := b.txn.Put(key, store.Seal(version, key, []byte(in.GetId()))); err != nil {
		return nil, err
	}
	if in.GetIdempotencyKey() != "" {
		err := b.txn.PutRecord(version, idempotencyKey(in), &messages.KeyRecord{
			InputId: in.GetId(), Sequence: next, AtUs: at,
		})
		if err != nil {
			return nil, err
		}
	}
	b.count.inbox = next
	b.count.accepted++
	return &messages.LedgerResult{Accepted: &messages.Accepted{InputId: in.GetId(), Sequence: next}}, nil
}

func checkInput(in *messages.Input) error {
	if err := checkID("input id", in.GetId()); err != nil {
		return err
	}
	if len(in.GetParts()) == 0 {
		return invalid("input %s has no content", in.GetId())
	}
	return nil
}

// known finds the input that in repeats, by its key or by its id.
func (b *batch) known(in *messages.Input) (*messages.Accepted, error) {
	if in.GetIdempotencyKey() != "" {
		key := &messages.KeyRecord{}
		err := b.txn.GetRecord(version, idempotencyKey(in), key)
		if err == nil {
			return &messages.Accepted{InputId: key.GetInputId(), Sequence: key.GetSequence(), Duplicate: true}, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	task, err := b.task(in.GetId())
	if errors.Is(err, ErrUnknownTask) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &messages.Accepted{InputId: in.GetId(), Sequence: task.GetSequence(), Duplicate: true}, nil
}

func (b *batch) task(id string) (*messages.TaskRecord, error) { return readTask(b.txn, id) }

func readTask(txn store.Txn, id string) (*messages.TaskRecord, error) {
	if err := checkID("task id", id); err != nil {
		return nil, err
	}
	t := &messages.TaskRecord{}
	err := txn.GetRecord(version, taskKey(id), t)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrUnknownTask, id)
	}
	return t, err
}

// running returns a task that has not ended.
func (b *batch) running(id string) (*messages.TaskRecord, error) {
	t, err := b.task(id)
	if err != nil {
		return nil, err
	}
	if t.GetState() == messages.TaskState_TASK_STATE_ENDED {
		return nil, fmt.Errorf("%w: %s as %s", ErrEnded, id, t.GetEnd())
	}
	return t, nil
}

func (b *batch) putTask(id string, t *messages.TaskRecord) error {
	return b.txn.PutRecord(version, taskKey(id), t)
}

func (b *batch) setTask(s *messages.SetTask) error {
	t, err := b.running(s.GetTaskId())
	if err != nil {
		return err
	}
	switch s.GetState() {
	case messages.TaskState_TASK_STATE_RUNNING:
		// The starts that are left are those after which the node did not stop in
		// order: three of them are a crash loop.
		switch {
		case s.GetClean():
			t.Starts = max(0, t.GetStarts()-1)
		case !s.GetResumed():
			t.Starts++
		}
	case messages.TaskState_TASK_STATE_QUEUED, messages.TaskState_TASK_STATE_SUSPENDED,
		messages.TaskState_TASK_STATE_PARKED, messages.TaskState_TASK_STATE_STEERED:
	default:
		return invalid("state %s of %s", s.GetState(), s.GetTaskId())
	}
	if s.GetState() == messages.TaskState_TASK_STATE_STEERED && s.GetJoined() == "" {
		return invalid("%s is steered into no task", s.GetTaskId())
	}
	t.State, t.Joined = s.GetState(), s.GetJoined()
	t.Level, t.Preempted = s.GetLevel(), s.GetPreempted()
	return b.putTask(s.GetTaskId(), t)
}

func (b *batch) appendJournal(e *messages.JournalEntry) (*messages.LedgerResult, error) {
	t, err := b.running(e.GetTaskId())
	if err != nil {
		return nil, err
	}
	if e.GetKind() == messages.JournalKind_JOURNAL_KIND_UNSPECIFIED {
		return nil, invalid("journal entry of %s has no kind", e.GetTaskId())
	}
	t.Journal++
	b.count.journal++
	entry := proto.CloneOf(e)
	entry.Sequence = t.GetJournal()
	err = b.txn.PutRecord(version, journalKey(e.GetTaskId(), t.GetJournal()), &messages.JournalRecord{
		Entry: entry, Global: b.count.journal,
	})
	if err != nil {
		return nil, err
	}
	return &messages.LedgerResult{Sequence: t.GetJournal()}, b.putTask(e.GetTaskId(), t)
}

func (b *batch) putOutput(o *messages.OutputIntent) error {
	if err := checkID("output id", o.GetOutputId()); err != nil {
		return err
	}
	if o.GetChannel() == "" || len(o.GetParts()) == 0 {
		return invalid("output %s lacks channel or content", o.GetOutputId())
	}
	if known, err := b.txn.Has(outputKey(o.GetOutputId())); err != nil || known {
		return err
	}
	if err := b.txn.Put(unsentKey(o.GetOutputId()), nil); err != nil {
		return err
	}
	return b.txn.PutRecord(version, outputKey(o.GetOutputId()), &messages.OutputRecord{Intent: o})
}

func (b *batch) markSent(r *messages.OutputReceipt) error {
	if err := checkID("output id", r.GetOutputId()); err != nil {
		return err
	}
	o := &messages.OutputRecord{}
	err := b.txn.GetRecord(version, outputKey(r.GetOutputId()), o)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %s", ErrUnknownOutput, r.GetOutputId())
	}
	if err != nil || o.GetReceipt() != nil {
		return err
	}
	o.Receipt = r
	if err := b.txn.Delete(unsentKey(r.GetOutputId())); err != nil {
		return err
	}
	return b.txn.PutRecord(version, outputKey(r.GetOutputId()), o)
}

func (b *batch) end(e *messages.EndTask) (*messages.LedgerResult, error) {
	if e.GetEnd() == messages.End_END_UNSPECIFIED || e.GetReason() == "" {
		return nil, invalid("end of %s lacks end or reason", e.GetTaskId())
	}
	t, err := b.task(e.GetTaskId())
	if err != nil {
		return nil, err
	}
	if t.GetState() == messages.TaskState_TASK_STATE_ENDED {
		if t.GetEnd() == e.GetEnd() && t.GetReason() == e.GetReason() && t.GetBy() == e.GetBy() {
			return &messages.LedgerResult{}, nil
		}
		return nil, fmt.Errorf("%w: %s as %s (%s)", ErrEnded, e.GetTaskId(), t.GetEnd(), t.GetReason())
	}
	if err := dropJournal(b.txn, e.GetTaskId(), t); err != nil {
		return nil, err
	}
	if err := b.txn.Delete(openKey(t.GetSequence())); err != nil {
		return nil, err
	}
	t.State = messages.TaskState_TASK_STATE_ENDED
	t.End, t.Reason, t.Text, t.By = e.GetEnd(), e.GetReason(), e.GetText(), e.GetBy()
	t.Usage, t.EndedUs = e.GetUsage(), e.GetAtUs()
	if t.EndedUs == 0 {
		t.EndedUs = b.now.UnixMicro()
	}
	b.count.ended++
	return &messages.LedgerResult{Ended: true}, b.putTask(e.GetTaskId(), t)
}

// dropJournal deletes a task's journal. Entries beyond what one transaction
// holds stay behind without a task that reads them; a turn is capped far below.
func dropJournal(txn store.Txn, id string, t *messages.TaskRecord) error {
	const most = store.MaxWrites / 2
	for n := uint64(1); n <= min(t.GetJournal(), most); n++ {
		if err := txn.Delete(journalKey(id, n)); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) putAgent(a *messages.AgentSpec) error {
	if err := checkID("agent", a.GetAgent()); err != nil {
		return err
	}
	return b.txn.PutRecord(version, agentKey(a.GetAgent()), &messages.AgentRecord{Agent: a})
}

func (b *batch) deleteAgent(agent string) error {
	if err := checkID("agent", agent); err != nil {
		return err
	}
	return b.txn.Delete(agentKey(agent))
}

// write takes a raw write of a space whose encoder is elsewhere.
func (b *batch) write(w *messages.RawWrite) error {
	if w.GetSpace() == 0 || w.GetSpace() > 255 {
		return invalid("space %d", w.GetSpace())
	}
	space := store.Space(w.GetSpace())
	switch space {
	case store.Meta, store.Inbox, store.Idempotency, store.Task, store.Journal, store.Output,
		store.Block, store.Payload, store.Event, store.Agent, store.Config, store.Secret:
		return fmt.Errorf("%w: %s", ErrOwned, space)
	default:
	}
	return b.txn.Apply([]store.Write{{Space: space, Key: w.GetKey(), Value: w.Value, Delete: w.Value == nil}})
}

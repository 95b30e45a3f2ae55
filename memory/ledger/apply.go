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
	// full refuses inputs while the store is over its budget.
	full *messages.Error
	due  [][]*messages.EventRecord
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
		return b.putOutput(o.Output)
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
	if b.full != nil {
		return &messages.LedgerResult{Error: b.full}, nil
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
		countStart(t, s)
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

// countStart keeps the starts after which the node did not stop in order and the turn
// had no result: three of them are a crash loop.
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

// isResult tells entries that show that a turn got on from those that are written
// before each attempt of a step.
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

func (b *batch) appendJournal(e *messages.JournalEntry) (*messages.LedgerResult, error) {
	t, err := b.running(e.GetTaskId())
	if err != nil {
		return nil, err
	}
	if e.GetKind() == messages.JournalKind_JOURNAL_KIND_UNSPECIFIED {
		return nil, invalid("journal entry of %s has no kind", e.GetTaskId())
	}
	t.Journal++
	if isResult(e.GetKind()) {
		t.Result = t.Journal
	}
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

func (b *batch) putOutput(o *messages.OutputIntent) (*messages.LedgerResult, error) {
	if err := checkID("output id", o.GetOutputId()); err != nil {
		return nil, err
	}
	if o.GetChannel() == "" || len(o.GetParts()) == 0 {
		return nil, invalid("output %s lacks channel or content", o.GetOutputId())
	}
	old := &messages.OutputRecord{}
	err := b.txn.GetRecord(version, outputKey(o.GetOutputId()), old)
	if err == nil {
		return &messages.LedgerResult{Known: true, Receipt: old.GetReceipt()}, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if err := b.txn.Put(unsentKey(o.GetOutputId()), nil); err != nil {
		return nil, err
	}
	return &messages.LedgerResult{}, b.txn.PutRecord(version, outputKey(o.GetOutputId()), &messages.OutputRecord{Intent: o})
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
	o.Receipt = proto.CloneOf(r)
	if o.GetReceipt().GetAtUs() == 0 {
		o.Receipt.AtUs = b.now.UnixMicro()
	}
	if err := b.txn.Delete(unsentKey(r.GetOutputId())); err != nil {
		return err
	}
	if err := b.txn.Put(sentKey(o.GetReceipt().GetAtUs(), r.GetOutputId()), nil); err != nil {
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
	if err := b.txn.Delete(openKey(t.GetSequence())); err != nil {
		return nil, err
	}
	t.State = messages.TaskState_TASK_STATE_ENDED
	t.End, t.Reason, t.Text, t.By = e.GetEnd(), e.GetReason(), e.GetText(), e.GetBy()
	t.Usage, t.EndedUs = e.GetUsage(), e.GetAtUs()
	if t.EndedUs == 0 {
		t.EndedUs = b.now.UnixMicro()
	}
	if err := b.keepJournal(e.GetTaskId(), t); err != nil {
		return nil, err
	}
	b.count.ended++
	return &messages.LedgerResult{Ended: true}, b.putTask(e.GetTaskId(), t)
}

// crashLoop is the reason with which a task ends that brought the node down again and
// again.
const crashLoop = "crash_loop"

// keepJournal hands the journal of an ended task to retention, or lays it aside for
// whoever looks into a crash loop.
func (b *batch) keepJournal(id string, t *messages.TaskRecord) error {
	if t.GetReason() == crashLoop {
		return b.layAside(id, t)
	}
	if t.GetJournal() == 0 {
		return nil
	}
	return b.txn.Put(endedKey(t.GetEndedUs(), id), nil)
}

// layAside writes the record of a crash loop; its journal stays where it is. The end
// must not fail for a record that is too big: then its input goes without content.
func (b *batch) layAside(id string, t *messages.TaskRecord) error {
	in, err := inbox(b.txn, t.GetSequence())
	if err != nil {
		return err
	}
	key := asideKey(id)
	record := &messages.AsideRecord{Input: in.GetInput(), AtUs: t.GetEndedUs(), Reason: t.GetReason()}
	encoded, err := store.EncodeRecord(version, key, record)
	if err == nil && len(encoded) > store.MaxValue {
		record.Input = proto.CloneOf(record.GetInput())
		record.Input.Parts = nil
		encoded, err = store.EncodeRecord(version, key, record)
	}
	if err != nil {
		return err
	}
	return b.txn.Put(key, encoded)
}

// dropJournal deletes entries of a journal. Entries beyond what one transaction holds
// stay behind without a task that reads them; a turn is capped far below.
func dropJournal(txn store.Txn, keys [][]byte) error {
	const most = store.MaxWrites / 2
	for _, key := range keys[:min(len(keys), most)] {
		if err := txn.Delete(key); err != nil {
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
		store.Block, store.Payload, store.Event, store.Agent, store.Config, store.Secret, store.Aside:
		return fmt.Errorf("%w: %s", ErrOwned, space)
	default:
	}
	return b.txn.Apply([]store.Write{{Space: space, Key: w.GetKey(), Value: w.Value, Delete: w.Value == nil}})
}

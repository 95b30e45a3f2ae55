package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"homeagent/memory/store"
	"homeagent/messages"
)

// Pending returns all that is open for an agent: tasks that have not ended, in
// inbox order and with their journals, outputs not known as sent, and the
// residents below it. An empty agent means all agents; a task id limits the tasks
// to that one, and a task that has ended gives none.
func (l *Ledger) Pending(q *messages.LedgerPending) (*messages.PendingTasks, error) {
	out := &messages.PendingTasks{}
	err := l.db.View(func(txn store.Txn) error {
		ids, err := openTasks(txn)
		if err != nil {
			return err
		}
		for _, o := range ids {
			if q.GetTaskId() != "" && q.GetTaskId() != o.id {
				continue
			}
			p, err := pending(txn, o.id, q.GetAgent())
			if err != nil {
				return fmt.Errorf("task %s: %w", o.id, err)
			}
			if p != nil {
				out.Tasks = append(out.Tasks, p)
			}
		}
		if q.GetTaskId() != "" {
			return nil
		}
		if out.Unsent, err = unsent(txn, q.GetAgent()); err != nil {
			return err
		}
		if out.Agents, err = agents(txn, q.GetAgent()); err != nil {
			return err
		}
		out.Stops, err = stops(txn, agentOr(q.GetAgent()))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pending: %w", err)
	}
	return out, nil
}

// openTask is an entry of the list of tasks that have not ended.
type openTask struct {
	sequence uint64
	id       string
}

func openTasks(txn store.Txn) ([]openTask, error) {
	var out []openTask
	for item, err := range txn.Scan(store.Range{Space: store.Task, Prefix: listMark}) {
		if err != nil {
			return nil, err
		}
		record, err := item.Value()
		if err != nil {
			return nil, err
		}
		v, id, err := store.Unseal(item.FullKey(), record)
		if err != nil {
			return nil, err
		}
		if v != version || len(item.Key()) != 9 {
			return nil, fmt.Errorf("%w: list of open tasks", store.ErrRecord)
		}
		out = append(out, openTask{binary.BigEndian.Uint64(item.Key()[1:]), string(id)})
	}
	return out, nil
}

// pending reads one open task; nil when it belongs to another agent.
func pending(txn store.Txn, id, agent string) (*messages.PendingTask, error) {
	t, err := readTask(txn, id)
	if err != nil {
		return nil, err
	}
	if agent != "" && agent != t.GetAgent() {
		return nil, nil
	}
	in, err := inbox(txn, t.GetSequence())
	if err != nil {
		return nil, err
	}
	journal, err := journal(txn, id, t.GetJournal())
	if err != nil {
		return nil, err
	}
	return &messages.PendingTask{
		Input: in.GetInput(), Sequence: t.GetSequence(), State: t.GetState(),
		Starts: vainStarts(t), Preempted: t.GetPreempted(), Joined: t.GetJoined(), Journal: journal,
	}, nil
}

// vainStarts is how many starts there were since the last result: none after a run that had one.
func vainStarts(t *messages.TaskRecord) int32 {
	if t.GetResult() > t.GetStartedAt() {
		return 0
	}
	return t.GetStarts()
}

func inbox(txn store.Txn, sequence uint64) (*messages.InboxRecord, error) {
	out := &messages.InboxRecord{}
	err := txn.GetRecord(version, inboxKey(sequence), out)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: inbox %d", store.ErrNotFound, sequence)
	}
	return out, err
}

// shortJournal is how many entries are cheaper to read one by one than by a scan,
// which has a price to begin.
const shortJournal = 32

// journal reads the entries 1 to last and wants each of them, and none behind.
func journal(txn store.Txn, id string, last uint64) ([]*messages.JournalEntry, error) {
	if last > shortJournal {
		return scanJournal(txn, id, last)
	}
	out := make([]*messages.JournalEntry, 0, last)
	for n := uint64(1); n <= last; n++ {
		r := &messages.JournalRecord{}
		err := txn.GetRecord(version, journalKey(id, n), r)
		if errors.Is(err, store.ErrNotFound) {
			// The scan tells a hole from an end.
			return scanJournal(txn, id, last)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, r.GetEntry())
	}
	if more, err := txn.Has(journalKey(id, last+1)); err != nil || !more {
		return out, err
	}
	return scanJournal(txn, id, last)
}

func scanJournal(txn store.Txn, id string, last uint64) ([]*messages.JournalEntry, error) {
	out := make([]*messages.JournalEntry, 0, min(last, 1024))
	prefix := append([]byte(id), 0)
	for item, err := range txn.Scan(store.Range{Space: store.Journal, Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		want := uint64(len(out)) + 1
		if !bytes.Equal(item.FullKey(), journalKey(id, want)) {
			return nil, fmt.Errorf("%w: journal lacks entry %d", store.ErrRecord, want)
		}
		record, err := item.Value()
		if err != nil {
			return nil, err
		}
		r := &messages.JournalRecord{}
		if err := store.DecodeRecord(version, item.FullKey(), record, r); err != nil {
			return nil, err
		}
		out = append(out, r.GetEntry())
	}
	if uint64(len(out)) != last {
		return nil, fmt.Errorf("%w: journal ends at %d of %d", store.ErrRecord, len(out), last)
	}
	return out, nil
}

func unsent(txn store.Txn, agent string) ([]*messages.OutputIntent, error) {
	var ids []string
	// What sorts before 00 01 is the list of those that were sent.
	for item, err := range txn.Scan(store.Range{Space: store.Output, Prefix: listMark, From: []byte{0, 1}}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, string(item.Key()[1:]))
	}
	var out []*messages.OutputIntent
	for _, id := range ids {
		o := &messages.OutputRecord{}
		if err := txn.GetRecord(version, outputKey(id), o); err != nil {
			return nil, fmt.Errorf("output %s: %w", id, err)
		}
		if agent == "" || agentOr(o.GetIntent().GetAgent()) == agent {
			out = append(out, o.GetIntent())
		}
	}
	return out, nil
}

// agents returns the residents whose parent is the agent, or all.
func agents(txn store.Txn, parent string) ([]*messages.AgentSpec, error) {
	var out []*messages.AgentSpec
	for item, err := range txn.Scan(store.Range{Space: store.Agent}) {
		if err != nil {
			return nil, err
		}
		record, err := item.Value()
		if err != nil {
			return nil, err
		}
		a := &messages.AgentRecord{}
		if err := store.DecodeRecord(version, item.FullKey(), record, a); err != nil {
			return nil, err
		}
		if parent == "" || a.GetAgent().GetParent() == parent {
			out = append(out, a.GetAgent())
		}
	}
	return out, nil
}

// Task tells all that is known of one input, or ErrUnknownTask.
func (l *Ledger) Task(id string) (*messages.TaskStatus, error) {
	var out *messages.TaskStatus
	err := l.db.View(func(txn store.Txn) error {
		t, err := readTask(txn, id)
		if err != nil {
			return err
		}
		in, err := inbox(txn, t.GetSequence())
		if err != nil {
			return err
		}
		out = &messages.TaskStatus{
			Input: in.GetInput(), State: t.GetState(), End: t.GetEnd(), Reason: t.GetReason(),
			Text: t.GetText(), By: t.GetBy(), AcceptedUs: in.GetAcceptedUs(), EndedUs: t.GetEndedUs(),
			Starts: t.GetStarts(), Preempted: t.GetPreempted(), Usage: t.GetUsage(),
		}
		return nil
	})
	return out, err
}

// Journal returns the steps of a task's turn so far; none for a task that has ended
// and whose journal retention has removed, ErrUnknownTask for one that was never
// accepted.
func (l *Ledger) Journal(id string) ([]*messages.JournalEntry, error) {
	var out []*messages.JournalEntry
	err := l.db.View(func(txn store.Txn) error {
		t, err := readTask(txn, id)
		if err != nil {
			return err
		}
		if t.GetState() != messages.TaskState_TASK_STATE_ENDED {
			out, err = journal(txn, id, t.GetJournal())
			return err
		}
		left, err := journalKeys(txn, id, int(t.GetJournal()))
		if err != nil || uint64(len(left)) < t.GetJournal() {
			return err // retention has been here, or is at work
		}
		out, err = journal(txn, id, t.GetJournal())
		return err
	})
	return out, err
}

// journalKeys returns the full keys of a journal, at most limit; zero is all.
func journalKeys(txn store.Txn, id string, limit int) ([][]byte, error) {
	var out [][]byte
	for item, err := range txn.Scan(store.Range{Space: store.Journal, Prefix: append([]byte(id), 0), Limit: limit}) {
		if err != nil {
			return nil, err
		}
		out = append(out, bytes.Clone(item.FullKey()))
	}
	return out, nil
}

// Aside returns what was laid aside of a task that ended as a crash loop, its journal
// included, or ErrUnknownTask.
func (l *Ledger) Aside(id string) (*messages.AsideRecord, error) {
	if err := checkID("task id", id); err != nil {
		return nil, err
	}
	out := &messages.AsideRecord{}
	err := l.db.View(func(txn store.Txn) error {
		err := txn.GetRecord(version, asideKey(id), out)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w: %s", ErrUnknownTask, id)
		}
		if err != nil {
			return err
		}
		keys, err := journalKeys(txn, id, 0)
		if err != nil {
			return err
		}
		out.Journal, err = journal(txn, id, uint64(len(keys)))
		return err
	})
	return out, err
}

// Output returns an intended output with its receipt, if it was sent, or
// ErrUnknownOutput.
func (l *Ledger) Output(id string) (*messages.OutputRecord, error) {
	if err := checkID("output id", id); err != nil {
		return nil, err
	}
	out := &messages.OutputRecord{}
	err := l.db.View(func(txn store.Txn) error { return txn.GetRecord(version, outputKey(id), out) })
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrUnknownOutput, id)
	}
	return out, err
}

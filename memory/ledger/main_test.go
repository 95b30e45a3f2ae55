package ledger

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"homeagent/memory/store"
	"homeagent/messages"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("LEDGER_WRITER_DIR"); dir != "" {
		writerChild(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

var noon = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

type rig struct {
	t  testing.TB
	db *store.DB
	l  *Ledger
}

func newRig(t testing.TB, opt Options) *rig {
	t.Helper()
	db, err := store.Open("", store.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	l, err := Open(db, opt)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, db, l}
}

// do runs operations as one request and wants no error.
func (r *rig) do(ops ...*messages.LedgerOp) []*messages.LedgerResult {
	r.t.Helper()
	done := r.try(ops...)
	if done.GetError() != nil {
		r.t.Fatalf("refused: %v", done.GetError())
	}
	return done.GetResults()
}

func (r *rig) try(ops ...*messages.LedgerOp) *messages.LedgerDone {
	r.t.Helper()
	return r.l.Execute(noon, []*messages.LedgerExecute{{Ops: ops}})[0]
}

// refused wants the code and that nothing changed.
func (r *rig) refused(code string, ops ...*messages.LedgerOp) {
	r.t.Helper()
	before := r.db.Stats().Commits
	if got := r.try(ops...).GetError().GetCode(); got != code {
		r.t.Fatalf("code %q, want %q", got, code)
	}
	if r.db.Stats().Commits != before {
		r.t.Fatal("a refused request was committed")
	}
}

func (r *rig) pending(agent string) []*messages.PendingTask {
	r.t.Helper()
	p, err := r.l.Pending(&messages.LedgerPending{Agent: agent})
	if err != nil {
		r.t.Fatal(err)
	}
	return p.GetTasks()
}

func (r *rig) task(id string) *messages.TaskStatus {
	r.t.Helper()
	s, err := r.l.Task(id)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func textPart(s string) []*messages.Part {
	return []*messages.Part{{Content: &messages.Part_Text{Text: s}}}
}

func input(id string) *messages.Input {
	return &messages.Input{Id: id, Channel: "cli", Parts: textPart("text of " + id), Principal: &messages.Principal{Id: "owner"}}
}

func accept(id string) *messages.LedgerOp { return acceptInput(input(id), 0) }

func acceptInput(in *messages.Input, limit int64) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: in, Limit: limit}}}
}

func set(id string, s messages.TaskState) *messages.LedgerOp {
	return setOp(&messages.SetTask{TaskId: id, State: s})
}

func setOp(s *messages.SetTask) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: s}}
}

func step(id string, k messages.JournalKind) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Journal{Journal: &messages.JournalEntry{TaskId: id, Kind: k}}}
}

func output(id string) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Output{Output: &messages.OutputIntent{
		OutputId: id, Channel: "cli", Parts: textPart("said " + id),
	}}}
}

func sent(id, receipt string) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Sent{Sent: &messages.OutputReceipt{OutputId: id, Receipt: receipt}}}
}

func end(id string, e messages.End, reason string) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_End{End: &messages.EndTask{TaskId: id, End: e, Reason: reason, Text: "bye"}}}
}

func event(id, agent, text string) *messages.Event {
	return &messages.Event{
		EventId: id, Agent: agent, Kind: messages.EventKind_EVENT_KIND_INPUT,
		Blocks: []*messages.Block{{BlockId: id + "-b", Content: textPart(text)[0]}},
	}
}

func events(list ...*messages.Event) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Events{Events: &messages.AppendEvents{Events: list}}}
}

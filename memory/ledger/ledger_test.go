package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"homeagent/memory/block"
	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	running   = messages.TaskState_TASK_STATE_RUNNING
	suspended = messages.TaskState_TASK_STATE_SUSPENDED
	answered  = messages.End_END_ANSWERED
	failed    = messages.End_END_FAILED
)

func TestAcceptGivesDenseSequences(t *testing.T) {
	r := newRig(t, Options{})
	for i := 1; i <= 3; i++ {
		a := r.do(accept(fmt.Sprintf("i%d", i)))[0].GetAccepted()
		if a.GetSequence() != uint64(i) || a.GetDuplicate() || a.GetInputId() != fmt.Sprintf("i%d", i) {
			t.Fatalf("accepted %v", a)
		}
	}
	if p := r.pending(""); len(p) != 3 || p[2].GetInput().GetId() != "i3" || p[0].GetState() != messages.TaskState_TASK_STATE_QUEUED {
		t.Fatalf("pending %v", p)
	}
	if s := r.task("i2"); s.GetAcceptedUs() != noon.UnixMicro() || s.GetInput().GetParts()[0].GetText() != "text of i2" {
		t.Fatalf("status %v", s)
	}
}

func TestIdempotencyKey(t *testing.T) {
	r := newRig(t, Options{})
	keyed := func(id, key, who string) *messages.LedgerOp {
		in := input(id)
		in.IdempotencyKey = key
		in.Principal.Id = who
		return acceptInput(in, 0)
	}
	r.do(keyed("first", "k", "ann"))
	a := r.do(keyed("second", "k", "ann"))[0].GetAccepted()
	if !a.GetDuplicate() || a.GetInputId() != "first" || a.GetSequence() != 1 {
		t.Fatalf("same key: %v", a)
	}
	if a := r.do(keyed("third", "k", "bob"))[0].GetAccepted(); a.GetDuplicate() || a.GetSequence() != 2 {
		t.Fatalf("same key of another principal: %v", a)
	}
	if a := r.do(accept("first"))[0].GetAccepted(); !a.GetDuplicate() || a.GetSequence() != 1 {
		t.Fatalf("same id: %v", a)
	}
	// Two in one request see each other.
	got := r.do(keyed("x", "n", "ann"), keyed("y", "n", "ann"))
	if got[0].GetAccepted().GetDuplicate() || got[1].GetAccepted().GetInputId() != "x" {
		t.Fatalf("in one request: %v", got)
	}
	if n := r.l.Figures().GetAccepted(); n != 3 {
		t.Fatalf("%d accepted, want 3", n)
	}
}

func TestQueueFullRefusesOneOperation(t *testing.T) {
	r := newRig(t, Options{})
	got := r.do(acceptInput(input("a"), 2), acceptInput(input("b"), 2), acceptInput(input("c"), 2))
	if got[1].GetError() != nil || got[2].GetError().GetCode() != "queue_full" || got[2].GetError().GetRetryAfterMs() == 0 {
		t.Fatalf("results %v", got)
	}
	r.do(end("a", answered, "ok"))
	if got := r.do(acceptInput(input("c"), 2)); got[0].GetAccepted().GetSequence() != 3 {
		t.Fatalf("after an end: %v", got)
	}
	if f := r.l.Figures(); f.GetOpen() != 2 || f.GetAccepted() != 3 || f.GetEnded() != 1 {
		t.Fatalf("figures %v", f)
	}
}

func TestBadInputsAreRefused(t *testing.T) {
	r := newRig(t, Options{})
	big := input("big")
	big.Parts = textPart(strings.Repeat("x", store.MaxValue))
	for code, in := range map[string]*messages.Input{
		"invalid_operation": {Id: "", Parts: textPart("x")},
		"too_big":           big,
	} {
		if got := r.do(acceptInput(in, 0))[0].GetError().GetCode(); got != code {
			t.Errorf("code %q, want %q", got, code)
		}
	}
	for _, in := range []*messages.Input{nil, {Id: "a\x00b", Parts: textPart("x")}, {Id: "empty"}} {
		if got := r.do(acceptInput(in, 0))[0].GetError().GetCode(); got != "invalid_operation" {
			t.Errorf("%v: code %q", in, got)
		}
	}
	if r.l.LastSequence() != 0 {
		t.Error("a refused input took a sequence")
	}
}

func TestStartsCountWhatBroughtTheNodeDown(t *testing.T) {
	r := newRig(t, Options{})
	r.do(accept("a"))
	rows := []struct {
		op   *messages.SetTask
		want int32
	}{
		{&messages.SetTask{State: running}, 1},
		{&messages.SetTask{State: suspended, Preempted: 1}, 1},
		{&messages.SetTask{State: running, Resumed: true}, 1},
		{&messages.SetTask{State: running}, 2},
		{&messages.SetTask{State: running, Clean: true}, 1},
		{&messages.SetTask{State: running, Clean: true}, 0},
		{&messages.SetTask{State: running, Clean: true}, 0},
		{&messages.SetTask{State: running, Level: 3, Preempted: 2}, 1},
	}
	for i, row := range rows {
		row.op.TaskId = "a"
		r.do(setOp(row.op))
		if p := r.pending("")[0]; p.GetStarts() != row.want || p.GetState() != row.op.GetState() || p.GetPreempted() != row.op.GetPreempted() {
			t.Fatalf("row %d: %v", i, p)
		}
	}
	r.do(setOp(&messages.SetTask{TaskId: "a", State: messages.TaskState_TASK_STATE_STEERED, Joined: "b"}))
	if p := r.pending("")[0]; p.GetJoined() != "b" {
		t.Fatalf("steered: %v", p)
	}
	r.refused("unknown_input", set("none", running))
	r.refused("invalid_operation", set("a", messages.TaskState_TASK_STATE_ENDED))
	r.refused("invalid_operation", set("a", messages.TaskState_TASK_STATE_UNSPECIFIED))
	r.refused("invalid_operation", set("a", messages.TaskState_TASK_STATE_STEERED))
}

func TestExactlyOneEnd(t *testing.T) {
	r := newRig(t, Options{})
	r.do(accept("a"), set("a", running), step("a", messages.JournalKind_JOURNAL_KIND_STARTED))
	if got := r.do(end("a", answered, "ok")); !got[0].GetEnded() {
		t.Fatalf("first end: %v", got)
	}
	if got := r.do(end("a", answered, "ok")); got[0].GetEnded() {
		t.Fatalf("same end again: %v", got)
	}
	r.refused("already_ended", end("a", failed, "boom"))
	r.refused("already_ended", end("a", answered, "other"))
	r.refused("already_ended", set("a", running))
	r.refused("already_ended", step("a", messages.JournalKind_JOURNAL_KIND_REQUEST))
	r.refused("unknown_input", end("b", answered, "ok"))
	r.refused("invalid_operation", end("a", answered, ""))
	s := r.task("a")
	if s.GetEnd() != answered || s.GetReason() != "ok" || s.GetText() != "bye" || s.GetEndedUs() != noon.UnixMicro() {
		t.Fatalf("status %v", s)
	}
	if p := r.pending(""); len(p) != 0 {
		t.Fatalf("an ended task is pending: %v", p)
	}
	if j, err := r.l.Journal("a"); err != nil || len(j) != 1 {
		t.Fatalf("journal after the end: %v, %v", j, err)
	}
	if f := r.l.Figures(); f.GetEnded() != 1 || f.GetOpen() != 0 {
		t.Fatalf("figures %v", f)
	}
}

func TestJournal(t *testing.T) {
	r := newRig(t, Options{})
	r.do(accept("a"), accept("ab"))
	kinds := []messages.JournalKind{
		messages.JournalKind_JOURNAL_KIND_STARTED, messages.JournalKind_JOURNAL_KIND_REQUEST, messages.JournalKind_JOURNAL_KIND_RESPONSE,
	}
	for i, k := range kinds {
		if got := r.do(step("a", k))[0].GetSequence(); got != uint64(i+1) {
			t.Fatalf("sequence %d, want %d", got, i+1)
		}
		r.do(step("ab", k))
	}
	got, err := r.l.Journal("a")
	if err != nil || len(got) != len(kinds) {
		t.Fatalf("journal %v, %v", got, err)
	}
	for i, e := range got {
		if e.GetKind() != kinds[i] || e.GetSequence() != uint64(i+1) || e.GetTaskId() != "a" {
			t.Fatalf("entry %d: %v", i, e)
		}
	}
	p, err := r.l.Pending(&messages.LedgerPending{TaskId: "ab"})
	if err != nil || len(p.GetTasks()) != 1 || len(p.GetTasks()[0].GetJournal()) != 3 {
		t.Fatalf("one task: %v, %v", p, err)
	}
	if m := r.l.count; m.journal != 6 {
		t.Fatalf("global journal %d, want 6", m.journal)
	}
	r.refused("invalid_operation", step("a", messages.JournalKind_JOURNAL_KIND_UNSPECIFIED))
	if _, err := r.l.Journal("none"); !errors.Is(err, ErrUnknownTask) {
		t.Errorf("unknown task: %v", err)
	}
}

func TestOutputs(t *testing.T) {
	r := newRig(t, Options{})
	r.do(output("o1"), output("o2"), output("o1"))
	unsent := func() []string {
		p, err := r.l.Pending(&messages.LedgerPending{})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, o := range p.GetUnsent() {
			ids = append(ids, o.GetOutputId())
		}
		return ids
	}
	if got := unsent(); !slices.Equal(got, []string{"o1", "o2"}) {
		t.Fatalf("unsent %v", got)
	}
	r.do(sent("o1", "receipt"))
	r.do(sent("o1", "second"))
	again := r.do(output("o1"), output("o2"), output("o3"))
	if !again[0].GetKnown() || again[0].GetReceipt().GetReceipt() != "receipt" || !again[1].GetKnown() || again[1].GetReceipt() != nil || again[2].GetKnown() {
		t.Errorf("intended again: %v", again)
	}
	r.do(sent("o3", ""))
	if got := unsent(); !slices.Equal(got, []string{"o2"}) {
		t.Fatalf("unsent %v", got)
	}
	o, err := r.l.Output("o1")
	if err != nil || o.GetReceipt().GetReceipt() != "receipt" {
		t.Fatalf("output %v, %v", o, err)
	}
	r.refused("unknown_output", sent("none", ""))
	r.refused("invalid_operation", &messages.LedgerOp{Op: &messages.LedgerOp_Output{Output: &messages.OutputIntent{OutputId: "x"}}})
	if _, err := r.l.Output("none"); !errors.Is(err, ErrUnknownOutput) {
		t.Errorf("unknown output: %v", err)
	}
}

func TestRequestIsAtomicAndGroupIsNot(t *testing.T) {
	r := newRig(t, Options{})
	done := r.l.Execute(noon, []*messages.LedgerExecute{
		{Ops: []*messages.LedgerOp{accept("a")}},
		{Ops: []*messages.LedgerOp{accept("b"), output("o"), end("none", answered, "ok")}},
		{Ops: []*messages.LedgerOp{accept("c")}},
	})
	if done[1].GetError().GetCode() != "unknown_input" || done[0].GetError() != nil || done[2].GetError() != nil {
		t.Fatalf("answers %v", done)
	}
	if s := done[2].GetResults()[0].GetAccepted().GetSequence(); s != 2 {
		t.Errorf("sequence %d after a refused request, want 2", s)
	}
	if _, err := r.l.Task("b"); !errors.Is(err, ErrUnknownTask) {
		t.Errorf("an operation of a refused request took effect: %v", err)
	}
	if n := count(t, r.db, store.Output); n != 0 {
		t.Errorf("%d outputs of a refused request", n)
	}
}

func TestOneSyncForAGroup(t *testing.T) {
	var syncs int
	db, err := store.Open("", store.Options{InMemory: true, Faults: store.Faults{Sync: func(uint64) error { syncs++; return nil }}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	l, err := Open(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var group []*messages.LedgerExecute
	for i := range 8 {
		group = append(group, &messages.LedgerExecute{Ops: []*messages.LedgerOp{accept(fmt.Sprint("i", i))}})
	}
	l.Execute(noon, group)
	if syncs != 1 {
		t.Fatalf("%d syncs, want 1", syncs)
	}
	if m := db.Promised(); m.Inbox != 8 || m.Commit != 8 {
		t.Fatalf("mark %+v", m)
	}
	l.Execute(noon, []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{set("i1", running)}}})
	if syncs != 1 {
		t.Fatal("a request that wants no sync was synced")
	}
	l.Execute(noon, []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{set("i1", running)}, Sync: true}})
	if syncs != 2 {
		t.Fatal("a request that wants a sync was not synced")
	}
}

func TestFailedSyncAndCommit(t *testing.T) {
	boom := errors.New("boom")
	var failSync, failCommit bool
	db, err := store.Open("", store.Options{InMemory: true, Faults: store.Faults{
		Sync: func(uint64) error {
			if failSync {
				return boom
			}
			return nil
		},
		Commit: func(uint64) error {
			if failCommit {
				return store.ErrDiskLow
			}
			return nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	l, err := Open(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	failSync = true
	done := l.Execute(noon, []*messages.LedgerExecute{
		{Ops: []*messages.LedgerOp{accept("a")}},
		{Ops: []*messages.LedgerOp{output("o")}},
	})
	if done[0].GetError() == nil || done[0].GetResults() != nil || done[1].GetError() != nil {
		t.Fatalf("answers after a failed sync: %v", done)
	}
	failSync, failCommit = false, true
	done = l.Execute(noon, []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{accept("b")}}})
	if done[0].GetError().GetCode() != "disk_low" {
		t.Fatalf("answer after a refused commit: %v", done)
	}
	failCommit = false
	done = l.Execute(noon, []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{accept("b")}}})
	if s := done[0].GetResults()[0].GetAccepted().GetSequence(); s != 2 {
		t.Fatalf("sequence %d after a refused commit, want 2", s)
	}
}

type indexer struct {
	got  []string
	fail error
}

func (x *indexer) IndexEvents(txn store.Txn, list []*messages.EventRecord) error {
	for _, r := range list {
		x.got = append(x.got, fmt.Sprint(r.GetNumber(), ":", len(r.GetEvent().GetBlocks()[0].GetContent().GetText())))
		if err := txn.Put(store.Lexical.KeyUint(r.GetNumber()), nil); err != nil {
			return err
		}
	}
	return x.fail
}

func TestEvents(t *testing.T) {
	x := &indexer{}
	r := newRig(t, Options{Indexer: x})
	long := strings.Repeat("long ", maxEventText/4)
	r.do(events(event("e1", "", "hello"), event("e2", "main/resident/cook", long)))
	r.do(events(event("e1", "", "hello again"), event("e3", "", "three")))
	if !slices.Equal(x.got, []string{"1:5", fmt.Sprint("2:", len(long)), "3:5"}) {
		t.Fatalf("indexed %v", x.got)
	}
	got, err := r.l.Event("main", "e1")
	if err != nil || got.GetNumber() != 1 || got.GetEvent().GetBlocks()[0].GetContent().GetText() != "hello" || got.GetEvent().GetAgent() != "main" {
		t.Fatalf("event %v, %v", got, err)
	}
	got, err = r.l.Event("main/resident/cook", "e2")
	if err != nil {
		t.Fatal(err)
	}
	ref := got.GetEvent().GetBlocks()[0].GetContent().GetPayload()
	err = r.db.View(func(txn store.Txn) error {
		_, data, err := block.Payload(txn, ref.GetId())
		if err == nil && string(data) != long {
			t.Error("another text")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	x.fail = errors.New("index")
	r.refused("internal", events(event("e4", "", "four")))
	if _, err := r.l.Event("main", "e4"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("event of a refused request: %v", err)
	}
	if r.l.LastEvent() != 3 {
		t.Errorf("last event %d", r.l.LastEvent())
	}
	x.fail = nil
	r.refused("invalid_operation", events(&messages.Event{EventId: "x"}))
	r.refused("invalid_block", events(&messages.Event{EventId: "x", Kind: 1, Blocks: []*messages.Block{{BlockId: "b"}}}))
}

func TestAgentsAndPendingByAgent(t *testing.T) {
	r := newRig(t, Options{})
	put := func(agent, parent string) *messages.LedgerOp {
		return &messages.LedgerOp{Op: &messages.LedgerOp_PutAgent{PutAgent: &messages.PutAgent{
			Agent: &messages.AgentSpec{Agent: agent, Parent: parent},
		}}}
	}
	cook := input("c1")
	cook.Agent = "main/resident/cook"
	r.do(put("main/resident/cook", "main"), put("main/resident/cook/resident/x", "main/resident/cook"), acceptInput(cook, 0), accept("m1"))
	p, err := r.l.Pending(&messages.LedgerPending{Agent: "main"})
	if err != nil || len(p.GetAgents()) != 1 || p.GetAgents()[0].GetAgent() != "main/resident/cook" {
		t.Fatalf("agents of main %v, %v", p.GetAgents(), err)
	}
	if len(p.GetTasks()) != 1 || p.GetTasks()[0].GetInput().GetId() != "m1" {
		t.Fatalf("tasks of main %v", p.GetTasks())
	}
	r.do(&messages.LedgerOp{Op: &messages.LedgerOp_DeleteAgent{DeleteAgent: &messages.DeleteAgent{Agent: "main/resident/cook"}}})
	if p, _ := r.l.Pending(&messages.LedgerPending{}); len(p.GetAgents()) != 1 || len(p.GetTasks()) != 2 {
		t.Fatalf("pending of all %v", p)
	}
}

func TestRawWrites(t *testing.T) {
	r := newRig(t, Options{})
	raw := func(space uint32, key string, value []byte) *messages.LedgerOp {
		return &messages.LedgerOp{Op: &messages.LedgerOp_Write{Write: &messages.RawWrite{Space: space, Key: []byte(key), Value: value}}}
	}
	r.do(raw(uint32(store.Graph), "k", []byte("v")))
	if n := count(t, r.db, store.Graph); n != 1 {
		t.Fatalf("%d keys", n)
	}
	r.do(raw(uint32(store.Graph), "k", nil))
	if n := count(t, r.db, store.Graph); n != 0 {
		t.Fatalf("%d keys after a delete", n)
	}
	free := []store.Space{store.Graph, store.Lexical, store.Approval, store.Timer, store.Token, store.Usage}
	for _, s := range store.Spaces() {
		if !slices.Contains(free, s.Space) {
			r.refused("space_owned", raw(uint32(s.Space), "k", []byte("v")))
		}
	}
	r.refused("unknown_space", raw('?', "k", []byte("v")))
	r.refused("invalid_operation", raw(0, "k", nil))
	r.refused("invalid_operation", raw(300, "k", nil))
	r.refused("invalid_operation", &messages.LedgerOp{})
}

func TestFaultNamesEverySentinel(t *testing.T) {
	for _, err := range []error{
		ErrInvalid, ErrQueueFull, ErrUnknownTask, ErrUnknownOutput, ErrEnded, ErrOwned,
		block.ErrInvalid, block.ErrNoPayload, block.ErrDigest,
		store.ErrDiskLow, store.ErrTooBig, store.ErrBroken, store.ErrClosed, store.ErrRecord, store.ErrSpace,
	} {
		f := Fault(fmt.Errorf("wrapped: %w", err))
		if f.GetCode() == "" || f.GetCode() == "internal" || f.GetMessage() == "" || strings.Contains(f.GetMessage(), "wrapped") {
			t.Errorf("%v: %v", err, f)
		}
	}
	if Fault(nil) != nil || Fault(errors.New("x")).GetCode() != "internal" {
		t.Error("nil or unknown error")
	}
}

func count(t *testing.T, db *store.DB, space store.Space) int {
	t.Helper()
	n := 0
	err := db.View(func(txn store.Txn) error {
		for _, err := range txn.Scan(store.Range{Space: space}) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

package disk

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/contextmem"
	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// maker makes random requests about few things, so that they meet.
type maker struct{ rng *rand.Rand }

func (m maker) pick(of ...string) string { return of[m.rng.IntN(len(of))] }

func (m maker) id() string {
	if m.rng.IntN(40) == 0 {
		return m.pick("", "a\x00b", "unknown")
	}
	return fmt.Sprintf("t%d", m.rng.IntN(8))
}

func (m maker) parts() []*messages.Part {
	if m.rng.IntN(20) == 0 {
		return nil
	}
	return []*messages.Part{{Content: &messages.Part_Text{Text: fmt.Sprintf("text %d", m.rng.IntN(5))}}}
}

func (m maker) input() *messages.Input {
	in := &messages.Input{
		Id: m.id(), Agent: m.pick("", "main", "main/resident/cook"), Parts: m.parts(), Level: proto.Int32(int32(m.rng.IntN(4))),
		Principal: &messages.Principal{Id: m.pick("owner", "guest")},
	}
	if m.rng.IntN(2) == 0 {
		in.IdempotencyKey = m.pick("k1", "k2", "k3")
	}
	return in
}

func (m maker) op() *messages.LedgerOp {
	switch m.rng.IntN(15) {
	case 0, 1, 2:
		return &messages.LedgerOp{Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: m.input(), Limit: int64(m.rng.IntN(6))}}}
	case 3, 4:
		return &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: &messages.SetTask{
			TaskId: m.id(), State: messages.TaskState(m.rng.IntN(7)), Joined: m.pick("", "t1"), Level: int32(m.rng.IntN(4)),
			Preempted: int32(m.rng.IntN(3)), Clean: m.rng.IntN(4) == 0, Resumed: m.rng.IntN(4) == 0,
		}}}
	case 5, 6, 7:
		return &messages.LedgerOp{Op: &messages.LedgerOp_Journal{Journal: &messages.JournalEntry{
			TaskId: m.id(), Kind: messages.JournalKind(m.rng.IntN(12)), Round: int32(m.rng.IntN(3)),
		}}}
	case 8:
		return &messages.LedgerOp{Op: &messages.LedgerOp_Output{Output: &messages.OutputIntent{
			OutputId: m.id() + "/o1", TaskId: "t1", Channel: m.pick("cli", "cli", ""), Parts: m.parts(), Agent: m.pick("", "main"),
		}}}
	case 9:
		return &messages.LedgerOp{Op: &messages.LedgerOp_Sent{Sent: &messages.OutputReceipt{OutputId: m.id() + "/o1", AtUs: int64(m.rng.IntN(3))}}}
	case 10, 11:
		return &messages.LedgerOp{Op: &messages.LedgerOp_End{End: &messages.EndTask{
			TaskId: m.id(), End: messages.End(m.rng.IntN(4)), Reason: m.pick("ok", "ok", "stop", "crash_loop", ""), Text: "x", AtUs: int64(m.rng.IntN(3)),
		}}}
	case 12:
		return m.event()
	case 13:
		return &messages.LedgerOp{Op: &messages.LedgerOp_Edit{Edit: &messages.EditInput{
			TaskId: m.id(), Parts: m.parts(), Level: proto.Int32(int32(m.rng.IntN(6) - 1)),
		}}}
	default:
		return m.other()
	}
}

func (m maker) event() *messages.LedgerOp {
	e := &messages.Event{
		EventId: fmt.Sprintf("e%02d", m.rng.IntN(30)), Kind: messages.EventKind(m.rng.IntN(4)), Agent: m.pick("", "main", "main/resident/cook"),
		Conversation: m.pick("c1", "c2"), AtUs: 1,
		Blocks: []*messages.Block{{BlockId: "b", Content: &messages.Part{Content: &messages.Part_Text{Text: "said"}}, Source: "input", Modality: "text"}},
	}
	e.Blocks[0].BlockId = e.GetEventId() + "/b0"
	return &messages.LedgerOp{Op: &messages.LedgerOp_Events{Events: &messages.AppendEvents{Events: []*messages.Event{e}}}}
}

func (m maker) other() *messages.LedgerOp {
	agent := m.pick("main/resident/cook", "main/resident/clerk", "")
	switch m.rng.IntN(4) {
	case 0:
		return &messages.LedgerOp{Op: &messages.LedgerOp_PutAgent{PutAgent: &messages.PutAgent{Agent: &messages.AgentSpec{Agent: agent, Parent: "main"}}}}
	case 1:
		return &messages.LedgerOp{Op: &messages.LedgerOp_DeleteAgent{DeleteAgent: &messages.DeleteAgent{Agent: agent}}}
	case 2:
		n := &messages.NoteStops{Agent: m.pick("", "main", "main/resident/cook")}
		for range m.rng.IntN(3) {
			n.Moments = append(n.Moments, &messages.StopMoment{AtUs: int64(m.rng.IntN(9))})
		}
		return &messages.LedgerOp{Op: &messages.LedgerOp_Stops{Stops: n}}
	default:
		return &messages.LedgerOp{Op: &messages.LedgerOp_Write{Write: &messages.RawWrite{
			Space: uint32(m.pick("y", "y", "t", "c")[0]), Key: []byte(m.pick("a", "b")), Value: []byte(m.pick("1", "2")),
		}}}
	}
}

func (m maker) request() *messages.LedgerExecute {
	r := &messages.LedgerExecute{Sync: m.rng.IntN(2) == 0}
	for range 1 + m.rng.IntN(3) {
		r.Ops = append(r.Ops, m.op())
	}
	return r
}

// TestModel gives the model and the engine the same random operations.
func TestModel(t *testing.T) {
	for seed := range uint64(5) {
		db, err := store.Open("", store.Options{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		context := contextmem.New(db, nil)
		engine, err := ledger.Open(db, ledger.Options{Indexer: context})
		if err != nil {
			t.Fatal(err)
		}
		compare(t, seed, engine, context)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func compare(t *testing.T, seed uint64, engine *ledger.Ledger, context *contextmem.Context) {
	m, d, now := maker{rand.New(rand.NewPCG(seed, 1))}, New(), begin
	took := 0
	for i := range 300 {
		now = now.Add(time.Millisecond)
		var group []*messages.LedgerExecute
		for range 1 + m.rng.IntN(3) {
			group = append(group, m.request())
		}
		want, got := engine.Execute(now, group), d.Execute(now, group)
		for k := range group {
			if !proto.Equal(want[k], got[k]) {
				t.Fatalf("seed %d, step %d: %v\nengine: %v\nmodel:  %v", seed, i, group[k], want[k], got[k])
			}
			if want[k].GetError() == nil {
				took++
			}
		}
		same(t, seed, i, engine, context, d)
	}
	if took < 100 {
		t.Fatalf("seed %d: only %d requests were carried out", seed, took)
	}
	if err := d.Check(); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

// same compares all that can be read.
func same(t *testing.T, seed uint64, i int, engine *ledger.Ledger, context *contextmem.Context, d *Disk) {
	t.Helper()
	for _, q := range []*messages.LedgerPending{{}, {Agent: "main"}, {Agent: "main/resident/cook"}, {TaskId: "t1"}, {TaskId: "t2", Agent: "main"}} {
		want, err := engine.Pending(q)
		got, err2 := d.Pending(q)
		if err != nil || err2 != nil || !proto.Equal(want, got) {
			t.Fatalf("seed %d, step %d: pending %v\nengine: %v %v\nmodel:  %v %v", seed, i, q, want, err, got, err2)
		}
	}
	for n := range 8 {
		id := fmt.Sprintf("t%d", n)
		want, err := engine.Task(id)
		got, err2 := d.Task(id)
		if (err == nil) != (err2 == nil) || !proto.Equal(want, got) {
			t.Fatalf("seed %d, step %d: task %s\nengine: %v %v\nmodel:  %v %v", seed, i, id, want, err, got, err2)
		}
	}
	if w, g := engine.Figures(), d.Figures(); w.GetOpen() != g.GetOpen() || w.GetAccepted() != g.GetAccepted() || w.GetEnded() != g.GetEnded() {
		t.Fatalf("seed %d, step %d: figures\nengine: %v\nmodel:  %v", seed, i, w, g)
	}
	for _, w := range []contextmem.Window{
		{Agent: "main"},
		{Agent: "main", Conversation: "c1", Events: 3},
		{Agent: "main/resident/cook", Before: "e10"},
		{Agent: "main", After: "e05", Tokens: 20},
	} {
		want, err := context.Last(w)
		got, err2 := d.Last(w)
		if err != nil || err2 != nil || fmt.Sprint(names(want)) != fmt.Sprint(names(got)) {
			t.Fatalf("seed %d, step %d: window %+v\nengine: %v %v\nmodel:  %v %v", seed, i, w, names(want), err, names(got), err2)
		}
	}
}

func names(list []*messages.EventRecord) []string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = fmt.Sprintf("%s#%d", r.GetEvent().GetEventId(), r.GetNumber())
	}
	return out
}

// TestPowerCut shows that a power cut leaves what was synced, and of the rest whole transactions from the front.
func TestPowerCut(t *testing.T) {
	accept := func(id string) *messages.LedgerExecute {
		return &messages.LedgerExecute{Ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: &messages.Input{
			Id: id, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: id}}},
		}}}}}}
	}
	step := func(n int32) *messages.LedgerExecute {
		return &messages.LedgerExecute{Ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_Journal{Journal: &messages.JournalEntry{
			TaskId: "a", Kind: messages.JournalKind_JOURNAL_KIND_REQUEST, Attempt: n,
		}}}}}
	}
	seen := map[int]bool{}
	for seed := range uint64(40) {
		d := New()
		d.Execute(begin, []*messages.LedgerExecute{accept("a"), step(1)})
		d.Execute(begin, []*messages.LedgerExecute{step(2), step(3)})
		d.PowerCut(rand.New(rand.NewPCG(seed, 1)))
		if err := d.Check(); err != nil {
			t.Fatal(err)
		}
		if d.Record("a") == nil || len(d.journal["a"]) < 1 {
			t.Fatal("what was synced is lost")
		}
		seen[len(d.journal["a"])] = true
	}
	if !seen[1] || !seen[2] || !seen[3] {
		t.Fatalf("lengths of the journal after a cut: %v, wanted 1, 2 and 3", seen)
	}
	d := New()
	d.FailSync = true
	if e := d.Execute(begin, []*messages.LedgerExecute{accept("a")})[0].GetError(); e.GetCode() != "store_broken" {
		t.Fatalf("a failed sync was answered with %v", e)
	}
	d.PowerCut(rand.New(rand.NewPCG(1, 1)))
	d.Low = true
	if e := d.Execute(begin, []*messages.LedgerExecute{accept("b")})[0].GetError(); e.GetCode() != "disk_low" {
		t.Fatalf("a full disk answered with %v", e)
	}
}

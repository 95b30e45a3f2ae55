package ledger

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestGroups(t *testing.T) {
	s := kittest.New(t, "groups", New(), start)
	exec := func(id string, silent bool) kit.Event {
		return kit.Event{From: kit.Path("channels"), Corr: id, Msg: &messages.LedgerExecute{Silent: silent, Ops: []*messages.LedgerOp{{
			Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: &messages.Input{Id: id}}},
		}}}}
	}
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("ledger")}})
	s.Step(0, exec("a", false))
	s.Note("while the engine is busy, requests gather")
	s.Step(0, exec("b", true))
	s.Step(0, exec("c", true))
	s.Step(0, kit.Event{From: kit.Path("admin"), Corr: "q", Msg: &messages.TaskQuery{InputId: "a"}})
	s.Step(0, kit.Event{Msg: answers{&messages.LedgerDone{}}})
	s.Note("a silent one is answered only when it failed")
	s.Step(0, kit.Event{Msg: answers{
		&messages.LedgerDone{}, &messages.LedgerDone{Error: &messages.Error{Code: "disk_low"}}, &messages.TaskStatus{},
	}})
	s.Show()
	s.Done()
}

// fake notes the order of what reaches the engine.
type fake struct{ calls []string }

func (f *fake) Execute(_ time.Time, rs []*messages.LedgerExecute) []*messages.LedgerDone {
	out := make([]*messages.LedgerDone, len(rs))
	for i, r := range rs {
		f.calls = append(f.calls, "write "+r.GetOps()[0].GetAccept().GetInput().GetId())
		out[i] = &messages.LedgerDone{Results: []*messages.LedgerResult{{Sequence: uint64(len(f.calls))}}}
	}
	return out
}

func (f *fake) Pending(*messages.LedgerPending) (*messages.PendingTasks, error) {
	return nil, errors.New("boom")
}

func (f *fake) Task(id string) (*messages.TaskStatus, error) {
	f.calls = append(f.calls, "read "+id)
	return &messages.TaskStatus{Reason: id}, nil
}

func (f *fake) Figures() *messages.LedgerFigures { return &messages.LedgerFigures{} }

func TestReadsSeeEarlierWrites(t *testing.T) {
	write := func(id string) proto.Message {
		return &messages.LedgerExecute{Ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_Accept{
			Accept: &messages.AcceptInput{Input: &messages.Input{Id: id}},
		}}}}
	}
	f := &fake{}
	out := run(f, start, []proto.Message{
		write("a"), write("b"), &messages.TaskQuery{InputId: "b"}, write("c"), &messages.LedgerPending{}, &messages.TaskQuery{InputId: "c"},
	})
	want := []string{"write a", "write b", "read b", "write c", "read c"}
	if len(f.calls) != len(want) {
		t.Fatalf("calls %v, want %v", f.calls, want)
	}
	for i := range want {
		if f.calls[i] != want[i] {
			t.Fatalf("calls %v, want %v", f.calls, want)
		}
	}
	for i, m := range out {
		if m == nil {
			t.Fatalf("request %d has no answer", i)
		}
	}
	if d := out[3].(*messages.LedgerDone); d.GetResults()[0].GetSequence() != 4 {
		t.Errorf("the answer of c went elsewhere: %v", d)
	}
	if e, ok := out[4].(*messages.Error); !ok || e.GetCode() != "internal" {
		t.Errorf("a failed read answered %v", out[4])
	}
}

func TestDiskLow(t *testing.T) {
	s := kittest.New(t, "disk_low", New(), start)
	step := func(id string) kit.Event {
		return kit.Event{From: kit.Path("agents/main/turn/a"), Corr: id, Msg: &messages.LedgerExecute{Ops: []*messages.LedgerOp{{
			Op: &messages.LedgerOp_Journal{Journal: &messages.JournalEntry{TaskId: id}},
		}}}}
	}
	accept := kit.Event{From: kit.Path("channels"), Corr: "in", Msg: &messages.LedgerExecute{Ops: []*messages.LedgerOp{{
		Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: &messages.Input{Id: "in"}}},
	}}}}
	low := &messages.LedgerDone{Error: &messages.Error{Code: "disk_low"}}
	s.Step(0, step("a"))
	s.Step(0, kit.Event{Msg: answers{low}})
	s.Note("later steps line up behind it, and reads that must see them; an input is told at once")
	s.Step(0, step("b"))
	s.Step(0, kit.Event{From: kit.Path("agents/main/scheduler"), Corr: "p", Msg: &messages.LedgerPending{}})
	s.Step(0, accept)
	s.Step(0, kit.Event{Msg: answers{low}})
	s.Note("still no room")
	s.Step(roomEvery, kit.Event{Msg: room{}})
	s.Step(0, step("c"))
	s.Step(0, kit.Event{Msg: answers{low, low, &messages.PendingTasks{}}})
	s.Note("room: all of it in order")
	s.Step(roomEvery, kit.Event{Msg: room{}})
	s.Step(0, kit.Event{Msg: answers{&messages.LedgerDone{}, &messages.LedgerDone{}, &messages.PendingTasks{}, &messages.LedgerDone{}}})
	s.Step(0, step("d"))
	s.Show()
	s.Done()
}

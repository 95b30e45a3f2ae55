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
	s := kittest.New(t, "groups", New(Params{}), start)
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
	s.Note("at the end all that waits is written, behind what is in the engine")
	s.Step(0, exec("d", false))
	s.Step(0, exec("e", true))
	s.Step(0, kit.Event{Msg: kit.Stopping{}})
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

func TestKeep(t *testing.T) {
	s := kittest.New(t, "keep", New(Params{Keep: true}), start)
	exec := func(id string) kit.Event {
		return kit.Event{From: kit.Path("channels"), Corr: id, Msg: &messages.LedgerExecute{Ops: []*messages.LedgerOp{{
			Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: &messages.Input{Id: id}}},
		}}}}
	}
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("ledger")}})
	s.Note("a round makes way for work")
	s.Step(0, exec("a"))
	s.Step(keepFirst, kit.Event{Msg: round{}})
	s.Step(0, kit.Event{Msg: answers{&messages.LedgerDone{}}})
	s.Step(keepBusy, kit.Event{Msg: round{}})
	s.Note("work waits for the end of one small pass")
	s.Step(0, exec("b"))
	s.Step(0, kit.Event{Msg: retained{More: true}})
	s.Step(0, kit.Event{Msg: answers{&messages.LedgerDone{}}})
	s.Step(keepBusy, kit.Event{Msg: round{}})
	s.Step(0, kit.Event{Msg: retained{}})
	s.Note("upkeep runs beside the work, and no round beside it")
	s.Step(0, exec("c"))
	s.Step(0, kit.Event{Msg: round{}})
	s.Step(0, kit.Event{Msg: kept{Again: true}})
	s.Step(0, kit.Event{Msg: answers{&messages.LedgerDone{}}})
	s.Step(keepSoon, kit.Event{Msg: round{}})
	s.Step(0, kit.Event{Msg: retained{Err: errors.New("boom")}})
	s.Step(0, kit.Event{Msg: kept{Err: errors.New("the folder is gone")}})
	s.Show()
	s.Done()
}

// A node that is never idle must not grow for ever.
func TestKeepBetweenVisits(t *testing.T) {
	m := New(Params{Keep: true}).(*state)
	msg := &messages.LedgerExecute{}
	m.Step(start, kit.Event{Msg: msg})
	for range keepMost + 1 {
		m.Step(start, kit.Event{Msg: msg})
		m.Step(start, kit.Event{Msg: round{}})
	}
	if m.passes != 0 {
		t.Fatal("a pass beside a visit")
	}
	m.Step(start, kit.Event{Msg: make(answers, len(m.busy))})
	if m.passes != 1 || m.busy != nil || len(m.waiting) == 0 {
		t.Errorf("%d passes, %d in the engine, %d wait", m.passes, len(m.busy), len(m.waiting))
	}
	m.Step(start, kit.Event{Msg: retained{}})
	if m.busy == nil {
		t.Error("the work does not go on after the pass")
	}
}

// The clock tries the disk again, and an input that is refused does not.
func TestDiskLowIsTriedByTheClock(t *testing.T) {
	m := New(Params{}).(*state)
	low := &messages.LedgerDone{Error: &messages.Error{Code: "disk_low"}}
	step := kit.Event{From: kit.Path("turn"), Corr: "s", Msg: &messages.LedgerExecute{Ops: []*messages.LedgerOp{{
		Op: &messages.LedgerOp_Journal{Journal: &messages.JournalEntry{TaskId: "a"}},
	}}}}
	accept := kit.Event{From: kit.Path("channels"), Corr: "i", Msg: &messages.LedgerExecute{Ops: []*messages.LedgerOp{{
		Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: &messages.Input{Id: "i"}}},
	}}}}
	m.Step(start, step)
	m.Step(start, kit.Event{Msg: answers{low}})
	visits := m.groups
	for range 100 {
		m.Step(start, accept)
		m.Step(start, kit.Event{Msg: answers{low}})
	}
	if m.groups-visits != 100 || len(m.held) != 1 {
		t.Errorf("%d visits for 100 inputs, %d held", m.groups-visits, len(m.held))
	}
	m.Step(start, kit.Event{Msg: room{}})
	if len(m.held) != 0 || len(m.busy) != 1 {
		t.Errorf("the clock: %d held, %d in the engine", len(m.held), len(m.busy))
	}
	m.Step(start, kit.Event{Msg: answers{low}})
	// Room for an input is room for what waits.
	m.Step(start, accept)
	m.Step(start, kit.Event{Msg: answers{&messages.LedgerDone{}}})
	if len(m.held) != 0 || len(m.busy) != 1 {
		t.Errorf("after an input was taken: %d held, %d in the engine", len(m.held), len(m.busy))
	}
	m.Step(start, kit.Event{Msg: answers{&messages.LedgerDone{}}})
	if m.low {
		t.Error("still low")
	}
}

// Reads that wait say nothing about the room, and must not be forgotten.
func TestHeldReadsGoOn(t *testing.T) {
	m := New(Params{}).(*state)
	low := &messages.LedgerDone{Error: &messages.Error{Code: "disk_low"}}
	m.Step(start, kit.Event{Msg: &messages.LedgerExecute{Ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_End{}}}}})
	m.Step(start, kit.Event{Msg: answers{low}})
	m.held = m.held[:0]
	for range maxGroup + 1 {
		m.Step(start, kit.Event{Msg: &messages.LedgerPending{}})
	}
	m.Step(start, kit.Event{Msg: room{}})
	got := make(answers, maxGroup)
	for i := range got {
		got[i] = &messages.PendingTasks{}
	}
	out := m.Step(start, kit.Event{Msg: got})
	if len(m.held) != 1 {
		t.Fatalf("%d held", len(m.held))
	}
	for _, e := range out {
		if a, ok := e.(kit.After); ok && a.Key == "room" {
			return
		}
	}
	t.Error("no clock runs for what is left")
}

func TestDiskLow(t *testing.T) {
	s := kittest.New(t, "disk_low", New(Params{}), start)
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

package timers

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/memory/ledger"
	"homeagent/memory/store"
	engine "homeagent/memory/timers"
	"homeagent/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSlot is the life of one slot as messages.
func TestSlot(t *testing.T) {
	start := when(t, "2026-12-01T08:59:30Z")
	s := kittest.New(t, "slot", New(Params{Ledger: kit.Path("ledger"), Channels: kit.Path("channels"), Tools: kit.Path("tools")}), start)
	admin := kit.Path("admin")
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("timers")}})
	s.Step(0, kit.Event{Msg: loaded{}})
	m := cronTimer("T", "0 * * * *", skip)
	m.Channel, m.Conversation = "cli", "main"
	s.Step(0, kit.Event{From: admin, Corr: "p", Msg: &messages.PutTimer{Timer: m}})
	s.Step(0, kit.Event{Corr: "ask/1", Msg: &messages.ChannelList{Channels: []*messages.RegisterChannel{{Name: "cli"}}}})
	s.Step(0, kit.Event{Corr: "ask/2", Msg: &messages.LedgerDone{}})
	s.Note("the slot comes: the intent goes ahead of the input")
	s.Step(30*time.Second, kit.Event{Msg: wake{}})
	s.Step(0, kit.Event{Corr: "ask/3", Msg: &messages.SubmitResult{InputId: "task-1", Outcome: messages.Outcome_OUTCOME_QUEUED}})
	s.Step(0, kit.Event{Corr: "ask/4", Msg: &messages.LedgerDone{}})
	s.Note("the next one comes while its task runs")
	s.Step(time.Hour, kit.Event{Msg: wake{}})
	s.Step(0, kit.Event{Corr: "ask/5", Msg: &messages.TaskStatus{State: messages.TaskState_TASK_STATE_PARKED}})
	s.Step(0, kit.Event{Corr: "ask/6", Msg: &messages.LedgerDone{}})
	s.Note("the node stops: nothing begins any more")
	s.Step(0, kit.Event{From: kit.Path("kernel"), Corr: "d", Msg: &messages.Drain{}})
	s.Step(time.Hour, kit.Event{Msg: wake{}})
	s.Show()
	s.Done()
}

// keeper is a ledger over a real engine; taker accepts inputs.
type keeper struct{ l *ledger.Ledger }

func (k keeper) Step(now time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case *messages.LedgerExecute:
		done := k.l.Execute(now, []*messages.LedgerExecute{m})[0]
		if m.GetSilent() && done.GetError() == nil {
			return nil
		}
		return []kit.Effect{e.Reply(done)}
	case *messages.TaskQuery:
		return []kit.Effect{e.Reply(&messages.Error{Code: "unknown_input"})}
	}
	return nil
}

type taker struct{ got chan *messages.Input }

func (k taker) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case *messages.SubmitInput:
		k.got <- m.GetInput()
		return []kit.Effect{e.Reply(&messages.SubmitResult{InputId: m.GetInput().GetId()})}
	case *messages.RegisterChannel:
		return []kit.Effect{e.Reply(&messages.Ok{})}
	}
	return nil
}

// The actor over a real store: what it sets is there after it was started anew, and comes when it is due.
func TestActor(t *testing.T) {
	db, err := store.Open(t.TempDir(), store.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	l, err := ledger.Open(db, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got := make(chan *messages.Input, 8)
	boot := func() (*kit.Runtime, *messages.Address) {
		rt, err := kit.NewRuntime(kit.Config{Node: "n", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for name, m := range map[string]kit.Machine{"ledger": keeper{l}, "channels": taker{got}} {
			if _, err := rt.SpawnTop(name, kit.Props{Kind: name, New: func() kit.Machine { return m }}); err != nil {
				t.Fatal(err)
			}
		}
		a, err := rt.SpawnTop("timers", Props(Deps{Engine: engine.NewEngine(db), Params: func() Params {
			return Params{Ledger: kit.Path("ledger"), Channels: kit.Path("channels"), Tools: kit.Path("tools"), Shortest: time.Second}
		}}))
		if err != nil {
			t.Fatal(err)
		}
		return rt, a
	}
	rt, timers := boot()
	set, err := kit.Expect[*messages.Timer](ctx, rt, timers, &messages.PutTimer{Timer: cronTimer("far", "0 0 1 1 *", skip)})
	if err != nil || set.GetNextUs() == 0 {
		t.Fatalf("set %v, %v", set, err)
	}
	if err := rt.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	rt, timers = boot()
	defer func() {
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}()
	list, err := kit.Expect[*messages.TimerList](ctx, rt, timers, &messages.ListTimers{})
	if err != nil || len(list.GetTimers()) != 1 || !proto.Equal(list.GetTimers()[0], set) {
		t.Fatalf("after a start %v, %v", list, err)
	}
	if _, err := kit.Expect[*messages.Timer](ctx, rt, timers, &messages.PutTimer{Timer: &messages.Timer{TimerId: "soon", Text: "x"}, In: "1ms"}); err != nil {
		t.Fatal(err)
	}
	select {
	case in := <-got:
		if in.GetPrincipal().GetId() != "timer:soon" {
			t.Errorf("input %v", in)
		}
	case <-ctx.Done():
		t.Fatal("the timer did not come")
	}
}

package events

import (
	"fmt"
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	self  = &messages.Address{Path: "events", Epoch: 1000}
	admin = &messages.Address{Path: "admin", Epoch: 1000}
	pager = &messages.Address{Path: "plugins/pager", Epoch: 1000}
	turn  = &messages.Address{Path: "agents/main/turn/t1", Epoch: 1000}
)

func event(t messages.EventType, task, text string) kit.Event {
	return kit.Event{From: turn, Msg: &messages.AgentEvent{Type: t, TaskId: task, Text: text}}
}

func delta(task, text string) kit.Event {
	return event(messages.EventType_EVENT_TYPE_CONTENT_DELTA, task, text)
}

func input(task, text string) kit.Event {
	return event(messages.EventType_EVENT_TYPE_RAW_INPUT, task, text)
}

func subscribe(who *messages.Address, s *messages.Subscribe) kit.Event {
	return kit.Event{From: who, Corr: "c-" + s.GetSubscription(), Msg: s}
}

type step struct {
	after time.Duration
	event kit.Event
}

func run(t *testing.T, name string, p Params, steps []step) {
	t.Helper()
	s := kittest.New(t, name, New(p), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: self}})
	for _, st := range steps {
		s.Step(st.after, st.event)
	}
	s.Done()
}

func TestTranscripts(t *testing.T) {
	ms := time.Millisecond
	t.Run("batches", func(t *testing.T) {
		run(t, "batches", Params{Batch: 4}, []step{
			{0, input("t1", "before anybody listens")},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "all"})},
			{time.Second, delta("t1", "at once")},
			{1 * ms, delta("t1", "waits")},
			{1 * ms, delta("t1", "waits too")},
			{3 * ms, kit.Event{Msg: flush{}}},
			{1 * ms, delta("t1", "1 of 4")},
			{0, delta("t1", "2 of 4")},
			{0, delta("t1", "3 of 4")},
			{0, delta("t1", "4 of 4: too many to wait")},
			{1 * ms, delta("t1", "before the output")},
			{1 * ms, event(messages.EventType_EVENT_TYPE_AGENT_OUTPUT, "t1", "an output goes at once")},
			{0, event(messages.EventType_EVENT_TYPE_TASK, "t1", "a change too")},
			{1 * ms, delta("t1", "last")},
			{0, kit.Event{Msg: kit.Stopping{}}},
		})
	})
	t.Run("filters", func(t *testing.T) {
		run(t, "filters", Params{}, []step{
			{0, subscribe(admin, &messages.Subscribe{
				Subscription: "inputs", Types: []messages.EventType{messages.EventType_EVENT_TYPE_RAW_INPUT},
			})},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "t2", TaskId: "t2"})},
			{time.Second, input("t1", "for inputs")},
			{time.Second, delta("t2", "for t2")},
			{time.Second, input("t2", "for both")},
			{time.Second, delta("t1", "for nobody")},
			{time.Second, event(messages.EventType_EVENT_TYPE_UNSPECIFIED, "", "no type")},
			{time.Second, event(messages.EventType_EVENT_TYPE_UNSPECIFIED, "", "no type again: no second log")},
			{time.Second, event(99, "", "a type of the future")},
		})
	})
	t.Run("replay", func(t *testing.T) {
		run(t, "replay", Params{Ring: 2}, []step{
			{0, input("t1", "1")},
			{0, delta("t1", "2: never kept")},
			{0, input("t2", "3")},
			{0, input("t1", "4: pushes 1 out")},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "from-1", AfterEpoch: 1000, AfterSequence: 1})},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "from-3", AfterEpoch: 1000, AfterSequence: 3})},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "t2", AfterEpoch: 1000, AfterSequence: 2, TaskId: "t2"})},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "too-old", AfterEpoch: 1000})},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "other-boot", AfterEpoch: 999, AfterSequence: 4})},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "future", AfterEpoch: 1000, AfterSequence: 5})},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "new-only"})},
			{time.Second, input("t3", "5: sync_required was said once")},
		})
	})
	t.Run("ends", func(t *testing.T) {
		run(t, "ends", Params{Subscriptions: 3}, []step{
			{0, subscribe(admin, &messages.Subscribe{Subscription: "a"})},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "a", TaskId: "t1"})},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "b", Subscriber: pager})},
			{0, subscribe(pager, &messages.Subscribe{Subscription: "c"})},
			{0, subscribe(pager, &messages.Subscribe{Subscription: "d"})},
			{0, subscribe(pager, &messages.Subscribe{})},
			{0, subscribe(pager, &messages.Subscribe{Subscription: "e", Types: []messages.EventType{0}})},
			{0, kit.Event{From: admin, Corr: "u1", Msg: &messages.Unsubscribe{Subscription: "a"}}},
			{0, kit.Event{From: admin, Corr: "u2", Msg: &messages.Unsubscribe{Subscription: "a"}}},
			{0, kit.Event{Msg: kit.Ended{Who: pager}}},
			{time.Second, input("t1", "nobody is left")},
			{0, kit.Event{Msg: kit.Ended{Who: pager}}},
		})
	})
	t.Run("gap", func(t *testing.T) {
		lost := &messages.EventBatch{Subscription: "a", Epoch: 1000, Events: []*messages.AgentEvent{{Sequence: 1}}}
		full := &messages.Error{Code: "busy", Message: "full"}
		run(t, "gap", Params{}, []step{
			{0, subscribe(admin, &messages.Subscribe{Subscription: "a"})},
			{0, kit.Event{Msg: kit.Fault{Effect: kit.Send{To: admin, Msg: lost}, Err: full}}},
			{time.Second, input("t1", "says sync_required")},
			{time.Second, input("t1", "does not")},
			{0, kit.Event{Msg: kit.Fault{Effect: kit.Send{To: pager, Msg: lost}, Err: full}}},
			{0, kit.Event{Msg: kit.Fault{Effect: kit.Send{To: admin, Msg: lost}, Err: full}}},
			{0, subscribe(admin, &messages.Subscribe{Subscription: "a"})}, // a renewal tells of the gap too
		})
	})
}

// A restart within one boot must not give a second event the number of an earlier one.
func TestRestartIsANewStream(t *testing.T) {
	m := New(Params{})
	m.Step(start, kit.Event{Msg: kit.Started{Self: self, Restarts: 2}})
	out := m.Step(start, subscribe(admin, &messages.Subscribe{Subscription: "a", AfterEpoch: 1000, AfterSequence: 0}))
	for _, e := range out {
		if r, ok := e.(kit.Reply); ok {
			b := r.Msg.(*messages.EventBatch)
			if b.GetEpoch() != 1002 || !b.GetSyncRequired() {
				t.Fatalf("got %v", b)
			}
			return
		}
	}
	t.Fatalf("no answer in %v", out)
}

func TestRingIsBoundedByBytes(t *testing.T) {
	r := newRing(1000, 1000)
	for i := 1; i <= 100; i++ {
		r.add(&messages.AgentEvent{Sequence: uint64(i), Text: fmt.Sprintf("%0200d", i)})
		if r.bytes > 1000 || r.count == 0 {
			t.Fatalf("%d bytes in %d events", r.bytes, r.count)
		}
	}
	all := r.after(0, func(*messages.AgentEvent) bool { return true })
	if len(all) != r.count || all[len(all)-1].GetSequence() != 100 || r.gone != all[0].GetSequence()-1 {
		t.Fatalf("%d kept, gone %d", len(all), r.gone)
	}
	r.add(&messages.AgentEvent{Sequence: 101, Text: fmt.Sprintf("%05000d", 1)})
	if r.count != 1 || r.gone != 100 {
		t.Fatalf("a large event must push out all others and stay: %d kept, gone %d", r.count, r.gone)
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, subs := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("subs=%d", subs), func(b *testing.B) {
			m := New(Params{})
			m.Step(start, kit.Event{Msg: kit.Started{Self: self}})
			for i := range subs {
				m.Step(start, subscribe(admin, &messages.Subscribe{Subscription: fmt.Sprint(i)}))
			}
			e := delta("t1", "word ")
			now := start
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(20 * time.Microsecond)
				m.Step(now, e)
			}
		})
	}
}

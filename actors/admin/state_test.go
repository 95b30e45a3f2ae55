package admin

import (
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	self  = &messages.Address{Path: "admin", Epoch: 1000}
)

type step struct {
	after time.Duration
	event kit.Event
}

func run(t *testing.T, name string, steps []step) {
	t.Helper()
	s := kittest.New(t, name, New(Params{}), start)
	for _, st := range steps {
		s.Step(st.after, st.event)
	}
	s.Show()
	s.Done()
}

func batchOf(name string, epoch uint64, sync bool, events ...*messages.AgentEvent) kit.Event {
	return kit.Event{Msg: &messages.EventBatch{Subscription: name, Epoch: epoch, Events: events, SyncRequired: sync}}
}

func ended(id string, end messages.End) *messages.AgentEvent {
	return &messages.AgentEvent{
		Sequence: 7, Type: messages.EventType_EVENT_TYPE_TASK, TaskId: id,
		Detail: &messages.AgentEvent_Task{Task: &messages.TaskChange{
			Change: "ended", Ended: &messages.TaskEnded{TaskId: id, End: end, Text: "yes"},
		}},
	}
}

func TestTranscripts(t *testing.T) {
	started := step{0, kit.Event{Msg: kit.Started{Self: self}}}
	ok := func(name string) step {
		return step{0, kit.Event{Corr: "channel/" + name, Msg: &messages.Ok{}}}
	}
	t.Run("ready", func(t *testing.T) {
		busy := kit.Fault{
			Effect: kit.Send{Corr: "channel/web", Msg: &messages.RegisterChannel{Name: "web"}},
			Err:    &messages.Error{Code: "actor_gone"},
		}
		run(t, "ready", []step{
			started, ok("api"), ok("cli"),
			{0, kit.Event{Msg: busy}},
			{time.Second, kit.Event{Msg: retry{Channel: "web"}}},
			{0, kit.Event{Corr: "channel/web", Msg: &messages.Error{Code: "bad_name"}}},
			{time.Second, kit.Event{Msg: retry{Channel: "web"}}},
			ok("web"),
			ok("web"), // of a renewal: announced only once
			{0, kit.Event{Msg: announced{}}},
			{0, kit.Event{From: &messages.Address{Path: "$ask"}, Corr: "d", Msg: &messages.Drain{}}},
			{0, kit.Event{Msg: renew{}}}, // a node that stops asks for nothing more
			{0, kit.Event{Msg: kit.Stopping{}}},
		})
	})
	t.Run("streams", func(t *testing.T) {
		delta := &messages.AgentEvent{Sequence: 1, Type: messages.EventType_EVENT_TYPE_CONTENT_DELTA, Text: "a"}
		run(t, "streams", []step{
			started,
			{0, kit.Event{Msg: opened{Name: "stream/1", Task: "t1", AfterEpoch: 999, AfterSequence: 4}}},
			{0, batchOf("stream/1", 1000, true)},
			{0, batchOf("stream/1", 1000, false, delta)},
			{15 * time.Second, kit.Event{Msg: renew{}}},
			{0, batchOf("stream/1", 1000, false)}, // all is well: nothing to tell
			{15 * time.Second, kit.Event{Msg: renew{}}},
			{0, batchOf("stream/1", 1001, false)}, // events was restarted
			{0, kit.Event{Msg: closed{Name: "stream/1"}}},
			{0, kit.Event{Msg: closed{Name: "stream/1"}}},
			{0, batchOf("stream/1", 1001, false, delta)}, // under way while it was closed
			{0, kit.Event{Msg: opened{Name: "stream/2"}}},
			{0, kit.Event{Corr: "subscription/stream/2", Msg: &messages.Error{Code: "too_many_subscriptions"}}},
			{0, kit.Event{Msg: opened{Name: "stream/3"}}},
			{0, kit.Event{Corr: "subscription/stream/3", Msg: &messages.Busy{Depth: 9}}},
		})
	})
	t.Run("usage", func(t *testing.T) {
		round := func(failed bool) *messages.AgentEvent {
			r := &messages.CompletionResult{
				Source: "s", Model: "m", Usage: &messages.Usage{Input: 10, Output: 2, PromptTotal: 12},
			}
			if failed {
				r.Failure, r.Usage = &messages.CompletionFailure{}, nil
			}
			return &messages.AgentEvent{
				Type: messages.EventType_EVENT_TYPE_AGENT_LLM_CHAIN, Detail: &messages.AgentEvent_Chain{Chain: &messages.Chain{Result: r}},
			}
		}
		run(t, "usage", []step{
			started,
			{0, batchOf("usage", 1000, false)},
			{0, batchOf("usage", 1000, false, round(false), ended("t1", messages.End_END_ANSWERED))},
			{0, batchOf("usage", 1000, false, round(true), round(false), ended("t2", messages.End_END_FAILED))},
			{0, batchOf("usage", 1000, false, &messages.AgentEvent{Type: messages.EventType_EVENT_TYPE_TASK})},
			{0, kit.Event{Corr: "subscription/usage", Msg: &messages.Error{Code: "too_many_subscriptions"}}},
		})
	})
}

func TestBrokenListenerFailsTheActor(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an admin actor that serves nobody must not look alive")
		}
	}()
	New(Params{}).Step(start, kit.Event{Msg: failed{Err: ErrSocket}})
}

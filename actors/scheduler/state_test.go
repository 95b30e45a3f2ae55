package scheduler

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

var (
	start  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	params = Params{
		Agent:  &messages.AgentSpec{Agent: "main"},
		Ledger: kit.Path("ledger"), AgentActor: kit.Path("agents/main"),
	}
	self  = kit.Path("agents/main/scheduler")
	asker = kit.Path("channels")
)

type inputOption func(*messages.Input)

func mode(m messages.Mode) inputOption { return func(i *messages.Input) { i.Mode = m } }
func noWait(i *messages.Input)         { i.PersonWaits = false }

func input(id string, level int32, text string, opts ...inputOption) *messages.Input {
	in := &messages.Input{
		Id: id, Principal: &messages.Principal{Id: "owner"}, Channel: "cli", Conversation: "c", Agent: "main",
		Level: proto.Int32(level), Mode: messages.Mode_MODE_QUEUE, Source: messages.InputSource_INPUT_SOURCE_PERSON,
		Parts:       []*messages.Part{{Content: &messages.Part_Text{Text: text}}},
		PersonWaits: level >= 2, CreatedUs: start.Add(time.Hour).UnixMicro(),
	}
	for _, o := range opts {
		o(in)
	}
	return in
}

func offer(in *messages.Input, seq uint64) kit.Event {
	return kit.Event{From: asker, Corr: "o/" + in.GetId(), Msg: &messages.Offer{Input: in, Sequence: seq}}
}

func spawned(id string, gen uint64) kit.Event {
	return kit.Event{Msg: &messages.TurnSpawned{TaskId: id, Generation: gen, Turn: kit.Path("agents/main/turn/" + id)}}
}

func finished(id string, gen uint64, text string) kit.Event {
	return kit.Event{Msg: &messages.Finished{TaskId: id, Generation: gen, End: messages.End_END_ANSWERED, Reason: "ok", Text: text}}
}

func ended(id string) kit.Event {
	return kit.Event{Corr: "end/" + id, Msg: &messages.LedgerDone{}}
}

func begin(t *testing.T, name string, pending ...*messages.PendingTask) *kittest.Script {
	s := kittest.New(t, name, New(params), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: self}})
	s.Step(0, kit.Event{Corr: corrLoad, Msg: &messages.PendingTasks{Tasks: pending}})
	return s
}

func TestPlain(t *testing.T) {
	s := begin(t, "plain")
	s.Step(0, offer(input("a", 2, "hello"), 1))
	s.Step(0, spawned("a", 1))
	s.Step(time.Second, offer(input("b", 2, "and you"), 2))
	s.Step(0, finished("a", 1, "hi"))
	s.Step(0, ended("a"))
	s.Note("an offer that comes again after the end does not run again")
	s.Step(0, offer(input("a", 2, "hello"), 1))
	s.Show()
	s.Done()
}

func TestPreempt(t *testing.T) {
	s := begin(t, "preempt")
	s.Step(0, offer(input("a", 2, "long work"), 1))
	s.Step(0, spawned("a", 1))
	s.Step(time.Second, offer(input("b", 3, "urgent", mode(messages.Mode_MODE_INTERRUPT)), 2))
	s.Step(0, kit.Event{Msg: &messages.Suspended{TaskId: "a", Generation: 1, Phase: messages.Phase_PHASE_COMPLETING}})
	s.Step(0, spawned("b", 2))
	s.Step(0, finished("b", 2, "done"))
	s.Step(0, ended("b"))
	s.Step(0, kit.Event{Msg: &messages.Resumed{TaskId: "a", Generation: 1}})
	s.Note("within the cooldown a further interrupt of the same task waits, then preempts")
	s.Step(time.Second, offer(input("c", 4, "kernel", func(i *messages.Input) { i.Source = messages.InputSource_INPUT_SOURCE_KERNEL; i.PersonWaits = true }), 3))
	s.Step(0, kit.Event{Msg: &messages.Suspended{TaskId: "a", Generation: 1}})
	s.Step(0, spawned("c", 3))
	s.Step(0, finished("c", 3, ""))
	s.Step(0, ended("c"))
	s.Step(0, kit.Event{Msg: &messages.Resumed{TaskId: "a", Generation: 1}})
	s.Step(0, finished("a", 1, "long answer"))
	s.Step(0, ended("a"))
	s.Show()
	s.Done()
}

func TestCooldown(t *testing.T) {
	s := begin(t, "cooldown")
	s.Step(0, offer(input("bg", 0, "sweep", noWait), 1))
	s.Step(0, spawned("bg", 1))
	s.Step(0, offer(input("n1", 1, "note", noWait), 2))
	s.Step(0, kit.Event{Msg: &messages.Suspended{TaskId: "bg", Generation: 1}})
	s.Step(0, spawned("n1", 2))
	s.Step(0, finished("n1", 2, "noted"))
	s.Step(0, kit.Event{Msg: &messages.Resumed{TaskId: "bg", Generation: 1}})
	s.Note("aged to 1: a note of level 1 waits; a person does not, cooldown or not")
	s.Step(0, offer(input("n2", 1, "note two", noWait), 3))
	s.Step(0, offer(input("p", 2, "hello"), 4))
	s.Done()
}

func TestSteer(t *testing.T) {
	s := begin(t, "steer")
	s.Step(0, offer(input("a", 2, "write a poem", mode(messages.Mode_MODE_STEER)), 1))
	s.Note("before the turn is there, the input is held")
	s.Step(0, offer(input("b", 2, "make it short", mode(messages.Mode_MODE_STEER)), 2))
	s.Step(0, spawned("a", 1))
	s.Step(0, kit.Event{Msg: &messages.SteerTaken{InputId: "b", Generation: 1, Taken: true}})
	s.Step(0, offer(input("c", 2, "too late", mode(messages.Mode_MODE_STEER)), 3))
	s.Step(0, kit.Event{Msg: &messages.SteerTaken{InputId: "c", Generation: 1}})
	s.Step(0, kit.Event{Msg: &messages.Finished{
		TaskId: "a", Generation: 1, End: messages.End_END_ANSWERED, Reason: "ok", Text: "poem", Steered: []string{"b"},
	}})
	s.Step(0, ended("a"))
	s.Step(0, ended("b"))
	s.Show()
	s.Done()
}

func TestStop(t *testing.T) {
	s := begin(t, "stop")
	s.Step(0, offer(input("a", 2, "one"), 1))
	s.Step(0, spawned("a", 1))
	s.Step(0, offer(input("b", 3, "two", mode(messages.Mode_MODE_INTERRUPT)), 2))
	s.Step(0, kit.Event{Msg: &messages.Suspended{TaskId: "a", Generation: 1}})
	s.Step(0, offer(input("c", 2, "three"), 3))
	s.Note("b is being spawned, a is suspended, c waits: all end; pressed twice it is the same")
	s.Step(0, kit.Event{From: asker, Corr: "s1", Msg: &messages.StopAll{}})
	s.Step(0, kit.Event{From: asker, Corr: "s2", Msg: &messages.StopAll{}})
	s.Step(0, spawned("b", 2))
	s.Step(0, offer(input("d", 2, "after the stop"), 4))
	stopped := func(id string, gen uint64) kit.Event {
		return kit.Event{Msg: &messages.Finished{TaskId: id, Generation: gen, End: messages.End_END_STOPPED, Reason: "stop"}}
	}
	s.Step(0, stopped("a", 1))
	s.Step(0, stopped("b", 2))
	s.Step(0, spawned("d", 3))
	s.Note("a person stops the turn itself: its task ends, it does not come again")
	s.Step(0, kit.Event{Msg: &messages.TurnLost{TaskId: "d", Generation: 3}})
	s.Note("what was made before the stop and comes after it is stopped too")
	old := input("e", 2, "made before the stop")
	old.CreatedUs = start.UnixMicro() - 1
	s.Step(0, offer(old, 5))
	s.Show()
	s.Done()
}

func TestDuplicate(t *testing.T) {
	s := begin(t, "duplicate")
	s.Step(0, offer(input("a", 2, "same words"), 1))
	s.Step(time.Second, offer(input("b", 2, "same words"), 2))
	s.Step(10*time.Second, offer(input("c", 2, "same words"), 3))
	s.Done()
}

func TestRestart(t *testing.T) {
	s := kittest.New(t, "restart", New(params), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: self}})
	s.Note("an offer before the tasks are known is held")
	s.Step(0, offer(input("q", 2, "waiting"), 4))
	pending := func(id string, seq uint64, st messages.TaskState, starts int32, joined string) *messages.PendingTask {
		return &messages.PendingTask{Input: input(id, 2, "text of "+id), Sequence: seq, State: st, Starts: starts, Joined: joined}
	}
	s.Step(0, kit.Event{Corr: corrLoad, Msg: &messages.PendingTasks{Tasks: []*messages.PendingTask{
		pending("run", 1, messages.TaskState_TASK_STATE_RUNNING, 1, ""),
		pending("loop", 2, messages.TaskState_TASK_STATE_RUNNING, 3, ""),
		pending("joined", 3, messages.TaskState_TASK_STATE_STEERED, 0, "run"),
		pending("q", 4, messages.TaskState_TASK_STATE_QUEUED, 0, ""),
		pending("orphan", 5, messages.TaskState_TASK_STATE_STEERED, 0, "gone"),
	}}})
	s.Step(0, spawned("run", 1))
	s.Note("the turn is lost: its journal is read again")
	s.Step(0, kit.Event{Msg: &messages.TurnLost{TaskId: "run", Generation: 1, Failure: "panic"}})
	s.Step(0, kit.Event{Corr: "reload/run", Msg: &messages.PendingTasks{Tasks: []*messages.PendingTask{
		{Input: input("run", 2, "text of run"), Sequence: 1, Journal: []*messages.JournalEntry{{TaskId: "run", Sequence: 1}}},
	}}})
	s.Step(0, spawned("run", 2))
	s.Step(0, kit.Event{Msg: &messages.TurnLost{TaskId: "run", Generation: 2, Failure: "panic again"}})
	s.Show()
	s.Done()
}

func TestLedgerRefuses(t *testing.T) {
	s := begin(t, "ledger_refuses")
	s.Step(0, offer(input("a", 2, "hello"), 1))
	s.Step(0, spawned("a", 1))
	s.Step(0, finished("a", 1, "hi"))
	s.Note("the end is not on disk: it is written again and published once")
	s.Step(0, kit.Event{Corr: "end/a", Msg: &messages.LedgerDone{Error: &messages.Error{Code: "disk_low"}}})
	s.Step(time.Second, kit.Event{Msg: retry{"a"}})
	s.Step(0, ended("a"))
	s.Step(0, ended("a"))
	s.Done()
}

package agent

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// harness answers what the machine asks, by the order of its questions.
type harness struct {
	*kittest.Script
	asked []kit.Send
}

func (h *harness) step(e kit.Event) {
	for _, f := range h.Step(0, e) {
		if s, ok := f.(kit.Send); ok && s.Corr != "" {
			h.asked = append(h.asked, s)
		}
	}
}

// answer answers the oldest open question, which must be of the same type as q.
func (h *harness) answer(t *testing.T, q, m proto.Message) {
	t.Helper()
	if len(h.asked) == 0 {
		t.Fatalf("nothing is asked, wanted %T", q)
	}
	a := h.asked[0]
	h.asked = h.asked[1:]
	if a.Msg.ProtoReflect().Descriptor() != q.ProtoReflect().Descriptor() {
		t.Fatalf("asked %T, wanted %T", a.Msg, q)
	}
	h.step(kit.Event{Corr: a.Corr, Msg: m})
}

func begin(t *testing.T, name string, spec *messages.AgentSpec, known ...*messages.AgentSpec) *harness {
	h := &harness{Script: kittest.New(t, name, New(Params{Spec: spec, Ledger: kit.Path("ledger"), Channels: kit.Path("channels")}), start)}
	h.step(kit.Event{Msg: kit.Started{Self: &messages.Address{Path: "agents/" + spec.GetAgent(), Epoch: 7}}})
	if spec.GetParent() == "" {
		h.answer(t, &messages.LedgerPending{}, &messages.PendingTasks{Agents: known})
	}
	return h
}

var mainSpec = &messages.AgentSpec{Agent: "main"}

func call(name, args string) kit.Event {
	return kit.Event{From: kit.Path("tools"), Corr: "call", Msg: &messages.CallTool{
		Call:   &messages.ToolInvocation{CallId: "t/1/0", Name: name, ArgumentsJson: []byte(args)},
		TaskId: "t", Agent: "main", Channel: "cli", Conversation: "c", PersonWaits: true,
		Principal: &messages.Principal{Id: "owner"},
	}}
}

func TestResidentLife(t *testing.T) {
	h := begin(t, "resident_life", mainSpec)
	h.Note("create: kept, started, up, told its task")
	h.step(call(toolAgents, `{"action":"create","id":"cook","task_prompt":"find a recipe"}`))
	h.answer(t, &messages.LedgerExecute{}, &messages.LedgerDone{})
	h.answer(t, &messages.SchedulerQuery{}, &messages.SchedulerState{Agent: "main"})
	h.answer(t, &messages.ListAgents{}, &messages.AgentList{Agents: []*messages.AgentView{{State: "idle"}}})
	h.answer(t, &messages.SubmitInput{}, &messages.SubmitResult{InputId: "x", Outcome: messages.Outcome_OUTCOME_STARTED})
	h.Note("the same call again, after a crash, makes no second resident")
	h.step(call(toolAgents, `{"action":"create","id":"cook","task_prompt":"find a recipe"}`))
	h.Note("send and inspect")
	h.step(call(toolAgents, `{"action":"send","id":"cook","text":"no nuts"}`))
	h.answer(t, &messages.SubmitInput{}, &messages.SubmitResult{InputId: "y"})
	h.step(call(toolAgents, `{"action":"inspect","id":"cook"}`))
	h.answer(t, &messages.SchedulerQuery{}, &messages.SchedulerState{Agent: "main"})
	h.answer(t, &messages.ListAgents{}, &messages.AgentList{Agents: []*messages.AgentView{{
		Spec: &messages.AgentSpec{Agent: "main/resident/cook"}, State: "working", Notes: []string{"looked in two books"},
	}}})
	h.Note("destroy: what waits comes back to the parent in one transaction")
	h.step(call(toolAgents, `{"action":"destroy","id":"cook"}`))
	h.step(kit.Event{Msg: kit.Ended{Name: childPrefix + "cook"}})
	left := func(id string) *messages.PendingTask {
		return &messages.PendingTask{Input: &messages.Input{
			Id: id, Agent: "main/resident/cook", Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "left over"}}},
		}}
	}
	h.answer(t, &messages.LedgerPending{}, &messages.PendingTasks{Tasks: []*messages.PendingTask{left("w"), left("v")}})
	h.Note("the disk has no room: it is tried again")
	h.answer(t, &messages.LedgerExecute{}, &messages.LedgerDone{Error: &messages.Error{Code: "disk_low"}})
	h.step(kit.Event{Msg: settleAgain{"cook"}})
	h.answer(t, &messages.LedgerPending{}, &messages.PendingTasks{Tasks: []*messages.PendingTask{left("w"), left("v")}})
	h.Note("one has ended otherwise meanwhile: nothing was written, the rest is read again")
	h.answer(t, &messages.LedgerExecute{}, &messages.LedgerDone{Error: &messages.Error{Code: "already_ended"}})
	h.answer(t, &messages.LedgerPending{}, &messages.PendingTasks{Tasks: []*messages.PendingTask{left("w")}})
	h.answer(t, &messages.LedgerExecute{}, &messages.LedgerDone{Results: []*messages.LedgerResult{
		{Ended: true}, {Accepted: &messages.Accepted{InputId: "w2", Sequence: 9}}, {},
	}})
	h.Show()
	h.Done()
}

func TestRefusals(t *testing.T) {
	h := begin(t, "refusals", mainSpec, &messages.AgentSpec{Agent: "main/resident/old", Parent: "main"})
	h.step(call(toolAgents, `{"action":"create","id":"Bad Name","task_prompt":"x"}`))
	h.step(call(toolAgents, `{"action":"create","id":"old","task_prompt":"x"}`))
	h.step(call(toolAgents, `{"action":"create","id":"new"}`))
	h.step(call(toolAgents, `{"action":"send"}`))
	h.step(call(toolAgents, `{"action":"send","id":"nobody","text":"x"}`))
	h.step(call(toolAgents, `{"action":"dance","id":"old"}`))
	h.step(call(toolAgents, `[]`))
	h.step(call(toolNotify, `{"text":"x"}`))
	h.Done()
}

func TestTurns(t *testing.T) {
	h := begin(t, "turns", mainSpec)
	spawn := func(gen uint64) kit.Event {
		return kit.Event{From: kit.Path("agents/main/scheduler"), Corr: "spawn/a", Msg: &messages.SpawnTurn{Start: &messages.StartTurn{
			Task: &messages.PendingTask{Input: &messages.Input{Id: "a"}}, Generation: gen,
		}}}
	}
	h.step(spawn(1))
	h.Note("a turn of the former scheduler is ended before the new one starts")
	h.step(spawn(2))
	h.step(kit.Event{Msg: kit.Ended{Name: turnPrefix + "a"}})
	h.Note("a turn that failed")
	h.step(kit.Event{Msg: kit.Ended{Name: turnPrefix + "a", Failure: "panic: boom"}})
	h.Note("one that a person stopped has not failed; one that was stopped otherwise has")
	h.step(spawn(3))
	h.step(kit.Event{Msg: kit.Ended{Name: turnPrefix + "a", ByPerson: true}})
	h.step(spawn(4))
	h.step(kit.Event{Msg: kit.Ended{Name: turnPrefix + "a"}})
	h.Done()
}

func TestDrain(t *testing.T) {
	old := &messages.AgentSpec{Agent: "main/resident/old", Parent: "main"}
	h := begin(t, "drain", mainSpec, old)
	h.step(kit.Event{From: kit.Path("agents/main/scheduler"), Corr: "spawn/a", Msg: &messages.SpawnTurn{Start: &messages.StartTurn{
		Task: &messages.PendingTask{Input: &messages.Input{Id: "a"}}, Generation: 1,
	}}})
	h.Note("the residents are asked first")
	h.step(kit.Event{From: kit.Path("agents"), Corr: "drain", Msg: &messages.Drain{LimitMs: 2000}})
	h.answer(t, &messages.Drain{}, &messages.Ok{})
	h.Note("what ends now has not failed: nobody is told")
	h.step(kit.Event{Msg: kit.Ended{Name: turnPrefix + "a"}})
	h.step(kit.Event{Msg: kit.Ended{Name: childPrefix + "old"}})
	h.Done()
}

func TestResident(t *testing.T) {
	h := begin(t, "resident", &messages.AgentSpec{
		Agent: "main/resident/cook", Parent: "main", OriginChannel: "cli", OriginConversation: "c", PersonWaits: true,
	})
	h.Note("its answer becomes a report, once")
	h.step(kit.Event{From: kit.Path("agents"), Corr: "r1", Msg: &messages.SendOutput{Output: &messages.OutputIntent{
		OutputId: "t/o1", TaskId: "t", Agent: "main/resident/cook", Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "soup"}}},
	}}})
	h.answer(t, &messages.SubmitInput{}, &messages.SubmitResult{InputId: "rep"})
	h.step(call(toolNote, `{"text":"step one"}`))
	h.step(call(toolNotify, `{"text":"half way"}`))
	h.answer(t, &messages.SubmitInput{}, &messages.SubmitResult{Error: &messages.Error{Code: "queue_full", Message: "full"}})
	h.step(call(toolAgents, `{"action":"create","id":"x","task_prompt":"x"}`))
	h.Show()
	h.Done()
}

func TestRoot(t *testing.T) {
	s := kittest.New(t, "root", NewRoot(RootParams{Channels: kit.Path("channels"), Tools: kit.Path("tools")}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("agents")}})
	s.Step(0, kit.Event{Corr: "up", Msg: &messages.AgentList{Agents: []*messages.AgentView{{}}}})
	s.Step(0, call(toolAgents, `{"action":"list"}`))
	s.Step(0, kit.Event{Corr: "relay/1", Msg: &messages.ToolResult{CallId: "t/1/0"}})
	s.Note("the agent is away")
	s.Step(0, call(toolAgents, `{"action":"list"}`))
	s.Step(0, kit.Event{Msg: kit.Fault{Effect: kit.Send{Corr: "relay/2"}, Err: &messages.Error{Code: "no_actor", Message: "gone"}}})
	s.Note("the node stops: the kernel hears when all agents know it")
	s.Step(0, kit.Event{From: kit.Path("kernel"), Corr: "k", Msg: &messages.Drain{LimitMs: 2000}})
	s.Step(0, kit.Event{Corr: corrDrain, Msg: &messages.Ok{}})
	s.Step(0, kit.Event{Msg: kit.Ended{Name: "main"}})
	s.Done()
}

// TestStopCascades holds that a stop reaches the residents it is meant for and is answered with the sum.
func TestStopCascades(t *testing.T) {
	cook := &messages.AgentSpec{Agent: "main/resident/cook", Parent: "main", OriginConversation: "c"}
	scout := &messages.AgentSpec{Agent: "main/resident/scout", Parent: "main", OriginConversation: "d"}
	h := begin(t, "stop", mainSpec, cook, scout)
	stop := func(corr, conversation string) kit.Event {
		return kit.Event{From: kit.Path("agents/main/scheduler"), Corr: corr, Msg: &messages.StopAll{Conversation: conversation}}
	}
	h.Note("all of them")
	h.step(stop("children/1", ""))
	h.answer(t, &messages.StopAll{}, &messages.StopResult{Stopped: 1, Quota: 2})
	h.answer(t, &messages.StopAll{}, &messages.Error{Code: "actor_gone"})
	h.Note("only those of one conversation; none of a third")
	h.step(stop("children/2", "c"))
	h.answer(t, &messages.StopAll{}, &messages.StopResult{Stopped: 1})
	h.step(stop("children/3", "e"))
	h.Done()
}

// TestStoppedTurnsReportToNobody holds that what a resident's turn says after a stop makes no work for its parent.
func TestStoppedTurnsReportToNobody(t *testing.T) {
	h := begin(t, "stop_report", &messages.AgentSpec{Agent: "main/resident/cook", Parent: "main", OriginChannel: "cli", OriginConversation: "c"})
	spawn := func(id string) kit.Event {
		return kit.Event{From: kit.Path("agents/main/resident/cook/scheduler"), Corr: id, Msg: &messages.SpawnTurn{Start: &messages.StartTurn{
			Generation: 1, Task: &messages.PendingTask{Input: &messages.Input{Id: id, Conversation: "cook"}},
		}}}
	}
	says := func(task string) kit.Event {
		return kit.Event{From: kit.Path("agents"), Corr: "out", Msg: &messages.SendOutput{Output: &messages.OutputIntent{
			OutputId: task + "/o1", TaskId: task, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "soup"}}},
		}}}
	}
	h.step(spawn("w"))
	h.step(kit.Event{From: kit.Path("agents/main/resident/cook/scheduler"), Corr: "children/1", Msg: &messages.StopAll{}})
	h.step(says("w"))
	h.Note("a turn that comes after the stop is heard")
	h.step(spawn("x"))
	h.step(says("x"))
	h.answer(t, &messages.SubmitInput{}, &messages.SubmitResult{InputId: "r"})
	h.Done()
}

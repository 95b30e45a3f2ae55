package channels

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	admin = kit.Path("admin")
	owner = kit.Path("plugins/mail")
)

func begin(t *testing.T, name string, unsent ...*messages.OutputIntent) *kittest.Script {
	s := kittest.New(t, name, New(Params{Ledger: kit.Path("ledger"), MaxText: 64, MaxParts: 2}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("channels")}})
	s.Step(0, kit.Event{Corr: "unsent", Msg: &messages.PendingTasks{Unsent: unsent}})
	s.Step(0, kit.Event{From: admin, Corr: "r1", Msg: &messages.RegisterChannel{Name: "cli", Kind: messages.ChannelKind_CHANNEL_KIND_INTERACTIVE}})
	s.Step(0, kit.Event{From: owner, Corr: "r2", Msg: &messages.RegisterChannel{Name: "mail", Kind: messages.ChannelKind_CHANNEL_KIND_ASYNC, Owner: owner}})
	return s
}

func input(id, channel, text string) *messages.Input {
	return &messages.Input{
		Id: id, Channel: channel, Source: messages.InputSource_INPUT_SOURCE_PERSON,
		Principal: &messages.Principal{Id: "owner"}, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: text}}},
	}
}

func submit(in *messages.Input) kit.Event {
	return kit.Event{From: admin, Corr: "s/" + in.GetId(), Msg: &messages.SubmitInput{Input: in}}
}

func accepted(id string, dup bool) kit.Event {
	return kit.Event{Corr: "in/" + id, Msg: &messages.LedgerDone{Results: []*messages.LedgerResult{
		{Accepted: &messages.Accepted{InputId: id, Sequence: 7, Duplicate: dup}},
	}}}
}

func TestWayIn(t *testing.T) {
	s := begin(t, "way_in")
	s.Step(0, submit(input("a", "cli", "hello")))
	s.Step(0, accepted("a", false))
	s.Step(0, kit.Event{Corr: "offer/a", Msg: &messages.InputOutcome{InputId: "a", Outcome: messages.Outcome_OUTCOME_STARTED}})
	s.Note("a known idempotency key is answered with the first input")
	s.Step(0, submit(input("b", "cli", "hello")))
	s.Step(0, accepted("b", true))
	s.Note("full: nothing was accepted")
	s.Step(0, submit(input("c", "cli", "hello")))
	s.Step(0, kit.Event{Corr: "in/c", Msg: &messages.LedgerDone{Results: []*messages.LedgerResult{
		{Error: &messages.Error{Code: "queue_full", RetryAfterMs: 1000}},
	}}})
	s.Note("the disk is full")
	s.Step(0, submit(input("d", "cli", "hello")))
	s.Step(0, kit.Event{Corr: "in/d", Msg: &messages.LedgerDone{Error: &messages.Error{Code: "disk_low"}}})
	s.Note("the scheduler is slow: the input is on disk")
	s.Step(0, submit(input("e", "cli", "hello")))
	s.Step(0, accepted("e", false))
	s.Step(5*time.Second, kit.Event{Msg: offerLate{"e"}})
	s.Step(0, kit.Event{Corr: "offer/e", Msg: &messages.InputOutcome{InputId: "e"}})
	s.Show()
	s.Done()
}

func TestAgain(t *testing.T) {
	s := kittest.New(t, "again", New(Params{Ledger: kit.Path("ledger")}), start)
	s.Note("after a failure what waits is offered once more: who knows it answers, and what nobody had offered runs")
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("channels"), Restarts: 1, Failure: "boom"}})
	s.Step(0, kit.Event{Corr: "unsent", Msg: &messages.PendingTasks{Tasks: []*messages.PendingTask{
		{Input: input("a", "cli", "runs"), Sequence: 1, State: messages.TaskState_TASK_STATE_RUNNING},
		{Input: input("b", "cli", "waits"), Sequence: 2, State: messages.TaskState_TASK_STATE_QUEUED},
	}}})
	s.Step(0, kit.Event{Msg: &messages.InputOutcome{InputId: "b", Outcome: messages.Outcome_OUTCOME_QUEUED, Position: 1}})
	s.Done()
}

func TestRefusals(t *testing.T) {
	s := begin(t, "refusals")
	s.Step(0, submit(input("a", "fax", "hello")))
	s.Step(0, submit(input("b", "cli", "  \n")))
	s.Step(0, submit(input("c", "cli", strings.Repeat("x", 65))))
	far := input("d", "cli", "hello")
	far.Level = proto.Int32(5)
	s.Step(0, submit(far))
	s.Step(0, kit.Event{From: owner, Corr: "r3", Msg: &messages.RegisterChannel{Name: "Bad Name"}})
	many := input("f", "cli", "hello")
	many.Parts = append(many.Parts, many.GetParts()[0], many.GetParts()[0])
	s.Step(0, submit(many))
	s.Note("names that the store can not keep apart")
	odd := input("g", "cli", "hello")
	odd.Conversation = "a\x00b"
	s.Step(0, submit(odd))
	s.Note("an agent that does not exist")
	other := input("e", "cli", "hello")
	other.Agent = "main/resident/nobody"
	s.Step(0, submit(other))
	s.Step(0, accepted("e", false))
	s.Step(0, kit.Event{Msg: kit.Fault{
		Effect: kit.Send{Corr: "offer/e", Msg: &messages.Offer{}}, Err: &messages.Error{Code: "no_actor"},
	}})
	s.Note("it is refused when its end is on disk")
	s.Step(0, kit.Event{Corr: "orphan/e", Msg: &messages.LedgerDone{}})
	s.Note("of an agent that was destroyed meanwhile it has ended otherwise")
	gone := input("f", "cli", "hello")
	gone.Agent = "main/resident/nobody"
	s.Step(0, submit(gone))
	s.Step(0, accepted("f", false))
	s.Step(0, kit.Event{Corr: "offer/f", Msg: &messages.Error{Code: "actor_gone"}})
	s.Step(0, kit.Event{Corr: "orphan/f", Msg: &messages.LedgerDone{Error: &messages.Error{Code: "already_ended"}}})
	s.Note("an earlier process did not live to refuse it")
	s.Step(0, kit.Event{Corr: "unsent", Msg: &messages.PendingTasks{
		Tasks:  []*messages.PendingTask{{Input: gone}, {Input: input("g", "cli", "mine")}},
		Agents: []*messages.AgentSpec{{Agent: "main/resident/cook"}},
	}})
	s.Done()
}

func TestWayOut(t *testing.T) {
	s := begin(t, "way_out", &messages.OutputIntent{OutputId: "old/o1", TaskId: "old", Channel: "cli"},
		&messages.OutputIntent{OutputId: "older/o1", TaskId: "older", Channel: "mail"})
	turn := kit.Path("agents/main/turn/a")
	out := func(id, channel string) kit.Event {
		return kit.Event{From: turn, Corr: id, Msg: &messages.SendOutput{Output: &messages.OutputIntent{
			OutputId: id, TaskId: "a", Channel: channel, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "hi"}}},
		}}}
	}
	s.Step(0, out("a/o1", "cli"))
	s.Step(0, out("a/o2", "mail"))
	s.Step(0, kit.Event{Corr: "out/a/o2", Msg: &messages.OutputSent{Receipt: &messages.OutputReceipt{OutputId: "a/o2", Receipt: "msg-1"}}})
	s.Note("a channel that is not there yet, and one that comes later still")
	s.Step(0, out("a/o3", "fax"))
	s.Step(0, out("a/o5", "web"))
	s.Step(time.Second, kit.Event{From: admin, Corr: "r3", Msg: &messages.RegisterChannel{Name: "web", Kind: messages.ChannelKind_CHANNEL_KIND_INTERACTIVE}})
	s.Step(9*time.Second, kit.Event{Msg: absentLate{"a/o3"}})
	s.Step(time.Second, kit.Event{From: admin, Corr: "r4", Msg: &messages.RegisterChannel{Name: "fax", Kind: messages.ChannelKind_CHANNEL_KIND_INTERACTIVE}})
	s.Note("an owner that says nothing")
	s.Step(0, out("a/o4", "mail"))
	s.Step(time.Minute, kit.Event{Msg: sendLate{"a/o4"}})
	s.Show()
	s.Done()
}

func TestLevels(t *testing.T) {
	cli := &messages.RegisterChannel{Name: "cli", Kind: messages.ChannelKind_CHANNEL_KIND_INTERACTIVE}
	chat := &messages.RegisterChannel{Name: "chat", Kind: messages.ChannelKind_CHANNEL_KIND_ASYNC}
	const (
		person   = messages.InputSource_INPUT_SOURCE_PERSON
		child    = messages.InputSource_INPUT_SOURCE_CHILD
		parent   = messages.InputSource_INPUT_SOURCE_PARENT
		job      = messages.InputSource_INPUT_SOURCE_JOB
		reminder = messages.InputSource_INPUT_SOURCE_REMINDER
	)
	for _, c := range []struct {
		name   string
		ch     *messages.RegisterChannel
		source messages.InputSource
		level  int32 // -1: not asked for
		mode   messages.Mode
		waits  bool
		want   int32
		node   bool
	}{
		{"a job of the node with a level of its own", chat, job, 2, 0, false, 2, true},
		{"a reminder of the node with a level of its own", chat, reminder, 0, 0, false, 0, true},
		{"a job of the node at level 4", chat, job, 4, 0, false, 0, true},
		{"a reminder of the node", chat, reminder, -1, 0, false, 3, true},
		{"a reminder of somebody with a level of its own", chat, reminder, 1, 0, false, 3, false},
		{"person on cli", cli, person, -1, 0, false, 2, false},
		{"person on chat", chat, person, -1, 0, false, 1, false},
		{"a synchronous caller on chat", chat, person, -1, 0, true, 2, false},
		{"interrupt", cli, person, -1, messages.Mode_MODE_INTERRUPT, false, 3, false},
		{"interrupt that asks for less", cli, person, 1, messages.Mode_MODE_INTERRUPT, false, 3, false},
		{"background on request", cli, person, 0, 0, false, 0, false},
		{"below the floor", cli, person, 1, 0, false, 2, false},
		{"asks for 3", chat, person, 3, 0, false, 3, false},
		{"asks for 4", chat, person, 4, 0, false, 3, false},
		{"job", chat, job, 4, 0, false, 0, false},
		{"child report", chat, child, 4, 0, false, 1, false},
		{"child report a person waits for", chat, child, -1, 0, true, 2, false},
		{"reminder", chat, reminder, -1, 0, false, 3, false},
		{"parent", chat, parent, -1, 0, false, 4, false},
	} {
		in := &messages.Input{Source: c.source, Mode: c.mode, PersonWaits: c.waits}
		if c.level >= 0 {
			in.Level = proto.Int32(c.level)
		}
		if c.node {
			in.Principal = &messages.Principal{Id: "timer:T", Kind: messages.PrincipalKind_PRINCIPAL_KIND_SYSTEM}
		}
		if got, _ := classify(in, c.ch, by{}); got.GetLevel() != c.want || got.GetAgent() != "main" {
			t.Errorf("%s: level %d for agent %q, want %d for main", c.name, got.GetLevel(), got.GetAgent(), c.want)
		}
	}
}

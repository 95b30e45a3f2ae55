package e2e

import (
	"encoding/json"
	"testing"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// note is a step that remembers a fact, so that a tool has run before what follows.
func note(match string) providertest.Step {
	return providertest.Step{Match: match, AfterTool: &no, Times: 1, Tools: []providertest.Tool{{
		ID: "call_note", Name: "memory_commit",
		Args: json.RawMessage(`{"facts":[{"subject":"Lena","predicate":"likes","object":"figs"}]}`),
	}}}
}

// starts counts how often calls of a tool were begun for a task.
func (r *tape) starts(task, tool string) int {
	return len(r.all(func(e *api.Event) bool {
		return e.TaskID == task && e.Tool != nil && e.Tool.Name == tool && e.Tool.Result == nil
	}))
}

// TestInterruptWhileAnswering answers an L3 interrupt in the middle of an answer, and then the answer goes on. A tool
// that had run before is not run again.
func TestInterruptWhileAnswering(t *testing.T) {
	n, v := withVendor(t,
		note("long story"),
		providertest.Step{Match: "long story", AfterTool: &yes, Times: 1, Text: []string{"Once upon ", "a time."}, Hold: providertest.Hold{Middle: "story"}},
		providertest.Step{Match: "long story", AfterTool: &yes, Text: []string{"Once upon ", "a time."}},
		providertest.Step{Match: "kitchen", Text: []string{"Turn the stove off."}},
	)
	tape := n.tape("")
	story := n.say("Tell me a long story about Lena.")
	request := v.held("story")
	got := n.submit(api.Submit{Text: "The kitchen is on fire!", Level: json.RawMessage("3"), Conversation: "alarm"})
	if got.Outcome != "preempting" {
		t.Errorf("the interrupt was taken as %+v", got)
	}
	v.closed(request)
	fire := tape.ended(got.InputID, "answered")
	if fire.Task.Text != "Turn the stove off." {
		t.Errorf("the interrupt was answered with %q", fire.Task.Text)
	}
	end := tape.ended(story, "answered")
	if end.Task.Text != "Once upon a time." || end.Sequence < fire.Sequence {
		t.Errorf("the story ended at %d as %+v; the interrupt at %d", end.Sequence, end.Task, fire.Sequence)
	}
	for _, change := range []string{"accepted", "started", "suspended", "resumed", "ended"} {
		tape.once(story, change)
	}
	suspended, resumed := tape.change(story, "suspended"), tape.change(story, "resumed")
	said := tape.await("the output of the interrupt", func(e *api.Event) bool {
		return e.Type == api.EventOutput && e.TaskID == got.InputID
	})
	if suspended.Task.By != got.InputID || suspended.Sequence > said.Sequence || resumed.Sequence < said.Sequence {
		t.Errorf("suspended at %d %+v, resumed at %d, the interrupt was answered at %d",
			suspended.Sequence, suspended.Task, resumed.Sequence, said.Sequence)
	}
	tape.once(got.InputID, "ended")
	if n := tape.starts(story, "memory_commit"); n != 1 {
		t.Errorf("the tool was begun %d times", n)
	}
	for i, a := range v.bodies() {
		ids, _ := a.results()
		want := map[int]int{0: 0, 1: 1, 2: 0, 3: 1}[i]
		if len(ids) != want {
			t.Errorf("request %d carries results %v, not %d", i, ids, want)
		}
	}
	if len(v.bodies()) != 4 {
		t.Errorf("%d requests reached the vendor, not 4", len(v.bodies()))
	}
	if got := n.input(story); got.Preempted != 1 || got.Starts != 1 {
		t.Errorf("the input is %+v", got)
	}
}

// TestNoPreemptionAmongEquals queues what is not more urgent, and answers it afterwards.
func TestNoPreemptionAmongEquals(t *testing.T) {
	n, v := withVendor(t,
		providertest.Step{Match: "first", Text: []string{"1", "."}, Hold: providertest.Hold{Middle: "go"}},
		providertest.Step{Match: "second", Text: []string{"2."}},
	)
	tape := n.tape("")
	first := n.say("first")
	v.held("go")
	second := n.submit(api.Submit{Text: "second", Conversation: "other"})
	if second.Outcome != "queued" || second.Position != 1 {
		t.Errorf("the second is %+v", second)
	}
	contains(t, n.waiter("queue").must(t).stdout, "running", "first", "1.", "second")
	v.Open("go")
	a, b := tape.ended(first, "answered"), tape.ended(second.InputID, "answered")
	if a.Sequence > b.Sequence {
		t.Error("the second was answered first")
	}
	if n := len(tape.all(func(e *api.Event) bool { return e.Task != nil && e.Task.Change == "suspended" })); n != 0 {
		t.Errorf("%d suspensions", n)
	}
}

// TestSteer sees a second text of the conversation join the running turn before its next model call.
func TestSteer(t *testing.T) {
	first := note("")
	first.Text, first.Hold = []string{"Wait, ", "I note it."}, providertest.Hold{Middle: "go"}
	n, v := withVendor(t, first, providertest.Step{Text: []string{"Figs and dates."}})
	tape := n.tape("")
	task := n.say("Lena likes figs.")
	v.held("go")
	second := n.submit(api.Submit{Text: "And dates too!"})
	if second.Outcome != "steered" {
		t.Errorf("the second text was taken as %+v", second)
	}
	v.Open("go")
	end, joined := tape.ended(task, "answered"), tape.ended(second.InputID, "answered")
	if end.Task.Text != "Figs and dates." || joined.Task.By != task {
		t.Errorf("ended as %+v and %+v", end.Task, joined.Task)
	}
	asks := v.bodies()
	if len(asks) != 2 {
		t.Fatalf("%d requests reached the vendor", len(asks))
	}
	text, _ := json.Marshal(asks[1].Messages)
	contains(t, string(text), "And dates too!")
	if by := n.input(second.InputID); by.State != "ended" || by.By != task {
		t.Errorf("the second input is %+v", by)
	}
}

// TestStop ends an answer, and what waits, at once; twice does no harm, and new input works.
func TestStop(t *testing.T) {
	n, v := withVendor(t,
		providertest.Step{Match: "talk", Text: []string{"Blah ", "blah."}, Hold: providertest.Hold{Middle: "never"}},
		providertest.Step{Match: "again", Text: []string{"Here."}},
	)
	tape := n.tape("")
	talk := n.say("talk")
	request := v.held("never")
	waits := n.submit(api.Submit{Text: "talk more", Mode: "queue"}).InputID
	joins := n.submit(api.Submit{Text: "talk on"})
	if joins.Outcome != "steered" {
		t.Fatalf("the third is %+v", joins)
	}
	contains(t, n.waiter("stop").must(t).stdout, "1 stopped")
	v.closed(request)
	for _, task := range []string{talk, waits, joins.InputID} {
		if e := tape.ended(task, "stopped"); e.Task.Reason == "" {
			t.Errorf("no reason: %+v", e.Task)
		}
		tape.once(task, "ended")
	}
	contains(t, n.waiter("stop").must(t).stdout, "nothing runs or waits")
	n.waiter("stop").must(t)
	if got := n.ask("are you there again?"); got.End != "answered" || got.Text != "Here." {
		t.Errorf("after the stop: %+v", got)
	}
	if got := n.input(talk); got.End != "stopped" {
		t.Errorf("the stopped input is %+v", got)
	}
	if n := len(v.bodies()); n != 2 {
		t.Errorf("%d requests reached the vendor", n)
	}
	if s, err := n.dial().Scheduler(bounded(t), "", 0); err != nil || s.StopQuota != 0 || len(s.Queue)+len(s.Stack) != 0 || s.Counters.Anomalies != 0 {
		t.Errorf("the scheduler shows %+v %v", s, err)
	}
}

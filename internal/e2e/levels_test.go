package e2e

import (
	"fmt"
	"strings"
	"testing"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

const cook = "main/resident/cook"

// withCook makes a node with a resident, to which its parent speaks at the highest level.
func withCook(t *testing.T, steps ...providertest.Step) (*node, *vendor) {
	t.Helper()
	n, v := newNode(t), newVendor(t)
	n.env = []string{"HOMED_CORE_AGENT_QUEUE_LIMIT=1000", "HOMED_CORE_SCHEDULER_COOLDOWN=0"}
	n.start()
	n.addSource(v, "scripted")
	if _, err := n.dial().CreateAgent(bounded(t), api.CreateAgent{Name: "cook", TaskPrompt: "Cook.", Capacity: 1000}); err != nil {
		t.Fatal(err)
	}
	v.plays(steps...)
	return n, v
}

// scheduler shows the queue of the resident.
func (n *node) scheduler(agent string) *api.Scheduler {
	n.t.Helper()
	s, err := n.dial().Scheduler(bounded(n.t), agent, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

// TestE5NestingDepthFour interrupts an interrupt of an interrupt of an interrupt, and all go on in the reverse order. Each
// that goes on sees what the ones above it were answered.
func TestE5NestingDepthFour(t *testing.T) {
	names := []string{"queued", "low", "middle", "high", "critical"}
	var steps []providertest.Step
	for _, name := range names {
		said := []string{"Did ", name + "."}
		steps = append(steps,
			providertest.Step{Match: name, Times: 1, Text: said, Hold: providertest.Hold{Middle: name}},
			providertest.Step{Match: name, Text: said})
	}
	send := providertest.Step{Match: "tell the cook", Times: 1, AfterTool: &no, Tools: []providertest.Tool{
		tool("resident_agents", `{"action":"send","id":"cook","text":"critical"}`),
	}}
	n, v := withCook(t, append([]providertest.Step{send, after("tell the cook", "Told.")}, append(steps, says("Heard."))...)...)
	tape := n.tape("")
	var ids []string
	for level, name := range names[:4] {
		got := n.submit(api.Submit{Text: name, Agent: cook, Channel: "api", Conversation: "stove", Mode: "queue", Level: api.Level(level)})
		if want := map[bool]string{true: "started", false: "preempting"}[level == 0]; got.Outcome != want {
			t.Errorf("%s was taken as %+v", name, got)
		}
		ids = append(ids, got.InputID)
		v.held(name)
	}
	n.ask("tell the cook")
	v.held("critical")
	s := n.scheduler(cook)
	if s.Running == nil || s.Running.Level != 4 || len(s.Stack) != 4 {
		t.Fatalf("the scheduler shows %+v", s)
	}
	ids = append(ids, s.Running.TaskID)
	for i, w := range s.Stack {
		if w.TaskID != ids[3-i] || w.Level != 3-i {
			t.Errorf("at %d of the stack is %+v", i, w)
		}
	}
	for _, name := range names {
		v.Open(name)
	}
	at := uint64(0)
	for i := len(ids) - 1; i >= 0; i-- {
		e := tape.ended(ids[i], "answered")
		if e.Task.Text != "Did "+names[i]+"." || e.Sequence < at {
			t.Errorf("%s ended at %d as %+v, the one above it at %d", names[i], e.Sequence, e.Task, at)
		}
		at = e.Sequence
		tape.once(ids[i], "ended")
	}
	c := n.scheduler(cook).Counters
	if c.Suspended != 4 || c.Resumed != 4 || c.MaxDepth != 4 || c.Anomalies != 0 {
		t.Errorf("the scheduler counts %+v", c)
	}
	for level := range 4 {
		if c.Preempts[fmt.Sprint(level+1)] != 1 {
			t.Errorf("preempts by level: %v", c.Preempts)
		}
	}
	// The prompt with which the first one goes on holds what was answered meanwhile in its conversation.
	for _, a := range v.bodies() {
		prompt := fmt.Sprintf("%s", a.Messages)
		last := a.Messages[len(a.Messages)-1]
		if string(last.Content) == `"queued"` && strings.Contains(prompt, "Did high.") {
			for _, said := range []string{"Did low.", "Did middle."} {
				contains(t, prompt, said)
			}
			return
		}
	}
	t.Error("no prompt of the first one holds what was answered meanwhile")
}

// TestE4HundredAndHundred floods an agent with a hundred queued inputs and as many interrupts of all levels: each ends
// once, none is refused, and what was suspended was resumed.
func TestE4HundredAndHundred(t *testing.T) {
	n, v := withCook(t)
	s := newScript(4)
	var calls []providertest.Tool
	for i := range 25 {
		name := fmt.Sprintf("#p%d", i)
		s.learn(name, nil)
		calls = append(calls, tool("resident_agents", `{"action":"send","id":"cook","text":"Do %s."}`, name))
	}
	s.learn("#parent", [][]providertest.Tool{calls})
	v.Serve(s.answer)
	before := n.scheduler(cook).Counters
	tape := n.tapeOf("", nil, api.EventTask)
	var ids []string
	say := func(name string, level int) {
		s.learn(name, [][]providertest.Tool{{tool("time_now", `{}`)}})
		got := n.submit(api.Submit{
			Text: "Do " + name + ".", Agent: cook, Channel: "api", Conversation: fmt.Sprint("c", len(ids)%7), Mode: "queue", Level: api.Level(level),
		})
		ids = append(ids, got.InputID)
	}
	parent := ""
	for i := range 100 {
		say(fmt.Sprintf("#q%d", i), 0)
		if i%4 < 3 {
			say(fmt.Sprintf("#i%d", i), 1+i%4)
		}
		if i == 50 {
			parent = n.say("Do #parent.")
		}
	}
	for _, id := range ids {
		tape.ended(id, "answered")
	}
	tape.ended(parent, "answered")
	for i := range 25 {
		// The parent's word is a task of the resident, and its report one of the parent.
		tape.await("the work for the parent", func(e *api.Event) bool {
			return e.Agent == cook && e.Task != nil && e.Task.Change == "ended" && e.Task.End == "answered" && strings.Contains(e.Task.Text, fmt.Sprintf("Done #p%d.", i))
		})
	}
	for _, id := range ids {
		tape.once(id, "ended")
	}
	got := n.scheduler(cook)
	c := got.Counters
	if c.Suspended == 0 || c.Suspended != c.Resumed || c.Anomalies != 0 || c.MaxDepth > 4 || got.Waiting+len(got.Stack) != 0 {
		t.Errorf("the scheduler shows %+v", got)
	}
	if n := c.Offered - before.Offered; n != 200 {
		t.Errorf("%d inputs were offered", n)
	}
	for level, want := range map[string]uint64{"1": 25, "2": 25, "3": 25, "4": 25} {
		if n := c.Interrupts[level] - before.Interrupts[level]; n != want {
			t.Errorf("%d interrupts of level %s, not %d", n, level, want)
		}
	}
	t.Logf("%d suspended, %d deep, preempts %v", c.Suspended, c.MaxDepth, c.Preempts)
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"homeagent/internal/client"
	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// rounds is how often a test repeats what is drawn at random: few in every run, many where the figures are proved.
func rounds(few, many int) int {
	if os.Getenv("HOMEAGENT_PROOF") != "" {
		return many
	}
	return few
}

// replay records all events since the node's start.
func (n *node) replay() *tape {
	n.t.Helper()
	s, err := n.dial().Status(bounded(n.t))
	if err != nil {
		n.t.Fatal(err)
	}
	r := n.tape(fmt.Sprintf("%d-0", s.Epoch))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.syncs) > 0 {
		n.t.Fatalf("the beginning of the stream is gone: %+v", r.syncs)
	}
	return r
}

// tale is what four inputs are answered with: the first one with a tool before its text.
func tale(round int, hold providertest.Hold) []providertest.Step {
	one := fmt.Sprintf("r%d-1", round)
	fact := fmt.Sprintf(`{"facts":[{"subject":"round %d","predicate":"has","object":"a tool"}]}`, round)
	return []providertest.Step{
		{Match: one, AfterTool: &no, Tools: []providertest.Tool{{ID: "call", Name: "memory_commit", Args: json.RawMessage(fact)}}},
		{Match: one, AfterTool: &yes, Text: []string{"Answer ", one}, Hold: hold},
		{Match: fmt.Sprintf("r%d-2", round), Text: []string{"Answer ", fmt.Sprintf("r%d-2", round)}},
		{Match: fmt.Sprintf("r%d-3", round), Text: []string{"Answer ", fmt.Sprintf("r%d-3", round)}},
		{Match: fmt.Sprintf("r%d-4", round), Text: []string{"Answer ", fmt.Sprintf("r%d-4", round)}},
	}
}

// four hands over the inputs of a round.
func (n *node) four(round int) []string {
	n.t.Helper()
	var ids []string
	for i := 1; i <= 4; i++ {
		ids = append(ids, n.submit(api.Submit{Text: fmt.Sprintf("Question r%d-%d", round, i), Mode: "queue"}).InputID)
	}
	return ids
}

// checkFour proves that four inputs ended well, each once and in order: by what the node knows, by the events of both
// lives of the process, and by memory.
func checkFour(t *testing.T, n *node, round int, ids []string, lives ...*tape) {
	t.Helper()
	last := lives[len(lives)-1]
	var before api.Task
	for i, id := range ids {
		// An end that was durable before the kill may have been published by nobody: then the node still knows it.
		got := n.input(id)
		if got.State != "ended" {
			last.change(id, "ended")
			got = n.input(id)
		}
		want := fmt.Sprintf("Answer r%d-%d", round, i+1)
		if got.State != "ended" || got.End != "answered" || got.Text != want {
			t.Errorf("input %d is %+v\n%s", i+1, got, last)
		}
		if got.Ended.Before(before.Ended) {
			t.Errorf("input %d ended at %s, before input %d at %s", i+1, got.Ended, i, before.Ended)
		}
		before = *got
		ends := 0
		for _, l := range lives {
			ends += len(l.all(func(e *api.Event) bool { return is(e, id, "ended") }))
		}
		if ends > 1 {
			t.Errorf("input %d has %d terminal events", i+1, ends)
		}
	}
	mem, err := n.dial().Memory(bounded(t), client.MemoryQuery{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	var trail []string
	for _, e := range mem.Events {
		if i := slices.Index(ids, e.TaskID); i >= 0 {
			trail = append(trail, fmt.Sprintf("%s %d", e.Kind, i+1))
		}
	}
	slices.Sort(trail)
	trail = slices.DeleteFunc(trail, func(s string) bool { return s[:4] == "tool" })
	if fmt.Sprint(trail) != "[input 1 input 2 input 3 input 4 response 1 response 2 response 3 response 4]" {
		t.Errorf("memory holds %v", trail)
	}
	facts, err := n.dial().Memory(bounded(t), client.MemoryQuery{Entity: fmt.Sprintf("round %d", round)})
	if err != nil || len(facts.Facts) != 1 {
		t.Errorf("the tool left %d facts, not one: %v", len(facts.Facts), err)
	}
}

// TestKillWhileAnswering pulls the plug while an answer streams and three inputs wait.
func TestKillWhileAnswering(t *testing.T) {
	for name, hold := range map[string]providertest.Hold{
		"request": {Headers: "gate"}, "streaming": {Middle: "gate"}, "end": {End: "gate"},
	} {
		t.Run(name, func(t *testing.T) {
			n, v := withVendor(t, tale(0, hold)...)
			first := n.tape("")
			ids := n.four(0)
			v.held("gate")
			first.await("the tool", func(e *api.Event) bool { return e.Tool != nil && e.Tool.Result != nil })
			// People see the result before it is written. What ledger is asked now it answers behind all that it was handed before.
			n.input(ids[0])
			n.kill()
			<-first.over
			v.Open("gate")
			n.start()
			second := n.replay()
			var at uint64
			for _, id := range ids {
				e := second.ended(id, "answered")
				if e.Sequence < at {
					t.Errorf("%s ended out of order", id)
				}
				at = e.Sequence
			}
			for _, id := range ids {
				second.once(id, "ended")
				if n := len(second.all(func(e *api.Event) bool { return e.Type == api.EventOutput && e.TaskID == id })); n != 1 {
					t.Errorf("%d outputs of %s", n, id)
				}
			}
			checkFour(t, n, 0, ids, first, second)
			if n := second.starts(ids[0], "memory_commit"); n != 0 {
				t.Errorf("the tool that had run was begun again %d times", n)
			}
			if got := n.input(ids[0]); got.Starts != 1 {
				t.Errorf("the first input was started %d times since it last had a result", got.Starts)
			}
		})
	}
}

// TestKillAnywhere kills one node again and again, each time at an event drawn by a seed: while it accepts, before the
// request, while an answer streams, in a tool, in the commit, between two turns.
func TestKillAnywhere(t *testing.T) {
	n, v := withVendor(t)
	for round := range rounds(8, 100) {
		if !t.Run(fmt.Sprint(round), func(t *testing.T) {
			n.t, v.t = t, t
			killOnce(t, n, v, round, rand.New(rand.NewPCG(uint64(round), 7)))
		}) {
			return
		}
	}
}

func killOnce(t *testing.T, n *node, v *vendor, round int, dice *rand.Rand) {
	v.plays(tale(round, providertest.Hold{})...)
	first := n.tape("")
	// Four turns make some 62 events; the draw reaches from the first acceptance to the last end.
	count := 1 + dice.IntN(60)
	c, taken := n.dial(), make(chan []string)
	go func() { taken <- offer(c, round) }()
	seen := 0
	point := first.await("the moment", func(*api.Event) bool { seen++; return seen >= count })
	n.kill()
	before := <-taken
	<-first.over
	t.Logf("killed at event %d: %s %+v %+v; acknowledged: %q", count, point.Type, point.Task, point.Stage, before)
	n.start()
	second := n.replay()
	// A sender that heard nothing sends again under the same key: what was accepted stays what it was.
	ids := offer(n.dial(), round)
	for i := range ids {
		if ids[i] == "" || before[i] != "" && before[i] != ids[i] {
			t.Fatalf("input %d was acknowledged as %q and is now %q", i+1, before[i], ids[i])
		}
	}
	checkFour(t, n, round, ids, first, second)
}

// offer hands over the inputs of a round under keys and returns the ids of those that were acknowledged.
func offer(c *client.Client, round int) []string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ids := make([]string, 4)
	for i := range ids {
		got, err := c.Submit(ctx, api.Submit{
			Text: fmt.Sprintf("Question r%d-%d", round, i+1), Mode: "queue", Channel: "cli", Conversation: "main",
			IdempotencyKey: fmt.Sprintf("key r%d-%d", round, i+1),
		})
		if err != nil {
			continue // the node was killed meanwhile: nothing is known of this one
		}
		ids[i] = got.InputID
	}
	return ids
}

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"homeagent/internal/client"
	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// TestQueueChanges shows what waits and changes it from the command line; text and level survive a power cut.
func TestQueueChanges(t *testing.T) {
	n, v := withVendor(t,
		providertest.Step{Match: "holds", Times: 1, Text: []string{"Held ", "up."}, Hold: providertest.Hold{Middle: "gate"}},
		providertest.Step{Text: []string{"Done."}},
	)
	first := n.tape("")
	holds := n.submit(api.Submit{Text: "This holds.", Level: json.RawMessage("3")}).InputID
	v.held("gate")
	wait := func(text string) string {
		return n.submit(api.Submit{Text: text, Mode: "queue", Level: json.RawMessage("0"), Conversation: text}).InputID
	}
	a, b, c, d := wait("alpha"), wait("beta"), wait("gamma"), wait("delta")
	past := time.Now().Add(-time.Hour)
	if _, err := n.dial().Submit(bounded(t), api.Submit{Text: "late", Deadline: &past}); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("a deadline in the past: %v", err)
	}
	soon := time.Now().Add(300 * time.Millisecond)
	late := n.submit(api.Submit{Text: "soon too late", Mode: "queue", Level: json.RawMessage("0"), Deadline: &soon}).InputID
	first.ended(late, "expired")

	s, err := n.dial().Scheduler(bounded(t), "", 2)
	if err != nil || s.Running.Phase != "completing" || s.Running.Principal != "owner" || s.Waiting != 4 || len(s.Queue) != 2 || s.Queue[1].Position != 2 {
		t.Fatalf("the scheduler shows %+v %v", s, err)
	}
	contains(t, n.waiter("queue", "promote", d).must(t).stdout, d+" promoted, 1. at level 0")
	contains(t, n.waiter("queue", "edit", a, "something", "else").must(t).stdout, "edited")
	contains(t, n.waiter("queue", "level", c, "1").must(t).stdout, c+" moved, 1. at level 1")
	contains(t, n.waiter("queue", "cancel", b).must(t).stdout, "cancelled")
	if e := first.ended(b, "stopped"); e.Task.Reason != "cancelled" {
		t.Errorf("cancelled as %+v", e.Task)
	}
	for _, r := range []result{
		n.waiter("queue", "promote", b), n.waiter("queue", "cancel", holds), n.waiter("queue", "edit", "nobody", "x"),
		n.waiter("queue", "--agent", "nope"),
	} {
		if r.code != 1 {
			t.Errorf("exit %d: %s", r.code, r.stderr)
		}
	}
	contains(t, n.waiter("queue", "--agent", "nope").stderr, "unknown_agent")
	contains(t, n.waiter("queue", "promote", b).stderr, "not_waiting")

	n.kill()
	<-first.over
	v.Open("gate")
	n.start()
	second := n.replay()
	order := []uint64{second.ended(holds, "answered").Sequence, second.ended(c, "answered").Sequence, second.ended(a, "answered").Sequence}
	second.ended(d, "answered")
	if order[0] > order[1] || order[1] > order[2] {
		t.Errorf("ended in the order %v", order)
	}
	if got := n.input(a); len(got.Content) != 1 || got.Content[0].Text != "something else" {
		t.Errorf("the edited input is %+v", got)
	}
}

// TestStopSurvivesAPowerCut pulls the plug right after a stop was answered: nothing that it stopped comes back.
func TestStopSurvivesAPowerCut(t *testing.T) {
	n, v := withVendor(t, providertest.Step{Text: []string{"Blah ", "blah."}, Hold: providertest.Hold{Middle: "gate"}})
	talk := n.say("talk")
	v.held("gate")
	ids := []string{talk}
	for _, text := range []string{"one", "two", "three"} {
		ids = append(ids, n.submit(api.Submit{Text: text, Mode: "queue"}).InputID)
	}
	got, err := n.dial().Stop(bounded(t), client.Stop{})
	if err != nil || got.Stopped != 1 || got.Quota != 3 {
		t.Fatalf("stopped %+v %v", got, err)
	}
	n.kill()
	v.Open("gate")
	asked := len(v.bodies())
	n.start()
	for _, id := range ids {
		in := n.input(id)
		for in.State != "ended" {
			in = n.input(id)
		}
		if in.End != "stopped" {
			t.Errorf("%s came back as %+v", id, in)
		}
	}
	if again := n.ask("are you there?"); again.End != "answered" {
		t.Errorf("after the stop: %+v", again)
	}
	if n := len(v.bodies()); n != asked+1 {
		t.Errorf("%d requests after the stop", n-asked)
	}
}

package e2e

import (
	"encoding/json"
	"testing"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// TestIdempotencyKey sends an input twice under one key: it is one input with one answer.
func TestIdempotencyKey(t *testing.T) {
	n, v := withVendor(t,
		providertest.Step{Match: "once", Text: []string{"Done", "."}, Hold: providertest.Hold{Middle: "go"}},
		providertest.Step{Text: []string{"Other."}},
	)
	tape := n.tape("")
	in := api.Submit{Text: "do it once", IdempotencyKey: "k-1"}
	first := n.submit(in)
	v.held("go")
	again := n.submit(in)
	if again.InputID != first.InputID || !again.Duplicate || again.Outcome != "duplicate" {
		t.Errorf("under the same key: %+v, then %+v", first, again)
	}
	v.Open("go")
	tape.ended(first.InputID, "answered")
	// The key holds after the end, over a restart, and for one who waits; another text does not change what it names.
	n.kill()
	n.start()
	in.Wait, in.Text = true, "do something else"
	late := n.submit(in)
	if late.InputID != first.InputID || !late.Duplicate || late.Task == nil || late.Task.Text != "Done." {
		t.Errorf("after a restart: %+v", late)
	}
	if n := len(v.bodies()); n != 1 {
		t.Errorf("%d requests reached the vendor", n)
	}
	tape.once(first.InputID, "ended")
}

// TestRepeatedText takes the same text twice within the window for one slip of the hand.
func TestRepeatedText(t *testing.T) {
	n, v := withVendor(t, providertest.Step{Text: []string{"Yes", "."}, Hold: providertest.Hold{Middle: "go"}})
	tape := n.tape("")
	first := n.say("are you there?")
	v.held("go")
	second := n.submit(api.Submit{Text: "are you there?"})
	if second.InputID == first || second.Outcome != "duplicate" {
		t.Errorf("the repeated text is %+v", second)
	}
	end := tape.ended(second.InputID, "duplicate")
	if end.Task.By != first {
		t.Errorf("it ended as %+v", end.Task)
	}
	elsewhere := n.submit(api.Submit{Text: "are you there?", Conversation: "other"})
	if elsewhere.Outcome != "queued" {
		t.Errorf("the same text in another conversation is %+v", elsewhere)
	}
	v.Open("go")
	tape.ended(first, "answered")
	tape.ended(elsewhere.InputID, "answered")
	if got := n.input(second.InputID); got.State != "ended" || got.End != "duplicate" || got.By != first {
		t.Errorf("the repeated input is %+v", got)
	}
	n.waiter("config", "set", "core.input.duplicate_window", "0").must(t)
	if n := len(v.bodies()); n != 2 {
		t.Errorf("%d requests reached the vendor", n)
	}
}

// TestQueueFull refuses what does not fit, and has accepted nothing of it.
func TestQueueFull(t *testing.T) {
	n, v := newNode(t), newVendor(t)
	n.env = []string{"HOMED_CORE_AGENT_QUEUE_LIMIT=3"}
	n.start()
	n.addSource(v, "scripted")
	v.plays(providertest.Step{Match: "first", Text: []string{"1", "."}, Hold: providertest.Hold{Middle: "go"}}, providertest.Step{Text: []string{"."}})
	tape := n.tape("")
	ids := []string{n.say("first")}
	v.held("go")
	for _, text := range []string{"second", "third"} {
		ids = append(ids, n.submit(api.Submit{Text: text, Mode: "queue"}).InputID)
	}
	res := n.http(t, "POST", "/api/v1/inputs", `{"text":"fourth","channel":"cli","mode":"queue"}`, n.auth())
	defer res.Body.Close()
	var no api.Error
	if err := json.NewDecoder(res.Body).Decode(&no); err != nil || res.StatusCode != 429 || res.Header.Get("Retry-After") == "" || no.Hint == "" {
		t.Errorf("a full node answers %s %q %+v %v", res.Status, res.Header.Get("Retry-After"), no, err)
	}
	v.Open("go")
	for _, id := range ids {
		tape.ended(id, "answered")
	}
	if got := n.ask("there is room again"); got.End != "answered" {
		t.Errorf("after the queue: %+v", got)
	}
}

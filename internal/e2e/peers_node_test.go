package e2e

import (
	"strings"
	"testing"

	"homeagent/messages/api"
)

// TestPeerNode has whole nodes speak with the server of many forms: text, a round of tools, and a fallback from one vendor to
// another.
func TestPeerNode(t *testing.T) {
	for _, w := range []wire{
		{name: "anthropic", adapter: "anthropic"},
		{name: "gemini", adapter: "gemini"},
		{name: "bedrock", adapter: "bedrock"},
	} {
		t.Run(w.name, func(t *testing.T) {
			n, p := newNode(t), vendors(t)
			n.start()
			add := func(name, adapter, model, priority string) {
				n.waiterIn(secretKey+"\n", "providers", "add", name, "--adapter", adapter, "--url", p.url, "--model", model,
					"--priority", priority, "--key-stdin").must(t)
			}
			add("peer", w.adapter, "m-1", "2")
			contains(t, n.waiter("chat", "say hello").must(t).stdout, "Hello 世界! 🙂 This is a text")

			tape := n.tape("")
			task := n.say("tool without arguments")
			if end := tape.ended(task, "answered"); !strings.Contains(end.Task.Text, "It is noon.") {
				t.Errorf("the answer is %q", end.Task.Text)
			}
			calls := tape.all(func(e *api.Event) bool { return e.Tool != nil && e.Tool.Result != nil })
			if len(calls) != 1 || calls[0].Tool.Name != "time_now" || calls[0].Tool.Result.Error != nil {
				t.Errorf("tools that ran: %+v", calls)
			}

			add("limited", "ollama", "m-limited", "1")
			contains(t, n.waiter("chat", "say hello").must(t).stdout, "Hello 世界!")
			contains(t, n.waiter("providers", "list").must(t).stdout, "cooling")
			round := tape.await("the second round", func(e *api.Event) bool {
				return e.Chain != nil && len(e.Chain.Attempts) > 1
			})
			if a := round.Chain.Attempts[0]; a.Source != "limited" || a.Failure == nil || round.Chain.Result.Source != "peer" {
				t.Errorf("%+v", round.Chain.Attempts)
			}
		})
	}
}

package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/internal/client"
	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

var yes, no = true, false

// TestAddSource adds a source as a person does; one that does not work is not kept, and its key is shown nowhere.
func TestAddSource(t *testing.T) {
	n, v := newNode(t), newVendor(t)
	n.start()
	contains(t, n.addSource(v, "scripted").stdout, "works:", "scripted", "ok")
	if got := v.Requests()[0].Header["Authorization"]; got != "Bearer "+secretKey {
		t.Errorf("the vendor was sent %q", got)
	}
	v.plays(providertest.Step{Status: 401, Body: `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`})
	bad := n.waiterIn(secretKey+"\n", "providers", "add", "wrong", "--url", v.URL(), "--model", "scripted", "--key-stdin")
	if bad.code != 1 {
		t.Errorf("a source that does not work: exit %d", bad.code)
	}
	contains(t, bad.stderr, "was not kept", "Incorrect API key", "Check the key")
	list := n.waiter("providers", "list").must(t).stdout
	contains(t, list, "scripted", "ready", "yes")
	if strings.Contains(list, "wrong") {
		t.Errorf("a source that does not work was kept:\n%s", list)
	}
	if got := n.waiter("providers", "add", "keyless", "--url", v.URL(), "--model", "scripted"); got.code != 2 {
		t.Errorf("no key and nobody to ask: exit %d: %s", got.code, got.stderr)
	}
	n.stop()
	n.start() // the key is kept as a secret, and used after a restart
	v.plays(providertest.Step{Text: []string{"Hello."}})
	contains(t, n.waiter("chat", "hi").must(t).stdout, "Hello.")
	last := v.Requests()[len(v.Requests())-1]
	if got := last.Header["Authorization"]; got != "Bearer "+secretKey {
		t.Errorf("after a restart the vendor was sent %q", got)
	}
	n.stop()
	err := filepath.Walk(n.data, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), secretKey) {
			t.Errorf("the key can be read in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTextStreams sees the first piece of an answer while the vendor holds the rest.
func TestTextStreams(t *testing.T) {
	n, v := withVendor(t, providertest.Step{Text: []string{"One, ", "two, ", "three."}, Hold: providertest.Hold{Middle: "rest"}})
	tape := n.tape("")
	task := n.say("count")
	first := tape.await("the first piece", func(e *api.Event) bool { return e.Type == api.EventContentDelta })
	if first.TaskID != task || first.Text != "One, " {
		t.Fatalf("the first piece is %+v", first)
	}
	if got := n.input(task); got.State != "running" || got.End != "" {
		t.Fatalf("while it streams the input is %+v", got)
	}
	v.Open("rest")
	end := tape.ended(task, "answered")
	if end.Task.Text != "One, two, three." {
		t.Errorf("the answer is %q", end.Task.Text)
	}
	tape.once(task, "ended")
	if got := n.input(task); got.State != "ended" || got.Text != "One, two, three." || got.Usage == nil || got.Usage.Output != 5 {
		t.Errorf("the input is %+v", got)
	}
	if a := v.bodies()[0]; !a.Stream || a.Model != "scripted" {
		t.Errorf("the vendor was asked %+v", a)
	}
}

// TestParallelTools runs two calls of one round and sends both results back in the order of their index.
func TestParallelTools(t *testing.T) {
	n, v := withVendor(t,
		providertest.Step{AfterTool: &no, Text: []string{"Let me see."}, Tools: []providertest.Tool{
			{ID: "call_b", Name: "memory_commit", Args: json.RawMessage(`{"facts":[{"subject":"Lena","predicate":"lives in","object":"Turin"}]}`)},
			{ID: "call_a", Name: "time_now", Args: json.RawMessage(`{}`)},
		}},
		providertest.Step{AfterTool: &yes, Text: []string{"Noted."}},
	)
	tape := n.tape("")
	task := n.say("Lena lives in Turin.")
	if got := tape.ended(task, "answered"); got.Task.Text != "Noted." {
		t.Errorf("the answer is %q", got.Task.Text)
	}
	asks := v.bodies()
	if len(asks) != 2 {
		t.Fatalf("%d requests reached the vendor", len(asks))
	}
	ids, contents := asks[1].results()
	if strings.Join(ids, " ") != "call_b call_a" {
		t.Fatalf("results came back as %v: %v", ids, contents)
	}
	contains(t, contents[0], `"stored":1`)
	contains(t, contents[1], `"utc"`)
	for _, tool := range []string{"memory_commit", "time_now"} {
		calls := tape.all(func(e *api.Event) bool { return e.Tool != nil && e.Tool.Name == tool })
		if len(calls) != 2 || calls[0].Tool.Result != nil || calls[1].Tool.Result == nil || calls[1].Tool.Result.Error != nil {
			t.Errorf("events of %s: %+v", tool, calls)
		}
	}
	rounds := tape.all(func(e *api.Event) bool { return e.Chain != nil && e.TaskID == task })
	if len(rounds) != 2 {
		t.Fatalf("%d rounds were shown", len(rounds))
	}
	first, second := rounds[0].Chain, rounds[1].Chain
	if first.Round != 1 || len(first.Result.Calls) != 2 || first.Result.Source != "scripted" || len(first.Tools) < 4 {
		t.Errorf("the first round is %+v", first)
	}
	last := second.Messages[len(second.Messages)-1]
	if second.Round != 2 || last.Role != "tool" || second.Result.Text != "Noted." || second.Result.Usage == nil {
		t.Errorf("the second round is %+v", second)
	}
	if second.Messages[0].Role != "system" || len(second.Messages[0].Content) == 0 {
		t.Errorf("the round does not hold its system prompt: %+v", second.Messages[0])
	}
	contains(t, n.waiter("memory", "facts", "Lena").must(t).stdout, "Turin")
}

// TestCutStreams sees answers break off: none of them may pass for an answer.
func TestCutStreams(t *testing.T) {
	for _, cut := range []string{"empty", "text", "event", "reset", "args"} {
		t.Run(cut, func(t *testing.T) {
			n, _ := withVendor(t, providertest.Step{
				Text: []string{"The answer ", "is"}, Cut: cut,
				Tools: []providertest.Tool{{ID: "c1", Name: "time_now", Args: json.RawMessage(`{"a long enough":"argument"}`)}},
			})
			tape := n.tape("")
			got := n.waiter("chat", "What is the answer?")
			if got.code != 1 {
				t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			contains(t, got.stderr, "failed")
			end := tape.await("the end", func(e *api.Event) bool { return e.Task != nil && e.Task.Change == "ended" })
			if end.Task.End != "failed" || end.Task.Reason == "" {
				t.Errorf("it ended as %+v", end.Task)
			}
			e := tape.await("an error event", func(e *api.Event) bool { return e.Type == api.EventError })
			if e.Error == nil || e.Error.Code == "" || e.Error.Message == "" {
				t.Errorf("the error event is %+v", e)
			}
			if n := len(tape.all(func(e *api.Event) bool { return e.Type == api.EventOutput })); n != 0 {
				t.Errorf("%d outputs were given to the channel", n)
			}
			if n := len(tape.all(func(e *api.Event) bool { return e.Tool != nil && e.Tool.Result != nil })); n != 0 {
				t.Errorf("%d tools of a cut answer were run", n)
			}
		})
	}
}

// TestFallback asks a second source when the first one answers with an error before any text.
func TestFallback(t *testing.T) {
	for name, step := range map[string]providertest.Step{
		"500": {Status: 500, Body: `{"error":{"message":"boom"}}`},
		"429": {Status: 429, Header: map[string]string{"Retry-After": "60"}, Body: `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			n, first, second := newNode(t), newVendor(t), newVendor(t)
			n.start()
			n.addSource(first, "first", "--priority", "1")
			n.addSource(second, "second", "--priority", "2")
			first.plays(step)
			second.plays(providertest.Step{Text: []string{"From the second."}})
			tape := n.tape("")
			got := n.waiter("chat", "hello").must(t)
			contains(t, got.stdout, "From the second.")
			round := tape.await("the round", func(e *api.Event) bool { return e.Chain != nil })
			if round.Chain.Result.Source != "second" || len(round.Chain.Attempts) < 2 || round.Chain.Attempts[0].Failure == nil ||
				round.Chain.Attempts[0].Source != "first" {
				t.Errorf("the round is %+v", round.Chain)
			}
			if len(second.bodies()) != 1 {
				t.Errorf("the second source was asked %d times", len(second.bodies()))
			}
			if name != "429" {
				return
			}
			before := len(first.Requests())
			contains(t, n.waiter("providers", "list").must(t).stdout, "cooling")
			contains(t, n.waiter("chat", "and again").must(t).stdout, "From the second.")
			if len(first.Requests()) != before {
				t.Error("a source was asked while it cools")
			}
			first.plays(providertest.Step{Text: []string{"From the first."}})
			n.waiter("providers", "reset", "first").must(t)
			contains(t, n.waiter("chat", "once more").must(t).stdout, "From the first.")
		})
	}
}

// TestCompletions speaks to the agent as to a model.
func TestCompletions(t *testing.T) {
	n, v := withVendor(t, providertest.Step{Text: []string{"Hel", "lo."}})
	c := n.dial()
	whole, err := c.Complete(bounded(t), client.ChatRequest{Model: "homeagent", Messages: []client.ChatTurn{
		{Role: "system", Content: json.RawMessage(`"Be brief."`)}, {Role: "user", Content: json.RawMessage(`"Say hello."`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Choices) != 1 || whole.Choices[0].Message.Content != "Hello." || whole.Choices[0].FinishReason != "stop" ||
		whole.Usage.PromptTokens == 0 || whole.Object != "chat.completion" {
		t.Errorf("the completion is %+v", whole)
	}
	models, err := c.Models(bounded(t))
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "homeagent" {
		t.Errorf("models: %+v %v", models, err)
	}

	v.plays(providertest.Step{Text: []string{"One ", "two."}, Hold: providertest.Hold{Middle: "more"}})
	body := `{"model":"homeagent","stream":true,"stream_options":{"include_usage":true},
		"messages":[{"role":"user","content":[{"type":"text","text":"Count."}]}]}`
	res := n.http(t, "POST", "/v1/chat/completions", body, n.auth())
	defer res.Body.Close()
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%s %s", res.Status, res.Header.Get("Content-Type"))
	}
	var text, finish string
	var usage *api.ChatUsage
	done := false
	sc := bufio.NewScanner(res.Body)
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var chunk api.ChatChunk
		decodeJSON(t, data, &chunk)
		if chunk.Usage != nil {
			usage = chunk.Usage
		}
		for _, p := range chunk.Choices {
			if p.FinishReason != nil {
				finish = *p.FinishReason
			}
			if text += p.Delta.Content; p.Delta.Content == "One " {
				v.Open("more") // the first piece came while the vendor held the rest
			}
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if text != "One two." || finish != "stop" || !done || usage == nil || usage.TotalTokens == 0 {
		t.Errorf("text %q finish %q done %v usage %+v", text, finish, done, usage)
	}

	v.plays(providertest.Step{Text: []string{"half"}, Cut: "text"})
	cut := n.http(t, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"break"}]}`, n.auth())
	defer cut.Body.Close()
	var refusal api.ChatError
	if err := json.NewDecoder(cut.Body).Decode(&refusal); err != nil || cut.StatusCode != http.StatusBadGateway || refusal.Error.Code == "" {
		t.Errorf("a cut answer is %s %+v %v", cut.Status, refusal, err)
	}
}

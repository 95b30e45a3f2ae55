package e2e

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// clientSteps is what the model says to the official clients.
func clientSteps() []providertest.Step {
	yes, no := true, false
	return []providertest.Step{
		{Match: "say it whole", Text: []string{"A whole ", "answer."}},
		{Match: "say it in pieces", Text: []string{"One, ", "two, ", "三, ", "four."}},
		{Match: "use your own tool", AfterTool: &no, Tools: []providertest.Tool{{ID: "c1", Name: "time_now", Args: json.RawMessage(`{}`)}}},
		{Match: "use your own tool", AfterTool: &yes, Text: []string{"It is late."}},
		{Match: "break off", Text: []string{"half"}, Cut: "text"},
		{Match: "talk until I leave", Text: []string{"bla "}, Repeat: 3, Hold: providertest.Hold{Middle: "never"}},
		{Match: "think long", Hold: providertest.Hold{Headers: "never"}, Text: []string{"too late"}},
		{Match: "occupy", Hold: providertest.Hold{Headers: "occupied"}, Text: []string{"done"}},
	}
}

// asks counts requests of the vendor for a question.
func (v *vendor) asks(text string) int {
	n := 0
	for _, q := range v.Requests() {
		if strings.Contains(string(q.Body), text) {
			n++
		}
	}
	return n
}

// TestOfficialOpenAIClient has the vendor's own client speak to the agent as to a model.
func TestOfficialOpenAIClient(t *testing.T) {
	peerProgram(t, "openai/package.json")
	n, v := withVendor(t, clientSteps()...)
	h := n.run(visit{name: "openai.mjs", steps: "models,whole,stream,helper,agentTools,errors"})
	h.is(t, "models", "ids", "[homeagent]")
	h.is(t, "whole", "text", "A whole answer.", "finish", "stop")
	h.is(t, "stream", "text", "One, two, 三, four.", "finish", "stop")
	if p, _ := h["stream"]["pieces"].(float64); p < 2 {
		t.Errorf("it came in %v pieces", p)
	}
	for _, step := range []string{"whole", "stream"} {
		if n, _ := h[step]["total"].(float64); n < 1 {
			t.Errorf("%s counts %v tokens", step, n)
		}
	}
	h.is(t, "helper", "text", "One, two, 三, four.")
	h.is(t, "agentTools", "text", "It is late.")
	for step, param := range map[string]string{
		"tools": "tools", "toolsStreamed": "tools", "toolResult": "messages", "n": "n", "format": "response_format",
	} {
		h.is(t, step, "class", "BadRequestError", "status", 400, "code", "unsupported_parameter", "type", "invalid_request_error", "param", param)
	}
	h.is(t, "empty", "class", "BadRequestError", "status", 400, "param", "messages")
	h.is(t, "model", "class", "NotFoundError", "status", 404, "code", "model_not_found", "param", "model")
	h.is(t, "oddModel", "class", "NotFoundError", "status", 404, "code", "model_not_found", "param", "model")
	h.is(t, "route", "class", "NotFoundError", "status", 404)
	h.is(t, "key", "class", "AuthenticationError", "status", 401, "code", "unauthorized", "type", "authentication_error")
	h.is(t, "keyModels", "class", "AuthenticationError", "status", 401)
	h.is(t, "broken", "status", 502, "code", "stream_truncated", "error", true)
	h.is(t, "brokenStream", "code", "stream_truncated", "error", true)
	for step, e := range h {
		if e["error"] == true && (e["message"] == "" || strings.Contains(e["message"].(string), "no body")) {
			t.Errorf("%s says nothing: %v", step, e)
		}
	}
	// Two inputs, and not one more for retries of the client.
	if got := v.asks("break off"); got > 3 {
		t.Errorf("asked %d times to break off", got)
	}
}

// TestOfficialAnthropicClient does the same with the other vendor's client and form.
func TestOfficialAnthropicClient(t *testing.T) {
	peerProgram(t, "@anthropic-ai/sdk/package.json")
	n, _ := withVendor(t, clientSteps()...)
	h := n.run(visit{name: "anthropic.mjs", steps: "whole,stream,helper,errors"})
	h.is(t, "whole", "text", "A whole answer.", "blocks", 1, "stop", "end_turn", "type", "message", "role", "assistant")
	h.is(t, "stream", "names", "[message_start content_block_start content_block_delta content_block_stop message_delta message_stop]")
	h.is(t, "helper", "text", "One, two, 三, four.", "stop", "end_turn")
	if p, _ := h["helper"]["pieces"].(float64); p < 2 {
		t.Errorf("it came in %v pieces", p)
	}
	for _, step := range []string{"tools", "image", "toolResult", "empty"} {
		h.is(t, step, "class", "BadRequestError", "status", 400, "type", "invalid_request_error")
	}
	h.is(t, "model", "class", "NotFoundError", "status", 404, "type", "not_found_error")
	h.is(t, "route", "class", "NotFoundError", "status", 404, "type", "not_found_error")
	h.is(t, "key", "class", "AuthenticationError", "status", 401, "type", "authentication_error")
	h.is(t, "bearer", "error", "<nil>")
	h.is(t, "broken", "status", 502, "type", "api_error", "error", true)
	h.is(t, "brokenStream", "type", "api_error", "error", true)
	h.is(t, "brokenHelper", "type", "api_error", "error", true)
}

// TestOfficialClientsMeetAFullNode see 429 with the form that each client knows.
func TestOfficialClientsMeetAFullNode(t *testing.T) {
	peerProgram(t, "openai/package.json")
	n, v := newNode(t), newVendor(t)
	n.env = []string{"HOMED_CORE_AGENT_QUEUE_LIMIT=1"}
	n.start()
	n.addSource(v, "scripted")
	v.plays(clientSteps()...)
	tape := n.tape("")
	task := n.say("occupy")
	v.held("occupied")
	n.run(visit{name: "openai.mjs", steps: "full"}).is(t, "full", "class", "RateLimitError", "status", 429, "type", "rate_limit_error")
	n.run(visit{name: "anthropic.mjs", steps: "full"}).is(t, "full", "class", "RateLimitError", "status", 429, "type", "rate_limit_error")
	v.Open("occupied")
	tape.ended(task, "answered")
	if got := v.asks("one too many"); got != 0 {
		t.Errorf("what was refused was asked %d times", got)
	}
}

// TestOfficialClientsAbort has clients go away: the turn is stopped and the vendor's socket is closed, be the answer streamed
// or not.
func TestOfficialClientsAbort(t *testing.T) {
	peerProgram(t, "openai/package.json")
	for _, c := range []struct{ script, step, text string }{
		{"openai.mjs", "abortStream", "bla "},
		{"anthropic.mjs", "abortStream", "bla "},
		{"openai.mjs", "abortWhole", ""},
	} {
		t.Run(c.script+"/"+c.step, func(t *testing.T) {
			n, v := withVendor(t, clientSteps()...)
			tape := n.tape("")
			now, leave := io.Pipe()
			go func() {
				defer leave.Close()
				if c.step == "abortWhole" {
					v.held("never")
					_, _ = io.WriteString(leave, "leave\n")
				}
			}()
			h := n.run(visit{name: c.script, steps: c.step, stdin: now})
			if c.text != "" {
				h.is(t, c.step, "text", c.text)
			} else {
				h.is(t, c.step, "class", "APIUserAbortError")
			}
			v.closed(v.held("never"))
			end := tape.await("the end of the task", func(e *api.Event) bool { return e.Task != nil && e.Task.Change == "ended" })
			if end.Task.End != "stopped" {
				t.Errorf("it ended as %s (%s)", end.Task.End, end.Task.Reason)
			}
			// The next question is answered.
			n.run(visit{name: c.script, steps: "whole"}).is(t, "whole", "text", "A whole answer.")
		})
	}
}

// TestAbortBeforeTheTurn takes an input out of the queue whose client has gone, and lets one be whose client gave a key.
func TestAbortBeforeTheTurn(t *testing.T) {
	n, v := withVendor(t, clientSteps()...)
	tape := n.tape("")
	first := n.say("occupy")
	v.held("occupied")
	for _, c := range []struct{ key, end string }{{"", "stopped"}, {"k1", "answered"}} {
		key, end := c.key, c.end
		header := n.auth()
		if key != "" {
			header.Set("Idempotency-Key", key)
		}
		res := n.http(t, "POST", "/v1/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"say it whole"}]}`, header)
		var id string
		tape.await("the input in the queue", func(e *api.Event) bool {
			if e.Task != nil && e.Task.Change == "queued" && e.TaskID != first {
				id = e.TaskID
			}
			return id != ""
		})
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if key == "" {
			tape.ended(id, end)
			tape = n.tape("")
			continue
		}
		v.Open("occupied")
		tape.ended(id, end)
	}
}

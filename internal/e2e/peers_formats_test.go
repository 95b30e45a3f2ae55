package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"homeagent/messages"
	"homeagent/providers"
)

// wire is one form of the server that speaks many.
type wire struct {
	// name of the form, and the adapter that speaks it.
	name, adapter string
	// base is appended to the server's address.
	base string
	// path of requests, streamed and whole.
	stream, whole string
	key, options  string
	model         string
	// thinks tells that the form carries reasoning; long that it carries the end by length.
	thinks, long bool
	// aloud tells that what was thought stands in the text.
	aloud bool
	// objects tells that arguments are objects on the wire: the peer, which keeps them as text, has read them into numbers that
	// lose the last digit of integers above 2^53.
	objects bool
	// signed tells that thought comes with a signature, which must go back.
	signed bool
}

// wires are all forms of a conversation that the server has.
var wires = []wire{
	{name: "openai chat", adapter: "openai", base: "/v1", stream: "/v1/chat/completions", thinks: true, long: true},
	{name: "openai responses", adapter: "openai-responses", base: "/v1", stream: "/v1/responses", thinks: true, long: true},
	{name: "anthropic", adapter: "anthropic", stream: "/v1/messages", thinks: true, long: true, signed: true, objects: true},
	{name: "gemini", adapter: "gemini", stream: "/v1beta/models/m-1:streamGenerateContent", whole: "/v1beta/models/m-1:generateContent", thinks: true, long: true, objects: true},
	{
		name: "vertex", adapter: "gemini", options: `{"project":"p","location":"l"}`,
		stream: "/v1/projects/p/locations/l/publishers/google/models/m-1:streamGenerateContent",
		whole:  "/v1/projects/p/locations/l/publishers/google/models/m-1:generateContent", thinks: true, long: true, objects: true,
	},
	{
		name: "azure", adapter: "azure", options: `{"api_version":"2024-10-21"}`,
		stream: "/openai/deployments/m-1/chat/completions", thinks: true, long: true,
	},
	// The peer names the reasoning as no ollama does, and ends all answers with stop.
	{name: "ollama", adapter: "ollama", stream: "/api/chat", objects: true},
	// It sends the reasoning as a text of its own.
	{name: "cohere", adapter: "cohere", stream: "/v2/chat", aloud: true, long: true},
	{
		name: "bedrock converse", adapter: "bedrock", key: "AKIDEXAMPLE:wJalrXUtnFEMI", options: `{"region":"us-east-1"}`,
		stream: "/model/m-1/converse-stream", whole: "/model/m-1/converse", thinks: true, long: true, objects: true,
	},
	{
		name: "bedrock invoke", adapter: "bedrock", key: "bearer-key", options: `{"api":"invoke"}`, model: "anthropic.m-1",
		stream: "/model/anthropic.m-1/invoke-with-response-stream", whole: "/model/anthropic.m-1/invoke", thinks: true, long: true, objects: true,
	},
	{name: "openrouter", adapter: "openrouter", base: "/api/v1", stream: "/api/v1/chat/completions", thinks: true, long: true},
	{name: "ark", adapter: "generic", base: "/api/v3", stream: "/api/v3/chat/completions", thinks: true, long: true},
}

// source gives the wire as a source at a server.
func (w wire) source(p *peer) providers.Source {
	key := w.key
	if key == "" {
		key = "sk-peer"
	}
	model := w.model
	if model == "" {
		model = "m-1"
	}
	return providers.Source{
		Name: "peer", Adapter: w.adapter, BaseURL: p.url + w.base, Model: model, APIKey: secretly(key), Options: []byte(w.options),
		Total: patience,
	}
}

// towns are tools that questions to the server are about.
var towns = []*messages.ToolDef{
	{
		Name: "get_weather", Description: "Tells the weather.",
		ParametersJson: []byte(`{"type":"object","properties":{"town":{"type":"string"},"days":{"type":"integer"},"note":{"type":"string"}},"required":["town"]}`),
	},
	{Name: "time_now", Description: "Tells the time.", ParametersJson: []byte(`{"type":"object","properties":{}}`)},
}

func user(text string) *messages.ChatMessage {
	return &messages.ChatMessage{Role: messages.Role_ROLE_USER, Parts: parts(text)}
}

func parts(text string) []*messages.Part {
	return []*messages.Part{{Content: &messages.Part_Text{Text: text}}}
}

// asking makes a request of messages.
func asking(list ...*messages.ChatMessage) *messages.CompletionRequest {
	system := &messages.ChatMessage{Role: messages.Role_ROLE_SYSTEM, Parts: parts("You are brief.")}
	return &messages.CompletionRequest{CallId: "call", Messages: append([]*messages.ChatMessage{system}, list...), Tools: towns, MaxTokens: 500}
}

// answered gives the assistant's turn of a result with the results of its calls, as a turn keeps them.
func answered(r *messages.CompletionResult, results ...string) []*messages.ChatMessage {
	out := []*messages.ChatMessage{{
		Role: messages.Role_ROLE_ASSISTANT, Parts: parts(r.GetText()), Calls: r.GetCalls(), Reasoning: r.GetReasoning(),
		Replay: r.GetReplay(), ReplaySource: r.GetSource(),
	}}
	for i, c := range r.GetCalls() {
		out = append(out, &messages.ChatMessage{
			Role: messages.Role_ROLE_TOOL, VendorCallId: c.GetVendorId(), ToolName: c.GetName(), Parts: parts(results[i]),
		})
	}
	return out
}

// TestPeerFormats speaks every vendor's form with a server that we have not written, streamed and whole.
func TestPeerFormats(t *testing.T) {
	p, c := vendors(t), engineClient(t)
	for _, w := range wires {
		for _, whole := range []bool{false, true} {
			mode := map[bool]string{false: "streamed", true: "whole"}[whole]
			t.Run(w.name+"/"+mode, func(t *testing.T) {
				src := w.source(p)
				src.Whole = whole
				f := &form{t: t, c: c, src: src, wire: w, whole: whole}
				f.text()
				f.tools()
				f.bareTool()
				f.reasoning()
				f.length()
				f.path(p)
			})
		}
	}
}

// form is one wire under test.
type form struct {
	t     *testing.T
	c     *providers.Client
	src   providers.Source
	wire  wire
	whole bool
}

// ask makes a call that must succeed, and checks that what was shown on the way is what came.
func (f *form) ask(req *messages.CompletionRequest) *messages.CompletionResult {
	f.t.Helper()
	var text strings.Builder
	deltas := 0
	res, err := f.c.Stream(bounded(f.t), f.src, req, providers.Hooks{Delta: func(d *messages.Delta) {
		text.WriteString(d.GetText())
		deltas++
	}})
	if err != nil {
		f.t.Fatalf("%q: %v", req.GetMessages()[1].GetParts(), err)
	}
	if text.String() != res.GetText() {
		f.t.Errorf("shown %q, the answer is %q", text.String(), res.GetText())
	}
	if !f.whole && len(res.GetText()) > 20 && deltas < 5 {
		f.t.Errorf("%d deltas of %q", deltas, res.GetText())
	}
	return res
}

func (f *form) text() {
	f.t.Helper()
	res := f.ask(asking(user("say hello")))
	if res.GetText() != "Hello 世界! 🙂 This is a text of more than one piece." || res.GetFinish() != messages.Finish_FINISH_STOP || len(res.GetCalls()) != 0 {
		f.t.Errorf("%v", res)
	}
}

// tools has two calls at once made, answers them, and goes on.
func (f *form) tools() {
	f.t.Helper()
	question := user("weather in two towns")
	first := f.ask(asking(question))
	want := []string{`{"town":"Turin","days":9007199254740993}`, `{"town":"上海","note":"a \"quoted\" word"}`}
	calls := first.GetCalls()
	if len(calls) != 2 || first.GetFinish() != messages.Finish_FINISH_TOOL_CALLS {
		f.t.Fatalf("%v", first)
	}
	for i, c := range calls {
		got := string(c.GetArgumentsJson())
		if f.wire.objects {
			got = strings.Replace(got, "9007199254740992", "9007199254740993", 1)
		}
		if c.GetName() != "get_weather" || got != want[i] || c.GetInvalid() != "" || c.GetVendorId() == "" {
			f.t.Errorf("call %d: %v", i, c)
		}
	}
	if calls[0].GetVendorId() == calls[1].GetVendorId() {
		f.t.Errorf("both calls have the id %s", calls[0].GetVendorId())
	}
	second := f.ask(asking(append([]*messages.ChatMessage{question}, answered(first, "rain", "sun")...)...))
	if second.GetText() != "Rain in Turin, sun in 上海." || second.GetFinish() != messages.Finish_FINISH_STOP {
		f.t.Errorf("after the results: %v", second)
	}
}

// bareTool has text and a call without arguments.
func (f *form) bareTool() {
	f.t.Helper()
	question := user("tool without arguments")
	first := f.ask(asking(question))
	if c := first.GetCalls(); len(c) != 1 || c[0].GetName() != "time_now" || string(c[0].GetArgumentsJson()) != "{}" || first.GetText() != "I look." {
		f.t.Fatalf("%v", first)
	}
	second := f.ask(asking(append([]*messages.ChatMessage{question}, answered(first, "12:00")...)...))
	if second.GetText() != "It is noon." {
		f.t.Errorf("after the result: %v", second)
	}
}

func (f *form) reasoning() {
	f.t.Helper()
	question := user("think first")
	req := asking(question)
	req.Thinking, req.MaxTokens = "low", 4000
	res := f.ask(req)
	want := "42"
	if f.wire.aloud {
		want = "Six times seven is forty-two.42"
	}
	if res.GetText() != want {
		f.t.Errorf("%v", res)
	}
	if !f.wire.thinks {
		return
	}
	if res.GetReasoning() != "Six times seven is forty-two." {
		f.t.Errorf("the reasoning is %q", res.GetReasoning())
	}
	if f.wire.signed && !strings.Contains(string(res.GetReplay()), "c2lnbmF0dXJlLW9mLXRoZS10aG91Z2h0") {
		f.t.Errorf("the signature is not kept: %s", res.GetReplay())
	}
	// What was thought is part of the next request, and the server takes it.
	next := asking(append(append([]*messages.ChatMessage{question}, answered(res)...), user("say hello"))...)
	f.ask(next)
}

func (f *form) length() {
	f.t.Helper()
	if res := f.ask(asking(user("run out"))); f.wire.long && (res.GetFinish() != messages.Finish_FINISH_LENGTH || res.GetText() != "An answer that is cut") {
		f.t.Errorf("%v", res)
	}
}

// path checks that the requests went where this vendor takes them.
func (f *form) path(p *peer) {
	f.t.Helper()
	want := f.wire.stream
	if f.whole && f.wire.whole != "" {
		want = f.wire.whole
	}
	list := p.seen()
	if len(list) == 0 {
		f.t.Fatal("the server has seen nothing")
	}
	last := list[len(list)-1]
	at, _, _ := strings.Cut(last.Path, "?")
	if at != want {
		f.t.Errorf("asked at %s, want %s", last.Path, want)
	}
}

// TestPeerErrors sees the errors of every form.
func TestPeerErrors(t *testing.T) {
	p, c := vendors(t), engineClient(t)
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			for question, kind := range map[string]messages.ErrorKind{
				"no quota":  messages.ErrorKind_ERROR_KIND_QUOTA_EXHAUSTED,
				"wrong key": messages.ErrorKind_ERROR_KIND_AUTH,
			} {
				res, err := c.Stream(bounded(t), w.source(p), asking(user(question)), providers.Hooks{})
				if f := failed(t, err); f.Kind != kind || f.Visible || f.Message == "" || f.Hint == "" {
					t.Errorf("%s: %+v", question, f)
				}
				if res.GetFinish() != messages.Finish_FINISH_ERROR {
					t.Errorf("%s: %v", question, res)
				}
			}
		})
	}
}

func failed(t testing.TB, err error) *providers.Failure {
	t.Helper()
	var f *providers.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is no failure of a call", err)
	}
	return f
}

// TestPeerFaults has each form fail in each way that the server knows.
func TestPeerFaults(t *testing.T) {
	p, c := vendors(t), engineClient(t)
	faults := []struct {
		name, header, value string
		kinds               []messages.ErrorKind
	}{
		{"500", "x-aimock-chaos-drop", "1", []messages.ErrorKind{messages.ErrorKind_ERROR_KIND_SERVER}},
		{"malformed", "x-aimock-chaos-malformed", "1", []messages.ErrorKind{
			messages.ErrorKind_ERROR_KIND_SERVER, messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED,
		}},
		{"disconnect", "x-aimock-chaos-disconnect", "1", []messages.ErrorKind{
			messages.ErrorKind_ERROR_KIND_CONNECT, messages.ErrorKind_ERROR_KIND_SERVER, messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED,
		}},
		{"429", "x-aimock-chaos-ratelimit", "1", []messages.ErrorKind{messages.ErrorKind_ERROR_KIND_RATE_LIMIT}},
	}
	for _, w := range wires {
		for _, fault := range faults {
			t.Run(w.name+"/"+fault.name, func(t *testing.T) {
				src := w.source(p)
				src.Headers = map[string]string{fault.header: fault.value}
				res, err := c.Stream(bounded(t), src, asking(user("say hello")), providers.Hooks{})
				f := failed(t, err)
				fits := false
				for _, k := range fault.kinds {
					fits = fits || f.Kind == k
				}
				if !fits || f.Visible || res.GetText() != "" || len(res.GetCalls()) != 0 {
					t.Errorf("%v\n%v", err, res)
				}
				if fault.name == "429" && f.RetryAfter != time.Second {
					t.Errorf("asked again after %v", f.RetryAfter)
				}
			})
		}
		t.Run(w.name+"/latency", func(t *testing.T) {
			src := w.source(p)
			src.Headers = map[string]string{"x-aimock-chaos-latency": "30000"}
			src.FirstByte = 100 * time.Millisecond
			_, err := c.Stream(bounded(t), src, asking(user("say hello")), providers.Hooks{})
			if f := failed(t, err); f.Kind != messages.ErrorKind_ERROR_KIND_TIMEOUT {
				t.Errorf("%v", err)
			}
			src.FirstByte = 0
			ctx, cancel := context.WithCancel(bounded(t))
			src.Headers["x-aimock-chaos-latency"] = "30000"
			_, err = c.Stream(ctx, src, asking(user("say hello")), providers.Hooks{Sent: func(providers.Sent) { cancel() }})
			if f := failed(t, err); f.Kind != messages.ErrorKind_ERROR_KIND_CANCELLED {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestPeerAdaptersExist fails for a form whose adapter is missing, with its name.
func TestPeerAdaptersExist(t *testing.T) {
	names := map[string]bool{}
	for _, w := range wires {
		names[w.adapter] = true
	}
	c := engineClient(t)
	for name := range names {
		_, err := c.Stream(bounded(t), providers.Source{Name: "s", Adapter: name, BaseURL: "http://127.0.0.1:1", Model: "m"}, asking(user("x")), providers.Hooks{})
		if f := failed(t, err); f.Kind != messages.ErrorKind_ERROR_KIND_CONNECT {
			t.Error(fmt.Errorf("adapter %s: %w", name, err))
		}
	}
}

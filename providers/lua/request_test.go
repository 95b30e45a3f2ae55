package lua_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/providertest"
)

func text(s string) []*messages.Part {
	return []*messages.Part{{Content: &messages.Part_Text{Text: s}}}
}

// conversation has all kinds of messages, tools whose schemas have an order and
// empty parts, and arguments that no float could carry.
func conversation() *messages.CompletionRequest {
	return &messages.CompletionRequest{
		CallId: "c", MaxTokens: 64,
		Messages: []*messages.ChatMessage{
			{Role: messages.Role_ROLE_SYSTEM, Parts: text("Be brief.")},
			{Role: messages.Role_ROLE_USER, Parts: append(text("Look:"), &messages.Part{Content: &messages.Part_Payload{Payload: &messages.PayloadRef{Id: "blk_1", MediaType: "image/png", Size: 3}}})},
			{Role: messages.Role_ROLE_ASSISTANT, Reasoning: "hm", Replay: []byte(`[{"type":"reasoning_content"},{"type":"reasoning_details","details":[{"type":"x\u0041", "n":1e2}]}]`), ReplaySource: "s", Calls: []*messages.ToolInvocation{
				{VendorId: "c0", Name: "add", ArgumentsJson: []byte(`{"z": 1, "a": 12345678901234567890, "e": []}`)},
				{VendorId: "c1", Name: "broken", ArgumentsJson: []byte(`{"a":`)},
			}},
			{Role: messages.Role_ROLE_TOOL, VendorCallId: "c0", ToolName: "add", Parts: text("3")},
			{Role: messages.Role_ROLE_TOOL, VendorCallId: "c1", ToolName: "broken", Failed: true, Parts: text("no JSON")},
		},
		Tools: []*messages.ToolDef{
			{Name: "zeta", Description: "Last.", ParametersJson: []byte(`{"type":"object","properties":{},"required":[],"x":1.0}`)},
			{Name: "add", ParametersJson: nil},
		},
	}
}

func prepare(t *testing.T, e *lua.Engine, adapter string, src providers.Source, req *providers.Request) (*providers.Prepared, error) {
	t.Helper()
	a, err := e.Adapter(adapter)
	if err != nil {
		return nil, err
	}
	src.Adapter = adapter
	x, err := a.Open(t.Context(), &src, req, nil)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	return x.Prepare(t.Context())
}

func TestOpenAIRequest(t *testing.T) {
	e := engine(t, "")
	half := 0.5
	src := providers.Source{Name: "s", Model: "m", BaseURL: "http://localhost:1/v1", Temperature: &half, Extra: []byte(`{"top_k": 5, "model": "other", "list": []}`)}
	got, err := prepare(t, e, "openai", src, &providers.Request{CompletionRequest: conversation(), Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"other","messages":[` +
		`{"role":"system","content":"Be brief."},` +
		`{"role":"user","content":"Look:\n[attachment blk_1, image/png, 3 bytes; its content is not shown to this model]"},` +
		`{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"c0","type":"function","function":{"name":"add","arguments":"{\"z\": 1, \"a\": 12345678901234567890, \"e\": []}"}},` +
		`{"id":"c1","type":"function","function":{"name":"broken","arguments":"{}"}}],` +
		`"reasoning_content":"hm","reasoning_details":[{"type":"x\u0041", "n":1e2}]},` +
		`{"role":"tool","tool_call_id":"c0","content":"3"},` +
		`{"role":"tool","tool_call_id":"c1","content":"no JSON"}],` +
		`"tools":[{"type":"function","function":{"name":"zeta","description":"Last.","parameters":{"type":"object","properties":{},"required":[],"x":1.0}}},` +
		`{"type":"function","function":{"name":"add","description":"","parameters":{"type":"object","properties":{}}}}],` +
		`"max_tokens":64,"temperature":0.5,"stream":true,"stream_options":{"include_usage":true},"top_k":5,"list":[]}`
	if string(got.Body) != want {
		t.Errorf("body\n got %s\nwant %s", got.Body, want)
	}
	if got.Headers["Authorization"] != "Bearer "+providers.KeyPlace || got.Endpoint != "/chat/completions" {
		t.Errorf("%+v", got)
	}
	again, err := prepare(t, e, "openai", src, &providers.Request{CompletionRequest: conversation(), Stream: true})
	if err != nil || string(again.Body) != string(got.Body) {
		t.Errorf("the same request has another body: %s, %v", again.Body, err)
	}
}

func TestOpenAIRequestVariants(t *testing.T) {
	e := engine(t, "")
	req := func() *providers.Request {
		return &providers.Request{CompletionRequest: conversation(), Media: map[string][]byte{"blk_1": []byte("abc")}}
	}
	got, err := prepare(t, e, "openai", providers.Source{Name: "s", Model: "m"}, req())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"max_completion_tokens":64`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}}`} {
		if !strings.Contains(string(got.Body), part) {
			t.Errorf("no %s in %s", part, got.Body)
		}
	}
	if strings.Contains(string(got.Body), `"stream"`) {
		t.Errorf("a whole answer was asked for with stream: %s", got.Body)
	}
	got, err = prepare(t, e, "openai", providers.Source{Name: "s", Model: "m", BaseURL: "https://x.openai.azure.com/openai/v1"}, req())
	if err != nil || got.Headers["api-key"] != providers.KeyPlace || got.Headers["Authorization"] != "" {
		t.Errorf("azure: %+v, %v", got.Headers, err)
	}
	plain := providertest.Ask("x")
	plain.Messages = append(plain.Messages, &messages.ChatMessage{
		Role: messages.Role_ROLE_ASSISTANT, Parts: text("done"), Reasoning: "hm", Replay: []byte(`{"reasoning_content":true}`), ReplaySource: "s",
	})
	got, err = prepare(t, e, "openai", providers.Source{Name: "s", Model: "m"}, &providers.Request{CompletionRequest: plain})
	if err != nil || strings.Contains(string(got.Body), "reasoning") {
		t.Errorf("reasoning goes back with calls alone: %s, %v", got.Body, err)
	}
}

// Reasoning that a stream brought must be in the next request, byte for byte.
func TestReplayRoundTrip(t *testing.T) {
	e := engine(t, "")
	v, err := providertest.Start("", providertest.Script{Steps: []providertest.Step{
		{Times: 1, Reasoning: []string{"think ", "\u2028hard"}, Tools: []providertest.Tool{{ID: "c0", Name: "f", Args: []byte("{}")}}},
		{Text: []string{"ok"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	c := providers.NewClient(providers.Options{Adapters: e})
	defer c.Close()
	src := providers.Source{Name: "s", Adapter: "openai", BaseURL: v.URL(), Model: "m", APIKey: func() configs.Secret { return configs.Secret{} }}
	req := providertest.Ask("x")
	res, err := c.Stream(t.Context(), src, req, providers.Hooks{})
	if err != nil || res.GetReasoning() != "think \u2028hard" {
		t.Fatal(res, err)
	}
	req.Messages = append(req.Messages, &messages.ChatMessage{
		Role: messages.Role_ROLE_ASSISTANT, Calls: res.GetCalls(), Reasoning: res.GetReasoning(), Replay: res.GetReplay(), ReplaySource: res.GetSource(),
	}, &messages.ChatMessage{Role: messages.Role_ROLE_TOOL, VendorCallId: "c0", ToolName: "f", Parts: text("1")})
	for i, name := range []string{"s", "elsewhere"} {
		src.Name = name
		if _, err := c.Stream(t.Context(), src, req, providers.Hooks{}); err != nil {
			t.Fatal(err)
		}
		body := string(v.Requests()[1+i].Body)
		if has := strings.Contains(body, "\"reasoning_content\":\"think \u2028hard\""); has != (name == "s") {
			t.Errorf("source %s: %s", name, body)
		}
	}
}

func TestAdapterFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, src string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const ok = `local a = {contract=1, name="NAME", version="9", endpoint="/x", framing="sse", capabilities={stream=true}}
function a.transform_request(req, source) return {model=source.model} end
function a.transform_response(body) return {text="t"} end
function a.transform_stream_chunk(event) return nil end
`
	for name, c := range map[string]struct{ src, part string }{
		"syntax":   {"return {\n contract = = 1 }", "syntax.lua:2:"},
		"endless":  {"while true do end", "endless.lua:1: the script used up"},
		"runtime":  {"\nlocal x = nil\nreturn x.y", "runtime.lua:3:"},
		"notable":  {"return 5", "must return a table"},
		"nothing":  {"", "must return a table"},
		"contract": {strings.Replace(ok, "contract=1", "contract=2", 1) + "return a", "contract must be 1"},
		"named":    {ok + "return a", `name must be "named"`},
		"field":    {strings.Replace(ok, "NAME", "field", 1) + "a.transform_chunk = 1 return a", `unknown field "transform_chunk"`},
		"ability":  {strings.Replace(strings.Replace(ok, "NAME", "ability", 1), "stream=true", "streams=true", 1) + "return a", `unknown capability "streams"`},
		"missing":  {strings.Replace(ok, "NAME", "missing", 1) + "a.transform_response = nil return a", "transform_response is missing"},
		"framed":   {strings.Replace(strings.Replace(ok, "NAME", "framed", 1), `"sse"`, `"xml"`, 1) + "return a", "legal are sse, ndjson, aws-eventstream, json"},
		"both":     {strings.Replace(ok, "NAME", "both", 1) + "a.respond = a.transform_request return a", "either respond or the transforms"},
		"reach":    {"os.exit(1)", "reach.lua:1:"},
		"code":     {"return load('return 1')()", "code.lua:1:"},
	} {
		write(name+".lua", c.src)
		e := engine(t, dir)
		_, err := e.Adapter(name)
		if f := providers.AsFailure(err); err == nil || f.Kind != messages.ErrorKind_ERROR_KIND_ADAPTER || !strings.Contains(f.Message, c.part) || f.Hint == "" {
			t.Errorf("%s: %v, want %q", name, err, c.part)
		}
		if _, err := e.Adapter("openai"); err != nil {
			t.Errorf("%s broke another adapter: %v", name, err)
		}
		if err := os.Remove(filepath.Join(dir, name+".lua")); err != nil {
			t.Fatal(err)
		}
	}
	e := engine(t, dir)
	write("openai.lua", strings.Replace(ok, "NAME", "openai", 1)+"return a")
	if a, err := e.Adapter("openai"); err != nil || a.Info().Version == "9" {
		t.Errorf("before Reload: %v", err)
	}
	if err := e.Reload(); err != nil {
		t.Fatal(err)
	}
	if a, err := e.Adapter("openai"); err != nil || a.Info().Version != "9" || !strings.HasSuffix(a.Info().File, "openai.lua") {
		t.Errorf("an own file does not take the place: %v", err)
	}
	write("openai.lua", "return {")
	if err := e.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Adapter("openai"); err == nil {
		t.Error("a broken own file lets the embedded one answer in silence")
	}
	var broken int
	for _, s := range e.List() {
		if s.Err != "" {
			broken++
		}
	}
	for _, s := range e.List() {
		if (s.Err != "") != (s.Info.Name == "openai" || s.Info.Name != "offline" && strings.Contains(s.Err, "openai.lua:1: ")) {
			t.Errorf("%+v", s)
		}
	}
	if broken < 2 {
		t.Errorf("only %d adapters are broken, though profiles build on the broken file", broken)
	}
}

// A script that breaks during a call fails that call, with its place.
func TestAdapterBreaksInCall(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{
		"loops":  "while true do end",
		"raises": "error('no')",
		"wrong":  "return {txt = 'x'}",
		"kind":   "return {error = {kind = 'bad'}}",
		"finish": "return {finish = 'done'}",
	} {
		src := `return {contract=1, name="` + name + `", version="1", endpoint="/x", framing="sse", capabilities={stream=true},
transform_request=function(r, s) return {stream = r.stream} end, transform_response=function() end,
transform_stream_chunk=function(event, state) ` + body + ` end}`
		if err := os.WriteFile(filepath.Join(dir, name+".lua"), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := engine(t, dir)
	v, err := providertest.Start("", providertest.Script{Steps: []providertest.Step{{Text: []string{"x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	c := providers.NewClient(providers.Options{Adapters: e})
	defer c.Close()
	for _, name := range []string{"loops", "raises", "wrong", "kind", "finish"} {
		_, err := c.Stream(t.Context(), providers.Source{Name: "s", Adapter: name, BaseURL: v.URL()}, providertest.Ask("x"), providers.Hooks{})
		f := providers.AsFailure(err)
		if err == nil || f.Kind != messages.ErrorKind_ERROR_KIND_ADAPTER || !strings.Contains(f.Message, name+".lua:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An adapter of lines of JSON, and one of whole documents: the framing is the
// adapter's, unless the answer's content type knows better.
func TestOtherFramings(t *testing.T) {
	dir := t.TempDir()
	for name, framing := range map[string]string{"lines": "ndjson", "document": "json"} {
		src := `local function piece(j) return {text = j.t, finish = j.done and "stop" or nil} end
return {contract=1, name="` + name + `", version="1", endpoint=function(req, source) return "/" .. source.model .. ":ask?alt=" .. #req.messages end,
framing="` + framing + `", capabilities={stream=true}, headers=function(s) return {["x-key"]="{{api_key}}"} end,
transform_request=function(r, s) return {stream = r.stream} end, transform_response=piece,
transform_stream_chunk=function(e) if e.json then return piece(e.json) end end}`
		if err := os.WriteFile(filepath.Join(dir, name+".lua"), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := engine(t, dir)
	body, kind := "", ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RequestURI() != "/base/m:ask?v=1&alt=1" || r.Header.Get("x-key") != "k" {
			t.Errorf("asked %s with %v", r.URL.RequestURI(), r.Header)
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(body))
	}))
	defer srv.Close()
	c := providers.NewClient(providers.Options{Adapters: e})
	defer c.Close()
	for _, x := range []struct{ adapter, kind, body, text, fails string }{
		{"lines", "application/x-ndjson", "{\"t\":\"a\"}\n{\"t\":\"b\",\"done\":true}\n", "ab", ""},
		{"lines", "text/plain", "{\"t\":\"a\"}\n\n{\"t\":\"b\",\"done\":true}", "ab", ""},
		{"lines", "application/json", "{\"t\":\"a\",\n\"done\":true}", "a", ""},
		{"lines", "application/x-ndjson", "{\"t\":\"a\"}\n{\"t\":\"b\",\"do", "a", "stream_truncated"},
		{"lines", "application/x-ndjson", "{\"t\":\"a\"}\n{oops}\n", "a", "server"},
		{"document", "application/json", "{\"t\":\"a\",\"done\":true}", "a", ""},
		{"document", "application/json", "{\"t\":\"a\"", "", "server"},
		{"document", "text/event-stream", "data: {\"t\":\"a\",\"done\":true}\n\n", "a", ""},
	} {
		kind, body = x.kind, x.body
		src := providers.Source{
			Name: "s", Adapter: x.adapter, BaseURL: srv.URL + "/base/?v=1", Model: "m",
			APIKey: func() configs.Secret { return configs.NewSecret("k") },
		}
		res, err := c.Stream(t.Context(), src, providertest.Ask("x"), providers.Hooks{})
		got := ""
		if err != nil {
			got = providers.KindName(providers.AsFailure(err).Kind)
		}
		if res.GetText() != x.text || got != x.fails {
			t.Errorf("%s, %s, %q: %q, %v", x.adapter, x.kind, x.body, res.GetText(), err)
		}
	}
}

package providers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/providertest"
)

// scripted is a server that answers each request by the next of its functions.
func scripted(t *testing.T, answers ...http.HandlerFunc) (url string, bodies *[]string) {
	t.Helper()
	bodies = new([]string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := new(strings.Builder)
		_, _ = fmt.Fprint(b, r.URL.Path, " ")
		var body json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body)
		b.Write(body)
		*bodies = append(*bodies, b.String())
		if n := len(*bodies); n <= len(answers) {
			answers[n-1](w, r)
			return
		}
		http.Error(w, "asked too often", http.StatusTeapot)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, bodies
}

func says(status int, media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

func clientOf(t *testing.T, dir string) *providers.Client {
	t.Helper()
	e, err := lua.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := providers.NewClient(providers.Options{Adapters: e})
	t.Cleanup(func() { c.Close(); e.Close() })
	return c
}

func thought() *messages.CompletionRequest {
	q := providertest.Ask("Add.")
	q.Messages = append(q.Messages,
		&messages.ChatMessage{
			Role: messages.Role_ROLE_ASSISTANT, Reasoning: "hm", ReplaySource: "s",
			Replay: []byte(`[{"type":"thinking","item":{"type":"thinking","thinking":"hm","signature":"b2xk"}}]`),
			Calls:  []*messages.ToolInvocation{{VendorId: "t0", Name: "add", ArgumentsJson: []byte(`{}`)}},
		},
		&messages.ChatMessage{Role: messages.Role_ROLE_TOOL, VendorCallId: "t0", ToolName: "add", Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "3"}}}},
	)
	return q
}

const (
	badSignature = `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid signature in thinking block"}}`
	goodAnswer   = `{"type":"message","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}`
)

// A server that refuses old thoughts must not lock the conversation up: it is
// asked once more without them, and only once.
func TestRefusedReplayIsLeftOutOnce(t *testing.T) {
	url, bodies := scripted(t, says(400, "application/json", badSignature), says(200, "application/json", goodAnswer))
	c := clientOf(t, "")
	src := providers.Source{Name: "s", Adapter: "anthropic", BaseURL: url, Model: "m"}
	var sent int
	res, err := c.Stream(t.Context(), src, thought(), providers.Hooks{Sent: func(providers.Sent) { sent++ }})
	if err != nil || res.GetText() != "ok" || sent != 2 {
		t.Fatalf("%v, %v, sent %d times", res, err, sent)
	}
	if !strings.Contains((*bodies)[0], `"signature":"b2xk"`) || strings.Contains((*bodies)[1], "thinking") || !strings.Contains((*bodies)[1], `"tool_use"`) {
		t.Errorf("%s", strings.Join(*bodies, "\n"))
	}

	url, bodies = scripted(t, says(400, "application/json", badSignature), says(400, "application/json", badSignature))
	src.BaseURL = url
	_, err = c.Stream(t.Context(), src, thought(), providers.Hooks{})
	wantKind(t, err, "invalid_request")
	if len(*bodies) != 2 {
		t.Errorf("asked %d times", len(*bodies))
	}

	url, bodies = scripted(t, says(400, "application/json", badSignature))
	src.BaseURL = url
	_, err = c.Stream(t.Context(), src, providertest.Ask("x"), providers.Hooks{})
	wantKind(t, err, "invalid_request")
	if len(*bodies) != 1 {
		t.Errorf("asked %d times, though there was nothing to leave out", len(*bodies))
	}
}

// A local server that loses the thread of its own stream can answer in one
// piece; not where something was shown already.
func TestBrokenStreamIsAskedForWhole(t *testing.T) {
	const diff = `data: {"error":{"code":500,"message":"Invalid diff: now finding less tool calls!","type":"server_error"}}` + "\n\n"
	c := clientOf(t, "")
	url, bodies := scripted(t, says(200, "text/event-stream", diff), says(200, "application/json", `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`))
	src := providers.Source{Name: "s", Adapter: "llamacpp", BaseURL: url, Model: "m"}
	res, err := c.Stream(t.Context(), src, providertest.Ask("x"), providers.Hooks{})
	if err != nil || res.GetText() != "ok" || !strings.Contains((*bodies)[0], `"stream":true`) || strings.Contains((*bodies)[1], `"stream"`) {
		t.Errorf("%v, %v, %s", res, err, *bodies)
	}
	url, bodies = scripted(t, says(200, "text/event-stream", `data: {"choices":[{"delta":{"content":"shown"}}]}`+"\n\n"+diff))
	src.BaseURL = url
	res, err = c.Stream(t.Context(), src, providertest.Ask("x"), providers.Hooks{})
	if f := ofKind(t, err, "server"); !f.Visible || res.GetText() != "shown" || len(*bodies) != 1 {
		t.Errorf("%v, %v, asked %d times", res, err, len(*bodies))
	}
}

// Names that a vendor would refuse come back as the tools' own.
func TestToolNamesComeBack(t *testing.T) {
	url, bodies := scripted(t, says(200, "text/event-stream", `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c0","function":{"name":"web_search","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n"))
	c := clientOf(t, "")
	q := providertest.Ask("x")
	q.Tools = []*messages.ToolDef{{Name: "web.search"}}
	var shown string
	src := providers.Source{Name: "s", Adapter: "openai", BaseURL: url, Model: "m"}
	res, err := c.Stream(t.Context(), src, q, providers.Hooks{Delta: func(d *messages.Delta) {
		for _, t := range d.GetTools() {
			shown += t.GetName()
		}
	}})
	if err != nil || len(res.GetCalls()) != 1 || res.GetCalls()[0].GetName() != "web.search" || shown != "web.search" {
		t.Errorf("%v, %v, shown %q", res, err, shown)
	}
	if !strings.Contains((*bodies)[0], `"name":"web_search"`) || strings.Contains((*bodies)[0], "web.search") {
		t.Errorf("%s", (*bodies)[0])
	}
}

// A body says itself what it is, where its content type is missing or wrong; a
// web page is no answer.
func TestWrongContentTypes(t *testing.T) {
	c := clientOf(t, "")
	for _, x := range []struct{ media, body, text, kind string }{
		{"text/event-stream", `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`, "ok", ""},
		{"application/json", "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n", "ok", ""},
		{"text/event-stream", `{"error":{"code":"insufficient_quota","message":"no"}}`, "", "quota_exhausted"},
		{"text/html", "<!doctype html><title>Sign in</title>", "", "server"},
		{"application/json", "<html>", "", "server"},
	} {
		url, _ := scripted(t, says(200, x.media, x.body))
		res, err := c.Stream(t.Context(), providers.Source{Name: "s", Adapter: "openai", BaseURL: url, Model: "m"}, providertest.Ask("x"), providers.Hooks{})
		if x.kind != "" {
			f := ofKind(t, err, x.kind)
			if strings.Contains(x.body, "<") && !strings.Contains(f.Hint, "base_url") {
				t.Errorf("%+v", f)
			}
		} else if err != nil || res.GetText() != x.text {
			t.Errorf("%s, %s: %v, %v", x.media, x.body, res, err)
		}
	}
}

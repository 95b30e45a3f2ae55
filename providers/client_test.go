package providers_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a client, a vendor and a source that leads from one to the other.
type rig struct {
	t      *testing.T
	client *providers.Client
	vendor *providertest.Vendor
	src    providers.Source
	dials  atomic.Int64
}

func newRig(t *testing.T, steps ...providertest.Step) *rig {
	t.Helper()
	engine, err := lua.New("", nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := providertest.Start("", providertest.Script{Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, vendor: v}
	var d net.Dialer
	r.client = providers.NewClient(providers.Options{Adapters: engine, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		r.dials.Add(1)
		return d.DialContext(ctx, network, addr)
	}})
	r.src = providers.Source{
		Name: "s", Adapter: "openai", BaseURL: v.URL(), Model: "m",
		APIKey: func() configs.Secret { return configs.NewSecret("sk-very-secret") },
	}
	t.Cleanup(func() {
		r.client.Close()
		v.Close()
		engine.Close()
	})
	return r
}

func (r *rig) stream(ctx context.Context, text string, h providers.Hooks) (*messages.CompletionResult, error) {
	return r.client.Stream(ctx, r.src, providertest.Ask(text), h)
}

func (r *rig) await(kind string, n int) providertest.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	e, err := r.vendor.Await(ctx, kind, n)
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

func wantKind(t *testing.T, err error, kind string) {
	t.Helper()
	if f := ofKind(t, err, kind); f.Kind == 0 {
		t.Errorf("a failure without a kind: %v", f)
	}
}

func ofKind(t *testing.T, err error, kind string) *providers.Failure {
	t.Helper()
	var f *providers.Failure
	if !errors.As(err, &f) || providers.KindName(f.Kind) != kind {
		t.Fatalf("got %v, want a failure of the kind %s", err, kind)
	}
	if f.Message == "" || f.Source != "s" {
		t.Errorf("failure without message or source: %+v", f)
	}
	return f
}

func TestStreamReportsTheBodyBeforeSending(t *testing.T) {
	r := newRig(t, providertest.Step{Text: []string{"a", "b"}})
	var sent providers.Sent
	var deltas []string
	res, err := r.stream(t.Context(), "hello", providers.Hooks{
		Sent: func(s providers.Sent) {
			sent = s
			if n := len(r.vendor.Requests()); n != 0 {
				t.Errorf("%d requests before Sent", n)
			}
		},
		Delta: func(d *messages.Delta) { deltas = append(deltas, d.GetText()) },
	})
	if err != nil || res.GetText() != "ab" || strings.Join(deltas, "|") != "a|b" || res.GetSource() != "s" {
		t.Fatalf("%v, %v, %q", res, err, deltas)
	}
	got := r.vendor.Requests()[0]
	sum := sha256.Sum256(got.Body)
	if sent.Hash != hex.EncodeToString(sum[:]) || sent.Bytes != len(got.Body) || sent.Model != "m" {
		t.Errorf("%+v for %d bytes with the hash %x", sent, len(got.Body), sum)
	}
	if got.Header["Authorization"] != "Bearer sk-very-secret" || got.Path != "/v1/chat/completions" {
		t.Errorf("%v", got)
	}
}

func TestConnectionIsUsedAgain(t *testing.T) {
	r := newRig(t, providertest.Step{Text: []string{"a"}})
	for range 5 {
		if _, err := r.stream(t.Context(), "hello", providers.Hooks{}); err != nil {
			t.Fatal(err)
		}
		r.await(providertest.Finished, 1)
	}
	// The tail of a stream is read aside, so one more connection may be made
	// where a call was faster than that.
	if n := r.dials.Load(); n > 2 {
		t.Errorf("%d connections for five calls in a row", n)
	}
}

func TestCancelClosesTheSocketAtOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		step  providertest.Step
		whole bool
		wait  string
		shown bool
	}{
		{"before the headers", providertest.Step{Hang: true}, false, providertest.Received, false},
		{"before a document", providertest.Step{Hang: true}, true, providertest.Received, false},
		{"after the headers", providertest.Step{Text: []string{"a"}, Hold: providertest.Hold{Start: "never"}}, false, providertest.Held, false},
		{"in the text", providertest.Step{Text: []string{"a", "b"}, Hold: providertest.Hold{Middle: "never"}}, false, providertest.Held, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.step)
			r.src.Whole = c.whole
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			first := make(chan struct{}, 10)
			go func() {
				_, err := r.stream(ctx, "hello", providers.Hooks{Delta: func(*messages.Delta) { first <- struct{}{} }})
				done <- err
			}()
			r.await(c.wait, 1)
			if c.shown {
				<-first
			}
			start := time.Now()
			cancel(errors.New("preempted"))
			if f := ofKind(t, <-done, "cancelled"); f.Visible != c.shown {
				t.Errorf("visible %v", f.Visible)
			}
			if e := r.await(providertest.Closed, 1); e.At.Sub(start) > time.Second {
				t.Errorf("the server saw the end after %v", e.At.Sub(start))
			}
		})
	}
}

func TestTimeouts(t *testing.T) {
	r := newRig(t,
		providertest.Step{Match: "hang", Hang: true},
		providertest.Step{Match: "stall", Text: []string{"so far", "more"}, Hold: providertest.Hold{Middle: "never"}},
		providertest.Step{Match: "silent", Text: []string{"x"}, Hold: providertest.Hold{Start: "never"}},
	)
	begun := time.Now()
	// The limit of one phase must not end another.
	r.src.Connect = 20 * time.Second
	r.src.FirstByte = 50 * time.Millisecond
	_, err := r.stream(t.Context(), "hang", providers.Hooks{})
	wantKind(t, err, "timeout")
	_, err = r.stream(t.Context(), "silent", providers.Hooks{})
	wantKind(t, err, "timeout")
	r.src.FirstByte, r.src.Idle = time.Minute, 50*time.Millisecond
	res, err := r.stream(t.Context(), "stall", providers.Hooks{})
	if f := ofKind(t, err, "stream_truncated"); !f.Visible || res.GetText() != "so far" {
		t.Errorf("%+v, %v", f, res)
	}
	r.src.Idle, r.src.Total = time.Minute, 50*time.Millisecond
	_, err = r.stream(t.Context(), "stall", providers.Hooks{})
	wantKind(t, err, "timeout")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r.src.Total = time.Minute
	_, err = r.stream(ctx, "stall", providers.Hooks{})
	wantKind(t, err, "timeout")
	r.await(providertest.Closed, 5)
	if d := time.Since(begun); d > 15*time.Second {
		t.Errorf("the limits of 50 ms took %v", d)
	}
}

func TestCutStreams(t *testing.T) {
	for cut, visible := range map[string]bool{"text": true, "event": true, "reset": true, "args": true} {
		t.Run(cut, func(t *testing.T) {
			r := newRig(t, providertest.Step{
				Text: []string{"half"}, Cut: cut,
				Tools: []providertest.Tool{{ID: "c0", Name: "a", Args: []byte(`{"long":"argument"}`)}},
			})
			res, err := r.stream(t.Context(), "hello", providers.Hooks{})
			f := ofKind(t, err, "stream_truncated")
			if f.Visible != visible || res.GetText() != "half" || res.GetFinish() != messages.Finish_FINISH_ERROR {
				t.Errorf("%+v %v", f, res)
			}
			for _, c := range res.GetCalls() {
				if c.GetInvalid() != providers.InvalidTruncated {
					t.Errorf("%v could run", c)
				}
			}
		})
	}
	r := newRig(t, providertest.Step{Cut: "empty"})
	_, err := r.stream(t.Context(), "hello", providers.Hooks{})
	if f := ofKind(t, err, "server"); f.Visible {
		t.Error("an empty answer counts as shown")
	}
}

func TestParallelToolsAndWhole(t *testing.T) {
	tools := []providertest.Tool{
		{ID: "c0", Name: "add", Args: []byte(`{"a":1,"b":[],"n":12345678901234567890}`)},
		{ID: "c1", Name: "mul", Args: []byte(`{"x":{},"y":"ü"}`)},
	}
	for _, whole := range []bool{false, true} {
		r := newRig(t, providertest.Step{Text: []string{"let me see"}, Tools: tools, Usage: &providertest.Usage{In: 7, Out: 3}})
		r.src.Whole = whole
		res, err := r.stream(t.Context(), "hello", providers.Hooks{})
		if err != nil || len(res.GetCalls()) != 2 || res.GetFinish() != messages.Finish_FINISH_TOOL_CALLS || res.GetUsage().GetInput() != 7 {
			t.Fatalf("whole %v: %v, %v", whole, res, err)
		}
		for i, c := range res.GetCalls() {
			if string(c.GetArgumentsJson()) != string(tools[i].Args) || c.GetVendorId() != tools[i].ID || c.GetIndex() != int32(i) {
				t.Errorf("whole %v: %v, want %s", whole, c, tools[i].Args)
			}
		}
		if body := string(r.vendor.Requests()[0].Body); strings.Contains(body, `"stream":true`) == whole {
			t.Errorf("whole %v: %s", whole, body)
		}
	}
}

func TestRedirects(t *testing.T) {
	var foreign, own atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { foreign.Add(1) }))
	defer other.Close()
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case strings.HasPrefix(req.URL.Path, "/away"):
			http.Redirect(w, req, other.URL+"/v1", http.StatusTemporaryRedirect)
		case strings.HasPrefix(req.URL.Path, "/get"):
			http.Redirect(w, req, srv.URL+"/v1/chat/completions", http.StatusFound)
		case strings.HasPrefix(req.URL.Path, "/moved"):
			http.Redirect(w, req, "/v1/chat/completions", http.StatusPermanentRedirect)
		default:
			own.Add(1)
			if req.Method != http.MethodPost || req.ContentLength < 10 {
				t.Errorf("%s with %d bytes", req.Method, req.ContentLength)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)
		}
	}))
	defer srv.Close()
	r := newRig(t, providertest.Step{})
	for _, path := range []string{"/away", "/get"} {
		r.src.BaseURL = srv.URL + path
		_, err := r.stream(t.Context(), "hello", providers.Hooks{})
		wantKind(t, err, "connect")
	}
	r.src.BaseURL = srv.URL + "/moved"
	if res, err := r.stream(t.Context(), "hello", providers.Hooks{}); err != nil || res.GetText() != "hi" {
		t.Errorf("same origin: %v, %v", res, err)
	}
	if own.Load() != 1 || foreign.Load() != 0 {
		t.Errorf("%d requests at home, %d elsewhere", own.Load(), foreign.Load())
	}
}

func TestKeysStayInside(t *testing.T) {
	r := newRig(t, providertest.Step{Match: "echo", Status: 401, Body: `{"error":{"message":"bad key sk-very-secret given","code":"sk-very-secret"}}`},
		providertest.Step{Text: []string{"x"}})
	_, err := r.stream(t.Context(), "echo", providers.Hooks{})
	f := ofKind(t, err, "auth")
	if text := fmt.Sprintf("%v %+v %v", err, f.Proto(), r.src.APIKey()); strings.Contains(text, "very-secret") {
		t.Errorf("the key is shown: %s", text)
	}
	r.src.APIKey = nil
	r.src.Headers = map[string]string{"X-Team": "home", "X-Key": "k " + providers.KeyPlace}
	if _, err := r.stream(t.Context(), "plain", providers.Hooks{}); err != nil {
		t.Fatal(err)
	}
	h := r.vendor.Requests()[1].Header
	if _, ok := h["Authorization"]; ok || h["X-Team"] != "home" || h["X-Key"] != "" {
		t.Errorf("%v", h)
	}
}

func TestCaps(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	r := newRig(t, providertest.Step{Text: []string{long}})
	res, err := r.stream(t.Context(), "hello", providers.Hooks{})
	if err != nil || res.GetText() != long {
		t.Fatalf("5 MB in one event: %d bytes, %v", len(res.GetText()), err)
	}
	engine, err := lua.New("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	small := providers.NewClient(providers.Options{Adapters: engine, MaxAnswer: 1 << 20})
	defer small.Close()
	_, err = small.Stream(t.Context(), r.src, providertest.Ask("hello"), providers.Hooks{})
	wantKind(t, err, "server")
	many := newRig(t, providertest.Step{Text: []string{strings.Repeat("y", 10_000)}, Repeat: 200})
	_, err = small.Stream(t.Context(), many.src, providertest.Ask("hello"), providers.Hooks{})
	if f := ofKind(t, err, "server"); !strings.Contains(f.Message, "1048576") {
		t.Errorf("%v", f)
	}
}

func TestBadSourcesAndRequests(t *testing.T) {
	r := newRig(t, providertest.Step{Text: []string{"x"}})
	for name, change := range map[string]func(*providers.Source){
		"name": func(s *providers.Source) { s.Name = "S" }, "base_url": func(s *providers.Source) { s.BaseURL = "ftp://x" },
		"key in url": func(s *providers.Source) { s.BaseURL = "http://u:p@x/" }, "headers": func(s *providers.Source) { s.Headers = map[string]string{"A": "b\r\nC: d"} },
		"extra": func(s *providers.Source) { s.Extra = []byte("[1]") }, "no adapter": func(s *providers.Source) { s.Adapter = "" },
	} {
		src := r.src
		change(&src)
		if err := src.Check(); !errors.Is(err, providers.ErrSource) {
			t.Errorf("%s: %v", name, err)
		}
		res, err := r.client.Stream(t.Context(), src, providertest.Ask("x"), providers.Hooks{})
		if err == nil || res.GetFailure() == nil {
			t.Errorf("%s: no failure", name)
		}
	}
	src := r.src
	src.Adapter = "nobody"
	_, err := r.client.Stream(t.Context(), src, providertest.Ask("x"), providers.Hooks{})
	if f := ofKind(t, err, "adapter"); !strings.Contains(f.Message, "offline, ollama, openai") {
		t.Errorf("%v", f)
	}
	_, err = r.client.Stream(t.Context(), r.src, &messages.CompletionRequest{}, providers.Hooks{})
	wantKind(t, err, "invalid_request")
	for _, q := range []*messages.CompletionRequest{
		{Messages: providertest.Ask("x").Messages, Thinking: "hard"},
		{Messages: providertest.Ask("x").Messages, ToolChoice: "some"},
		{Messages: providertest.Ask("x").Messages, ToolChoice: "tool:"},
	} {
		_, err = r.client.Stream(t.Context(), r.src, q, providers.Hooks{})
		if f := ofKind(t, err, "invalid_request"); !strings.Contains(f.Message, "legal are") {
			t.Errorf("%v", f)
		}
	}
	r.client.Close()
	if _, err = r.stream(t.Context(), "x", providers.Hooks{}); !errors.Is(err, providers.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if len(r.vendor.Requests()) != 0 {
		t.Error("a bad request left")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "2", 2 * time.Second},
		{"Retry-After", "1.5", 1500 * time.Millisecond},
		{"Retry-After", now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{"Retry-After", now.Add(-time.Hour).Format(http.TimeFormat), 0},
		{"Retry-After", "-5", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "1e300", 24 * time.Hour},
		{"Retry-After", "NaN", 0},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"X", "1", 0},
	} {
		if got := providers.RetryAfter(http.Header{c.name: {c.value}}, now); got != c.want {
			t.Errorf("%s: %s gives %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

func TestFindLocal(t *testing.T) {
	r := newRig(t, providertest.Step{})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<html>") }))
	defer other.Close()
	found := r.client.FindLocal(t.Context(), []providers.Local{
		{Name: "none", Base: "http://127.0.0.1:1/v1"},
		{Name: "web", Base: other.URL},
		{Name: "real", Base: r.vendor.URL()},
		{Name: "other", Base: r.vendor.URL(), Adapter: "ollama", Source: "http://127.0.0.1:2"},
	})
	if len(found) != 2 || found[1].GetAdapter() != "ollama" || found[1].GetBaseUrl() != "http://127.0.0.1:2" || found[0].GetName() != "real" || found[0].GetModel() != "scripted" || found[0].GetAdapter() != "openai" {
		t.Errorf("found %v", found)
	}
}

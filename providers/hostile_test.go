package providers_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/providertest"
)

// tenGB is what the endless vendors have to say.
const tenGB = 10 << 30

// endless writes pieces until it has said all, or nobody listens, and counts.
func endless(w io.Writer, piece string, sent *atomic.Int64) {
	buf := bytes.Repeat([]byte(piece), max(1, (64<<10)/len(piece)))
	for sent.Load() < tenGB {
		n, err := w.Write(buf)
		sent.Add(int64(n))
		if err != nil {
			return
		}
	}
}

const textEvent = `data: {"choices":[{"index":0,"delta":{"content":"` // is continued

// hostile answers every request with one function and gives a client and a source for it.
func hostile(t *testing.T, serve http.HandlerFunc) (*providers.Client, providers.Source) {
	t.Helper()
	srv := httptest.NewServer(serve)
	engine, err := lua.New("", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := providers.NewClient(providers.Options{Adapters: engine})
	t.Cleanup(func() {
		c.Close()
		srv.CloseClientConnections()
		srv.Close()
		engine.Close()
	})
	return c, providers.Source{
		Name: "s", Adapter: "openai", BaseURL: srv.URL, Model: "m",
		APIKey: func() configs.Secret { return configs.NewSecret("sk-very-secret") },
	}
}

// TestVendorSendsTenGigabytes lets a vendor talk without end in every place where it can: the call fails by itself, after a
// bounded number of bytes and in bounded memory.
func TestVendorSendsTenGigabytes(t *testing.T) {
	sse := func(piece string) func(http.ResponseWriter, *atomic.Int64) {
		return func(w http.ResponseWriter, sent *atomic.Int64) {
			w.Header().Set("Content-Type", "text/event-stream")
			endless(w, piece, sent)
		}
	}
	for name, c := range map[string]struct {
		serve func(http.ResponseWriter, *atomic.Int64)
		kind  string
		// most bytes that may have been taken, with what fits into sockets.
		most int64
	}{
		"text":     {sse(textEvent + strings.Repeat("x", 4096) + "\"}}]}\n\n"), "server", 48 << 20},
		"thoughts": {sse(`data: {"choices":[{"index":0,"delta":{"reasoning_content":"` + strings.Repeat("x", 4096) + "\"}}]}\n\n"), "server", 48 << 20},
		"arguments": {
			sse(`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"` + strings.Repeat("x", 4096) + "\"}}]}}]}\n\n"),
			"server", 48 << 20,
		},
		"one line":  {sse("x"), "server", 48 << 20},
		"one event": {sse("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"), "server", 64 << 20},
		"comments":  {sse(": still here, still here, still here\n\n"), "server", 600 << 20},
		"JSON": {func(w http.ResponseWriter, n *atomic.Int64) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, "[", n)
		}, "server", 48 << 20},
		"an error": {func(w http.ResponseWriter, n *atomic.Int64) { w.WriteHeader(500); endless(w, "<p>sorry</p>", n) }, "server", 16 << 20},
		"a page": {func(w http.ResponseWriter, n *atomic.Int64) {
			w.Header().Set("Content-Type", "text/html")
			endless(w, "<html>", n)
		}, "server", 16 << 20},
		"after the end": {func(w http.ResponseWriter, n *atomic.Int64) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, textEvent+"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			endless(w, ": and\n", n)
		}, "", 16 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			over := make(chan struct{})
			client, src := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
				defer close(over)
				c.serve(w, &sent)
			})
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			res, err := client.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{})
			runtime.ReadMemStats(&after)
			if c.kind == "" {
				if err != nil || res.GetText() != "hi" {
					t.Errorf("%v %v", res, err)
				}
			} else {
				_ = ofKind(t, err, c.kind)
			}
			<-over // the connection is closed, or this hangs
			if n := sent.Load(); n > c.most {
				t.Errorf("%d MB were taken", n>>20)
			}
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 512<<20 {
				t.Errorf("the heap grew by %d MB", grown>>20)
			}
		})
	}
}

// TestVendorSendsEndlessHeaders bounds what comes before the answer.
func TestVendorSendsEndlessHeaders(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	over := make(chan struct{})
	go func() {
		defer close(over)
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		endless(conn, "X-More: "+strings.Repeat("x", 1000)+"\r\n", &sent)
	}()
	client, src := hostile(t, nil)
	src.BaseURL = "http://" + ln.Addr().String()
	_, err = client.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{})
	_ = ofKind(t, err, "server")
	<-over
	_ = ln.Close()
	if n := sent.Load(); n > 16<<20 {
		t.Errorf("%d MB of headers were taken", n>>20)
	}
}

// slow makes a client whose vendor sends one byte of a stream each pause; for use in a bubble.
func slow(t *testing.T, text string, pause time.Duration) (*providers.Client, providers.Source, func()) {
	t.Helper()
	engine, err := lua.New("", nil)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(conn net.Conn) {
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
		for i := range len(text) {
			<-time.NewTimer(pause).C
			if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
				return
			}
		}
	}
	c := providers.NewClient(providers.Options{Adapters: engine, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go serve(there)
		return here, nil
	}})
	return c, providers.Source{Name: "s", Adapter: "openai", BaseURL: "http://vendor.invalid", Model: "m"}, func() {
		c.Close()
		engine.Close()
	}
}

// TestVendorSendsAByteAMinute ends a stream at its silence, and one that is never silent for long at the end of its time.
func TestVendorSendsAByteAMinute(t *testing.T) {
	text := textEvent + "hi\"}}]}\n\n" + strings.Repeat(": x\n", 1000)
	for name, c := range map[string]struct {
		pause, total time.Duration
		kind         string
		took         time.Duration
	}{
		"longer than the silence allowed": {61 * time.Second, 0, "stream_truncated", 2*time.Minute + time.Second},
		"shorter":                         {59 * time.Second, 0, "timeout", 10 * time.Minute},
		"shorter, and more time":          {59 * time.Second, time.Hour, "timeout", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, src, done := slow(t, text, c.pause)
				defer done()
				src.Total = c.total
				begun := time.Now()
				res, err := client.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{})
				f := ofKind(t, err, c.kind)
				if took := time.Since(begun); took < c.took || took > c.took+2*time.Second {
					t.Errorf("it took %v", took)
				}
				if f.Visible != (c.total > 0) || len(res.GetCalls()) != 0 {
					t.Errorf("%v", res)
				}
				time.Sleep(2 * time.Minute) // the vendor notices
			})
		})
	}
}

// TestRedirectTakesNoCredentials follows no vendor to another origin: neither key nor prompt arrives there, be it the same host
// with another port or scheme, and whatever the status.
func TestRedirectTakesNoCredentials(t *testing.T) {
	var got atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got.Add(1)
		t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
	}))
	defer other.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer secure.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{other.URL, secure.URL, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), "//" + strings.TrimPrefix(other.URL, "http://")} {
			client, src := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", to+"/v1/chat/completions")
				w.WriteHeader(status)
			})
			src.Headers = map[string]string{"X-Own-Key": "k " + providers.KeyPlace}
			_, err := client.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{})
			if f := ofKind(t, err, "connect"); f.Status != status || f.Hint == "" || strings.Contains(err.Error(), "very-secret") {
				t.Errorf("%d to %s: %+v", status, to, f)
			}
		}
	}
	if n := got.Load(); n != 0 {
		t.Errorf("%d requests arrived elsewhere", n)
	}
}

// TestCertificateThatDoesNotVerify sends nothing to a server whose certificate nobody vouches for, or that is another's.
func TestCertificateThatDoesNotVerify(t *testing.T) {
	var got atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // of refused handshakes
	srv.StartTLS()
	defer srv.Close()
	client, src := hostile(t, nil)
	for _, base := range []string{srv.URL, strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)} {
		src.BaseURL = base
		_, err := client.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{})
		if f := ofKind(t, err, "connect"); !strings.Contains(f.Message, "TLS") {
			t.Errorf("%s: %v", base, err)
		}
	}
	if n := got.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestVendorSendsInvalidUTF8 shows and keeps valid text only.
func TestVendorSendsInvalidUTF8(t *testing.T) {
	const call = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c` + "\xfe" + `","function":{"name":"f","arguments":"{\"a\":\"` + "\xff" + `\"}"}}]}}]}` + "\n\n"
	client, src := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, textEvent+"a\xff\xfeb \\ud83d c\"}}]}\n\n"+call+
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n")
	})
	res, err := client.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{Delta: func(d *messages.Delta) {
		if !utf8.ValidString(d.GetText()) {
			t.Errorf("shown: %q", d.GetText())
		}
		for _, c := range d.GetTools() {
			if !utf8.ValidString(c.GetArguments() + c.GetId() + c.GetName()) {
				t.Errorf("shown: %q", c)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.ValidString(res.GetText()) || !strings.HasPrefix(res.GetText(), "a") || !strings.HasSuffix(res.GetText(), " c") {
		t.Errorf("the text is %q", res.GetText())
	}
	for _, c := range res.GetCalls() {
		if !utf8.Valid(c.GetArgumentsJson()) || !utf8.ValidString(c.GetVendorId()) {
			t.Errorf("a call is %q", c)
		}
	}
	// The other places of an answer.
	for name, text := range map[string]string{
		"whole":  `{"choices":[{"message":{"content":"a` + "\xff" + `b"},"finish_reason":"stop"}]}`,
		"cut":    "\xff\xfe\x00",
		"event":  "event: \xff\ndata: \xff\n\n",
		"lonely": "\xf0\x9f",
	} {
		client, src := hostile(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
		src.Whole = name == "whole"
		res, err := client.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{})
		var f *providers.Failure
		if errors.As(err, &f); err != nil && (!utf8.ValidString(f.Message) || f.Kind == messages.ErrorKind_ERROR_KIND_ADAPTER) || !utf8.ValidString(res.GetText()) {
			t.Errorf("%s: %v %q", name, err, res.GetText())
		}
		if name == "whole" && (err != nil || res.GetText() != "a\uFFFDb") {
			t.Errorf("%s: %v %q", name, err, res.GetText())
		}
	}
}

// TestVendorSendsDuplicateKeys takes the last of equal keys everywhere, so that nothing is read in two ways.
func TestVendorSendsDuplicateKeys(t *testing.T) {
	const answer = `{"choices":[{"message":{"content":"first"}}],"choices":[{"finish_reason":"length","message":{"role":"assistant","content":"second",` +
		`"content":"third","tool_calls":[{"id":"a","id":"b","type":"function","function":{"name":"f","name":"g","arguments":"{\"x\":1,\"x\":2}"}}]},"finish_reason":"tool_calls"}]}`
	client, src := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, answer)
	})
	src.Whole = true
	res, err := client.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{})
	if err != nil || res.GetText() != "third" || res.GetFinish() != messages.Finish_FINISH_TOOL_CALLS || len(res.GetCalls()) != 1 {
		t.Fatalf("%v %v", res, err)
	}
	c := res.GetCalls()[0]
	if c.GetVendorId() != "b" || c.GetName() != "g" || string(c.GetArgumentsJson()) != `{"x":1,"x":2}` {
		t.Errorf("%v", c)
	}
}

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/framing"
	"homeagent/providers/lua"
)

// times are samples of one figure.
type times []time.Duration

func (s times) at(p float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}

func report(b *testing.B, name string, s times) {
	b.Helper()
	b.ReportMetric(float64(s.at(0.5).Nanoseconds())/1e3, name+"-p50-us")
	b.ReportMetric(float64(s.at(0.99).Nanoseconds())/1e3, name+"-p99-us")
}

// large is a request with 20 messages and 20 tools.
func large() *messages.CompletionRequest {
	req := asking()
	for i := range 19 {
		m := user(strings.Repeat(fmt.Sprint("some words ", i, " "), 30))
		if i%2 == 1 {
			m.Role = messages.Role_ROLE_ASSISTANT
		}
		req.Messages = append(req.Messages, m)
	}
	req.Tools = nil
	for i := range 20 {
		req.Tools = append(req.Tools, &messages.ToolDef{
			Name: fmt.Sprintf("tool_%02d", i), Description: strings.Repeat("what it does ", 10),
			ParametersJson: []byte(`{"type":"object","properties":{"a":{"type":"string","description":"the first"},"b":{"type":"integer"}},"required":["a"]}`),
		})
	}
	return req
}

// wordEvent is an event of a stream as long as real ones.
const wordEvent = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x","service_tier":"default",` +
	`"system_fingerprint":"fp_x","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,` +
	`"obfuscation":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`

const wholeAnswer = `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-x","choices":[{"index":0,"message":{"role":"assistant","content":` +
	`"An answer of some words.","tool_calls":[{"id":"c0","type":"function","function":{"name":"tool_01","arguments":"{\"a\":\"x\",\"b\":1}"}}]},` +
	`"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`

// BenchmarkModelCalls measures the way of a call through its adapter, without a node. docs/benchmarks.md has the figures.
func BenchmarkModelCalls(b *testing.B) {
	b.Run("transform", benchTransform)
	b.Run("chunk", benchChunk)
	for _, n := range []int{1_000, 10_000, 40_000} {
		b.Run(fmt.Sprintf("deltas=%d", n), func(b *testing.B) { benchDeltas(b, n) })
	}
	b.Run("first", benchFirst)
	b.Run("cancel", benchCancel)
	b.Run("streams", benchStreams)
	b.Run("gateway", benchGateway)
}

// benchTransform makes a request of 20 messages and 20 tools, and reads an answer.
func benchTransform(b *testing.B) {
	engine, err := lua.New("", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	a, err := engine.Adapter("openai")
	if err != nil {
		b.Fatal(err)
	}
	req := &providers.Request{CompletionRequest: large()}
	src := &providers.Source{Name: "s", Model: "m", BaseURL: "http://x/v1"}
	var s times
	for b.Loop() {
		begun := time.Now()
		x, err := a.Open(b.Context(), src, req, nil)
		if err != nil {
			b.Fatal(err)
		}
		p, err := x.Prepare(b.Context())
		if err != nil || len(p.Body) < 10_000 {
			b.Fatal(len(p.Body), err)
		}
		if got, err := x.Answer(b.Context(), []byte(wholeAnswer)); err != nil || len(got) == 0 {
			b.Fatal(got, err)
		}
		x.Close()
		s = append(s, time.Since(begun))
	}
	report(b, "transform", s)
}

// benchChunk reads one event of a stream, its JSON included.
func benchChunk(b *testing.B) {
	engine, err := lua.New("", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	a, err := engine.Adapter("openai")
	if err != nil {
		b.Fatal(err)
	}
	x, err := a.Open(b.Context(), &providers.Source{Name: "s", Model: "m", BaseURL: "http://x/v1"}, &providers.Request{CompletionRequest: large(), Stream: true}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	ev := framing.Event{Name: "message", Data: []byte(wordEvent)}
	var s times
	for b.Loop() {
		begun := time.Now()
		if p, err := x.Event(b.Context(), ev); err != nil || p[0].Text != " word" {
			b.Fatal(p, err)
		}
		s = append(s, time.Since(begun))
	}
	report(b, "chunk", s)
}

// upstream serves every request in one way; the client is one over the built-in adapters.
func upstream(b *testing.B, serve http.HandlerFunc) (*providers.Client, providers.Source) {
	b.Helper()
	srv := httptest.NewServer(serve)
	c := engineClient(b)
	b.Cleanup(srv.Close)
	return c, providers.Source{Name: "s", Adapter: "openai", BaseURL: srv.URL + "/v1", Model: "m", APIKey: secretly("k")}
}

func writes(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(body)
	}
}

const lastEvents = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"

// benchDeltas has the arguments of one call come in n pieces.
func benchDeltas(b *testing.B, n int) {
	var body bytes.Buffer
	piece := func(args string) {
		fmt.Fprintf(&body, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":%q}}]}}]}\n\n", args)
	}
	piece(`{"a":"`)
	for range n {
		piece("abcd")
	}
	piece(`"}`)
	body.WriteString("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
	c, src := upstream(b, writes(body.Bytes()))
	for b.Loop() {
		res, err := c.Stream(b.Context(), src, asking(user("x")), providers.Hooks{})
		if err != nil || len(res.GetCalls()) != 1 || len(res.GetCalls()[0].GetArgumentsJson()) != 4*n+8 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/piece")
}

// bare asks with net/http alone and gives when the first event was there and when all was.
func bare(b *testing.B, c *http.Client, url string, header http.Header, body string) (first, all time.Duration) {
	b.Helper()
	begun := time.Now()
	q, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	maps.Copy(q.Header, header)
	q.Header.Set("Content-Type", "application/json")
	res, err := c.Do(q)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	line, err := in.ReadString('\n')
	first = time.Since(begun)
	if res.StatusCode != 200 || err != nil && !errors.Is(err, io.EOF) {
		b.Fatal(res.Status, line, err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		b.Fatal(err)
	}
	return first, time.Since(begun)
}

// through makes a call and gives when the first text was there and when all was.
func through(b *testing.B, c *providers.Client, src providers.Source, req *messages.CompletionRequest) (first, all time.Duration) {
	b.Helper()
	begun := time.Now()
	res, err := c.Stream(b.Context(), src, req, providers.Hooks{Delta: func(d *messages.Delta) {
		if first == 0 && d.GetText() != "" {
			first = time.Since(begun)
		}
	}})
	if err != nil || res.GetText() == "" {
		b.Fatal(res, err)
	}
	return first, time.Since(begun)
}

// benchFirst is the time to the first text with an adapter, against that to the first bytes with net/http alone; they take turns.
func benchFirst(b *testing.B) {
	c, src := upstream(b, writes([]byte("data: "+wordEvent+"\n\n"+lastEvents)))
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	body := string(prepared(b, large()))
	var with, without times
	for b.Loop() {
		first, _ := bare(b, h, src.BaseURL+"/chat/completions", nil, body)
		without = append(without, first)
		first, _ = through(b, c, src, large())
		with = append(with, first)
	}
	report(b, "with", with)
	report(b, "bare", without)
	b.ReportMetric(float64((with.at(0.5)-without.at(0.5)).Nanoseconds())/1e3, "added-p50-us")
}

// prepared is the body that the adapter makes of a request.
func prepared(b *testing.B, req *messages.CompletionRequest) []byte {
	b.Helper()
	engine, err := lua.New("", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	a, err := engine.Adapter("openai")
	if err != nil {
		b.Fatal(err)
	}
	x, err := a.Open(b.Context(), &providers.Source{Name: "s", Model: "m", BaseURL: "http://x/v1"}, &providers.Request{CompletionRequest: req, Stream: true}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	p, err := x.Prepare(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return p.Body
}

// benchCancel is from the cancel of a call in mid-stream to the end of the connection at the server.
func benchCancel(b *testing.B) {
	closed := make(chan time.Time)
	c, src := upstream(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+wordEvent+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		closed <- time.Now()
	})
	var s times
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		var at time.Time
		_, err := c.Stream(ctx, src, asking(user("x")), providers.Hooks{Delta: func(*messages.Delta) {
			if at.IsZero() {
				at = time.Now()
				cancel()
			}
		}})
		if err == nil {
			b.Fatal("it was not cancelled")
		}
		s = append(s, (<-closed).Sub(at))
		cancel()
	}
	report(b, "cancel", s)
}

// benchStreams reads 64 streams of 500 events at the same time, and looks what is left of them.
func benchStreams(b *testing.B) {
	const streams, events = 64, 500
	c, src := upstream(b, writes([]byte(strings.Repeat("data: "+wordEvent+"\n\n", events)+lastEvents)))
	run := func() {
		var all sync.WaitGroup
		for range streams {
			all.Go(func() {
				res, err := c.Stream(b.Context(), src, asking(user("x")), providers.Hooks{})
				if err != nil || len(res.GetText()) != 5*events {
					b.Errorf("%d bytes, %v", len(res.GetText()), err)
				}
			})
		}
		all.Wait()
	}
	run()
	before := settled()
	for b.Loop() {
		run()
	}
	after := settled()
	b.ReportMetric(float64(streams*events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(after.goroutines-before.goroutines), "goroutines-left")
	b.ReportMetric(float64(int64(after.heap)-int64(before.heap))/1e3, "heap-left-kB")
}

// rest is what a process holds on to.
type rest struct {
	goroutines int
	heap       uint64
}

// settled waits until the number of goroutines does not fall any more.
func settled() rest {
	low, same := runtime.NumGoroutine(), 0
	for tick := time.NewTicker(10 * time.Millisecond); same < 50; <-tick.C {
		if n := runtime.NumGoroutine(); n < low {
			low, same = n, 0
		} else {
			same++
		}
	}
	runtime.GC()
	runtime.GC() // pools are emptied by the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return rest{low, m.HeapAlloc}
}

// benchGateway asks the same server directly, by way of another gateway, and with an adapter; they take turns.
func benchGateway(b *testing.B) {
	p := startPeer(b, "@copilotkit/aimock/dist/cli.js", "--port", "0", "--chunk-size", "20", "--log-level", "info", "--fixtures", "testdata/peers/vendor.json")
	g := startPeer(b, "@portkey-ai/gateway/build/start-server.js", fmt.Sprintf("--port=%d", freePort(b)), "--headless")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	gateway := "http://127.0.0.1:" + port + "/v1/chat/completions"
	c := engineClient(b)
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	for _, whole := range []bool{true, false} {
		name := map[bool]string{true: "whole", false: "stream"}[whole]
		b.Run(name, func(b *testing.B) {
			src := wires[0].source(p)
			src.Whole = whole
			body := fmt.Sprintf(`{"model":"m-1","stream":%v,"messages":[{"role":"user","content":"say hello"}]}`, !whole)
			theirs := http.Header{"X-Portkey-Provider": {"openai"}, "X-Portkey-Custom-Host": {p.url + "/v1"}, "Authorization": {"Bearer k"}}
			req := &messages.CompletionRequest{CallId: "c", Messages: []*messages.ChatMessage{user("say hello")}}
			var direct, by, with times
			for b.Loop() {
				_, all := bare(b, h, src.BaseURL+"/chat/completions", nil, body)
				direct = append(direct, all)
				_, all = bare(b, h, gateway, theirs, body)
				by = append(by, all)
				_, all = through(b, c, src, req)
				with = append(with, all)
			}
			report(b, "direct", direct)
			report(b, "portkey", by)
			report(b, "adapter", with)
			ours, other := with.at(0.5)-direct.at(0.5), by.at(0.5)-direct.at(0.5)
			b.ReportMetric(float64(ours.Nanoseconds())/1e3, "adapter-added-us")
			b.ReportMetric(float64(other.Nanoseconds())/1e3, "portkey-added-us")
			if ours > 0 {
				b.ReportMetric(float64(other)/float64(ours), "portkey/adapter")
			}
		})
	}
}

// freePort finds a port that nobody listens at.
func freePort(t testing.TB) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

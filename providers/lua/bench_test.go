package lua_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/framing"
	"homeagent/providers/providertest"
)

func open(b *testing.B, req *messages.CompletionRequest) providers.Exchange {
	b.Helper()
	a, err := engine(b, "").Adapter("openai")
	if err != nil {
		b.Fatal(err)
	}
	x, err := a.Open(b.Context(), &providers.Source{Name: "s", Model: "m", BaseURL: "http://x/v1"}, &providers.Request{CompletionRequest: req, Stream: true}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(x.Close)
	return x
}

// BenchmarkEvent is the cost of one event of a stream, decoding included.
func BenchmarkEvent(b *testing.B) {
	x := open(b, providertest.Ask("x"))
	ev := framing.Event{Name: "message", Data: []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x","service_tier":"default","system_fingerprint":"fp_x","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`)}
	b.ReportAllocs()
	for b.Loop() {
		p, err := x.Event(context.Background(), ev)
		if err != nil || p[0].Text != " word" {
			b.Fatal(p, err)
		}
	}
}

// BenchmarkRequest is open, transform and close with 20 messages and 20 tools.
func BenchmarkRequest(b *testing.B) {
	req := providertest.Ask("x")
	for i := range 19 {
		req.Messages = append(req.Messages, &messages.ChatMessage{Role: messages.Role_ROLE_USER, Parts: text(strings.Repeat(fmt.Sprint("some words ", i), 30))})
	}
	for i := range 20 {
		req.Tools = append(req.Tools, &messages.ToolDef{
			Name: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("what it does ", 10),
			ParametersJson: []byte(`{"type":"object","properties":{"a":{"type":"string","description":"the first"},"b":{"type":"integer"}},"required":["a"]}`),
		})
	}
	a, err := engine(b, "").Adapter("openai")
	if err != nil {
		b.Fatal(err)
	}
	src := &providers.Source{Name: "s", Model: "m", BaseURL: "http://x/v1"}
	b.ReportAllocs()
	for b.Loop() {
		x, err := a.Open(b.Context(), src, &providers.Request{CompletionRequest: req, Stream: true}, nil)
		if err != nil {
			b.Fatal(err)
		}
		p, err := x.Prepare(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(p.Body)))
		x.Close()
	}
}

// BenchmarkArguments streams the arguments of one call in n pieces; the time a
// piece must not grow with n.
func BenchmarkArguments(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
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
			c, src := served(b, body.Bytes())
			for b.Loop() {
				res, err := c.Stream(b.Context(), src, providertest.Ask("x"), providers.Hooks{})
				if err != nil || len(res.GetCalls()) != 1 || len(res.GetCalls()[0].GetArgumentsJson()) != 4*n+8 {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/piece")
		})
	}
}

func served(b *testing.B, body []byte) (*providers.Client, providers.Source) {
	b.Helper()
	v, err := providertest.Start("", providertest.Script{Steps: []providertest.Step{{
		Body: string(body), Header: map[string]string{"Content-Type": "text/event-stream"},
	}}})
	if err != nil {
		b.Fatal(err)
	}
	c := providers.NewClient(providers.Options{Adapters: engine(b, "")})
	b.Cleanup(func() {
		c.Close()
		v.Close()
	})
	return c, providers.Source{Name: "s", Adapter: "openai", BaseURL: v.URL(), Model: "m"}
}

var small = []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")

// BenchmarkCall is a whole small call over loopback; BenchmarkBare is the same
// exchange with net/http alone.
func BenchmarkCall(b *testing.B) {
	c, src := served(b, small)
	for b.Loop() {
		if res, err := c.Stream(b.Context(), src, providertest.Ask("x"), providers.Hooks{}); err != nil || res.GetText() != "hi" {
			b.Fatal(err)
		}
	}
}

func BenchmarkBare(b *testing.B) {
	_, src := served(b, small)
	for b.Loop() {
		resp, err := http.Post(src.BaseURL+"/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}`))
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != int64(len(small)) {
			b.Fatal(n, err)
		}
		_ = resp.Body.Close()
	}
}

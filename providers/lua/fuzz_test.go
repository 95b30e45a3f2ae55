package lua_test

import (
	"testing"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/framing"
	"homeagent/providers/providertest"
)

// FuzzOpenAI feeds any JSON to the adapter: a server may send what it likes,
// the adapter must neither break nor be blamed.
func FuzzOpenAI(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"delta":{"content":"x","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`,
		`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"text":"t"}]}],"reasoning_details":[{"type":"reasoning.text","text":"x","index":0}]}}]}`,
		`{"error":{"code":400,"message":"m","status_code":400,"metadata":{"raw":"r"}}}`, `{"code":"Arrearage","message":"no"}`, `{"base_resp":{"status_code":1008}}`,
		`{"detail":[{"loc":["x"]}]}`, `{"choices":[{"message":{"function_call":{"name":"f","arguments":{"a":1}}},"error":{"code":1}}]}`,
		`{"choices":[null]}`, `{"choices":{"a":1}}`, `{"choices":[{"delta":null,"finish_reason":5}]}`, `{"choices":[{"delta":{"tool_calls":{"function":{}}}}]}`,
		`{"choices":[{"delta":{"reasoning_details":["a",1,null,[]]}}]}`, `{"error":""}`, `{"error":[1]}`, `{"error":true}`, `{"usage":[1]}`, `[]`, `{}`, `null`,
		`{"choices":[{"delta":{"tool_calls":[1,null,"x",{"function":"f"},{"function":{"arguments":5}}]}}]}`, `{"base_resp":{"status_code":"x"}}`, `{"model":5,"error_msg":"x","error_code":[]}`,
	} {
		f.Add([]byte(seed), 200)
	}
	e := engine(f, "")
	a, err := e.Adapter("openai")
	if err != nil {
		f.Fatal(err)
	}
	src := providers.Source{Name: "s", Adapter: "openai", Model: "m"}
	f.Fuzz(func(t *testing.T, data []byte, status int) {
		ctx := t.Context()
		x, err := a.Open(ctx, &src, &providers.Request{CompletionRequest: providertest.Ask("x"), Stream: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		blamed := func(what string, err error) {
			if err != nil && providers.AsFailure(err).Kind == messages.ErrorKind_ERROR_KIND_ADAPTER {
				t.Fatalf("%s: %v", what, err)
			}
		}
		for range 2 {
			_, err = x.Event(ctx, framing.Event{Name: "message", Data: data})
			blamed("event", err)
		}
		_, err = x.Event(ctx, framing.Event{Name: "error", Data: data, Partial: true})
		blamed("error event", err)
		_, err = x.End(ctx)
		blamed("end", err)
		_, err = x.Answer(ctx, data)
		blamed("answer", err)
		_, err = x.Classify(ctx, providers.HTTPError{Status: status, Body: data})
		blamed("classify", err)
	})
}

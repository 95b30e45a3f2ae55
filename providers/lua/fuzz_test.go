package lua_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/framing"
	"homeagent/providers/providertest"
)

// oddities are JSON texts of shapes that no wire has.
var oddities = []string{
	`{"choices":[{"delta":{"content":"x","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`,
	`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"text":"t"}]}]}}]}`, `{"error":{"code":400,"message":"m","status_code":400,"metadata":{"raw":"r"}}}`,
	`{"code":"Arrearage","message":"no"}`, `{"base_resp":{"status_code":1008}}`, `{"detail":[{"loc":["x"]}]}`, `{"choices":[null]}`, `{"choices":{"a":1}}`,
	`{"choices":[{"delta":null,"finish_reason":5}]}`, `{"choices":[{"delta":{"tool_calls":{"function":{}}}}]}`, `{"choices":[{"delta":{"reasoning_details":["a",1,null,[]]}}]}`,
	`{"error":""}`, `{"error":[1]}`, `{"error":true}`, `{"usage":[1]}`, `[]`, `{}`, `null`, `[1]`, `[[]]`, `[null]`, `5`, `"x"`,
	`{"choices":[{"delta":{"tool_calls":[1,null,"x",{"function":"f"},{"function":{"arguments":5}}]}}]}`, `{"base_resp":{"status_code":"x"}}`, `{"model":5,"error_msg":"x","error_code":[]}`,
	`{"type":"content_block_start","index":{},"content_block":5}`, `{"type":"content_block_start","content_block":{"type":"tool_use","input":[1]}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}`,
	`{"type":"content_block_delta","index":9,"delta":[]}`, `{"type":"message_start","message":7}`, `{"type":"message_delta","usage":{"input_tokens":"x"}}`, `{"content":[1,null,{"type":5},{"type":"thinking"}],"stop_reason":[]}`,
	`{"candidates":[{"content":{"parts":[1,null,{"functionCall":5},{"functionCall":{"name":"f","willContinue":true,"partialArgs":[{"jsonPath":"$[5].a[0]..","stringValue":"x"},{"jsonPath":5},1]}}]}}]}`,
	`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a","boolValue":true},{"jsonPath":"$.a.b","numberValue":1}]}}]},"finishReason":"STOP"}]}`,
	`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":5}],"usageMetadata":[1]}`, `{"error":{"code":"x","status":5,"details":[1,{"retryDelay":5}]}}`,
	`{"type":"response.output_item.added","item":{"type":5}}`, `{"type":"response.output_item.done","output_index":"x","item":{"type":"message","content":5}}`, `{"type":"response.completed","response":5}`,
	`{"type":"response.function_call_arguments.delta","delta":5}`, `{"type":"response.completed","response":{"output":[1,{"type":"function_call","arguments":{}}]}}`, `{"type":["x"]}`,
	`{"message":{"tool_calls":[1,{"function":{"arguments":5}}],"content":{},"images":5},"done":true,"done_reason":5}`, `{"message":5,"done":"x"}`, `{"error":{"error":"{"}}`,
	`{"type":"tool-call-start","index":"x","delta":{"message":{"tool_calls":[1]}}}`, `{"type":"message-end","delta":{"finish_reason":5,"usage":5,"error":{}}}`, `{"event_type":"stream-end","response":5}`, `{"event_type":[]}`,
	`{"contentBlockIndex":"x","delta":{"reasoningContent":{"text":5}}}`, `{"delta":5,"start":{"toolUse":5}}`, `{"metadata":{"usage":{"inputTokens":"x"}}}`, `{"output":{"message":{"content":[1,{"toolUse":5}]}},"stopReason":5}`,
	`{"text":5,"finish":"x","usage":5,"tools":5,"replay":5,"error":5}`, `{"replay":[1,{}],"tools":[1]}`, `{"usage":{"inp":1}}`, `{"error":{"kind":"x"}}`,
	`{"data":[{"index":-5,"embedding":[1]},{"index":1e9,"embedding":"AAAA"}]}`, `{"data":5}`, `{"embeddings":[[1,"x"]]}`, `{"embeddings":{"float":[5]}}`,
}

// FuzzAdapters feeds any JSON to every adapter that is built in: a server may
// send what it likes, an adapter must neither break nor be blamed, nor take
// longer than its budget.
func FuzzAdapters(f *testing.F) {
	e := engine(f, "")
	var names []string
	for _, s := range e.List() {
		if !s.Info.Local {
			names = append(names, s.Info.Name)
		}
	}
	seed := func(name string, data []byte, status int) {
		f.Add(data, "message", uint8(slices.Index(names, name)), status)
	}
	for i, odd := range oddities {
		for n := range 3 { // others meet it by mutation
			f.Add([]byte(odd), "contentBlockDelta", uint8(3*i+n), 200)
		}
	}
	for _, family := range providertest.Families() {
		recs, err := providertest.Fixtures(family)
		if err != nil {
			f.Fatal(err)
		}
		for _, r := range recs {
			rd, err := framing.New(r.Kind(), bytes.NewReader(r.Body), 0)
			if err != nil {
				f.Fatal(err)
			}
			for range 3 {
				ev, err := rd.Next()
				if err != nil {
					break
				}
				seed(family, bytes.Clone(ev.Data), r.Status)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, event string, which uint8, status int) {
		a, err := e.Adapter(names[int(which)%len(names)])
		if err != nil {
			t.Fatal(err)
		}
		src := providers.Source{Name: "s", Adapter: a.Info().Name, Model: "m", BaseURL: "https://model.invalid/v1"}
		feed(t, a, &src, data, event, status)
	})
}

// feed gives data to each function of an adapter that takes bytes of a server.
func feed(t *testing.T, a providers.Adapter, src *providers.Source, data []byte, event string, status int) {
	ctx := t.Context()
	x, err := a.Open(ctx, src, &providers.Request{CompletionRequest: providertest.Ask("x"), Stream: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	blamed := func(what string, err error) {
		if err != nil && providers.AsFailure(err).Kind == messages.ErrorKind_ERROR_KIND_ADAPTER {
			t.Fatalf("%s: %s: %v", src.Adapter, what, err)
		}
	}
	if a.Info().Embeds {
		_, err = x.Embeddings(ctx, data)
		blamed("embeddings", err)
	}
	_, err = x.Classify(ctx, providers.HTTPError{Status: status, Body: data})
	blamed("classify", err)
	if !a.Info().Chat {
		return
	}
	for range 2 {
		_, err = x.Event(ctx, framing.Event{Name: event, Data: data})
		blamed("event", err)
	}
	_, err = x.Event(ctx, framing.Event{Name: "error", Data: data, Partial: true})
	blamed("error event", err)
	_, err = x.Event(ctx, framing.Event{Name: event, Data: data, Exception: true})
	blamed("exception", err)
	_, err = x.End(ctx)
	blamed("end", err)
	_, err = x.Answer(ctx, data)
	blamed("answer", err)
}

// TestOddities feeds all of them to all adapters.
func TestOddities(t *testing.T) {
	e := engine(t, "")
	for _, s := range e.List() {
		if s.Info.Local {
			continue
		}
		a, err := e.Adapter(s.Info.Name)
		if err != nil {
			t.Fatal(err)
		}
		src := providers.Source{Name: "s", Adapter: s.Info.Name, Model: "m", BaseURL: "https://model.invalid/v1"}
		for _, odd := range oddities {
			feed(t, a, &src, []byte(odd), "contentBlockDelta", 400)
		}
	}
}

// FuzzRequests makes requests of any texts, arguments, schemas and replay
// material for any adapter that is built in: each must become valid JSON.
func FuzzRequests(f *testing.F) {
	e := engine(f, "")
	var all []providers.Adapter
	for _, s := range e.List() {
		if s.Info.Local || !s.Info.Chat {
			continue
		}
		a, err := e.Adapter(s.Info.Name)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, a)
	}
	odd := []struct {
		words, args, schema, replay, model string
		effort                             uint8
	}{
		{"hi", `{"a":1}`, `{"type":"object"}`, `[{"type":"thinking","item":{"type":"thinking","thinking":"x"},"at":1,"calls":1,"of":2}]`, "claude-opus-4-6", 5},
		{"", ``, ``, `[{"type":"thought_signature","signature":"c2ln","call":true},{"type":"thought_signature","signature":"x","till":2,"of":2}]`, "gemini-3-pro", 0},
		{" ", `[]`, `{"anyOf":[{}],"$defs":{"a":5},"required":5}`, `[5,null,"x",[]]`, "o3", 6},
		{"\xff", `{"a":`, `[]`, `{"a":1}`, "grok-4", 1},
		{"a", `5`, `5`, `5`, "", 2},
		{"ab", `{}`, `{"properties":[]}`, `[{"type":"reasoning","item":{"encrypted_content":"x"},"at":-5,"calls":"x","of":2},{"type":"think_tags"},{"type":"tool_plan"},{"type":"reasoning_details"}]`, "m", 3},
	}
	for i := range all {
		for _, s := range odd {
			f.Add(s.words, s.args, s.schema, s.replay, s.model, s.effort, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, words, args, schema, replay, model string, effort, which uint8) {
		say := text(words)
		q := &messages.CompletionRequest{
			CallId: "c", Thinking: providers.Efforts[int(effort)%len(providers.Efforts)], OutputSchemaJson: []byte(schema), ToolChoice: "tool:" + words,
			Messages: []*messages.ChatMessage{
				{Role: messages.Role_ROLE_SYSTEM, Parts: say},
				{Role: messages.Role_ROLE_ASSISTANT, Parts: say, Reasoning: words, Replay: []byte(replay), ReplaySource: "s"},
				{Role: messages.Role_ROLE_USER, Parts: say},
				{
					Role: messages.Role_ROLE_ASSISTANT, Parts: say, Reasoning: words, Replay: []byte(replay), ReplaySource: "s",
					Calls: []*messages.ToolInvocation{{VendorId: words, Name: model, ArgumentsJson: []byte(args)}, {VendorId: words, Name: words, ArgumentsJson: []byte(args)}},
				},
				{Role: messages.Role_ROLE_TOOL, VendorCallId: words, ToolName: model, Parts: say},
			},
			Tools: []*messages.ToolDef{{Name: words, Description: words, ParametersJson: []byte(schema)}, {Name: "x", ParametersJson: []byte(args)}},
		}
		a := all[int(which)%len(all)]
		fitted, _ := providers.Fit(q, "s", a.Info())
		src := providers.Source{Name: "s", Adapter: a.Info().Name, Model: model, BaseURL: "https://model.invalid/v1"}
		x, err := a.Open(t.Context(), &src, &providers.Request{CompletionRequest: fitted, Stream: true}, nil)
		if err != nil {
			t.Fatalf("%s: %v", src.Adapter, err)
		}
		defer x.Close()
		p, err := x.Prepare(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", src.Adapter, err)
		}
		if !json.Valid(p.Body) {
			t.Fatalf("%s: %s", src.Adapter, p.Body)
		}
	})
}

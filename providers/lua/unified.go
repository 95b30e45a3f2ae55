package lua

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"homeagent/internal/luavm"
	"homeagent/messages"
)

var roles = map[messages.Role]string{
	messages.Role_ROLE_SYSTEM:    "system",
	messages.Role_ROLE_USER:      "user",
	messages.Role_ROLE_ASSISTANT: "assistant",
	messages.Role_ROLE_TOOL:      "tool",
}

func (x *exchange) sourceTable() luavm.Value {
	return x.vm.Object().
		Set("name", luavm.Str(x.src.Name)).
		Set("model", luavm.Str(x.src.Model)).
		Set("base_url", luavm.Str(x.base)).
		Set("options", x.options).
		Set("vision", luavm.Boolean(x.src.Vision)).
		Set("audio", luavm.Boolean(x.src.Audio)).
		Set("context_window", count(x.src.ContextWindow)).
		Set("has_key", luavm.Boolean(x.src.APIKey != nil && x.src.APIKey().IsSet()))
}

// count gives a figure, nil for none.
func count(n int) luavm.Value {
	if n <= 0 {
		return luavm.Value{}
	}
	return luavm.Num(float64(n))
}

func (x *exchange) requestTable() luavm.Value {
	req := x.vm.Object()
	list := x.vm.Array()
	made := make(map[string]bool)
	for _, m := range x.req.GetMessages() {
		t := x.message(m)
		switch m.GetRole() {
		case messages.Role_ROLE_ASSISTANT:
			clear(made)
			for _, c := range m.GetCalls() {
				made[c.GetVendorId()] = c.GetMadeId()
			}
		case messages.Role_ROLE_TOOL:
			if made[m.GetVendorCallId()] {
				t.Set("made", luavm.Boolean(true))
			}
		default:
		}
		list.Append(t)
	}
	req.Set("messages", list)
	tools := x.vm.Array()
	if x.a.info.Tools {
		for _, d := range x.req.GetTools() {
			tools.Append(x.tool(d))
		}
	}
	req.Set("tools", tools)
	if n := firstPositive(int(x.req.GetMaxTokens()), x.src.MaxTokens); n > 0 {
		req.Set("max_tokens", luavm.Num(float64(n)))
	}
	if t := x.req.Temperature; t != nil {
		req.Set("temperature", luavm.Num(*t))
	} else if t := x.src.Temperature; t != nil {
		req.Set("temperature", luavm.Num(*t))
	}
	x.wishes(req)
	req.Set("stream", luavm.Boolean(x.req.Stream))
	if x.a.info.Local {
		x.recall(req)
	}
	return req
}

// wishes adds what the model is asked for besides the messages.
func (x *exchange) wishes(req luavm.Value) {
	effort := x.req.GetThinking()
	if effort == "" {
		effort = x.src.Thinking
	}
	if effort != "" && x.a.info.Thinking {
		req.Set("thinking", luavm.Str(effort))
	}
	if choice := x.req.GetToolChoice(); choice != "" && req.Get("tools").Len() > 0 {
		t := x.vm.Object()
		if name, ok := strings.CutPrefix(choice, "tool:"); ok {
			t.Set("mode", luavm.Str("tool")).Set("name", luavm.Str(name))
		} else {
			t.Set("mode", luavm.Str(choice))
		}
		req.Set("tool_choice", t)
	}
	if schema := x.req.GetOutputSchemaJson(); len(schema) > 0 && luavm.Valid(schema) == nil {
		req.Set("output_schema", x.vm.Raw(schema))
	}
}

func firstPositive(ns ...int) int {
	for _, n := range ns {
		if n > 0 {
			return n
		}
	}
	return 0
}

// recall adds what only an adapter that answers by itself can use.
func (x *exchange) recall(req luavm.Value) {
	list := x.vm.Array()
	for _, r := range x.req.GetRecalled() {
		list.Append(x.vm.Object().
			Set("id", luavm.Str(r.GetId())).
			Set("text", luavm.Str(r.GetText())).
			Set("at", luavm.Num(float64(r.GetAtUs()/1_000_000))).
			Set("via", luavm.Str(r.GetVia())).
			Set("score", luavm.Num(r.GetScore())).
			Set("speaker", luavm.Str(r.GetSpeaker())).
			Set("conversation", luavm.Str(r.GetConversation())))
	}
	req.Set("recalled", list).
		Set("memory_none", luavm.Boolean(x.req.GetMemoryNone())).
		Set("question", luavm.Str(x.req.GetQuestion()))
}

func (x *exchange) tool(d *messages.ToolDef) luavm.Value {
	return x.vm.Object().
		Set("name", luavm.Str(d.GetName())).
		Set("description", luavm.Str(d.GetDescription())).
		Set("parameters", x.vm.Raw(parameters(d.GetParametersJson())))
}

// parameters gives a tool's schema with what vendors insist on: that it is of an
// object, and names its properties, be it none. The rest keeps its bytes.
func parameters(schema []byte) []byte {
	schema = bytes.TrimSpace(schema)
	if len(schema) == 0 || schema[0] != '{' || luavm.Valid(schema) != nil {
		return []byte(`{"type":"object","properties":{}}`)
	}
	var head []byte
	for _, field := range []struct{ name, value string }{{"type", `"object"`}, {"properties", `{}`}} {
		if has, err := luavm.Pick(schema, field.name); err == nil && has == nil {
			head = append(head, '"')
			head = append(append(head, field.name...), '"', ':')
			head = append(append(head, field.value...), ',')
		}
	}
	rest := bytes.TrimSpace(schema[1:])
	if len(head) == 0 {
		return schema
	}
	if rest[0] == '}' {
		head = head[:len(head)-1]
	}
	return append(append([]byte{'{'}, head...), rest...)
}

func (x *exchange) message(m *messages.ChatMessage) luavm.Value {
	out := x.vm.Object().Set("role", luavm.Str(roles[m.GetRole()]))
	parts := x.vm.Array()
	var text []string
	for _, p := range m.GetParts() {
		v, plain := x.part(p)
		parts.Append(v)
		if plain != "" {
			text = append(text, plain)
		}
	}
	out.Set("text", luavm.Str(strings.Join(text, "\n"))).Set("parts", parts)
	calls := x.vm.Array()
	for _, c := range m.GetCalls() {
		args := string(c.GetArgumentsJson())
		if luavm.Valid(c.GetArgumentsJson()) != nil {
			// The model's own broken arguments: servers refuse them in the
			// history, and the result says what was wrong.
			args = "{}"
		}
		call := x.vm.Object().
			Set("id", luavm.Str(c.GetVendorId())).
			Set("name", luavm.Str(c.GetName())).
			Set("arguments", luavm.Str(args))
		if c.GetMadeId() {
			call.Set("made", luavm.Boolean(true))
		}
		calls.Append(call)
	}
	out.Set("calls", calls)
	optional := func(name, value string) {
		if value != "" {
			out.Set(name, luavm.Str(value))
		}
	}
	optional("call_id", m.GetVendorCallId())
	optional("name", m.GetToolName())
	optional("reasoning", m.GetReasoning())
	if luavm.Valid(m.GetReplay()) == nil {
		optional("replay", string(m.GetReplay()))
	}
	if m.GetFailed() {
		out.Set("failed", luavm.Boolean(true))
	}
	return out
}

// part gives a part and its plain text. Media that the source does not take is
// named in words: a model that is not told would answer as if nothing was sent.
func (x *exchange) part(p *messages.Part) (luavm.Value, string) {
	ref := p.GetPayload()
	if ref == nil {
		return x.vm.Object().Set("type", luavm.Str("text")).Set("text", luavm.Str(p.GetText())), p.GetText()
	}
	if data := x.req.Media[ref.GetId()]; data != nil {
		kind, _, _ := strings.Cut(ref.GetMediaType(), "/")
		return x.vm.Object().
			Set("type", luavm.Str(kind)).
			Set("media_type", luavm.Str(ref.GetMediaType())).
			Set("data", luavm.Str(base64.StdEncoding.EncodeToString(data))), ""
	}
	media := ref.GetMediaType()
	if media == "" {
		media = "text/plain"
	}
	note := fmt.Sprintf("[attachment %s, %s, %d bytes; its content is not shown to this model]", ref.GetId(), media, ref.GetSize())
	return x.vm.Object().Set("type", luavm.Str("text")).Set("text", luavm.Str(note)), note
}

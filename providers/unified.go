package providers

import (
	"bytes"
	"encoding/json"
	"strings"

	"homeagent/messages"
)

// Unified is a result in the one form that does not depend on the vendor, for
// people, tests and tools. Absent means empty.
type Unified struct {
	Text      string        `json:"text,omitempty"`
	Reasoning string        `json:"reasoning,omitempty"`
	ToolCalls []UnifiedCall `json:"tool_calls,omitempty"`
	// NotToRun are calls that may not run, with the reason in Invalid.
	NotToRun []UnifiedCall `json:"tool_calls_not_to_run,omitempty"`
	// Usage has the figures that the wire named.
	Usage *UnifiedUsage `json:"usage,omitempty"`
	// Finish is stop, length, tool_calls, content_filter, pause or error; a
	// request that was refused before an answer began has none.
	Finish  string        `json:"finish,omitempty"`
	Error   *UnifiedError `json:"error,omitempty"`
	Refusal string        `json:"refusal,omitempty"`
	// Replay tells of each opaque item that the next request carries back its
	// type, its id and the lengths of its texts. Items that belong to text or
	// calls shown above are left out.
	Replay []json.RawMessage `json:"replay,omitempty"`
	// ThoughtSignatures counts those that go back with the parts they signed.
	ThoughtSignatures int      `json:"thought_signatures,omitempty"`
	ServerBlocks      []string `json:"server_blocks,omitempty"`
	// Material is the replay material itself, a JSON array.
	Material json.RawMessage `json:"material,omitempty"`
}

// UnifiedCall is one tool call.
type UnifiedCall struct {
	// ID is unique in the answer.
	ID string `json:"id"`
	// WireID is there, and null, when the id was made because the wire had none.
	WireID *json.RawMessage `json:"wire_id,omitempty"`
	Name   string           `json:"name"`
	// Args are the original bytes; null when they are no JSON.
	Args json.RawMessage `json:"args"`
	// Text of arguments that are no JSON.
	Text string `json:"args_text,omitempty"`
	// Invalid says why the call may not run.
	Invalid string `json:"invalid,omitempty"`
}

// UnifiedUsage has token counts; nil is not said.
type UnifiedUsage struct {
	In         *int64 `json:"in,omitempty"`
	Out        *int64 `json:"out,omitempty"`
	Total      *int64 `json:"total,omitempty"`
	Cached     *int64 `json:"cached,omitempty"`
	Reasoning  *int64 `json:"reasoning,omitempty"`
	CacheWrite *int64 `json:"cache_write,omitempty"`
	BilledIn   *int64 `json:"billed_in,omitempty"`
	BilledOut  *int64 `json:"billed_out,omitempty"`
}

// UnifiedError is how a call failed.
type UnifiedError struct {
	// Kind is a name that KindName gives.
	Kind string `json:"kind"`
	// Code of the vendor, as a text or a number as on the wire.
	Code json.RawMessage `json:"code,omitempty"`
	// Status of HTTP, or the one that the error itself claims.
	Status  int    `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	// RetryAfterMs is what the vendor asked to be left alone for.
	RetryAfterMs int64 `json:"retry_after_ms,omitempty"`
}

// Unify gives the unified form of what Client.Stream returned.
func Unify(res *messages.CompletionResult, err error) *Unified {
	u := &Unified{
		Text: res.GetText(), Reasoning: res.GetReasoning(), Refusal: res.GetRefusal(), ServerBlocks: res.GetServerBlocks(),
		Usage: unifiedUsage(res.GetUsage()),
	}
	if f := res.GetFinish(); f != messages.Finish_FINISH_UNSPECIFIED {
		u.Finish = strings.ToLower(strings.TrimPrefix(f.String(), "FINISH_"))
	}
	for _, c := range res.GetCalls() {
		call := unifiedCall(c)
		if call.Invalid == "" {
			u.ToolCalls = append(u.ToolCalls, call)
		} else {
			u.NotToRun = append(u.NotToRun, call)
		}
	}
	u.Replay, u.ThoughtSignatures = summaries(res.GetReplay())
	u.Material = res.GetReplay()
	if err == nil {
		return u
	}
	f := AsFailure(err)
	u.Error = &UnifiedError{Kind: KindName(f.Kind), Status: f.Status, Message: f.Message, RetryAfterMs: f.RetryAfter.Milliseconds()}
	if f.Code != "" {
		if u.Error.Code = json.RawMessage(f.Code); !f.Numeric || !json.Valid(u.Error.Code) {
			u.Error.Code, _ = json.Marshal(f.Code)
		}
	}
	if f.Refused {
		u.Finish = ""
	}
	return u
}

func unifiedUsage(u *messages.Usage) *UnifiedUsage {
	if u.GetReported() == 0 {
		return nil
	}
	out := &UnifiedUsage{}
	to := map[string]**int64{
		"input": &out.In, "output": &out.Out, "total": &out.Total, "cached": &out.Cached, "reasoning": &out.Reasoning,
		"cache_write": &out.CacheWrite, "billed_input": &out.BilledIn, "billed_output": &out.BilledOut,
	}
	for _, f := range Figures(u) {
		if p := to[f.Name]; p != nil && u.Reported&f.Bit != 0 {
			*p = f.Value
		}
	}
	return out
}

func unifiedCall(c *messages.ToolInvocation) UnifiedCall {
	out := UnifiedCall{ID: c.GetVendorId(), Name: c.GetName(), Args: c.GetArgumentsJson(), Invalid: c.GetInvalid()}
	if c.GetMadeId() {
		null := json.RawMessage("null")
		out.WireID = &null
	}
	if !json.Valid(out.Args) {
		out.Args, out.Text = json.RawMessage("null"), strings.ToValidUTF8(string(c.GetArgumentsJson()), "\uFFFD")
	}
	return out
}

// shownElsewhere are types of items whose content is in the text, the reasoning
// or the calls already.
var shownElsewhere = map[string]bool{
	"reasoning_content": true, "reasoning_details": true, "think_tags": true, "tool_plan": true, "content": true,
}

// signatureItem is the type of items that belong to a part, and are counted.
const signatureItem = "thought_signature"

// summaries tells of replay material without showing it.
func summaries(material []byte) (out []json.RawMessage, signatures int) {
	var items []map[string]json.RawMessage
	if json.Unmarshal(material, &items) != nil {
		return nil, 0
	}
	for _, item := range items {
		var kind string
		_ = json.Unmarshal(item["type"], &kind)
		switch {
		case kind == signatureItem:
			signatures++
		case !shownElsewhere[kind]:
			out = append(out, summary(item))
		}
	}
	return out, signatures
}

// summary gives an item's type and id, and X_len for each text X. An item may
// wrap the vendor's own block in "item".
func summary(item map[string]json.RawMessage) json.RawMessage {
	var inner map[string]json.RawMessage
	if json.Unmarshal(item["item"], &inner) == nil && inner != nil {
		item = inner
	}
	var b bytes.Buffer
	b.WriteString(`{"type":`)
	b.Write(orNull(item["type"]))
	if id := item["id"]; id != nil {
		b.WriteString(`,"id":`)
		b.Write(id)
	}
	for _, f := range []struct{ field, name string }{
		{"thinking", "thinking_len"},
		{"text", "text_len"},
		{"signature", "signature_len"},
		{"data", "data_len"},
		{"encrypted_content", "encrypted_len"},
	} {
		var s *string
		raw, has := item[f.field]
		if has && json.Unmarshal(raw, &s) != nil {
			continue
		}
		if !has && (f.field != "encrypted_content" || string(item["type"]) != `"reasoning"`) {
			continue
		}
		n := 0
		if s != nil {
			n = len([]rune(*s))
		}
		n64, _ := json.Marshal(n)
		b.WriteString(`,"` + f.name + `":`)
		b.Write(n64)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func orNull(b json.RawMessage) json.RawMessage {
	if b == nil {
		return json.RawMessage("null")
	}
	return b
}

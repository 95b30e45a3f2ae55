package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"homeagent/messages"
	"homeagent/providers"
)

// Want is a unified result as recordings state it. Absent means empty, except in
// Usage, where only the named figures are compared, and in Refusal, where absent
// means any.
type Want struct {
	Text              string           `json:"text"`
	Reasoning         string           `json:"reasoning"`
	Tools             []WantTool       `json:"tool_calls"`
	NotToRun          []WantTool       `json:"tool_calls_not_to_run"`
	Finish            string           `json:"finish"`
	Usage             map[string]any   `json:"usage"`
	Error             *WantError       `json:"error"`
	Refusal           *string          `json:"refusal"`
	Replay            []map[string]any `json:"replay"`
	ThoughtSignatures int              `json:"thought_signatures"`
	ServerBlocks      []string         `json:"server_blocks"`
	// Kept has the types of all replay items, those with other places too; nil
	// means any.
	Kept []string `json:"kept"`
}

// WantTool is an expected call. An ID of null means that the node makes one.
type WantTool struct {
	ID   *string `json:"id"`
	Name string  `json:"name"`
	Args any     `json:"args"`
	// Invalid is the reason why it must not run.
	Invalid string `json:"invalid"`
}

// WantError is an expected failure.
type WantError struct {
	Kind   string `json:"kind"`
	Code   any    `json:"code"`
	Status int    `json:"status"`
	// RetryAfterMs is compared where it is named.
	RetryAfterMs int64 `json:"retry_after_ms"`
}

// Compare tells how a result differs from what is wanted; empty means that it
// does not.
func (w Want) Compare(res *messages.CompletionResult, err error) []string {
	got := providers.Unify(res, err)
	var d diffs
	d.equal("text", got.Text, w.Text)
	d.equal("reasoning", got.Reasoning, w.Reasoning)
	if w.Finish != "" || w.Error == nil {
		d.equal("finish", got.Finish, w.Finish)
	}
	if w.Refusal != nil {
		d.equal("refusal", got.Refusal, *w.Refusal)
	}
	w.compareTools(&d, got)
	w.compareUsage(&d, got.Usage, res.GetUsage().GetPromptTotal())
	w.compareError(&d, got.Error)
	w.compareReplay(&d, got, res.GetReplay())
	if len(got.ServerBlocks)+len(w.ServerBlocks) > 0 {
		d.equal("server blocks", got.ServerBlocks, w.ServerBlocks)
	}
	return d
}

type diffs []string

func (d *diffs) equal(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		*d = append(*d, fmt.Sprintf("%s: got %#v, want %#v", what, got, want))
	}
}

func (w Want) compareTools(d *diffs, got *providers.Unified) {
	run, not := w.Tools[:len(w.Tools):len(w.Tools)], w.NotToRun
	for i := 0; i < len(run); i++ {
		if run[i].Invalid != "" {
			not = append(not[:len(not):len(not)], run[i])
			run = append(run[:i:i], run[i+1:]...)
			i--
		}
	}
	seen := make(map[string]bool)
	for _, side := range []struct {
		what string
		got  []providers.UnifiedCall
		want []WantTool
	}{{"tool calls", got.ToolCalls, run}, {"tool calls not to run", got.NotToRun, not}} {
		if len(side.got) != len(side.want) {
			*d = append(*d, fmt.Sprintf("%s: got %d %+v, want %d", side.what, len(side.got), side.got, len(side.want)))
			continue
		}
		for i, c := range side.got {
			want := side.want[i]
			var args any
			_ = json.Unmarshal(c.Args, &args)
			switch {
			case c.Name != want.Name, want.ID != nil && c.ID != *want.ID, want.Invalid != "" && c.Invalid != want.Invalid,
				want.Invalid == "" && !reflect.DeepEqual(args, want.Args):
				*d = append(*d, fmt.Sprintf("%s %d: got %+v %s, want %+v", side.what, i, c, c.Args, want))
			case c.ID == "" || seen[c.ID]:
				*d = append(*d, fmt.Sprintf("%s %d has no id of its own", side.what, i))
			}
			seen[c.ID] = true
		}
	}
}

func (w Want) compareUsage(d *diffs, u *providers.UnifiedUsage, prompt int64) {
	var got map[string]any
	b, err := json.Marshal(u)
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil {
		*d = append(*d, err.Error())
	}
	if got != nil {
		got["prompt_total"] = float64(prompt)
	}
	for name, v := range w.Usage {
		want, ok := v.(float64)
		if !ok {
			continue
		}
		if _, noted := w.Usage["note"]; noted && name == "out" {
			// A server that leaves reasoning out of its count: the sum tells.
			total, _ := w.Usage["total"].(float64)
			in, _ := w.Usage["in"].(float64)
			want = total - in
		}
		have, _ := got[name].(float64)
		d.equal("usage "+name, have, want)
	}
}

func (w Want) compareError(d *diffs, got *providers.UnifiedError) {
	if (got != nil) != (w.Error != nil) {
		*d = append(*d, fmt.Sprintf("error: got %+v, want %+v", got, w.Error))
		return
	}
	if got == nil {
		return
	}
	d.equal("error kind", got.Kind, w.Error.Kind)
	if w.Error.Code != nil {
		code := string(bytes.Trim(got.Code, `"`))
		d.equal("error code", code, fmt.Sprint(w.Error.Code))
	}
	if w.Error.Status != 0 {
		d.equal("error status", got.Status, w.Error.Status)
	}
	if w.Error.RetryAfterMs != 0 {
		d.equal("error retry_after_ms", got.RetryAfterMs, w.Error.RetryAfterMs)
	}
	if got.Message == "" {
		*d = append(*d, "error without a message")
	}
}

func (w Want) compareReplay(d *diffs, got *providers.Unified, material []byte) {
	d.equal("thought signatures", got.ThoughtSignatures, w.ThoughtSignatures)
	d.equal("replay items", len(got.Replay), len(w.Replay))
	for i := range min(len(got.Replay), len(w.Replay)) {
		var item map[string]any
		if err := json.Unmarshal(got.Replay[i], &item); err != nil {
			*d = append(*d, err.Error())
		}
		for name, want := range w.Replay[i] {
			d.equal(fmt.Sprintf("replay %d %s", i, name), item[name], want)
		}
	}
	if w.Kept == nil {
		return
	}
	var items []struct {
		Type string `json:"type"`
	}
	if len(material) > 0 {
		if err := json.Unmarshal(material, &items); err != nil {
			*d = append(*d, "replay material: "+err.Error())
		}
	}
	kept := []string{}
	for _, it := range items {
		kept = append(kept, it.Type)
	}
	d.equal("replay material", kept, w.Kept)
}

package providers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"homeagent/messages"
)

// assembly collects the pieces of one answer. Text and arguments grow here and
// not in the adapter, where ten thousand pieces would cost quadratic time.
type assembly struct {
	call    string
	text    strings.Builder
	think   strings.Builder
	refusal strings.Builder
	slots   []*slot
	usage   *messages.Usage
	replay  []byte // the items with commas between them
	blocks  []string
	model   string
	finish  messages.Finish
	done    bool
	visible bool
	size    int
	limit   int
}

// slot is one tool call under way.
type slot struct {
	index    int
	id, name string
	args     []byte
	whole    bool
}

// complete tells whether the arguments are one whole JSON value.
func (s *slot) complete() bool { return len(s.args) > 0 && json.Valid(s.args) }

// add takes a piece and gives what there is to show of it, or nil.
func (a *assembly) add(p Piece) (*messages.Delta, error) {
	d := &messages.Delta{CallId: a.call, Text: clean(p.Text), Reasoning: clean(p.Reasoning)}
	if p.Refusal != "" {
		// A refusal is what the model says instead of an answer: people see it.
		r := clean(p.Refusal)
		a.refusal.WriteString(r)
		d.Text += r
	}
	a.text.WriteString(clean(p.Text))
	a.think.WriteString(d.Reasoning)
	a.size += len(d.Text) + len(d.Reasoning)
	for _, t := range p.Tools {
		if a.tool(t) {
			d.Tools = append(d.Tools, &messages.ToolDelta{Index: int32(t.Index), Id: t.ID, Name: t.Name, Arguments: clean(t.Args)})
		}
		a.size += len(t.Args)
	}
	if a.size > a.limit {
		return nil, fmt.Errorf("an answer of more than %d bytes", a.limit)
	}
	if p.Finish != messages.Finish_FINISH_UNSPECIFIED {
		a.finish = p.Finish
	}
	if p.Usage != nil {
		a.count(p.Usage)
	}
	for _, item := range p.Replay {
		if len(a.replay) > 0 {
			a.replay = append(a.replay, ',')
		}
		a.replay = append(a.replay, item...)
	}
	a.blocks = append(a.blocks, p.ServerBlocks...)
	if len(a.replay) > a.limit || len(a.blocks) > maxBlocks || len(a.slots) > maxCalls {
		return nil, fmt.Errorf("an answer with more than %d bytes of replay material, %d blocks or %d calls", a.limit, maxBlocks, maxCalls)
	}
	if p.Model != "" {
		a.model = p.Model
	}
	a.done = a.done || p.Done
	if d.Text == "" && d.Reasoning == "" && len(d.Tools) == 0 {
		return nil, nil
	}
	a.visible = true
	return d, nil
}

// Caps that no honest answer comes near.
const (
	maxBlocks = 1000
	maxCalls  = 1000
)

func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// count overwrites: vendors repeat cumulative figures, so adding would double.
func (a *assembly) count(u *messages.Usage) {
	if a.usage == nil {
		a.usage = &messages.Usage{}
	}
	to, from := Figures(a.usage), Figures(u)
	for i := range from {
		if u.Reported&from[i].Bit != 0 {
			*to[i].Value = *from[i].Value
		}
	}
	a.usage.Reported |= u.Reported
}

// Figure is one figure of a usage.
type Figure struct {
	// Name as adapters call it.
	Name string
	// Bit of Usage.Reported.
	Bit uint32
	// Value in the usage.
	Value *int64
}

// Figures gives the figures of u, in the order of their field numbers.
func Figures(u *messages.Usage) []Figure {
	return []Figure{
		{"input", 1 << 1, &u.Input},
		{"output", 1 << 2, &u.Output},
		{"cached", 1 << 3, &u.Cached},
		{"reasoning", 1 << 4, &u.Reasoning},
		{"cache_write", 1 << 5, &u.CacheWrite},
		{"prompt_total", 1 << 6, &u.PromptTotal},
		{"total", 1 << 7, &u.Total},
		{"billed_input", 1 << 8, &u.BilledInput},
		{"billed_output", 1 << 9, &u.BilledOutput},
	}
}

// tool merges a piece of a call; false means that it carried nothing.
//
// The order of the rules: a new id starts a call; a known id, else the index,
// else the last call says where a piece belongs; a second name on a call whose
// arguments are whole starts a call even where index and id are silent. Empty
// ids and names never overwrite.
func (a *assembly) tool(t ToolPiece) bool {
	s := a.find(t)
	switch {
	case s == nil && t.ID == "" && t.Name == "" && t.Args == "":
		return false
	case s == nil:
		s = &slot{index: t.Index, id: t.ID, name: t.Name}
		a.slots = append(a.slots, s)
	default:
		if s.id == "" {
			s.id = t.ID
		}
		switch {
		case s.name == "":
			s.name = t.Name
		case t.Name != "" && t.Name != s.name && len(s.args) == 0:
			// The same call goes on and has no arguments yet: a name in pieces.
			s.name += t.Name
		}
	}
	if t.Whole {
		s.args, s.whole = []byte(t.Args), true
	} else {
		s.args = append(s.args, t.Args...)
	}
	return true
}

func (a *assembly) find(t ToolPiece) *slot {
	last := func(fits func(*slot) bool) *slot {
		for i := len(a.slots) - 1; i >= 0; i-- {
			if fits(a.slots[i]) {
				return a.slots[i]
			}
		}
		return nil
	}
	if t.ID != "" {
		s := last(func(s *slot) bool { return s.id == t.ID })
		if s == nil {
			// The id may come after the first piece of its call.
			s = last(func(s *slot) bool { return s.id == "" && s.index == t.Index && t.Index >= 0 })
			if s != nil && s.name != "" && t.Name != "" {
				return nil
			}
			return s
		}
		if t.Index >= 0 && s.index >= 0 && t.Index != s.index && t.Name != "" {
			// One id for two calls: some servers repeat themselves.
			return last(func(s *slot) bool { return s.id == t.ID && s.index == t.Index })
		}
		return s
	}
	var s *slot
	if t.Index >= 0 {
		s = last(func(s *slot) bool { return s.index == t.Index })
	} else {
		s = last(func(*slot) bool { return true })
	}
	if s != nil && t.Name != "" && s.name != "" {
		if s.whole || s.complete() || len(s.args) == 0 && t.Name != s.name {
			return nil
		}
	}
	return s
}

// whole tells that every call has arguments that parse, and that there is one.
func (a *assembly) whole() bool {
	for _, s := range a.slots {
		if !s.complete() {
			return false
		}
	}
	return len(a.slots) > 0
}

// ended decides whether the answer is finished, after its last event.
func (a *assembly) ended() bool {
	if a.finish == messages.Finish_FINISH_UNSPECIFIED {
		if !a.done || !a.whole() {
			return false
		}
		a.finish = messages.Finish_FINISH_TOOL_CALLS
	}
	switch {
	case a.finish == messages.Finish_FINISH_STOP && len(a.slots) > 0:
		a.finish = messages.Finish_FINISH_TOOL_CALLS
	case a.finish == messages.Finish_FINISH_TOOL_CALLS && len(a.slots) == 0:
		a.finish = messages.Finish_FINISH_STOP
	}
	return true
}

// Reasons in ToolInvocation.Invalid.
const (
	InvalidNotJSON   = "not_json"
	InvalidNotObject = "not_object"
	InvalidTruncated = "truncated"
	InvalidNoName    = "no_name"
)

// result gives what has arrived. cut marks every call as one that must not run.
func (a *assembly) result(cut bool) *messages.CompletionResult {
	r := &messages.CompletionResult{
		Text: a.text.String(), Reasoning: a.think.String(), Refusal: a.refusal.String(),
		Finish: a.finish, Usage: a.usage, Model: a.model, ServerBlocks: a.blocks,
	}
	if len(a.replay) > 0 {
		r.Replay = append(append([]byte{'['}, a.replay...), ']')
	}
	if u := r.Usage; u != nil && u.PromptTotal == 0 {
		u.PromptTotal = u.Input
	}
	ids := make(map[string]bool)
	for i, s := range a.slots {
		inv := &messages.ToolInvocation{
			CallId: fmt.Sprintf("%s.%d", a.call, i), VendorId: s.id, Name: s.name, Index: int32(i),
		}
		if inv.VendorId == "" || ids[inv.VendorId] {
			inv.VendorId, inv.MadeId = unused(ids, inv.VendorId, i), true
		}
		ids[inv.VendorId] = true
		inv.ArgumentsJson, inv.Invalid = s.arguments()
		switch {
		case cut, inv.Invalid != "" && a.finish == messages.Finish_FINISH_LENGTH:
			inv.Invalid = InvalidTruncated
		case inv.Invalid == "" && s.name == "":
			inv.Invalid = InvalidNoName
		}
		r.Calls = append(r.Calls, inv)
	}
	return r
}

// unused makes an id for a call that has none of its own.
func unused(taken map[string]bool, id string, i int) string {
	if id == "" {
		id = "call"
	}
	for n := i; ; n++ {
		if try := fmt.Sprintf("%s_%d", id, n); !taken[try] {
			return try
		}
	}
}

// arguments gives the original bytes of the arguments, with {} for none, and
// why they must not run.
func (s *slot) arguments() (args []byte, invalid string) {
	b := bytes.TrimSpace(s.args)
	if len(b) == 0 || string(b) == "null" {
		return []byte("{}"), ""
	}
	switch {
	case !json.Valid(b):
		return b, InvalidNotJSON
	case b[0] != '{':
		return b, InvalidNotObject
	}
	return b, ""
}

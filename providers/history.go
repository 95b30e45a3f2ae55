package providers

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// lost is what the model is told about a call whose result never came.
const lost = "The result of this call is unknown: it was interrupted before it answered."

// Repair gives the history in the form that vendors insist on: every call of an
// assistant message is answered by exactly one tool message right after it, in
// the order of the calls; a result without its call and an assistant message
// with neither text, calls nor replay material of this source are left out; replay material of other sources
// is dropped. The messages given are not changed.
func Repair(in []*messages.ChatMessage, source string) []*messages.ChatMessage {
	out := make([]*messages.ChatMessage, 0, len(in))
	for i := 0; i < len(in); i++ {
		m := in[i]
		switch m.GetRole() {
		case messages.Role_ROLE_TOOL:
			continue // taken with its call, or an orphan
		case messages.Role_ROLE_ASSISTANT:
			mine := len(m.GetReplay()) > 0 && m.GetReplaySource() == source
			if len(m.GetCalls()) == 0 && !says(m) && !mine {
				continue
			}
			out = append(out, own(m, source))
			j := i + 1
			for j < len(in) && in[j].GetRole() == messages.Role_ROLE_TOOL {
				j++
			}
			out = append(out, results(m.GetCalls(), in[i+1:j])...)
			i = j - 1
		default:
			out = append(out, m)
		}
	}
	return out
}

func says(m *messages.ChatMessage) bool {
	for _, p := range m.GetParts() {
		if p.GetText() != "" || p.GetPayload() != nil {
			return true
		}
	}
	return false
}

// own drops reasoning and replay material that another source made.
func own(m *messages.ChatMessage, source string) *messages.ChatMessage {
	from := m.GetReplaySource()
	if from == source || len(m.GetReplay()) == 0 && (from == "" || m.GetReasoning() == "") {
		return m
	}
	c := proto.Clone(m).(*messages.ChatMessage)
	c.Replay, c.ReplaySource, c.Reasoning = nil, "", ""
	return c
}

func results(calls []*messages.ToolInvocation, given []*messages.ChatMessage) []*messages.ChatMessage {
	out := make([]*messages.ChatMessage, 0, len(calls))
	used := make([]bool, len(given))
	for _, call := range calls {
		var found *messages.ChatMessage
		for i, g := range given {
			if !used[i] && g.GetVendorCallId() == call.GetVendorId() {
				found, used[i] = g, true
				break
			}
		}
		if found == nil {
			found = &messages.ChatMessage{
				Role: messages.Role_ROLE_TOOL, VendorCallId: call.GetVendorId(), ToolName: call.GetName(), Failed: true,
				Parts: []*messages.Part{{Content: &messages.Part_Text{Text: lost}}},
			}
		}
		out = append(out, found)
	}
	return out
}

// checkRequest refuses what no vendor could answer.
func checkRequest(req *messages.CompletionRequest) error {
	if len(req.GetMessages()) == 0 {
		return fmt.Errorf("%w: no messages", ErrRequest)
	}
	for i, m := range req.GetMessages() {
		if m.GetRole() == messages.Role_ROLE_UNSPECIFIED {
			return fmt.Errorf("%w: message %d has no role", ErrRequest, i)
		}
	}
	if t := req.GetThinking(); t != "" && !slices.Contains(Efforts, t) {
		return fmt.Errorf("%w: thinking %.40q; legal are %s", ErrRequest, t, strings.Join(Efforts, ", "))
	}
	switch c := req.GetToolChoice(); {
	case c == "", c == "auto", c == "none", c == "required", strings.HasPrefix(c, "tool:") && len(c) > len("tool:"):
		return nil
	default:
		return fmt.Errorf("%w: tool_choice %.40q; legal are auto, none, required, tool:NAME", ErrRequest, c)
	}
}

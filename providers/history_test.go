package providers_test

import (
	"fmt"
	"strings"
	"testing"

	"homeagent/messages"
	"homeagent/providers"
)

// line writes a history as u(text), a(text|calls), t(id): one word a message.
func line(ms []*messages.ChatMessage) string {
	var out []string
	for _, m := range ms {
		var text string
		for _, p := range m.GetParts() {
			text += p.GetText()
		}
		switch m.GetRole() {
		case messages.Role_ROLE_TOOL:
			text = m.GetVendorCallId()
			if m.GetFailed() {
				text += "!"
			}
		case messages.Role_ROLE_ASSISTANT:
			for _, c := range m.GetCalls() {
				text += "+" + c.GetVendorId()
			}
			if len(m.GetReplay()) > 0 {
				text += "*"
			}
		default:
		}
		out = append(out, strings.ToLower(m.GetRole().String()[5:6])+"("+text+")")
	}
	return strings.Join(out, " ")
}

func parse(t *testing.T, text string) []*messages.ChatMessage {
	t.Helper()
	var out []*messages.ChatMessage
	for _, w := range strings.Fields(text) {
		arg := strings.TrimSuffix(w[2:], ")")
		m := &messages.ChatMessage{}
		switch w[0] {
		case 's':
			m.Role = messages.Role_ROLE_SYSTEM
		case 'u':
			m.Role = messages.Role_ROLE_USER
		case 't':
			m.Role, m.VendorCallId = messages.Role_ROLE_TOOL, arg
			arg = ""
		case 'a':
			m.Role = messages.Role_ROLE_ASSISTANT
			if from, ok := strings.CutSuffix(arg, "*mine"); ok {
				arg, m.Replay, m.ReplaySource, m.Reasoning = from, []byte("{}"), "mine", "r"
			} else if from, ok := strings.CutSuffix(arg, "*theirs"); ok {
				arg, m.Replay, m.ReplaySource, m.Reasoning = from, []byte("{}"), "theirs", "r"
			}
			parts := strings.Split(arg, "+")
			arg = parts[0]
			for _, id := range parts[1:] {
				m.Calls = append(m.Calls, &messages.ToolInvocation{VendorId: id, Name: "f"})
			}
		default:
			t.Fatalf("word %q", w)
		}
		if arg != "" {
			m.Parts = []*messages.Part{{Content: &messages.Part_Text{Text: arg}}}
		}
		out = append(out, m)
	}
	return out
}

func TestRepair(t *testing.T) {
	for in, want := range map[string]string{
		"s(x) u(a) a(b)":              "s(x) u(a) a(b)",
		"u(a) a(+1+2) t(1) t(2) a(b)": "u(a) a(+1+2) t(1) t(2) a(b)",
		"u(a) a(+1+2) t(2) t(1)":      "u(a) a(+1+2) t(1) t(2)",
		"u(a) a(+1+2) t(2) u(c)":      "u(a) a(+1+2) t(1!) t(2) u(c)",
		"u(a) a(b+1)":                 "u(a) a(b+1) t(1!)",
		"u(a) t(9) a(b)":              "u(a) a(b)",
		"u(a) a(+1) t(1) t(7) u(b)":   "u(a) a(+1) t(1) u(b)",
		"u(a) a() u(b)":               "u(a) u(b)",
		"a(+1+1) t(1) t(1)":           "a(+1+1) t(1) t(1)",
		"a(b*mine) a(c*theirs)":       "a(b*) a(c)",
	} {
		history := parse(t, in)
		before := fmt.Sprint(history)
		got := providers.Repair(history, "mine")
		if line(got) != want {
			t.Errorf("%s\n got %s\nwant %s", in, line(got), want)
		}
		if again := providers.Repair(got, "mine"); line(again) != want {
			t.Errorf("%s: repaired twice gives %s", in, line(again))
		}
		if fmt.Sprint(history) != before {
			t.Errorf("%s: the history given was changed", in)
		}
	}
	foreign := parse(t, "a(b*theirs)")
	for range 2 { // also where there is reasoning without replay material
		if got := providers.Repair(foreign, "mine")[0]; got.GetReasoning() != "" || len(got.GetReplay()) > 0 || foreign[0].GetReasoning() == "" {
			t.Errorf("foreign reasoning stays: %v", got)
		}
		foreign[0].Replay = nil
	}
	if got := providers.Repair(foreign, "theirs")[0]; got.GetReasoning() == "" {
		t.Errorf("own reasoning is gone: %v", got)
	}
}

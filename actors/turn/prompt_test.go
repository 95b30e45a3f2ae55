package turn

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func pastEvent(k messages.EventKind, text string) *messages.Event {
	return &messages.Event{
		Kind: k, AtUs: start0.Add(-time.Hour).UnixMicro(), Blocks: []*messages.Block{{Content: textParts(text)[0]}},
	}
}

func roles(msgs []*messages.ChatMessage) string {
	var b strings.Builder
	for _, msg := range msgs {
		b.WriteByte("?suat"[msg.GetRole()])
	}
	return b.String()
}

// layoutOf is the prefix that a turn builds from what it was told.
func layoutOf(set Settings, agent *messages.AgentSpec, in *messages.Input, window []*messages.Event, recalled *messages.RecallResult, asides ...string) []*messages.ChatMessage {
	m := New(testDeps, set, &messages.StartTurn{Task: &messages.PendingTask{Input: in}, Agent: agent}).(*machine)
	m.window, m.recalled, m.asides = window, recalled, asides
	return m.layout()
}

func TestPrefix(t *testing.T) {
	set := Settings{Persona: "You are Ada.\n"}
	window := []*messages.Event{
		pastEvent(messages.EventKind_EVENT_KIND_INPUT, "one"), pastEvent(messages.EventKind_EVENT_KIND_RESPONSE, "two"),
		pastEvent(messages.EventKind_EVENT_KIND_TOOL, "not shown"), pastEvent(messages.EventKind_EVENT_KIND_INPUT, ""),
	}
	agent := &messages.AgentSpec{Agent: "main/resident/cook", TaskPrompt: "Plan the meals."}
	recalled := &messages.RecallResult{Items: []*messages.RecalledItem{{Text: "Kim\n eats  no nuts", Speaker: "user"}}}
	got := layoutOf(set, agent, testInput("T1", "Hi"), window, recalled, "An aside.")
	if r := roles(got); r != "sssuau" {
		t.Fatalf("roles %s", r)
	}
	for i, wants := range [][]string{
		{"You are Ada.\n\n# Your task\nPlan the meals.", `"main/resident/cook"`, `"cli"`, "the owner", "not shown does not mean that it does not exist"},
		{"Sunday, 2026-03-01 08:59 UTC", "Sunday, 2026-03-01 08:00 UTC"},
		{"- user: Kim eats no nuts\n", "An aside."},
	} {
		text := plainText(got[i].GetParts())
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("message %d lacks %q:\n%s", i, want, text)
			}
		}
	}
	if plainText(got[5].GetParts()) != "Hi" {
		t.Errorf("the last message is %v", got[5])
	}
	none := layoutOf(set, agent, testInput("T1", "Hi"), nil, &messages.RecallResult{None: true})
	if !strings.Contains(plainText(none[2].GetParts()), "does not mean that it never happened") {
		t.Error("an empty memory is told as if nothing had happened")
	}
}

// Nothing that changes within a turn or between turns of a conversation stands before the history.
func TestPrefixIsStable(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", pure, finishes, false), tool("b", pure, finishes, false)}
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		if n := len(toolTexts(r)); n < 3 {
			return callsFor("", []string{"a", "b"}[n%2])
		}
		return says("Done.")
	}
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "ok", "Done.")
	for i, r := range w.requests[1:] {
		before := w.requests[i].GetMessages()
		for k, msg := range before {
			if !proto.Equal(msg, r.GetMessages()[k]) {
				t.Errorf("request %d: message %d is not that of the request before", i+2, k)
			}
		}
		if len(r.GetTools()) != 2 || !proto.Equal(r.GetTools()[0], w.requests[0].GetTools()[0]) {
			t.Errorf("request %d: tools %v", i+2, r.GetTools())
		}
	}
	later := testInput("T9", "Later")
	later.CreatedUs += time.Hour.Microseconds()
	a := layoutOf(Settings{}, &messages.AgentSpec{Agent: "main"}, testInput("T1", "Hi"), nil, nil)
	b := layoutOf(Settings{}, &messages.AgentSpec{Agent: "main"}, later, nil, nil)
	if !proto.Equal(a[0], b[0]) || proto.Equal(a[1], b[1]) {
		t.Error("the first system message depends on the turn, or the second does not")
	}
}

func TestBudgetHoldsInEachRound(t *testing.T) {
	w := newWorld(t)
	for range 100 {
		w.past = append(w.past, pastEvent(messages.EventKind_EVENT_KIND_INPUT, strings.Repeat("word ", 200)))
	}
	w.tools = []*messages.ToolDef{tool("a", pure, finishes, false)}
	w.model = byRound([]string{"a"}, "Done.")
	w.machine = New(testDeps, Settings{PromptTokens: 8000}, w.startTurn())
	w.step(kit.Event{Msg: kit.Started{Self: selfAddr}})
	w.all()
	w.wantEnd(answered, "ok", "Done.")
	for i, r := range w.requests {
		n := 0
		for _, msg := range r.GetMessages() {
			n += messageTokens(msg)
		}
		if n > 8000 || n < 4000 {
			t.Errorf("request %d has %d tokens", i, n)
		}
	}
}

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

func TestPrefix(t *testing.T) {
	set := Settings{Persona: "You are Ada.\n"}.withDefaults()
	window := []*messages.Event{
		pastEvent(messages.EventKind_EVENT_KIND_INPUT, "one"), pastEvent(messages.EventKind_EVENT_KIND_RESPONSE, "two"),
		pastEvent(messages.EventKind_EVENT_KIND_TOOL, "not shown"), pastEvent(messages.EventKind_EVENT_KIND_INPUT, ""),
	}
	agent := &messages.AgentSpec{Agent: "main/resident/cook", TaskPrompt: "Plan the meals."}
	recalled := &messages.RecallResult{Items: []*messages.RecalledItem{{Text: "Kim\n eats  no nuts", Speaker: "user"}}}
	got := buildPrefix(&set, agent, testInput("T1", "Hi"), window, recalled, []string{"An aside."})
	if r := roles(got); r != "ssuau" {
		t.Fatalf("roles %s", r)
	}
	first, second := plainText(got[0].GetParts()), plainText(got[1].GetParts())
	for _, want := range []string{"You are Ada.\n\n# Your task\nPlan the meals.", `"main/resident/cook"`, `"cli"`, "the owner"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first message lacks %q:\n%s", want, first)
		}
	}
	for _, want := range []string{"Sunday, 2026-03-01 08:59 UTC", "Sunday, 2026-03-01 08:00 UTC", "- user: Kim eats no nuts\n", "An aside."} {
		if !strings.Contains(second, want) {
			t.Errorf("the second message lacks %q:\n%s", want, second)
		}
	}
	if plainText(got[4].GetParts()) != "Hi" {
		t.Errorf("the last message is %v", got[4])
	}
	none := buildPrefix(&set, agent, testInput("T1", "Hi"), nil, &messages.RecallResult{None: true}, nil)
	if !strings.Contains(plainText(none[1].GetParts()), "does not mean that it never happened") {
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
	set := Settings{}.withDefaults()
	later := testInput("T9", "Later")
	later.CreatedUs += time.Hour.Microseconds()
	a := buildPrefix(&set, &messages.AgentSpec{Agent: "main"}, testInput("T1", "Hi"), nil, nil, nil)
	b := buildPrefix(&set, &messages.AgentSpec{Agent: "main"}, later, nil, nil, nil)
	if !proto.Equal(a[0], b[0]) || proto.Equal(a[1], b[1]) {
		t.Error("the first system message depends on the turn, or the second does not")
	}
}

func TestTrim(t *testing.T) {
	build := func(pairs int) []*messages.ChatMessage {
		out := []*messages.ChatMessage{textMessage(messages.Role_ROLE_SYSTEM, "rules")}
		for range pairs {
			out = append(out, textMessage(messages.Role_ROLE_USER, strings.Repeat("q", 360)),
				textMessage(messages.Role_ROLE_ASSISTANT, strings.Repeat("a", 360)))
		}
		return append(out, textMessage(messages.Role_ROLE_USER, "the input"))
	}
	size := func(p []*messages.ChatMessage) (n int) {
		for _, msg := range p {
			n += messageTokens(msg)
		}
		return n
	}
	for _, c := range []struct {
		pairs, fixed, budget int
		cut                  bool
	}{
		{0, 0, 1, false},
		{5, 0, 5000, false},
		{5, 0, 900, true},
		{20, 300, 2000, true},
		{20, 1900, 2000, true},
		{20, 5000, 2000, true},
		{1, 0, 10, true},
	} {
		p := build(c.pairs)
		got, cut := trim(p, c.fixed, c.budget)
		if cut != c.cut {
			t.Errorf("%+v: cut %v", c, cut)
		}
		if got[0].GetRole() != messages.Role_ROLE_SYSTEM || plainText(got[len(got)-1].GetParts()) != "the input" {
			t.Errorf("%+v: rules or input were dropped", c)
		}
		if len(got) > 2 && got[1].GetRole() != messages.Role_ROLE_USER {
			t.Errorf("%+v: history begins with an answer", c)
		}
		if cut && len(got) > 2 && c.fixed+size(got) > c.budget {
			t.Errorf("%+v: %d tokens are left", c, c.fixed+size(got))
		}
		if again, more := trim(got, c.fixed, c.budget); more {
			t.Errorf("%+v: a second trim dropped %d more", c, len(got)-len(again))
		}
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


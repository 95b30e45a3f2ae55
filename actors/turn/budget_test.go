package turn

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// words is a text of about n tokens.
func words(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }

func sizeOf(r *messages.CompletionRequest) int {
	n := 0
	for _, msg := range r.GetMessages() {
		n += messageTokens(msg)
	}
	for _, d := range r.GetTools() {
		n += toolTokens(d)
	}
	return n
}

func overflow() *messages.CompletionResult {
	return &messages.CompletionResult{Finish: messages.Finish_FINISH_ERROR, Failure: &messages.CompletionFailure{
		Kind: messages.ErrorKind_ERROR_KIND_CONTEXT_OVERFLOW, Error: &messages.Error{Message: "too long"},
	}}
}

// What is free is shared out: a third to what was recalled, the rest to the conversation; neither is filled up.
func TestShares(t *testing.T) {
	window := func(n, each int) (out []*messages.Event) {
		for i := range n {
			kind := messages.EventKind_EVENT_KIND_INPUT
			if i%2 == 1 {
				kind = messages.EventKind_EVENT_KIND_RESPONSE
			}
			out = append(out, pastEvent(kind, words(each)))
		}
		return out
	}
	recalled := func(n, each int) *messages.RecallResult {
		r := &messages.RecallResult{}
		for range n {
			r.Items = append(r.Items, &messages.RecalledItem{Text: words(each)})
		}
		return r
	}
	for _, c := range []struct {
		name          string
		window        []*messages.Event
		recalled      *messages.RecallResult
		memory, event [2]int // tokens, from and to
	}{
		{"little of both", window(4, 10), recalled(3, 10), [2]int{30, 70}, [2]int{40, 70}},
		{"much of both", window(100, 100), recalled(100, 100), [2]int{2000, 2700}, [2]int{4800, 5700}},
		{"much recalled", window(2, 10), recalled(100, 100), [2]int{2000, 2700}, [2]int{20, 40}},
		{"much said", window(100, 100), recalled(1, 10), [2]int{10, 50}, [2]int{7000, 8000}},
		{"one too large", window(2, 9000), recalled(1, 5000), [2]int{10, 50}, [2]int{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := layoutOf(Settings{PromptTokens: 8192}, &messages.AgentSpec{Agent: "main"}, testInput("T1", "Hi"), c.window, c.recalled)
			memory, events, total := 0, 0, 0
			for i, msg := range got {
				n := messageTokens(msg)
				total += n
				switch {
				case i == 2:
					memory = n
				case i > 2 && i < len(got)-1:
					events += n
				}
			}
			if memory < c.memory[0] || memory > c.memory[1] || events < c.event[0] || events > c.event[1] || total > 8192 {
				t.Errorf("memory %d, events %d, total %d", memory, events, total)
			}
			if len(got) > 4 && got[3].GetRole() != messages.Role_ROLE_USER {
				t.Error("the conversation begins with an answer")
			}
			if shown := strings.Count(plainText(got[2].GetParts()), "\n- "); shown < len(c.recalled.GetItems()) &&
				!strings.Contains(plainText(got[2].GetParts()), fmt.Sprintf("left out for want of room: %d.", len(c.recalled.GetItems())-shown)) {
				t.Errorf("%d items are shown, and nothing is said of the others", shown)
			}
		})
	}
}

// toolWorld asks for rounds calls of results of some length, one after the other.
func toolWorld(t *testing.T, rounds, each int) *world {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", pure, finishes, false)}
	w.result = words(each)
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		if len(toolTexts(r)) < rounds {
			return callsFor("", "a")
		}
		return says("Done.")
	}
	return w
}

// The budget holds before each request, in the tool loop too: the oldest go first, the results of this turn last, and
// those keep their calls.
func TestBudgetInToolLoop(t *testing.T) {
	w := toolWorld(t, 20, 1500)
	for range 30 {
		w.past = append(w.past, pastEvent(messages.EventKind_EVENT_KIND_INPUT, words(100)), pastEvent(messages.EventKind_EVENT_KIND_RESPONSE, words(100)))
	}
	w.recall = &messages.RecallResult{Items: []*messages.RecalledItem{{Text: words(500)}}}
	w.settings = Settings{PromptTokens: 12_000}
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "ok", "Done.")
	cut := 0
	for i, r := range w.requests {
		if n := sizeOf(r); n > 12_000 {
			t.Fatalf("request %d has %d tokens", i, n)
		}
		wantPaired(t, r)
		short, others := 0, 0
		for _, msg := range r.GetMessages() {
			switch {
			case strings.Contains(plainText(msg.GetParts()), shortMark):
				short++
			case plainText(msg.GetParts()) == words(100) || isMemory(msg):
				others++
			}
		}
		if short > 0 {
			cut++
		}
		if short > 0 && others > 0 {
			t.Errorf("request %d: %d results are shortened and %d other things are left", i, short, others)
		}
	}
	if cut == 0 || cut == len(w.requests) {
		t.Errorf("%d of %d requests have shortened results", cut, len(w.requests))
	}
	texts := toolTexts(w.requests[len(w.requests)-1])
	if len(texts) != 20 || !strings.Contains(texts[0], shortMark) || texts[19] != words(1500) {
		t.Errorf("%d results; the first is %.80q, the last %.80q", len(texts), texts[0], texts[19])
	}
	if want := fmt.Sprintf("of %d characters", len(words(1500))); !strings.Contains(texts[0], want) {
		t.Errorf("the note does not say how long the result was: %q", texts[0])
	}
}

// wantPaired checks that each call of a request has its one result behind it, and each result its call before it.
func wantPaired(t testing.TB, r *messages.CompletionRequest) {
	t.Helper()
	var open []string
	for i, msg := range r.GetMessages() {
		if msg.GetRole() != messages.Role_ROLE_TOOL && len(open) > 0 {
			t.Fatalf("message %d comes before the results of %v", i, open)
		}
		switch msg.GetRole() {
		case messages.Role_ROLE_ASSISTANT:
			for _, c := range msg.GetCalls() {
				open = append(open, c.GetVendorId()+" "+c.GetName())
			}
		case messages.Role_ROLE_TOOL:
			if len(open) == 0 || open[0] != msg.GetVendorCallId()+" "+msg.GetToolName() {
				t.Fatalf("message %d is the result of %s %s, open are %v", i, msg.GetVendorCallId(), msg.GetToolName(), open)
			}
			open = open[1:]
		default:
		}
	}
	if len(open) > 0 {
		t.Fatalf("%v have no result", open)
	}
	if n := len(r.GetMessages()); n == 0 || r.GetMessages()[0].GetRole() != messages.Role_ROLE_SYSTEM {
		t.Fatal("the rules are gone")
	}
}

// R8, trim: whatever the budget is, what goes out is paired and never the same prompt twice.
func TestR8TrimAtEveryPosition(t *testing.T) {
	runs, failures := 0, 0
	for budget := 400; budget < 9000; budget += 97 {
		w := newWorld(t)
		w.tools = []*messages.ToolDef{tool("a", pure, finishes, true), tool("b", pure, finishes, true)}
		w.result = words(400)
		for i := range 14 {
			kind := messages.EventKind_EVENT_KIND_INPUT
			if i%2 == 1 {
				kind = messages.EventKind_EVENT_KIND_RESPONSE
			}
			w.past = append(w.past, pastEvent(kind, strconv.Itoa(i)+" "+words(90)))
		}
		w.recall = &messages.RecallResult{Items: []*messages.RecalledItem{{Text: words(200)}, {Text: words(200)}}}
		w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
			if len(toolTexts(r)) < 8 {
				return callsFor("let me see", "a", "b")
			}
			return says("Done.")
		}
		w.settings = Settings{PromptTokens: budget, Window: budget + budget/4}
		w.begin("", nil)
		w.all()
		runs++
		if f := w.end(); f.GetEnd() == failed {
			failures++
			if f.GetReason() != "context_overflow" {
				t.Fatalf("budget %d: finished %v", budget, f)
			}
		}
		for i, r := range w.requests {
			wantPaired(t, r)
			if n := sizeOf(r); n > w.settings.Window {
				t.Fatalf("budget %d: request %d has %d tokens", budget, i, n)
			}
			if got := plainText(r.GetMessages()[firstUser(r)].GetParts()); i == 0 && strings.HasPrefix(got, "1") && got[1] == ' ' {
				t.Fatalf("budget %d: the conversation begins with an answer", budget)
			}
		}
	}
	if runs < 80 || failures == 0 || failures > runs/3 {
		t.Fatalf("%d runs, %d failures", runs, failures)
	}
}

func firstUser(r *messages.CompletionRequest) int {
	for i, msg := range r.GetMessages() {
		if msg.GetRole() != messages.Role_ROLE_SYSTEM {
			return i
		}
	}
	return 0
}

// A vendor that cannot read the prompt gets a shorter one, twice at most in a turn; then the turn fails with numbers.
func TestContextOverflow(t *testing.T) {
	past := func(w *world) {
		for range 40 {
			w.past = append(w.past, pastEvent(messages.EventKind_EVENT_KIND_INPUT, words(100)))
		}
	}
	for _, c := range []struct {
		name     string
		set      func(*world)
		reads    int // tokens
		requests int
		ok       bool
	}{
		{"one recovery", past, 2500, 2, true},
		{"two recoveries", past, 1300, 3, true},
		{"three are too many", past, 10, 3, false},
		{"nothing to leave out", func(w *world) { w.settings.Recalled = -1 }, 10, 1, false},
		{"recalled", func(w *world) {
			w.recall = &messages.RecallResult{Items: []*messages.RecalledItem{{Text: words(900)}}}
		}, 800, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.set(w)
			w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
				if sizeOf(r) > c.reads {
					return overflow()
				}
				return says("Fits.")
			}
			w.begin("", nil)
			w.all()
			if len(w.requests) != c.requests {
				t.Errorf("%d requests, want %d", len(w.requests), c.requests)
			}
			for i := range w.requests[1:] {
				if a, b := sizeOf(w.requests[i]), sizeOf(w.requests[i+1]); b >= a {
					t.Errorf("request %d of %d tokens is followed by one of %d", i, a, b)
				}
			}
			if lastText(w.requests[len(w.requests)-1]) != "Hi" {
				t.Error("the input was left out")
			}
			if c.ok {
				w.wantEnd(answered, "ok", "Fits.")
				return
			}
			f := w.end()
			if f.GetEnd() != failed || f.GetReason() != "context_overflow" || !strings.Contains(f.GetText(), " tokens") {
				t.Errorf("finished %v", f)
			}
		})
	}
}

// An overflow in the tool loop is met by the same means; no call runs twice for it.
func TestOverflowInToolLoop(t *testing.T) {
	w := toolWorld(t, 3, 2000)
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		switch {
		case sizeOf(r) > 5000:
			return overflow()
		case len(toolTexts(r)) < 3:
			return callsFor("", "a")
		}
		return says("Done.")
	}
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "ok", "Done.")
	for call, n := range w.runs {
		if n != 1 {
			t.Errorf("%s ran %d times", call, n)
		}
	}
	for _, r := range w.requests {
		wantPaired(t, r)
	}
}

// A message that is longer than the model can read is not sent at all, and the person is told how long it is.
func TestPromptThatNeverFits(t *testing.T) {
	w := newWorld(t)
	w.settings = Settings{PromptTokens: 4000, Window: 5000}
	w.begin("", func(s *messages.StartTurn) { s.Task.Input.Parts = textParts(words(200_000)) })
	w.all()
	f := w.end()
	if f.GetReason() != "context_overflow" || len(w.requests) != 0 || !strings.Contains(f.GetText(), "of which 2000") {
		t.Errorf("finished %v after %d requests", f, len(w.requests))
	}
}

// A shortened result can be shortened again, and says what it was at first; media go with the first cut.
func TestShortened(t *testing.T) {
	inv := &messages.ToolInvocation{VendorId: "v", Name: "a"}
	text := strings.Repeat("数据", 2000)
	msg := resultMessage(inv, &messages.ToolResult{Content: text, Media: []*messages.PayloadRef{{Id: "m"}}})
	first := shortened(msg, longHead)
	second := shortened(first, shortHead)
	for i, c := range []struct {
		msg  *messages.ChatMessage
		head int
	}{{first, longHead}, {second, shortHead}} {
		got := plainText(c.msg.GetParts())
		want := fmt.Sprintf("the first %d of 4000 characters of this result", c.head)
		if !strings.HasPrefix(got, string([]rune(text)[:c.head])+shortMark) || !strings.Contains(got, want) || len(c.msg.GetParts()) != 1 {
			t.Errorf("cut %d: %q", i, got)
		}
		if c.msg.GetVendorCallId() != "v" || messageTokens(c.msg) >= messageTokens(msg) {
			t.Errorf("cut %d: %v", i, c.msg)
		}
	}
	if shortened(second, shortHead) != nil || shortened(textMessage(messages.Role_ROLE_ASSISTANT, text), 10) != nil {
		t.Error("something is shortened for nothing")
	}
	failed := resultMessage(inv, &messages.ToolResult{Error: &messages.ToolError{Reason: "failed", Detail: text}})
	if s := shortened(failed, 100); !s.GetFailed() || !proto.Equal(failed, resultMessage(inv, &messages.ToolResult{Error: &messages.ToolError{Reason: "failed", Detail: text}})) {
		t.Error("a failure is none any more, or the message was changed in place")
	}
}

// A prompt that fits is left alone: the ceilings are nothing to fill or to cut to.
func TestFitLeavesAlone(t *testing.T) {
	m := New(testDeps, Settings{}, (&world{t: t}).startTurn()).(*machine)
	m.prefix = m.layout()
	before := fmt.Sprint(m.prefix)
	if m.fit(); fmt.Sprint(m.prefix) != before {
		t.Error("a prompt that fits was changed")
	}
}

func BenchmarkFit(b *testing.B) {
	m := New(testDeps, Settings{}, (&world{t: b}).startTurn()).(*machine)
	for range 60 {
		m.window = append(m.window, pastEvent(messages.EventKind_EVENT_KIND_INPUT, words(200)))
	}
	b.ReportAllocs()
	for b.Loop() {
		m.sizes = gauge{}
		m.prefix = m.layout()
		m.fit()
	}
}

// Work that no person waits for leaves when the money is spent and goes on from its journal; a person is told at once.
func TestMoneySpent(t *testing.T) {
	spent := func() *messages.CompletionResult {
		return &messages.CompletionResult{Finish: messages.Finish_FINISH_ERROR, Failure: &messages.CompletionFailure{
			Kind: messages.ErrorKind_ERROR_KIND_BUDGET, Error: &messages.Error{Message: "spent", RetryAfterMs: 7_200_000},
		}}
	}
	broke := true
	model := func(*messages.CompletionRequest) *messages.CompletionResult {
		if broke {
			return spent()
		}
		return says("Done.")
	}
	background := func(s *messages.StartTurn) { s.Task.Input.PersonWaits, s.Level = false, 0 }

	w := newWorld(t)
	w.model = model
	w.begin("", background)
	w.all()
	if len(w.parked) != 1 || w.finished != nil {
		t.Fatalf("parked %v, finished %v", w.parked, w.finished)
	}
	// The next budget begins in two hours; it may be raised before.
	if wait := time.UnixMicro(w.parked[0].GetUntilUs()).Sub(w.now); wait > time.Hour || wait < 59*time.Minute {
		t.Errorf("it asks again in %v", wait)
	}
	broke = false
	w.begin("", background)
	w.all()
	w.wantEnd(answered, "ok", "Done.")

	broke = true
	w = newWorld(t)
	w.model = model
	w.begin("", func(s *messages.StartTurn) { s.Task.Input.PersonWaits, s.Level = true, 2 })
	w.all()
	w.wantEnd(messages.End_END_FAILED, "budget", "spent")
}

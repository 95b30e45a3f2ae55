package turn

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

const (
	answered = messages.End_END_ANSWERED
	failed   = messages.End_END_FAILED
	stopped  = messages.End_END_STOPPED
)

// byRound answers the first request with calls and the next ones with a text.
func byRound(calls []string, text string) func(*messages.CompletionRequest) *messages.CompletionResult {
	return func(r *messages.CompletionRequest) *messages.CompletionResult {
		if len(toolTexts(r)) < len(calls) {
			return callsFor("", calls...)
		}
		return says(text)
	}
}

func TestPlainAnswer(t *testing.T) {
	w := newWorld(t)
	w.past = []*messages.Event{
		{EventId: "T0/in", Kind: messages.EventKind_EVENT_KIND_INPUT, AtUs: start0.Add(-time.Hour).UnixMicro(), Blocks: []*messages.Block{{Content: textParts("I am Kim.")[0]}}},
		{EventId: "T0/out", Kind: messages.EventKind_EVENT_KIND_RESPONSE, AtUs: start0.Add(-time.Hour).UnixMicro(), Blocks: []*messages.Block{{Content: textParts("Good to know.")[0]}}},
	}
	w.recall = &messages.RecallResult{Items: []*messages.RecalledItem{{Id: "E9", Text: "Kim likes tea", Speaker: "user", AtUs: start0.Add(-48 * time.Hour).UnixMicro()}}}
	w.begin("plain", nil)
	w.all()
	w.script.Show()
	w.script.Done()
	w.wantEnd(answered, "ok", "Hello.")
	if w.commits != 1 || w.receipts != 1 || len(w.sends) != 1 || w.sends[0].GetMaybeRepeated() {
		t.Errorf("commits %d, receipts %d, sends %v", w.commits, w.receipts, w.sends)
	}
	if a, b := w.events[0].GetEventId(), w.events[1].GetEventId(); a >= b {
		t.Errorf("event ids do not sort: %q, %q", a, b)
	}
}

func TestParallelTools(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", pure, finishes, true), tool("b", idempotent, finishes, true)}
	w.model = byRound([]string{"b", "a"}, "Both done.")
	w.hold = isCall
	w.begin("parallel", nil)
	w.all()
	if len(w.held) != 2 {
		t.Fatalf("%d calls run, want both at the same time", len(w.held))
	}
	w.held[0], w.held[1] = w.held[1], w.held[0] // the later call ends first
	w.release()
	w.script.Done()
	w.wantEnd(answered, "ok", "Both done.")
	if got := strings.Join(toolTexts(w.requests[1]), ","); got != "b done,a done" {
		t.Errorf("results %q are not in the order of the calls", got)
	}
}

func TestSerialTools(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", once, finishes, false), tool("b", pure, finishes, true)}
	w.model = byRound([]string{"a", "b"}, "Done.")
	w.hold = isCall
	w.begin("serial", nil)
	w.all()
	if len(w.held) != 1 || w.runs["a T1/1/c0"] != 1 {
		t.Fatalf("held %d, runs %v: the first call alone must run", len(w.held), w.runs)
	}
	w.release()
	w.script.Done()
	w.wantEnd(answered, "ok", "Done.")
	if len(w.runs) != 2 {
		t.Errorf("runs %v", w.runs)
	}
}

func TestInvalidAndUnknownCalls(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", pure, finishes, false)}
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		if len(toolTexts(r)) > 0 {
			return says("Sorry.")
		}
		res := callsFor("", "a", "nothing")
		res.Calls[0].Invalid = "truncated"
		return res
	}
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "ok", "Sorry.")
	if w.runs["a T1/1/c0"] != 0 {
		t.Error("a call with cut arguments ran")
	}
	if w.runs["nothing T1/1/c1"] != 1 {
		t.Error("an unknown tool was not handed to tools, which names the nearest")
	}
	if got := toolTexts(w.requests[1])[0]; !strings.Contains(got, `"reason":"type"`) {
		t.Errorf("the model was told %s", got)
	}
}

func denyAll(m *messages.RunStage) *messages.StageContext {
	if m.GetStage() != messages.Stage_STAGE_BEFORE_TOOLCALL {
		return nil
	}
	c := proto.CloneOf(m.GetContext())
	for _, inv := range c.GetCalls() {
		inv.Denied = "not on Sundays"
	}
	return c
}

func TestDenied(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		if len(r.GetTools()) > 0 {
			return callsFor("", "a")
		}
		return says("I may not.")
	}
	w.stage = denyAll
	w.begin("denied", nil)
	w.all()
	w.script.Done()
	w.wantEnd(answered, "tools_denied", "I may not.")
	if len(w.runs) != 0 || len(w.requests) != 2 {
		t.Errorf("runs %v, requests %d", w.runs, len(w.requests))
	}
}

// A call that its owner ends as cancelled, without our asking, has its result: it is not made again.
// A stop from any phase before the commit ends the turn at once; afterwards the answer stands.
// A preemption anywhere is answered by Suspended or by the end, and after a resume all comes out the same.
// An input that joins while the final answer streams is answered in another round; both texts reach the person.
func TestTruncated(t *testing.T) {
	w := newWorld(t)
	w.model = func(*messages.CompletionRequest) *messages.CompletionResult {
		return &messages.CompletionResult{
			Text: "The answer is", Finish: messages.Finish_FINISH_ERROR, Usage: &messages.Usage{Output: 3},
			Failure: &messages.CompletionFailure{
				Kind:  messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED,
				Error: &messages.Error{Code: "stream_truncated", Message: "The stream ended too early.", Hint: "Try again."},
			},
		}
	}
	w.begin("truncated", nil)
	w.all()
	w.script.Done()
	w.wantEnd(failed, "stream_truncated", "The stream ended too early.")
	if w.commits != 0 || len(w.sends) != 0 {
		t.Error("half an answer was committed or sent")
	}
}

func TestNotAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		result *messages.CompletionResult
		reason string
	}{
		{"empty", says(""), "empty_answer"},
		{"no finish", &messages.CompletionResult{Text: "x"}, "bad_completion"},
		{"no result", nil, "bad_completion"},
		{"filtered", &messages.CompletionResult{Text: "x", Finish: messages.Finish_FINISH_CONTENT_FILTER}, "content_blocked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.model = func(*messages.CompletionRequest) *messages.CompletionResult { return c.result }
			w.begin("", nil)
			w.all()
			if f := w.end(); f.GetEnd() != failed || f.GetReason() != c.reason || len(w.sends) != 0 {
				t.Errorf("finished %v, sends %d", f, len(w.sends))
			}
		})
	}
}

func TestResponseOfStage(t *testing.T) {
	for s, requests := range map[messages.Stage]int{
		messages.Stage_STAGE_ON_INPUT: 0, messages.Stage_STAGE_PRE_ACTION: 0, messages.Stage_STAGE_POST_ACTION: 1,
		messages.Stage_STAGE_BEFORE_TOOLCALL: 1, messages.Stage_STAGE_AFTER_TOOLCALL: 1, messages.Stage_STAGE_BEFORE_OUTPUT: 2,
	} {
		t.Run(stageName(s), func(t *testing.T) {
			w := newWorld(t)
			w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
			w.model = byRound([]string{"a"}, "Done.")
			ran := map[messages.Stage]int{}
			w.stage = func(m *messages.RunStage) *messages.StageContext {
				ran[m.GetStage()]++
				c := proto.CloneOf(m.GetContext())
				if m.GetStage() == s {
					c.Response = "By rule."
				}
				return c
			}
			name := ""
			if s == messages.Stage_STAGE_ON_INPUT {
				name = "stage_response"
			}
			w.begin(name, nil)
			w.all()
			if name != "" {
				w.script.Done()
			}
			w.wantEnd(answered, "ok", "By rule.")
			if len(w.requests) != requests || w.commits != 1 || len(w.sends) != 1 {
				t.Errorf("requests %d, commits %d, sends %d", len(w.requests), w.commits, len(w.sends))
			}
			if ran[messages.Stage_STAGE_AFTER_OUTPUT] != 1 {
				t.Error("after_output did not run")
			}
		})
	}
}

func TestStagesChange(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
	w.model = byRound([]string{"a"}, "Done.")
	w.stage = func(m *messages.RunStage) *messages.StageContext {
		c := proto.CloneOf(m.GetContext())
		switch m.GetStage() {
		case messages.Stage_STAGE_ON_INPUT:
			c.InputText = "rewritten"
		case messages.Stage_STAGE_BEFORE_TOOLCALL:
			c.Calls[0].ArgumentsJson = []byte(`{"x":1}`)
		case messages.Stage_STAGE_AFTER_TOOLCALL:
			c.Results[0].Content = "redacted"
		case messages.Stage_STAGE_BEFORE_OUTPUT:
			c.FinalText += " Bye."
		default:
		}
		return c
	}
	w.begin("stages_change", nil)
	w.all()
	w.script.Done()
	w.wantEnd(answered, "ok", "Done. Bye.")
	if got := toolTexts(w.requests[1])[0]; got != "redacted" {
		t.Errorf("the model saw %q", got)
	}
	if !strings.Contains(w.requests[0].String(), "rewritten") {
		t.Error("the model did not see the rewritten input")
	}
}

func TestRoundCap(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", pure, finishes, false)}
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		if len(r.GetTools()) > 0 {
			return callsFor("let me look", "a")
		}
		return says("This is what I have.")
	}
	w.begin("round_cap", func(s *messages.StartTurn) { s.MaxRounds = 2 })
	w.all()
	w.script.Done()
	w.wantEnd(answered, "tool_cap", "This is what I have.")
	if len(w.requests) != 3 || len(w.runs) != 2 {
		t.Errorf("requests %d, runs %v", len(w.requests), w.runs)
	}
}

// A model that asks for tools in the last round too has its calls ignored.
func TestRoundCapIsEnforced(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", pure, finishes, false)}
	w.model = func(*messages.CompletionRequest) *messages.CompletionResult { return callsFor("", "a") }
	w.begin("", func(s *messages.StartTurn) { s.MaxRounds = 25 })
	w.all()
	if f := w.end(); f.GetEnd() != failed || f.GetReason() != "tool_cap" {
		t.Errorf("finished %v", f)
	}
	if len(w.requests) != 26 || len(w.runs) != 25 {
		t.Errorf("requests %d, runs %d", len(w.requests), len(w.runs))
	}
}

func TestLedgerFails(t *testing.T) {
	for _, at := range []string{"start", "tool", "commit"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
			w.model = byRound([]string{"a"}, "Done.")
			low := &messages.Error{Code: "disk_low", Message: "The disk is nearly full.", Hint: "Make room."}
			w.stage = func(m *messages.RunStage) *messages.StageContext {
				s := m.GetStage()
				if at == "start" && s == messages.Stage_STAGE_ON_INPUT ||
					at == "tool" && s == messages.Stage_STAGE_BEFORE_TOOLCALL ||
					at == "commit" && s == messages.Stage_STAGE_BEFORE_OUTPUT {
					w.ledgerE = low
				}
				return nil
			}
			w.begin("", nil)
			w.all()
			w.wantEnd(failed, "disk_low", "The disk is nearly full.")
			if at != "commit" && len(w.runs) != 0 || len(w.sends) != 0 {
				t.Errorf("runs %v, sends %d", w.runs, len(w.sends))
			}
		})
	}
}

func TestOutputPending(t *testing.T) {
	w := newWorld(t)
	w.sendE = &messages.Error{Code: "offline", Message: "The channel is offline."}
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "output_pending", "Hello.")
	if w.receipts != 0 || w.commits != 1 {
		t.Errorf("receipts %d, commits %d", w.receipts, w.commits)
	}
}

func TestMemoryFailsHonestly(t *testing.T) {
	w := newWorld(t)
	w.recall = &messages.RecallResult{Error: &messages.Error{Code: "index_broken", Message: "x"}}
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "ok", "Hello.")
	if !strings.Contains(w.requests[0].String(), "could not be searched just now (index_broken)") {
		t.Error("the model was not told that memory failed")
	}
}

func TestNoRestartInPlace(t *testing.T) {
	w := newWorld(t)
	w.machine = New(testDeps, Settings{}, w.startTurn())
	w.step(kit.Event{Msg: kit.Started{Self: selfAddr, Restarts: 1, Failure: "panic"}})
	if !w.ended || len(w.finished) != 0 {
		t.Error("a turn with a stale journal must end and leave the rest to the scheduler")
	}
}

func TestAllowedOutputs(t *testing.T) {
	parent := func(in *messages.Input) { in.Source = messages.InputSource_INPUT_SOURCE_PARENT }
	for _, c := range []struct {
		name    string
		allowed []string
		change  func(*messages.Input)
		sends   int
	}{
		{"all", nil, func(*messages.Input) {}, 1},
		{"named", []string{"web", "cli"}, func(*messages.Input) {}, 1},
		{"not named", []string{"web"}, func(*messages.Input) {}, 0},
		{"report", []string{"web"}, parent, 1},
		{"no channel", nil, func(in *messages.Input) { in.Channel = "" }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.begin("", func(s *messages.StartTurn) {
				s.Agent.AllowedOutputs = c.allowed
				c.change(s.GetTask().GetInput())
			})
			w.all()
			w.wantEnd(answered, "ok", "Hello.")
			if len(w.sends) != c.sends || w.commits != 1 {
				t.Errorf("sends %d, commits %d", len(w.sends), w.commits)
			}
		})
	}
}

// BenchmarkTurn is what deciding costs for a turn with one tool call, without anything that is done.
func BenchmarkTurn(b *testing.B) {
	b.ReportAllocs()
	steps := 0
	for b.Loop() {
		w := newWorld(b)
		w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
		w.model = byRound([]string{"a"}, "Done.")
		w.begin("", nil)
		w.all()
		steps += w.steps
		if len(w.finished) != 1 {
			b.Fatal("no end")
		}
	}
	b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
}

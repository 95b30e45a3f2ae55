package turn

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func TestPreemptCompleting(t *testing.T) {
	w := newWorld(t)
	w.hold = isComplete
	w.begin("preempt_completing", nil)
	w.all()
	w.step(w.held[0]) // RequestSent
	w.step(w.held[1]) // half of the text
	w.step(kit.Event{From: schedAddr, Msg: &messages.Preempt{Generation: 5, ByLevel: 3, ByInput: "T2"}})
	w.script.Note("what the cut attempt still sends is late")
	w.step(w.held[2])
	w.step(w.held[3])
	if got := strings.Join(w.answers, ","); got != "Suspended" {
		t.Fatalf("answers %q", got)
	}
	w.held, w.hold = nil, nil
	w.past = []*messages.Event{{EventId: "T2/in", Kind: messages.EventKind_EVENT_KIND_INPUT, Blocks: []*messages.Block{{Content: textParts("Fire!")[0]}}}}
	w.step(kit.Event{From: schedAddr, Msg: &messages.Resume{Generation: 5}})
	w.all()
	w.script.Done()
	w.wantEnd(answered, "ok", "Hello.")
	if len(w.requests) != 2 || w.requests[1].GetCallId() != "T1/1/2" {
		t.Errorf("%d requests; want exactly one new attempt", len(w.requests))
	}
	if len(w.cancels) != 1 || w.cancels[0] != "completion T1/1/1 preempt" {
		t.Errorf("cancels %v", w.cancels)
	}
	if !strings.Contains(w.requests[1].String(), "Fire!") {
		t.Error("the new attempt does not know what was said meanwhile")
	}
}

func TestPreemptDuringTool(t *testing.T) {
	cancelled := &messages.ToolError{Reason: "cancelled"}
	for _, c := range []struct {
		name      string
		effect    messages.ToolEffect
		onPreempt messages.OnPreempt
		err       *messages.ToolError // of the run that is cut; nil: it finishes
		runs      int
		told      string
	}{
		{"preempt_tool_finish", once, finishes, nil, 1, "a done"},
		{"preempt_tool_cancel", pure, cancels, cancelled, 2, "a done"},
		{"preempt_tool_cancel_idempotent", idempotent, cancels, cancelled, 2, "a done"},
		{"preempt_tool_cancel_once", once, cancels, cancelled, 1, "unknown_outcome"},
		{"preempt_tool_cancel_unsaid", messages.ToolEffect_TOOL_EFFECT_UNSPECIFIED, cancels, cancelled, 1, "unknown_outcome"},
		{"preempt_tool_cancel_before", once, cancels, &messages.ToolError{Reason: "cancelled", NoEffect: true}, 2, "a done"},
		{"preempt_tool_cancel_late", once, cancels, nil, 1, "a done"},
		{"preempt_tool_cancel_failed", pure, cancels, &messages.ToolError{Reason: "failed"}, 1, "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.tools = []*messages.ToolDef{tool("a", c.effect, c.onPreempt, false)}
			w.model = byRound([]string{"a"}, "Done.")
			w.hold = isCall
			w.begin(c.name, nil)
			w.all()
			w.step(kit.Event{From: schedAddr, Msg: &messages.Preempt{Generation: 5, ByLevel: 3, ByInput: "T2"}})
			if got := strings.Join(w.answers, ","); got != "Suspended" {
				t.Fatalf("answers %q: a running tool must not hold a preemption up", got)
			}
			if c.err != nil {
				w.held[0].Msg = &messages.ToolResult{CallId: "T1/1/c0", Name: "a", Error: c.err}
			}
			w.release() // the result comes while the turn is suspended
			if len(w.requests) != 1 {
				t.Fatal("a suspended turn went on")
			}
			w.step(kit.Event{From: schedAddr, Msg: &messages.Resume{Generation: 5}})
			w.all()
			w.script.Done()
			w.wantEnd(answered, "ok", "Done.")
			if w.runs["a T1/1/c0"] != c.runs {
				t.Errorf("runs %v, want %d", w.runs, c.runs)
			}
			if got := toolTexts(w.requests[1])[0]; !strings.Contains(got, c.told) {
				t.Errorf("the model was told %s, want %s", got, c.told)
			}
		})
	}
}

// A call that may go on by itself does so when the turn is preempted: the turn goes on with its handle. Without a
// preemption it runs to its end; a stop ends it, unless it was let go before.
func TestDetach(t *testing.T) {
	handle := &messages.ToolResult{CallId: "T1/1/c0", Name: "a", Content: `{"handle":"T1/1/c0","state":"running"}`, Taint: messages.Taint_TAINT_TRUSTED}
	detached := func(w *world) (n int) {
		for _, e := range w.journal {
			if e.GetKind() == messages.JournalKind_JOURNAL_KIND_DETACHED {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name     string
		preempt  bool
		stop     bool
		detached int
		told     string
		cancels  string
	}{
		{"detach", true, false, 1, handle.GetContent(), "detach T1/1/c0"},
		{"detach_not", false, false, 0, "a done", ""},
		{"detach_raced", true, false, 0, "a done", "detach T1/1/c0"},
		{"detach_stop", false, true, 0, "", "tool T1/1/c0 stop"},
		{"detach_stop_after", true, true, 0, "", "detach T1/1/c0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.tools = []*messages.ToolDef{tool("a", once, detaches, false)}
			w.model = byRound([]string{"a"}, "Done.")
			w.hold = isCall
			w.begin(c.name, nil)
			w.all()
			if c.preempt {
				w.step(kit.Event{From: schedAddr, Msg: &messages.Preempt{Generation: 5, ByLevel: 3}})
				if got := strings.Join(w.answers, ","); got != "Suspended" {
					t.Fatalf("answers %q", got)
				}
			}
			if c.stop {
				w.step(kit.Event{From: schedAddr, Msg: &messages.Cancel{Generation: 5, End: stopped, Reason: "stop"}})
				w.wantEnd(stopped, "stop", "Stopped.")
			} else {
				if c.detached > 0 {
					w.held[0].Msg = handle
				}
				w.release()
				if c.preempt {
					w.step(kit.Event{From: schedAddr, Msg: &messages.Resume{Generation: 5}})
					w.all()
				}
				w.wantEnd(answered, "ok", "Done.")
				if got := toolTexts(w.requests[1])[0]; got != c.told {
					t.Errorf("the model was told %s", got)
				}
			}
			w.script.Done()
			if got := strings.Join(w.cancels, ","); got != c.cancels {
				t.Errorf("tools were told %q, want %q", got, c.cancels)
			}
			if n := detached(w); n != c.detached || w.runs["a T1/1/c0"] != 1 {
				t.Errorf("%d entries of detaching, runs %v", n, w.runs)
			}
		})
	}
}

func TestCancelledByOwner(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", once, cancels, false)}
	w.model = byRound([]string{"a"}, "Done.")
	w.hold = isCall
	w.begin("", nil)
	w.all()
	w.held[0].Msg = &messages.ToolResult{CallId: "T1/1/c0", Name: "a", Error: &messages.ToolError{Reason: "cancelled"}}
	w.release()
	w.wantEnd(answered, "ok", "Done.")
	if w.runs["a T1/1/c0"] != 1 {
		t.Errorf("runs %v", w.runs)
	}
}

func TestCancelAnywhere(t *testing.T) {
	runs := 0
	for n := 0; ; n++ {
		w := newWorld(t)
		w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
		w.model = byRound([]string{"a"}, "Done.")
		w.begin("", nil)
		if w.run(n) && len(w.finished) > 0 {
			break
		}
		runs++
		before := w.machine.(*machine).phase
		w.step(kit.Event{From: schedAddr, Msg: &messages.Cancel{Generation: 5, End: stopped, Reason: "stop"}})
		if before < committing {
			w.wantEnd(stopped, "stop", "Stopped.")
		}
		w.all()
		if before >= committing {
			w.wantEnd(answered, "ok", "Done.")
		}
		if w.commits > 1 || (w.commits == 1) != (before >= committing) {
			t.Errorf("cancelled in %v: %d commits", before, w.commits)
		}
	}
	if runs < 20 {
		t.Fatalf("only %d places were tried", runs)
	}
}

func TestPreemptAnywhere(t *testing.T) {
	runs, suspensions := 0, 0
	for n := 0; ; n++ {
		w := newWorld(t)
		w.tools = []*messages.ToolDef{tool("a", once, finishes, false), tool("b", pure, cancels, true)}
		w.model = byRound([]string{"a", "b"}, "Done.")
		w.begin("", nil)
		if w.run(n) && len(w.finished) > 0 {
			break
		}
		runs++
		w.step(kit.Event{From: schedAddr, Msg: &messages.Preempt{Generation: 5, ByLevel: 3}})
		w.all()
		if len(w.finished) == 0 {
			if len(w.answers) != 1 || w.answers[0] != "Suspended" {
				t.Fatalf("after %d: answers %v", n, w.answers)
			}
			suspensions++
			w.step(kit.Event{From: schedAddr, Msg: &messages.Resume{Generation: 5}})
			w.all()
		}
		w.wantEnd(answered, "ok", "Done.")
		if w.runs["a T1/1/c0"] != 1 || w.commits != 1 || len(w.sends) != 1 {
			t.Fatalf("after %d: runs %v, commits %d, sends %d", n, w.runs, w.commits, len(w.sends))
		}
	}
	if runs < 20 || suspensions < runs/2 {
		t.Fatalf("%d places, %d suspensions", runs, suspensions)
	}
}

func TestStop(t *testing.T) {
	w := newWorld(t)
	w.hold = isComplete
	w.begin("stop", nil)
	w.all()
	w.step(kit.Event{From: schedAddr, Msg: &messages.Steer{Generation: 5, Input: testInput("T3", "and faster")}})
	w.step(kit.Event{From: schedAddr, Msg: &messages.Cancel{Generation: 5, End: stopped, Reason: "stop"}})
	w.script.Done()
	w.wantEnd(stopped, "stop", "Stopped.")
	if got := w.end().GetSteered(); len(got) != 1 || got[0] != "T3" {
		t.Errorf("steered %v: what joined a stopped turn is stopped with it", got)
	}
}

func TestSteerBeforeTool(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", once, finishes, false), tool("b", once, finishes, false)}
	w.model = byRound([]string{"a", "b"}, "As you wish.")
	w.hold = isCall
	w.begin("steer", nil)
	w.all()
	w.step(kit.Event{From: schedAddr, Corr: "s1", Msg: &messages.Steer{Generation: 5, Input: testInput("T3", "no, leave b")}})
	w.release()
	w.script.Done()
	w.wantEnd(answered, "ok", "As you wish.")
	if w.runs["b T1/1/c1"] != 0 {
		t.Error("a call that had not started ran although new input had come")
	}
	if got := lastText(w.requests[1]); got != "no, leave b" {
		t.Errorf("the next request ends with %q", got)
	}
	if got := w.end().GetSteered(); len(got) != 1 || got[0] != "T3" {
		t.Errorf("steered %v", got)
	}
	if ids := []string{w.events[0].GetEventId(), w.events[1].GetEventId(), w.events[2].GetEventId()}; ids[0] >= ids[1] || ids[1] >= ids[2] {
		t.Errorf("event ids do not sort: %v", ids)
	}
}

func TestSteerFinalDrain(t *testing.T) {
	w := newWorld(t)
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		if lastText(r) == "and B?" {
			return says("B.")
		}
		return says("A.")
	}
	w.hold = isComplete
	w.begin("", nil)
	w.all()
	w.step(kit.Event{From: schedAddr, Msg: &messages.Steer{Generation: 5, Input: testInput("T3", "and B?")}})
	w.release()
	w.wantEnd(answered, "ok", "A.\n\nB.")
	if len(w.requests) != 2 || len(w.end().GetSteered()) != 1 {
		t.Errorf("requests %d, steered %v", len(w.requests), w.end().GetSteered())
	}
}

// A turn that was started again from its journal is offered once more what it took before: it is still its own, however
// far the turn has come.
func TestSteerTakenBefore(t *testing.T) {
	w := newWorld(t)
	w.journal = []*messages.JournalEntry{
		{Kind: messages.JournalKind_JOURNAL_KIND_STARTED, Input: testInput("T1", "Hi")},
		{Kind: messages.JournalKind_JOURNAL_KIND_STEERED, Round: 1, Input: testInput("T3", "and B?")},
	}
	w.hold = func(s kit.Send) bool {
		r, ok := s.Msg.(*messages.RunStage)
		return ok && r.GetStage() == messages.Stage_STAGE_BEFORE_OUTPUT
	}
	w.begin("", nil)
	w.all()
	var taken []bool
	for _, f := range w.machine.Step(w.now, kit.Event{From: schedAddr, Corr: "s1", Msg: &messages.Steer{Generation: 5, Input: testInput("T3", "and B?")}}) {
		if r, ok := f.(kit.Reply); ok {
			taken = append(taken, r.Msg.(*messages.SteerTaken).GetTaken())
		}
	}
	w.release()
	if len(taken) != 1 || !taken[0] {
		t.Errorf("taken %v", taken)
	}
	if got := w.end().GetSteered(); len(got) != 1 || got[0] != "T3" {
		t.Errorf("steered %v", got)
	}
}

func TestSteerTooLate(t *testing.T) {
	w := newWorld(t)
	w.hold = func(s kit.Send) bool {
		r, ok := s.Msg.(*messages.RunStage)
		return ok && r.GetStage() == messages.Stage_STAGE_BEFORE_OUTPUT
	}
	w.begin("", nil)
	w.all()
	var taken *messages.SteerTaken
	for _, f := range w.machine.Step(w.now, kit.Event{Msg: &messages.Steer{Generation: 5, Input: testInput("T3", "x")}}) {
		if s, ok := f.(kit.Send); ok {
			taken, _ = s.Msg.(*messages.SteerTaken)
		}
	}
	if taken == nil || taken.GetTaken() {
		t.Fatalf("answer %v, want not taken", taken)
	}
	w.release()
	if f := w.end(); len(f.GetSteered())+len(f.GetUnanswered()) != 0 {
		t.Errorf("finished %v", f)
	}
}

func TestTimers(t *testing.T) {
	t.Run("silence", func(t *testing.T) {
		w := newWorld(t)
		w.hold = isComplete
		w.begin("", nil)
		w.all()
		w.step(w.held[0])
		w.now = w.now.Add(4 * time.Minute)
		w.step(kit.Event{Msg: silent{"T1/1/1"}})
		if len(w.finished) != 0 {
			t.Fatal("given up too early")
		}
		w.now = w.now.Add(2 * time.Minute)
		w.step(kit.Event{Msg: silent{"T1/1/1"}})
		if f := w.end(); f.GetReason() != "timeout" || w.cancels[0] != "completion T1/1/1 timeout" {
			t.Errorf("finished %v, cancels %v", f, w.cancels)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		w := newWorld(t)
		w.hold = isComplete
		w.begin("", func(s *messages.StartTurn) { s.DeadlineUs = start0.Add(time.Minute).UnixMicro() })
		w.all()
		w.step(kit.Event{Msg: deadline{}})
		if f := w.end(); f.GetEnd() != failed || f.GetReason() != "deadline" || len(w.cancels) != 1 {
			t.Errorf("finished %v, cancels %v", f, w.cancels)
		}
	})
	t.Run("bad deadline", func(t *testing.T) {
		w := newWorld(t)
		w.begin("", func(s *messages.StartTurn) { s.DeadlineUs = -1 })
		w.all()
		if f := w.end(); f.GetEnd() != failed || f.GetReason() != "bad_deadline" || len(w.requests) != 0 {
			t.Errorf("finished %v", f)
		}
	})
	t.Run("past deadline", func(t *testing.T) {
		w := newWorld(t)
		w.begin("", func(s *messages.StartTurn) { s.DeadlineUs = 1 })
		w.step(kit.Event{Msg: deadline{}}) // at once
		if f := w.end(); f.GetReason() != "deadline" || len(w.requests) != 0 {
			t.Errorf("finished %v", f)
		}
	})
	t.Run("limits", func(t *testing.T) {
		m := New(testDeps, Settings{}, (&world{t: t}).startTurn()).(*machine)
		for ms, want := range map[int64]time.Duration{
			0: time.Minute, -5: time.Minute, 1500: 1500 * time.Millisecond, 1 << 62: maxLimit, maxLimit.Milliseconds(): maxLimit,
		} {
			if got := m.callTime(&call{def: &messages.ToolDef{TimeoutMs: ms}}); got != want {
				t.Errorf("a timeout of %d ms gives %v, want %v", ms, got, want)
			}
		}
	})
	t.Run("shown", func(t *testing.T) {
		w := newWorld(t)
		w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
		w.tools[0].TimeoutMs = 90_000
		w.model = byRound([]string{"a"}, "Done.")
		w.hold = isCall
		w.begin("", func(s *messages.StartTurn) { s.DeadlineUs = start0.Add(time.Hour).UnixMicro() })
		w.all()
		m := w.machine.(*machine)
		show := m.Show().(map[string]any)
		calls := show["calls"].([]map[string]any)
		if show["deadline"] != "2026-03-01T10:00:00Z" || calls[0]["limit_s"] != 90.0 || calls[0]["state"] != "running" {
			t.Errorf("shown %v", show)
		}
		if got := m.summary(); got != "task T1, round 1, until 2026-03-01 10:00:00 UTC" {
			t.Errorf("summary %q", got)
		}
	})
	t.Run("busy", func(t *testing.T) {
		w := newWorld(t)
		w.hold = func(s kit.Send) bool { _, ok := s.Msg.(*messages.Recall); return ok }
		w.begin("", nil)
		w.all()
		corr := w.held[0].Corr
		w.held = nil
		w.hold = nil
		w.step(kit.Event{Corr: corr, Msg: &messages.Busy{Depth: 9}})
		w.step(kit.Event{Msg: askAgain{corr}})
		w.all()
		w.wantEnd(answered, "ok", "Hello.")
	})
	t.Run("tool", func(t *testing.T) {
		w := newWorld(t)
		w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
		w.model = byRound([]string{"a"}, "Done.")
		w.hold = isCall
		w.begin("", nil)
		w.all()
		w.hold = nil
		w.step(kit.Event{Msg: callLate{"T1/1/c0#1"}})
		w.all()
		w.wantEnd(answered, "ok", "Done.")
		if len(w.cancels) != 1 || !strings.Contains(toolTexts(w.requests[1])[0], "timeout") {
			t.Errorf("cancels %v", w.cancels)
		}
	})
}

func TestForeignGeneration(t *testing.T) {
	w := newWorld(t)
	w.hold = isComplete
	w.begin("", nil)
	w.all()
	for _, m := range []proto.Message{
		&messages.Preempt{Generation: 4}, &messages.Cancel{Generation: 4, End: stopped}, &messages.Resume{Generation: 5},
		&messages.Steer{Generation: 4, Input: testInput("T3", "x")},
	} {
		w.step(kit.Event{From: schedAddr, Msg: m})
	}
	if len(w.answers)+len(w.finished) != 0 {
		t.Errorf("answers %v", w.answers)
	}
}

// A person may turn recall off; then memory is not asked and the prompt says nothing of it.
func TestRecallOff(t *testing.T) {
	w := newWorld(t)
	w.settings.Recalled = -1
	asked := false
	w.hold = func(s kit.Send) bool {
		_, ok := s.Msg.(*messages.Recall)
		asked = asked || ok
		return false
	}
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "ok", "Hello.")
	if asked || strings.Contains(w.requests[0].String(), "Recalled memory") {
		t.Errorf("memory was asked: %v\n%v", asked, w.requests[0].GetMessages()[0])
	}
}

package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// fullWorld is a run with every kind of step: rounds of tools of all classes, one of them waiting for a person, an input
// that joins, a preemption, and an answer that does not depend on what tools say.
func fullWorld(t *testing.T) *world {
	w, a := asking(t, "asked ")
	w.decide = func() { a.decided = allow() }
	w.tools = []*messages.ToolDef{
		tool("once", once, finishes, false), tool("pure", pure, finishes, true), tool("same", idempotent, finishes, true),
		tool("asked", once, finishes, true),
	}
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		switch len(toolTexts(r)) {
		case 0:
			return callsFor("first", "once", "same")
		case 2:
			return callsFor("second", "pure", "asked", "same")
		default:
			return says("All done.")
		}
	}
	return w
}

// disturb steers and preempts at fixed steps of a run.
func (w *world) disturb(step int) {
	switch step {
	case 14:
		w.step(kit.Event{From: schedAddr, Msg: &messages.Steer{Generation: 5, Input: testInput("T3", "please")}})
	case 29:
		w.step(kit.Event{From: schedAddr, Msg: &messages.Preempt{Generation: 5, ByLevel: 3}})
	case 33:
		w.step(kit.Event{From: schedAddr, Msg: &messages.Resume{Generation: 5}})
	}
}

// play runs to the end or until limit events were delivered, disturbed on its way, and reports whether it ended.
func (w *world) play(limit int) bool {
	for n := 0; n != limit; n++ {
		w.disturb(n)
		if len(w.queue) == 0 && n > 33 {
			return len(w.finished) > 0
		}
		w.run(1)
	}
	return len(w.finished) > 0
}

// crash starts a new turn from the first keep entries of the journal.
func (w *world) crash(keep int) {
	w.journal = w.journal[:keep]
	w.begin("", nil)
	w.all()
}

// wantWhole checks what holds for any run, however often it was interrupted.
func (w *world) wantWhole(what string) {
	w.t.Helper()
	f := w.end()
	if f.GetEnd() != answered || f.GetReason() != "ok" || f.GetText() != "All done." {
		w.t.Fatalf("%s: finished %v", what, f)
	}
	for call, n := range w.runs {
		if (strings.HasPrefix(call, "once ") || strings.HasPrefix(call, "asked ")) && n > 1 {
			w.t.Fatalf("%s: %s ran %d times", what, call, n)
		}
	}
	ids := map[string]bool{}
	for _, e := range w.events {
		ids[e.GetEventId()] = true
	}
	for _, id := range []string{"T1/in", "T1/out"} {
		if !ids[id] {
			w.t.Fatalf("%s: %s is not in the context (%v)", what, id, ids)
		}
	}
	if len(ids) > 3 {
		w.t.Fatalf("%s: events %v", what, ids)
	}
	for i, s := range w.sends {
		if i > 0 && !s.GetMaybeRepeated() {
			w.t.Fatalf("%s: the output was sent again without saying so", what)
		}
	}
	if len(w.sends) == 0 || w.sends[0].GetOutput().GetOutputId() != w.sends[len(w.sends)-1].GetOutput().GetOutputId() {
		w.t.Fatalf("%s: sends %v", what, w.sends)
	}
}

func TestFullRun(t *testing.T) {
	w := fullWorld(t)
	w.begin("", nil)
	if !w.play(-1) {
		t.Fatal("the run did not end")
	}
	w.wantWhole("undisturbed")
	if w.runs["asked T1/2/c1"] != 1 || len(w.checks) < 3 || w.runs["once T1/1/c0"] != 1 {
		t.Fatalf("runs %v, %d checks", w.runs, len(w.checks))
	}
	if len(w.events) != 3 || strings.Join(w.answers, ",") != "SteerTaken,Suspended,Resumed" {
		t.Fatalf("events %d, answers %v: the run does not hold what it is meant to", len(w.events), w.answers)
	}
}

// The process dies after any event. All that was written may be on disk, or only what was synced; the run is the same.
func TestCrashAnywhere(t *testing.T) {
	for _, lose := range []bool{false, true} {
		runs := 0
		for n := 0; ; n++ {
			w := fullWorld(t)
			w.begin("", nil)
			done := w.play(n)
			if done {
				break
			}
			keep := len(w.journal)
			if lose {
				keep = w.synced
			}
			runs++
			w.crash(keep)
			w.wantWhole(fmt.Sprintf("crash after %d events, unsynced lost: %v", n, lose))
		}
		if runs < 30 {
			t.Fatalf("only %d crashes", runs)
		}
	}
}

// The process dies twice: also a run that goes on from a journal can be cut anywhere.
func TestCrashTwice(t *testing.T) {
	runs := 0
	for n := 3; n < 60; n += 4 {
		for k := 0; k < 40; k += 3 {
			w := fullWorld(t)
			w.begin("", nil)
			if w.play(n) {
				continue
			}
			w.begin("", nil)
			if w.run(k) {
				continue
			}
			runs++
			w.crash(len(w.journal))
			w.wantWhole(fmt.Sprintf("crashes after %d and %d events", n, k))
		}
	}
	if runs < 50 {
		t.Fatalf("only %d crashes", runs)
	}
}

// Each prefix of a journal is a place that a restart can find.
func TestEachJournalPrefix(t *testing.T) {
	w := fullWorld(t)
	w.begin("", nil)
	w.play(-1)
	journal := w.journal
	if len(journal) < 18 {
		t.Fatalf("the journal has only %d entries", len(journal))
	}
	for k := 0; k <= len(journal); k++ {
		r := fullWorld(t)
		r.journal = journal[:k:k]
		before := replay(r.journal)
		r.begin("", nil)
		r.all()
		if len(r.finished) != 1 {
			t.Fatalf("prefix %d: finished %d times", k, len(r.finished))
		}
		if f := r.finished[0]; f.GetEnd() != answered || f.GetText() != "All done." {
			t.Fatalf("prefix %d: finished %v", k, f)
		}
		for _, p := range before.rounds {
			for id, inv := range p.started {
				if n := inv.GetName(); (n == "once" || n == "asked") && r.runs[n+" "+id] != 0 {
					t.Fatalf("prefix %d: call %s ran again", k, id)
				}
				if p.results[id] != nil && r.runs[inv.GetName()+" "+id] != 0 {
					t.Fatalf("prefix %d: call %s with a result ran again", k, id)
				}
			}
		}
		if before.committed != nil && r.commits != 0 {
			t.Fatalf("prefix %d: committed again", k)
		}
		if before.sent && len(r.sends) != 0 {
			t.Fatalf("prefix %d: sent again", k)
		}
	}
}

// What a restart makes of each place, as transcripts.
func TestRecoverTranscripts(t *testing.T) {
	places := map[string]func(*messages.JournalEntry) bool{
		"recover_started":  func(e *messages.JournalEntry) bool { return e.GetKind() == messages.JournalKind_JOURNAL_KIND_STARTED },
		"recover_request":  func(e *messages.JournalEntry) bool { return e.GetKind() == messages.JournalKind_JOURNAL_KIND_REQUEST },
		"recover_response": func(e *messages.JournalEntry) bool { return e.GetKind() == messages.JournalKind_JOURNAL_KIND_RESPONSE },
		"recover_tool": func(e *messages.JournalEntry) bool {
			return e.GetKind() == messages.JournalKind_JOURNAL_KIND_TOOL_STARTED
		},
		"recover_result": func(e *messages.JournalEntry) bool {
			return e.GetKind() == messages.JournalKind_JOURNAL_KIND_TOOL_RESULT
		},
		"recover_committed": func(e *messages.JournalEntry) bool {
			return e.GetKind() == messages.JournalKind_JOURNAL_KIND_COMMITTED
		},
		"recover_sent": func(e *messages.JournalEntry) bool {
			return e.GetKind() == messages.JournalKind_JOURNAL_KIND_SENT
		},
	}
	newRun := func(t *testing.T) *world {
		w := newWorld(t)
		w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
		w.model = byRound([]string{"a"}, "Done.")
		return w
	}
	first := newRun(t)
	first.begin("", nil)
	first.all()
	for name, at := range places {
		t.Run(name, func(t *testing.T) {
			w := newRun(t)
			for _, e := range first.journal {
				w.journal = append(w.journal, e)
				if at(e) {
					break
				}
			}
			w.now = start0.Add(time.Hour)
			w.begin(name, nil)
			w.all()
			w.script.Done()
			w.wantEnd(answered, "ok", "Done.")
		})
	}
}

func TestUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		effect messages.ToolEffect
		runs   int
	}{{once, 0}, {idempotent, 1}, {pure, 1}, {messages.ToolEffect_TOOL_EFFECT_UNSPECIFIED, 0}} {
		w := newWorld(t)
		w.tools = []*messages.ToolDef{tool("a", c.effect, finishes, false)}
		w.model = byRound([]string{"a"}, "Done.")
		w.hold = isCall
		w.begin("", nil)
		w.all()
		w.hold, w.runs = nil, map[string]int{}
		w.crash(len(w.journal))
		w.wantEnd(answered, "ok", "Done.")
		if w.runs["a T1/1/c0"] != c.runs {
			t.Errorf("%v: ran %d times after the restart, want %d", c.effect, w.runs["a T1/1/c0"], c.runs)
		}
		told := toolTexts(w.requests[len(w.requests)-1])[0]
		if strings.Contains(told, "unknown_outcome") != (c.runs == 0) {
			t.Errorf("%v: the model was told %s", c.effect, told)
		}
	}
}

// A steered input that the journal holds is not lost, and an answer made before it is kept.
func TestRecoverSteered(t *testing.T) {
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
	w.step(kit.Event{Msg: &messages.Steer{Generation: 5, Input: testInput("T3", "and B?")}})
	w.queue = append(w.queue, w.held...)
	w.run(4) // the response is journaled, its stage is not done
	w.hold = nil
	w.crash(len(w.journal))
	w.wantEnd(answered, "ok", "A.\n\nB.")
	if got := w.end().GetSteered(); len(got) != 1 || got[0] != "T3" {
		t.Errorf("steered %v", got)
	}
}

// A journal with entries of a newer process, or with holes, is no reason to panic.
func FuzzReplay(f *testing.F) {
	f.Add([]byte{1, 1, 2, 1, 3, 1, 4, 1, 5, 1, 7, 1})
	f.Add([]byte{9, 0, 5, 200, 3, 0, 6, 3, 8, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return // a journal of a turn is short
		}
		w := newWorld(t)
		w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
		for i := 0; i+1 < len(data); i += 2 {
			e := &messages.JournalEntry{
				Kind: messages.JournalKind(data[i] % 14), Round: int32(data[i+1] % 8), Attempt: int32(data[i+1] / 8 % 3),
			}
			id := fmt.Sprintf("T1/%d/c0", e.GetRound())
			switch e.GetKind() {
			case messages.JournalKind_JOURNAL_KIND_RESPONSE:
				e.Response = says("x")
				if data[i+1]%2 == 0 {
					e.Response = callsFor("", "a")
					e.Response.Calls[0].CallId = id
				}
			case messages.JournalKind_JOURNAL_KIND_TOOL_STARTED:
				e.Call = &messages.ToolInvocation{CallId: id, Name: "a"}
			case messages.JournalKind_JOURNAL_KIND_TOOL_RESULT:
				e.Result = &messages.ToolResult{CallId: id, Name: "a"}
			case messages.JournalKind_JOURNAL_KIND_STEERED:
				e.Input = testInput(fmt.Sprintf("S%d", i), "more")
			case messages.JournalKind_JOURNAL_KIND_STARTED:
				e.Input = testInput("T1", "Hi")
			default:
			}
			w.journal = append(w.journal, e)
		}
		sent := proto.CloneOf(w.startTurn())
		w.begin("", nil)
		w.all()
		if len(w.finished) != 1 {
			t.Errorf("finished %d times from %v", len(w.finished), sent.GetTask().GetJournal())
		}
	})
}

// A journal of an older node says by a second committed entry that the output was sent.
func TestOldSentMark(t *testing.T) {
	w := newWorld(t)
	w.begin("", nil)
	w.all()
	for _, e := range w.journal {
		if e.GetKind() == messages.JournalKind_JOURNAL_KIND_SENT {
			e.Kind, e.Attempt = messages.JournalKind_JOURNAL_KIND_COMMITTED, 2
		}
	}
	w.crash(len(w.journal))
	w.wantEnd(answered, "ok", "Hello.")
	if len(w.sends) != 1 {
		t.Errorf("%d sends", len(w.sends))
	}
}

package turn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// scripted is a day of work for a vendor that does not look at the prompt: two rounds with calls of all classes, one of
// them asked about, then an answer.
func scripted(t testing.TB) *world {
	w := newWorld(t)
	a := &asks{tools: "asked "}
	w.verdict, w.decide, w.obeys = a.verdict, func() { a.decided = allow() }, true
	w.tools = []*messages.ToolDef{
		tool("once", once, finishes, false), tool("slow", once, detaches, true), tool("same", idempotent, cancels, true),
		tool("pure", pure, cancels, true), tool("asked", once, finishes, true), tool("cut", once, cancels, true),
	}
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		switch round, _, _ := strings.Cut(strings.TrimPrefix(r.GetCallId(), "T1/"), "/"); round {
		case "1":
			return callsFor("first", "once", "slow")
		case "2":
			return callsFor("second", "same", "asked", "pure", "cut")
		}
		return says("All done.")
	}
	return w
}

// play1 begins a scripted run and delivers n events; it reports false when the run ends before.
func (w *world) play1(n int) bool {
	w.begin("", nil)
	for range n {
		if len(w.queue) == 0 && !w.reenter() {
			return false
		}
		w.run(1)
	}
	return len(w.finished) == 0
}

// idleStages: no stage has handlers.
var idleStages = func() map[messages.Stage]bool {
	idle := map[messages.Stage]bool{}
	for s := messages.Stage_STAGE_ON_INPUT; s <= messages.Stage_STAGE_AFTER_OUTPUT; s++ {
		idle[s] = true
	}
	return idle
}()

func (w *world) turn() *machine { return w.machine.(*machine) }

// wantSame checks that a disturbed run has come out like an undisturbed one.
func (w *world) wantSame(what string, requests int) {
	w.t.Helper()
	f := w.end()
	if f.GetEnd() != answered || f.GetReason() != "ok" || f.GetText() != "All done." {
		w.t.Fatalf("%s: finished %v", what, f)
	}
	last := map[string]string{} // what the model was told last of each call
	for _, r := range w.requests {
		wantPaired(w.t, r)
		round := 1
		for _, msg := range r.GetMessages() {
			switch msg.GetRole() {
			case messages.Role_ROLE_ASSISTANT:
				round++
			case messages.Role_ROLE_TOOL:
				last[fmt.Sprintf("%s T1/%d/c%s", msg.GetToolName(), round-1, strings.TrimPrefix(msg.GetVendorCallId(), "v"))] = plainText(msg.GetParts())
			default:
			}
		}
	}
	if len(last) != 6 {
		w.t.Fatalf("%s: the model was told of %d calls: %v", what, len(last), last)
	}
	for call, told := range last {
		n, name := w.runs[call], strings.Fields(call)[0]
		single := name == "once" || name == "slow" || name == "asked" || name == "cut"
		switch {
		case n == 1 || n > 1 && !single:
		case n == 0 && strings.Contains(told, "unknown_outcome"):
		default:
			w.t.Fatalf("%s: %s ran %d times and the model was told %s", what, call, n, told)
		}
		if n == 0 && strings.Contains(told, "done") {
			w.t.Fatalf("%s: %s is told as done and never ran", what, call)
		}
	}
	if requests >= 0 && len(w.requests) != requests {
		w.t.Fatalf("%s: %d requests, want %d", what, len(w.requests), requests)
	}
	if len(w.events) != 2*w.commits || w.commits != 1 || len(w.sends) == 0 {
		w.t.Fatalf("%s: %d events, %d commits, %d sends", what, len(w.events), w.commits, len(w.sends))
	}
}

// At every safe point of every phase: preempted, preempted and then killed, killed; with what was not synced, and without.
// The output and the effects of the tools are those of an undisturbed run, and a model step that was cut was made once more.
func TestDisturbedLikeUndisturbed(t *testing.T) {
	base := scripted(t)
	base.begin("", nil)
	base.all()
	base.wantSame("undisturbed", 3)
	preempt := func(w *world) bool {
		w.step(kit.Event{From: schedAddr, Msg: &messages.Preempt{Generation: 5, ByLevel: 3}})
		for len(w.queue) > 0 {
			w.run(1)
		}
		return len(w.finished) == 0 && len(w.parked) == 0
	}
	resume := func(w *world) {
		w.step(kit.Event{From: schedAddr, Msg: &messages.Resume{Generation: 5}})
		w.all()
	}
	crash := func(w *world, synced bool) {
		keep := len(w.journal)
		if synced {
			keep = w.synced
		}
		w.crash(keep)
	}
	modes := map[string]func(*world){
		"preempt": func(w *world) {
			if preempt(w) {
				resume(w)
			} else {
				w.all()
			}
		},
		"preempt twice": func(w *world) {
			if preempt(w) {
				w.step(kit.Event{From: schedAddr, Msg: &messages.Resume{Generation: 5}})
				w.run(2)
			}
			if len(w.finished) == 0 && preempt(w) {
				resume(w)
			}
			w.all()
		},
		"preempt and crash": func(w *world) {
			if preempt(w) {
				crash(w, false)
			} else {
				w.all()
			}
		},
		"preempt and crash, unsynced lost": func(w *world) {
			if preempt(w) {
				crash(w, true)
			} else {
				w.all()
			}
		},
		"crash":                func(w *world) { crash(w, false) },
		"crash, unsynced lost": func(w *world) { crash(w, true) },
	}
	names := slices.Sorted(maps.Keys(modes))
	for i := range 2 * len(names) {
		name, idle := names[i/2], i%2 == 1
		t.Run(fmt.Sprintf("%s, idle stages %v", name, idle), func(t *testing.T) {
			phases := map[messages.Phase]int{}
			for n := 0; ; n++ {
				w := scripted(t)
				if idle {
					w.settings.Idle = idleStages
				}
				if !w.play1(n) {
					break
				}
				if len(w.parked) > 0 {
					continue // there is no turn to disturb
				}
				phase := w.turn().phase
				phases[phase]++
				want := -1
				if name == "preempt" || name == "crash" || name == "preempt and crash" {
					want = 3 // requests; a cut one is made again, once
					if phase == completing {
						want++
					}
				}
				modes[name](w)
				w.wantSame(fmt.Sprintf("%s after %d events, in %s", name, n, word(phase)), want)
			}
			for p := onInput; p <= afterOutput; p++ {
				passed := idle && (p == onInput || p == preAction || p == postAction || p == prompting || p == beforeOutput || p == afterOutput)
				if phases[p] == 0 && !passed {
					t.Errorf("nothing was tried in %s", word(p))
				}
			}
		})
	}
}

// R2: an input that joins at any instant is answered by this turn or given back; calls that had not started are skipped and
// say so; each call has its result.
func TestR2SteerAtEachInstant(t *testing.T) {
	instants, taken, refused, skippedCalls := 0, 0, 0, 0
	for n := 0; ; n++ {
		w := scripted(t)
		if !w.play1(n) {
			break
		}
		if len(w.parked) > 0 {
			continue
		}
		instants++
		in := testInput("T3", "and the cellar?")
		var got *messages.SteerTaken
		w.watch = func(m *messages.SteerTaken) { got = m }
		w.step(kit.Event{From: schedAddr, Msg: &messages.Steer{Generation: 5, Input: in}})
		phase := w.turn().phase
		w.all()
		f := w.end()
		if f.GetEnd() != answered || got.GetInputId() != "T3" {
			t.Fatalf("after %d: finished %v, answer %v", n, f, got)
		}
		seen := false
		for _, r := range w.requests {
			wantPaired(t, r)
			for _, msg := range r.GetMessages() {
				seen = seen || msg.GetRole() == messages.Role_ROLE_USER && plainText(msg.GetParts()) == "and the cellar?"
				if strings.Contains(plainText(msg.GetParts()), skipped) {
					skippedCalls++
				}
			}
		}
		switch {
		case !got.GetTaken():
			refused++
			if len(f.GetSteered())+len(f.GetUnanswered()) != 0 || seen || phase < beforeOutput {
				t.Fatalf("after %d, in %s: not taken, finished %v, shown to the model: %v", n, word(phase), f, seen)
			}
		case len(f.GetSteered()) == 1 && len(f.GetUnanswered()) == 0:
			taken++
			if !seen {
				t.Fatalf("after %d, in %s: counted as answered and never shown to the model", n, word(phase))
			}
		case len(f.GetUnanswered()) != 1 || len(f.GetSteered()) != 0:
			t.Fatalf("after %d, in %s: taken and lost: %v", n, word(phase), f)
		}
		for call, times := range w.runs {
			if times != 1 {
				t.Fatalf("after %d: %s ran %d times", n, call, times)
			}
		}
	}
	if instants < 40 || taken < 30 || refused == 0 || skippedCalls == 0 {
		t.Fatalf("%d instants, %d taken, %d refused, %d skipped calls", instants, taken, refused, skippedCalls)
	}
}

// R8: a restart between a call and its result, at every instant and with what was not synced lost: what goes to the vendor
// is paired, and nothing is told as done that did not run.
func TestR8RestartBetweenCallAndResult(t *testing.T) {
	places := 0
	for _, synced := range []bool{false, true} {
		for n := 0; ; n++ {
			w := scripted(t)
			if !w.play1(n) {
				break
			}
			open := 0
			for _, c := range w.turn().batch.calls {
				if c.begun && c.state != done {
					open++
				}
			}
			if open == 0 || len(w.parked) > 0 {
				continue
			}
			places++
			keep := len(w.journal)
			if synced {
				keep = w.synced
			}
			w.crash(keep)
			w.wantSame(fmt.Sprintf("restart after %d events with %d calls open", n, open), -1)
		}
	}
	if places < 8 {
		t.Fatalf("only %d places", places)
	}
}

// R8: a cancel in the middle of a batch ends the turn once; nothing starts after it, and what was let go before goes on.
func TestR8CancelMidBatch(t *testing.T) {
	places := 0
	for n := 0; ; n++ {
		w := scripted(t)
		if !w.play1(n) {
			break
		}
		if w.turn().phase != inTools || len(w.parked) > 0 {
			continue
		}
		places++
		calls, open := len(w.calls), 0
		for _, c := range w.turn().batch.calls {
			if c.state == running {
				open++
			}
		}
		w.step(kit.Event{From: schedAddr, Msg: &messages.Cancel{Generation: 5, End: stopped, Reason: "stop"}})
		if len(w.cancels) != open {
			t.Fatalf("after %d: %d calls run, cancelled %v", n, open, w.cancels)
		}
		w.decide = nil
		w.all()
		w.wantEnd(stopped, "stop", "Stopped.")
		if len(w.calls) != calls || w.commits != 0 || len(w.sends) != 0 {
			t.Fatalf("after %d: something went on after the stop", n)
		}
		for _, r := range w.requests {
			wantPaired(t, r)
		}
	}
	if places < 12 {
		t.Fatalf("only %d places", places)
	}
}

// Stages without handlers are not asked; people see that they were passed all the same, and the mark of the sent output is
// on its way to the ledger before the end of the task is.
func TestIdleStages(t *testing.T) {
	run := func(idle map[messages.Stage]bool) (*world, []string) {
		w := newWorld(t)
		w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
		w.model = byRound([]string{"a"}, "Done.")
		w.settings.Idle = idle
		var passed []string
		w.stage = func(m *messages.RunStage) *messages.StageContext {
			if idle[m.GetStage()] {
				t.Errorf("%s was asked", stageName(m.GetStage()))
			}
			return nil
		}
		w.published = func(e *messages.AgentEvent) {
			if e.GetType() == messages.EventType_EVENT_TYPE_STAGE {
				passed = append(passed, e.GetText())
			}
		}
		w.begin("idle_"+fmt.Sprint(len(idle) > 0), nil)
		w.all()
		w.script.Done()
		w.wantEnd(answered, "ok", "Done.")
		return w, passed
	}
	a, asked := run(nil)
	b, idle := run(idleStages)
	if fmt.Sprint(asked) != fmt.Sprint(idle) || len(asked) != 8 {
		t.Errorf("stages %v and %v", asked, idle)
	}
	if b.steps >= a.steps-8 || a.receipts != 1 || b.receipts != 1 || len(a.journal) != len(b.journal) {
		t.Errorf("%d steps and %d without stages, receipts %d and %d", a.steps, b.steps, a.receipts, b.receipts)
	}
}

// A stop while the output is sent, and one that ends the turn, leave an idle last stage alone too.
func TestIdleAfterOutput(t *testing.T) {
	for _, stop := range []bool{false, true} {
		w := newWorld(t)
		w.settings.Idle = idleStages
		w.hold = func(s kit.Send) bool { _, ok := s.Msg.(*messages.SendOutput); return ok }
		if stop {
			w.hold = isComplete
		}
		w.begin("", nil)
		w.all()
		w.step(kit.Event{From: schedAddr, Msg: &messages.Cancel{Generation: 5, End: stopped, Reason: "stop"}})
		w.release()
		if stop {
			w.wantEnd(stopped, "stop", "Stopped.")
		} else {
			w.wantEnd(answered, "ok", "Hello.")
		}
		if (w.receipts == 1) == stop {
			t.Errorf("stop %v: %d receipts", stop, w.receipts)
		}
	}
}

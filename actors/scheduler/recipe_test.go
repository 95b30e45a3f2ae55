package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// TestEndsDrain is recipe R1 of the peers: the running turn ends in each way there is while three inputs wait; each of
// them is answered once, in order, or refused in words.
func TestEndsDrain(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"timeout": func(w *world) {
			w.finish(w.active(), &messages.Finished{End: messages.End_END_FAILED, Reason: "deadline"})
		},
		"provider": func(w *world) {
			w.finish(w.active(), &messages.Finished{End: messages.End_END_FAILED, Reason: "no_source"})
		},
		"refused": func(w *world) {
			w.finish(w.active(), &messages.Finished{End: messages.End_END_REFUSED, Reason: "denied"})
		},
		"person ends the turn": func(w *world) { w.kill(w.active().at, "") },
		"panics for ever": func(w *world) {
			for range maxStarts {
				w.kill(w.active().at, "panic")
				w.settle()
			}
		},
		"power": func(w *world) { w.boot(); w.answer() },
		"no spawn": func(w *world) {
			for range maxStarts {
				a := w.active()
				w.gone(a)
				w.back(kit.Event{Msg: &messages.TurnSpawned{TaskId: a.id, Generation: a.gen, Error: &messages.Error{Code: "busy", Message: "full"}}})
				w.back(kit.Event{Msg: &messages.TurnLost{TaskId: a.id, Generation: a.gen, Failure: "full"}})
				w.settle()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := play(t)
			if name == "no spawn" {
				w.offer(input("a", 2, "a"))
				w.pending = nil // the agent answers otherwise
			} else {
				w.say("a", 2)
			}
			for i := range 3 {
				w.say(fmt.Sprint("q", i), 2)
			}
			end(w)
			w.settle()
			if w.ended["a"] == "" {
				t.Fatalf("a has not ended: %v", w.changes["a"])
			}
			for i := range 3 {
				w.done(fmt.Sprint("q", i))
			}
		})
	}
}

// TestSteerInstants is recipe R2: text joins at every instant of a turn's life, the final drain included; it is answered
// with the turn or becomes a task of its own, and is never lost.
func TestSteerInstants(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		taken *bool
		at    func(w *world, say func())
		want  string // of the steered input
	}{
		"before the turn is there": {&yes, func(w *world, say func()) { say(); w.settle(); w.answer() }, "with a"},
		"while it works":           {&yes, func(w *world, say func()) { w.settle(); say(); w.settle(); w.answer() }, "with a"},
		"past its last safe point": {&no, func(w *world, say func()) { w.settle(); say(); w.settle(); w.answer() }, "own"},
		"its answer is on its way": {&yes, func(w *world, say func()) { w.settle(); w.answer(); say(); w.settle() }, "own"},
		"taken and not answered": {&yes, func(w *world, say func()) {
			w.settle()
			say()
			w.settle()
			a := w.active()
			w.finish(a, &messages.Finished{End: messages.End_END_ANSWERED, Reason: "tool_cap", Unanswered: a.took})
		}, "own"},
		"taken, then the turn fails": {&yes, func(w *world, say func()) {
			w.settle()
			say()
			w.settle()
			w.finish(w.active(), &messages.Finished{End: messages.End_END_FAILED, Reason: "no_source"})
		}, "own"},
		"the turn is lost before it hears": {&yes, func(w *world, say func()) {
			w.settle()
			w.kill(w.active().at, "panic")
			say()
			w.settle()
			w.answer()
		}, "with a"},
		"it parks before it hears": {&yes, func(w *world, say func()) { w.settle(); w.park(); say(); w.settle() }, "own"},
		"it parks with it": {&yes, func(w *world, say func()) {
			w.settle()
			say()
			w.settle()
			w.park()
			w.settle()
			w.decide()
		}, "own"},
		"the node stops in order": {&yes, func(w *world, say func()) {
			w.settle()
			w.step(kit.Event{From: asker, Corr: "drain", Msg: &messages.Drain{}})
			say()
			w.settle()
			w.step(kit.Event{Msg: kit.Stopping{}})
			w.boot()
		}, "own"},
		"power fails when it has joined": {&yes, func(w *world, say func()) {
			w.settle()
			say()
			w.settle()
			w.boot()
		}, "own"},
	} {
		t.Run(name, func(t *testing.T) {
			w := play(t)
			w.steering = c.taken
			w.offer(input("a", 2, "a", steering))
			c.at(w, func() { w.offer(input("b", 2, "b", steering)) })
			w.drain()
			by := w.ledger.tasks["b"].end.GetBy()
			if w.ledger.tasks["b"].end.GetEnd() != messages.End_END_ANSWERED || (c.want == "with a") != (by == "a") {
				t.Fatalf("b ended as %v; want %s; %v", w.ledger.tasks["b"].end, c.want, w.changes["b"])
			}
		})
	}
	t.Run("of others it is a task of its own", func(t *testing.T) {
		w := play(t)
		w.say("a", 2, steering)
		for id, o := range map[string]inputOption{
			"guest": who("guest"), "elsewhere": inside("d"), "nobody": who(""),
			"channel": func(i *messages.Input) { i.Channel = "web" }, "job": job,
		} {
			if got := w.say(id, 2, steering, o); got != messages.Outcome_OUTCOME_QUEUED {
				t.Errorf("%s: %v", id, got)
			}
		}
		if got := w.say("own", 2, steering); got != messages.Outcome_OUTCOME_STEERED {
			t.Errorf("own: %v; one that waits must not close the door for newer ones", got)
		}
		w.drain()
	})
	t.Run("strangers without a name are not one", func(t *testing.T) {
		w := play(t)
		w.say("a", 2, steering, who(""))
		if got := w.say("b", 2, steering, who("")); got != messages.Outcome_OUTCOME_QUEUED {
			t.Errorf("outcome %v", got)
		}
		w.drain()
	})
	t.Run("of others where the channel lets them", func(t *testing.T) {
		joint := func(i *messages.Input) { i.Joint = true }
		w := play(t)
		w.say("a", 2, steering, joint)
		if got := w.say("guest", 2, steering, joint, who("guest")); got != messages.Outcome_OUTCOME_STEERED {
			t.Errorf("guest: %v", got)
		}
		w.drain()
	})
	t.Run("one that the journal of a turn holds does not run by itself", func(t *testing.T) {
		w := play(t)
		w.say("a", 2, steering)
		w.ledger.tasks["a"].Journal = []*messages.JournalEntry{{Kind: messages.JournalKind_JOURNAL_KIND_STEERED, Input: input("b", 2, "b")}}
		w.ledger.tasks["b"] = &taskSim{PendingTask: messages.PendingTask{Input: input("b", 2, "b", steering), Sequence: 2, State: messages.TaskState_TASK_STATE_QUEUED}}
		w.boot() // between the word in the journal and the note at the input
		a := w.active()
		w.finish(a, &messages.Finished{End: messages.End_END_ANSWERED, Reason: "ok", Steered: []string{"b"}})
		w.settle()
		if e := w.ledger.tasks["b"].end; e.GetBy() != "a" {
			t.Fatalf("b ended as %v", e)
		}
	})
}

// TestPeopleFirst is recipe R3: background work saturates the node; a person's input at its default level runs at once
// and the displaced work goes on.
func TestPeopleFirst(t *testing.T) {
	w := play(t)
	for i := range 50 {
		w.say(fmt.Sprint("bg", i), int32(i%2), job)
	}
	at := w.now
	if got := w.say("p", 2, person); got != messages.Outcome_OUTCOME_PREEMPTING {
		t.Fatalf("outcome %v", got)
	}
	w.working("p")
	if !w.now.Equal(at) {
		t.Fatal("it had to wait")
	}
	w.done("p")
	w.drain()
	if c := w.m.counters; c.GetEnded()["answered"] != 51 || c.GetSuspended() != c.GetResumed() {
		t.Fatalf("%v", c)
	}
}

// TestStopEverywhere is recipe R4: stop meets running, suspended, parked and queued work, residents and a turn that does
// not obey, in any order with typing; all ends in bounded time, what comes late is fenced, later input works.
func TestStopEverywhere(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(t, seed)
		w.say("asks", 2)
		w.park()
		w.settle()
		w.say("deep", 0, job)
		w.say("runs", 2, steering)
		w.say("waits", 1, job)
		w.deaf["runs"] = w.rng.IntN(2) == 0
		old := w.active().gen
		typed := 0
		pressed := 0
		for range 8 {
			if w.rng.IntN(2) == 0 {
				w.stop("", fmt.Sprint("s", pressed))
				pressed++
			} else {
				in := input(fmt.Sprint("typed", typed), 2, fmt.Sprint("typed ", typed), steering)
				in.CreatedUs = w.now.UnixMicro()
				w.offer(in)
				typed++
			}
			if w.rng.IntN(2) == 0 {
				w.deliver()
			}
			w.pass(time.Millisecond)
		}
		w.stop("", "last")
		w.settle()
		w.pass(cancelLimit)
		w.settle()
		for id, x := range w.ledger.tasks {
			if x.end == nil || x.end.GetReason() != "stop" && x.end.GetReason() != "repeated" {
				t.Fatalf("seed %d: %s: %v", seed, id, x.end)
			}
		}
		if len(w.held) != 0 {
			t.Fatalf("seed %d: approvals wait for nobody: %v", seed, w.held)
		}
		if w.results["last"] == nil {
			t.Fatalf("seed %d: the stop was not answered", seed)
		}
		w.step(kit.Event{Msg: &messages.Finished{TaskId: "runs", Generation: old, End: messages.End_END_ANSWERED, Reason: "ok"}})
		w.settle()
		if got := w.ended["runs"]; got != "stopped stop" {
			t.Fatalf("seed %d: late word counts: %s", seed, got)
		}
		w.say("later", 2)
		w.done("later")
	}
}

// TestStopIsAnswered holds that a stop is answered in time though the disk and the residents say nothing.
func TestStopIsAnswered(t *testing.T) {
	w := play(t)
	w.say("a", 2)
	w.step(kit.Event{From: asker, Corr: "s", Msg: &messages.StopAll{WaitingElsewhere: 3}})
	w.pending = nil
	w.pass(stopLimit)
	if r := w.results["s"]; r.GetStopped() != 1 || r.GetQuota() != 3 {
		t.Fatalf("%v", r)
	}
	w.step(kit.Event{Corr: "children/1", Msg: &messages.StopResult{Stopped: 5}})
	if r := w.results["s"]; r.GetStopped() != 1 {
		t.Fatalf("what was sent has changed: %v", r)
	}
}

// TestStopIsOneTransaction holds that the moment of a stop and the ends of all that waits go to disk together, and one by
// one when that can not be.
func TestStopIsOneTransaction(t *testing.T) {
	w := play(t)
	w.say("a", 3, job)
	for i := range 20 {
		w.say(fmt.Sprint("q", i), 1, job)
	}
	w.sent = nil
	w.stop("", "s")
	var whole *messages.LedgerExecute
	for _, f := range w.sent {
		if m, ok := f.Msg.(*messages.LedgerExecute); ok && strings.HasPrefix(f.Corr, stopPrefix) {
			whole = m
		}
	}
	if whole == nil || len(whole.GetOps()) != 21 || !whole.GetSync() || whole.GetOps()[0].GetStops() == nil {
		t.Fatalf("written %v", whole)
	}
	w.settle()
	w.drain()

	w = play(t)
	w.say("a", 3, job)
	w.say("q", 1, job)
	w.refuse = 1
	w.stop("", "s")
	w.settle()
	w.refuse = 0
	w.pass(3 * time.Second)
	w.settle()
	w.over("q", "stopped stop")
	if len(w.ledger.stops) != 1 {
		t.Fatalf("stops %v", w.ledger.stops)
	}
}

// TestClockSetBack holds that a stop does not swallow inputs after the clock was set back.
func TestClockSetBack(t *testing.T) {
	w := play(t)
	w.stop("", "s")
	w.settle()
	w.now = w.now.Add(-time.Hour)
	w.say("a", 2)
	w.done("a")
}

// TestParked holds the life of a task that waits for people.
func TestParked(t *testing.T) {
	cases(t, map[string]func(*testing.T, *world){
		"it frees the slot and comes back at its level, in its order": func(_ *testing.T, w *world) {
			w.say("a", 2)
			w.say("b", 2)
			w.say("c", 2)
			w.park()
			w.settle()
			w.working("b")
			if v := w.m.view(0); len(v.GetParked()) != 1 || v.GetParked()[0].GetApprovals()[0] != "y" || v.GetCounters().GetParked() != 1 {
				w.t.Fatalf("%v", v)
			}
			w.decide()
			w.settle()
			w.done("b")
			w.done("a")
			w.done("c")
			if !w.has("a", "parked", "requeued", "resumed", "ended") || w.m.counters.GetResumed() != 0 {
				w.t.Fatalf("%v", w.changes["a"])
			}
		},
		"the decision comes before the turn's last word": func(_ *testing.T, w *world) {
			w.say("a", 2)
			w.park()
			delete(w.held, "a")
			w.step(kit.Event{Msg: &messages.ApprovalsDecided{TaskId: "a"}})
			w.settle()
			w.done("a")
		},
		"it survives a power cut, decided or not": func(_ *testing.T, w *world) {
			w.say("a", 2)
			w.park()
			w.settle()
			w.say("b", 2)
			w.park()
			w.settle()
			delete(w.held, "b")
			w.boot()
			w.working("b")
			w.done("b")
			if w.m.parked["a"] == nil {
				w.t.Fatal("a is not parked")
			}
			w.decide()
			w.settle()
			w.done("a")
		},
		"guard is away": func(_ *testing.T, w *world) {
			w.say("a", 2)
			w.park()
			w.settle()
			delete(w.held, "a")
			ask := kit.Send{To: kit.Path("guard"), Corr: "approvals/a", Msg: &messages.ListApprovals{TaskId: "a"}}
			w.step(kit.Event{Msg: kit.Fault{Effect: ask, Err: &messages.Error{Code: "actor_gone"}}})
			w.pass(approvalsEvery)
			w.settle()
			w.done("a")
		},
		"parked while it was to make place": func(_ *testing.T, w *world) {
			w.say("a", 0, job)
			t := w.active()
			w.offer(input("b", 3, "b"))
			w.pending = nil // it parks instead
			w.gone(t)
			w.held["a"] = true
			w.back(kit.Event{Msg: &messages.Parked{TaskId: "a", Generation: t.gen}})
			w.settle()
			w.done("b")
			if c := w.m.counters; c.GetSuspended() != 0 || len(c.GetPreempts()) != 0 {
				w.t.Fatalf("%v", c)
			}
			w.drain()
		},
		"parked until a time": func(_ *testing.T, w *world) {
			w.say("a", 0, job)
			t := w.active()
			w.gone(t)
			w.held["a"] = true // guard has nothing to do with it
			w.back(kit.Event{Msg: &messages.Parked{TaskId: "a", Generation: t.gen, UntilUs: w.now.Add(time.Hour).UnixMicro()}})
			w.settle()
			w.pass(59 * time.Minute)
			if w.m.parked["a"] == nil {
				w.t.Fatal("it went on too early")
			}
			w.pass(2 * time.Minute)
			w.settle()
			w.done("a")
		},
		"cancelled by a person": func(_ *testing.T, w *world) {
			w.say("a", 2)
			w.park()
			w.settle()
			w.edit("a", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_CANCEL})
			w.settle()
			w.over("a", "stopped cancelled")
			if len(w.held) != 0 {
				w.t.Fatal("its approval waits")
			}
		},
		"it parks again and again without being taken for a crash": func(_ *testing.T, w *world) {
			w.say("a", 2)
			for range 5 {
				w.park()
				w.settle()
				w.decide()
				w.settle()
			}
			w.done("a")
		},
	})
}

// A turn that is lost after Resume and before Resumed, while another is to take its place, was suspended once and is
// resumed once.
func TestLostBeforeResumed(t *testing.T) {
	w := play(t)
	drop := func(which func(proto.Message) bool) {
		t.Helper()
		n := len(w.pending)
		w.pending = slices.DeleteFunc(w.pending, func(e kit.Event) bool {
			m, ok := e.Msg.(proto.Message)
			return ok && which(m)
		})
		if len(w.pending) != n-1 {
			t.Fatalf("%d of %d messages dropped, want one", n-len(w.pending), n)
		}
	}
	w.say("a", 0, job)
	w.say("b", 3, person)
	w.working("b")
	w.answer()
	finished := w.pending[0]
	w.pending = w.pending[1:]
	w.step(finished)
	drop(func(m proto.Message) bool { _, ok := m.(*messages.Resumed); return ok })
	a := w.active()
	w.offer(input("c", 3, "text of c", person))
	drop(func(m proto.Message) bool { _, ok := m.(*messages.Suspended); return ok })
	w.gone(a)
	w.back(kit.Event{Msg: &messages.TurnLost{TaskId: "a", Generation: a.gen, Failure: "boom"}})
	w.settle()
	w.done("c")
	w.done("a")
	if c := w.m.counters; c.GetSuspended() != 1 || c.GetResumed() != 1 {
		t.Errorf("%d suspended, %d resumed", c.GetSuspended(), c.GetResumed())
	}
}

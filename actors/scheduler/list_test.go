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

// The tests of this file are the list of cases that a scheduler of this kind must hold, by their letters: P preemption,
// R resumption, X stop, Q queue and back-pressure, G isolation of failures, K cooldown, E whole runs.

// play is a world in which nothing happens by chance.
func play(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1)
	yes := true
	w.steering = &yes
	return w
}

// say offers an input and lets what follows happen; it returns the outcome.
func (w *world) say(id string, level int32, opts ...inputOption) messages.Outcome {
	w.t.Helper()
	in := input(id, level, "text of "+id, append([]inputOption{func(i *messages.Input) { i.CreatedUs = w.now.UnixMicro() }}, opts...)...)
	w.offer(in)
	w.settle()
	o, _ := w.replies["o/"+id].(*messages.InputOutcome)
	return o.GetOutcome()
}

func (w *world) working(id string) {
	w.t.Helper()
	got := "nothing"
	if t := w.active(); t != nil {
		got = t.id
	}
	if got != id {
		w.t.Fatalf("%s works, want %s", got, id)
	}
}

// done lets the turn that works answer.
func (w *world) done(id string) {
	w.t.Helper()
	w.working(id)
	w.answer()
	w.settle()
	w.over(id, "answered ok")
}

func (w *world) over(id, want string) {
	w.t.Helper()
	if w.ended[id] != want {
		w.t.Fatalf("%s ended %q, want %q; changes %v", id, w.ended[id], want, w.changes[id])
	}
	if e := w.ledger.tasks[id].end; e == nil || endName(e.GetEnd())+" "+e.GetReason() != want {
		w.t.Fatalf("%s is on disk as %v, want %q", id, e, want)
	}
}

func who(id string) inputOption      { return func(i *messages.Input) { i.Principal.Id = id } }
func inside(c string) inputOption    { return func(i *messages.Input) { i.Conversation = c } }
func person(i *messages.Input)       { i.PersonWaits = true }
func job(i *messages.Input)          { i.Source, i.PersonWaits = messages.InputSource_INPUT_SOURCE_JOB, false }
func interrupting(i *messages.Input) { i.Mode = messages.Mode_MODE_INTERRUPT }
func steering(i *messages.Input)     { i.Mode = messages.Mode_MODE_STEER }
func words(text string) inputOption {
	return func(i *messages.Input) { i.Parts = []*messages.Part{{Content: &messages.Part_Text{Text: text}}} }
}

func until(at time.Time) inputOption {
	return func(i *messages.Input) { i.DeadlineUs = at.UnixMicro() }
}

func cases(t *testing.T, list map[string]func(*testing.T, *world)) {
	t.Helper()
	for name, do := range list {
		t.Run(name, func(t *testing.T) { do(t, play(t)) })
	}
}

func TestPreemption(t *testing.T) {
	pair := func(first, second int32, preempts bool) func(*testing.T, *world) {
		return func(_ *testing.T, w *world) {
			w.say("a", first, job)
			got := w.say("b", second, who("guest"), job)
			if preempts {
				w.working("b")
				if got != messages.Outcome_OUTCOME_PREEMPTING {
					w.t.Fatalf("outcome %v", got)
				}
				w.done("b")
				w.done("a")
				return
			}
			w.working("a")
			if got != messages.Outcome_OUTCOME_QUEUED {
				w.t.Fatalf("outcome %v", got)
			}
			w.done("a")
			w.done("b")
		}
	}
	cases(t, map[string]func(*testing.T, *world){
		"P1 an interrupt preempts queued work": pair(0, 1, true),
		"P2 a higher level preempts":           pair(2, 3, true),
		"P3 the same level waits":              pair(2, 2, false),
		"P4 a lower level waits":               pair(3, 1, false),
		"P5 queued work never preempts":        pair(0, 0, false),
		"P6 two of level 4 do not preempt":     pair(4, 4, false),
		"P7 level 4 preempts 3":                pair(3, 4, true),
		"P8 a greater one takes the slot, the displaced one is next of its level": func(_ *testing.T, w *world) {
			w.say("a", 0, job)
			w.offer(input("b", 2, "b", who("guest")))
			w.offer(input("c", 2, "c", who("other")))
			w.offer(input("d", 3, "d", who("third")))
			w.settle()
			w.working("d")
			if !w.has("b", "requeued") {
				w.t.Fatalf("b: %v", w.changes["b"])
			}
			for _, id := range []string{"d", "b", "c", "a"} {
				w.done(id)
			}
		},
		"P8 the displaced one goes before those of its level that were accepted earlier": func(_ *testing.T, w *world) {
			w.say("a", 2, person)
			w.say("b", 3, who("guest"))
			w.done("b")
			w.pass(time.Minute)
			w.say("waits", 3, who("guest")) // a has aged to 3
			w.offer(input("own", 3, "own", interrupting))
			w.offer(input("k", 4, "k", who("kernel")))
			if p := w.m.position(w.m.tasks["own"]); p != 2 { // after what is in the slot
				w.t.Fatalf("the displaced one is at %d", p)
			}
			w.settle()
			w.done("k")
			w.pass(2 * time.Second) // the stack wins the tie, then the cooldown is over
			w.settle()
			for _, id := range []string{"own", "a", "waits"} {
				w.done(id)
			}
		},
		"P9 age protects against others, not against the principal's own interrupt": func(_ *testing.T, w *world) {
			w.say("a", 2, person)
			w.say("b", 3, who("guest"))
			w.done("b")
			w.pass(time.Minute)
			w.say("c", 3, who("guest"))
			w.working("a") // aged to 3
			w.say("d", 3, interrupting)
			w.working("d")
			w.done("d")
			w.done("a")
			w.done("c")
		},
		"P10 age puts no background work before a person": func(_ *testing.T, w *world) {
			w.say("bg", 0, job)
			for i := range 4 {
				id := fmt.Sprint("n", i)
				w.pass(time.Minute)
				w.say(id, 2, who("guest"))
				w.done(id)
			}
			if e := effective(w.m.tasks["bg"]); e != 1 {
				w.t.Fatalf("background work has aged to %d", e)
			}
			w.say("p", 2)
			w.working("p")
		},
		"P11 age never reaches level 4, and the log names victim and reason": func(_ *testing.T, w *world) {
			w.say("a", 3, person)
			for i := range 5 {
				id := fmt.Sprint("k", i)
				w.say(id, 4, func(in *messages.Input) { in.Source = messages.InputSource_INPUT_SOURCE_KERNEL })
				w.done(id)
			}
			if e := effective(w.m.tasks["a"]); e != 3 {
				w.t.Fatalf("aged to %d", e)
			}
			if !slices.ContainsFunc(w.logs, func(l string) bool {
				return strings.HasPrefix(l, "task makes place") && strings.Contains(l, "victim") && strings.Contains(l, "level")
			}) {
				w.t.Fatalf("log %q", w.logs)
			}
		},
	})
}

func TestResumption(t *testing.T) {
	cases(t, map[string]func(*testing.T, *world){
		"R1 the top of the stack goes on when the preemptor has ended": func(_ *testing.T, w *world) {
			w.say("a", 0, job)
			w.say("b", 1, job)
			w.done("b")
			w.done("a")
			c := w.m.counters
			if c.GetSuspended() != 1 || c.GetResumed() != 1 || !w.has("a", "suspended", "resumed", "ended") {
				w.t.Fatalf("%v %v", c, w.changes["a"])
			}
		},
		"R2 last in, first out": func(_ *testing.T, w *world) {
			for l, id := range []string{"a", "b", "c", "d", "e"} {
				w.say(id, int32(l), who(id), job)
			}
			for _, id := range []string{"e", "d", "c", "b", "a"} {
				w.done(id)
			}
		},
		"R3 the stack wins a tie": func(_ *testing.T, w *world) {
			w.say("a", 1, job)
			w.say("k", 4, who("kernel"), job)
			w.say("b", 1, who("guest"), job)
			w.done("k")
			w.working("a")
			w.done("a")
			w.done("b")
		},
		"R4 a higher one that waits goes before the stack": func(_ *testing.T, w *world) {
			w.say("a", 0, job)
			w.say("k", 4, who("kernel"), job)
			w.say("p", 2, who("guest"))
			w.done("k")
			w.done("p")
			w.done("a")
		},
		"R5 suspended work comes back after a power cut, in order": func(_ *testing.T, w *world) {
			for l, id := range []string{"a", "b", "c"} {
				w.say(id, int32(l), who(id), job)
			}
			w.boot()
			for _, id := range []string{"c", "b", "a"} {
				w.done(id)
			}
			if c := w.m.counters; c.GetSuspended() != c.GetResumed() {
				w.t.Fatalf("%d suspended, %d resumed by this process", c.GetSuspended(), c.GetResumed())
			}
		},
		"R5 the order of the stack is that of the suspensions, not that of the inputs": func(_ *testing.T, w *world) {
			for i, id := range []string{"top", "middle", "bottom"} {
				w.ledger.tasks[id] = &taskSim{PendingTask: messages.PendingTask{
					Input: input(id, 2, id), Sequence: uint64(i + 1), State: messages.TaskState_TASK_STATE_SUSPENDED,
					Journal: []*messages.JournalEntry{
						{Kind: messages.JournalKind_JOURNAL_KIND_SUSPENDED, AtUs: 9},
						{Kind: messages.JournalKind_JOURNAL_KIND_SUSPENDED, AtUs: int64(30 - i)},
					},
				}}
			}
			w.ledger.tasks["ran"] = &taskSim{PendingTask: messages.PendingTask{
				Input: input("ran", 0, "ran"), Sequence: 4, State: messages.TaskState_TASK_STATE_RUNNING,
			}}
			w.boot()
			for _, id := range []string{"ran", "top", "middle", "bottom"} {
				w.done(id)
			}
		},
	})
}

func TestStops(t *testing.T) {
	build := func(w *world) {
		w.say("a", 0, job)
		w.say("b", 2)
		w.say("q1", 1, job)
		w.say("q2", 0, job)
		w.working("b")
	}
	cases(t, map[string]func(*testing.T, *world){
		"X1 what runs, is suspended and waits ends; new input works": func(_ *testing.T, w *world) {
			build(w)
			w.stop("", "s")
			w.settle()
			if r := w.results["s"]; r.GetStopped() != 2 || r.GetQuota() != 2 {
				w.t.Fatalf("%v", r)
			}
			for _, id := range []string{"a", "b", "q1", "q2"} {
				w.over(id, "stopped stop")
			}
			w.pass(time.Millisecond)
			w.say("new", 2)
			w.done("new")
		},
		"X2 pressed twice, or while typing": func(_ *testing.T, w *world) {
			build(w)
			w.offer(input("typed", 2, "while", steering, func(in *messages.Input) { in.CreatedUs = w.now.UnixMicro() }))
			w.stop("", "s1")
			w.stop("", "s2")
			w.settle()
			a, b := w.results["s1"], w.results["s2"]
			if a.GetStopped() != 2 || a.GetQuota() != 3 || b.GetStopped() != 0 || b.GetQuota() != 0 {
				w.t.Fatalf("%v, then %v: the second stop must count nothing again", a, b)
			}
			w.over("typed", "stopped stop")
			w.drain()
		},
		"X3 what is on its way in is taken, what comes after is not": func(_ *testing.T, w *world) {
			w.stop("", "s")
			w.settle()
			late := input("late", 2, "late")
			late.CreatedUs = w.now.UnixMicro() - 1
			w.offer(late)
			marked := input("marked", 2, "marked")
			marked.CreatedUs = w.now.Add(time.Second).UnixMicro() // by a clock that is ahead
			w.ledger.tasks["marked"] = &taskSim{PendingTask: messages.PendingTask{Input: marked, Sequence: 2}}
			w.step(kit.Event{From: asker, Corr: "o/marked", Msg: &messages.Offer{Input: marked, Sequence: 2, Stopped: true}})
			w.settle()
			w.over("late", "stopped stop")
			w.over("marked", "stopped stop")
			w.say("mail", 1, func(in *messages.Input) { in.CreatedUs = w.now.Add(-24 * time.Hour).UnixMicro() })
			w.say("undated", 1, func(in *messages.Input) { in.CreatedUs = 0 })
			w.pass(time.Millisecond)
			w.say("new", 2)
			w.done("new")
			w.done("mail")
			w.done("undated")
		},
		"X3 what had joined a turn that was past its commit does not run by itself": func(_ *testing.T, w *world) {
			w.say("a", 2, steering)
			w.say("joins", 2, steering)
			w.deaf["a"] = true
			w.stop("", "s")
			w.settle()
			w.finish(w.active(), &messages.Finished{End: messages.End_END_ANSWERED, Reason: "ok", Unanswered: []string{"joins"}})
			w.settle()
			w.over("a", "answered ok")
			w.over("joins", "stopped stop")
		},
		"X4 a power cut revives nothing, and one conversation is one conversation": func(_ *testing.T, w *world) {
			build(w)
			w.say("d", 1, inside("d"), job)
			w.deaf["a"], w.deaf["b"] = true, true // their ends never get to disk
			w.stop("c", "s")
			w.settle()
			w.boot()
			w.drain()
			for _, id := range []string{"a", "b", "q1", "q2"} {
				w.over(id, "stopped stop")
			}
			w.over("d", "answered ok")
		},
	})
}

func TestQueueing(t *testing.T) {
	cases(t, map[string]func(*testing.T, *world){
		"Q1 first in, first out within a level": func(_ *testing.T, w *world) {
			w.say("a", 3, job)
			for i := range 5 {
				w.say(fmt.Sprint("q", i), 1, job)
			}
			w.done("a")
			for i := range 5 {
				w.done(fmt.Sprint("q", i))
			}
		},
		"Q2 higher levels first, positions told": func(_ *testing.T, w *world) {
			w.say("a", 3, job)
			w.say("low", 0, job)
			w.say("mid", 1, job)
			w.say("high", 2, job)
			v := w.m.view(0)
			for i, id := range []string{"high", "mid", "low"} {
				if q := v.GetQueue()[i]; q.GetTaskId() != id || q.GetPosition() != int32(i+1) || q.GetPrincipal().GetId() != "owner" {
					w.t.Fatalf("queue %v", v.GetQueue())
				}
				if w.m.position(w.m.tasks[id]) != int32(i+1) {
					w.t.Fatalf("position of %s is %d", id, w.m.position(w.m.tasks[id]))
				}
			}
			if v := w.m.view(1); len(v.GetQueue()) != 1 || v.GetWaiting() != 3 {
				w.t.Fatalf("%d listed of %d", len(v.GetQueue()), v.GetWaiting())
			}
		},
		"Q3 a repeated input ends as duplicate of the first": func(_ *testing.T, w *world) {
			w.say("a", 2, words("same"))
			w.pass(9 * time.Second)
			if o := w.say("b", 2, words("same")); o != messages.Outcome_OUTCOME_DUPLICATE {
				w.t.Fatalf("outcome %v", o)
			}
			w.over("b", "duplicate repeated")
			if by := w.ledger.tasks["b"].end.GetBy(); by != "a" {
				w.t.Fatalf("repeats %q", by)
			}
			w.pass(2 * time.Second)
			w.say("c", 2, words("same"))
			w.say("d", 2, words("same"), inside("elsewhere"))
			w.say("e", 2, words("same"), who("guest"))
			w.say("f", 2, words("same"), func(in *messages.Input) { in.IdempotencyKey = "k" })
			for _, id := range []string{"a", "c", "d", "e", "f"} {
				w.done(id)
			}
		},
		"Q4 a deadline that passes while it waits": func(_ *testing.T, w *world) {
			w.say("a", 2)
			w.say("late", 2, until(w.now.Add(time.Second)))
			w.say("fine", 2, until(w.now.Add(time.Hour)))
			w.say("never", 1, until(w.now.Add(-time.Second)))
			w.over("never", "expired deadline")
			w.pass(2 * time.Second)
			w.settle()
			w.over("late", "expired deadline")
			w.done("a")
			w.pass(2 * time.Hour)
			w.done("fine")
		},
		"Q5 an offer that comes again is answered again and runs once": func(_ *testing.T, w *world) {
			w.say("a", 2)
			again := w.ledger.tasks["a"].GetInput()
			w.step(offer(again, 1))
			w.done("a")
			w.step(offer(again, 1))
			w.settle()
			if n := w.m.counters.GetStarted(); n != 1 {
				w.t.Fatalf("started %d times", n)
			}
		},
		"Q6 promote, move, edit and cancel what waits; text and level survive a power cut": func(_ *testing.T, w *world) {
			w.say("a", 3, job)
			for _, id := range []string{"q1", "q2", "q3", "q4"} {
				w.say(id, 1, job)
			}
			do := func(id string, e *messages.EditQueue) proto.Message {
				w.edit(id, e)
				w.settle()
				return w.replies["edit "+id]
			}
			code := func(m proto.Message) string { e, _ := m.(*messages.Error); return e.GetCode() }
			if v, _ := do("q3", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_PROMOTE}).(*messages.TaskView); v.GetPosition() != 1 {
				w.t.Fatalf("promoted to %v", v)
			}
			do("q4", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_LEVEL, Level: 2})
			do("q1", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_TEXT, Text: "other words"})
			do("q2", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_CANCEL})
			w.over("q2", "stopped cancelled")
			for _, c := range []struct {
				id, code string
				e        *messages.EditQueue
			}{
				{"nobody", "unknown_input", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_PROMOTE}},
				{"q2", "not_waiting", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_PROMOTE}},
				{"a", "not_waiting", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_CANCEL}},
				{"q1", "bad_input", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_TEXT, Text: " \n"}},
				{"q1", "too_large", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_TEXT, Text: strings.Repeat("x", maxText+1)}},
				{"q1", "bad_input", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_LEVEL, Level: 4}},
				{"q1", "bad_input", &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_LEVEL, Level: -1}},
				{"q1", "bad_input", &messages.EditQueue{}},
			} {
				if got := code(do(c.id, c.e)); got != c.code {
					w.t.Errorf("%v of %s: %q, want %q", c.e, c.id, got, c.code)
				}
			}
			w.step(kit.Event{From: asker, Corr: "guest", Msg: &messages.EditQueue{
				InputId: "q1", Edit: messages.QueueEdit_QUEUE_EDIT_TEXT, Text: "mine", Principal: &messages.Principal{Id: "guest"},
			}})
			if got := code(w.replies["guest"]); got != "not_allowed" {
				w.t.Errorf("a guest changes what the owner said: %q", got)
			}
			w.boot()
			w.done("a")
			w.working("q4") // its level survived
			if got := text(w.m.tasks["q1"].input); got != "other words" {
				w.t.Fatalf("q1 says %q", got)
			}
			w.drain()
		},
	})
}

func TestIsolation(t *testing.T) {
	cases(t, map[string]func(*testing.T, *world){
		"G1 a turn that fails is started again, the others wait": func(_ *testing.T, w *world) {
			w.say("a", 2)
			w.say("b", 2)
			w.kill(w.active().at, "panic")
			w.settle()
			w.done("a")
			w.done("b")
		},
		"G2 the third failure without getting further ends it, people are told once": func(_ *testing.T, w *world) {
			w.say("a", 2)
			w.say("b", 2)
			for range 3 {
				w.working("a")
				w.kill(w.active().at, "panic")
				w.settle()
			}
			w.over("a", "failed crash_loop")
			w.done("b")
		},
		"G2 a task that ledger does not know as open is let go of": func(_ *testing.T, w *world) {
			w.say("a", 2)
			w.say("b", 2)
			w.ledger.tasks["a"].end = &messages.EndTask{TaskId: "a", End: messages.End_END_REFUSED, Reason: "unknown_agent"}
			w.kill(w.active().at, "panic")
			w.settle()
			if w.m.tasks["a"] != nil {
				w.t.Fatal("it is still held")
			}
			w.done("b")
		},
		"G3 power cuts in a long turn that gets further each time do not end it": func(_ *testing.T, w *world) {
			w.say("a", 2)
			for range 7 {
				w.working("a")
				w.ledger.tasks["a"].result = true
				w.boot()
			}
			for range 2 {
				w.boot()
			}
			w.done("a")
			w.say("b", 2)
			for range 3 {
				w.working("b")
				w.boot()
			}
			w.over("b", "failed crash_loop")
		},
	})
}

func TestCooldowns(t *testing.T) {
	cases(t, map[string]func(*testing.T, *world){
		"K1 within two seconds it is left alone, then asked again": func(_ *testing.T, w *world) {
			w.say("a", 0, job)
			w.say("b", 1, job)
			w.done("b")
			w.say("c", 2, job)
			w.working("a")
			w.pass(2 * time.Second)
			w.settle()
			w.working("c")
		},
		"K2 not for level 4, and not in a person's way": func(_ *testing.T, w *world) {
			w.say("a", 0, job)
			w.say("b", 1, job)
			w.done("b")
			w.say("p", 2, person)
			w.working("p")
			w.say("k", 4, job)
			w.done("k")
			w.say("k2", 4, who("kernel"), job)
			w.working("k2")
		},
	})
}

// TestE4 runs 100 queued and 100 interrupts, 25 of each level, mixed: all are answered, none is refused, and what was
// suspended went on.
func TestE4(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		var levels []int32
		for i := range 100 {
			levels = append(levels, 0, int32(i%4)+1)
		}
		w.rng.Shuffle(len(levels), func(i, j int) { levels[i], levels[j] = levels[j], levels[i] })
		for i, l := range levels {
			w.pass(time.Duration(w.rng.IntN(300)) * time.Millisecond)
			in := input(fmt.Sprintf("i%03d", i), l, fmt.Sprint("text ", i), who(fmt.Sprint("p", i%7)), mode(messages.Mode(2+i%2)))
			in.CreatedUs = w.now.UnixMicro()
			w.offer(in)
			for range w.rng.IntN(4) {
				w.deliver()
			}
			if w.rng.IntN(3) == 0 {
				w.answer()
			}
		}
		w.drain()
		c := w.m.counters
		var preempts uint64
		for l, n := range c.GetPreempts() {
			if l < "1" || l > "4" {
				t.Errorf("preempted by level %q", l)
			}
			preempts += n
		}
		if c.GetEnded()["answered"] != 200 || len(c.GetEnded()) != 1 {
			t.Fatalf("seed %d: ended %v", seed, c.GetEnded())
		}
		if c.GetSuspended() == 0 || c.GetSuspended() != c.GetResumed() || preempts != c.GetSuspended() || c.GetAnomalies() != 0 {
			t.Fatalf("seed %d: %d suspended, %d resumed, %d preempted, %d anomalies", seed, c.GetSuspended(), c.GetResumed(), preempts, c.GetAnomalies())
		}
		for l := range int32(4) {
			if n := c.GetInterrupts()[fmt.Sprint(l+1)]; n != 25 {
				t.Fatalf("%d interrupts of level %d", n, l+1)
			}
		}
	}
}

// TestE5 nests four deep; what was suspended goes on in the order L3, L2, L1, queued.
func TestE5(t *testing.T) {
	w := play(t)
	names := []string{"queued", "L1", "L2", "L3", "L4"}
	for l, id := range names {
		w.say(id, int32(l), who(id), job)
	}
	if d := w.m.counters.GetMaxDepth(); d != 4 {
		t.Fatalf("%d deep", d)
	}
	w.resumes = nil
	w.done("L4")
	for range 4 {
		w.answer()
		w.settle()
	}
	if want := []string{"L3", "L2", "L1", "queued"}; !slices.Equal(w.resumes, want) {
		t.Fatalf("went on in the order %v, want %v", w.resumes, want)
	}
	w.drain()
}

package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

const day = 24 * time.Hour

var policy = Policy{Journal: 7 * day, Tasks: 90 * day, Keys: 30 * day, Outputs: 30 * day, Aside: 90 * day}

// at runs operations as one request at a moment and wants no error.
func (r *rig) at(now time.Time, ops ...*messages.LedgerOp) []*messages.LedgerResult {
	r.t.Helper()
	done := r.l.Execute(now, []*messages.LedgerExecute{{Ops: ops}})[0]
	if done.GetError() != nil {
		r.t.Fatalf("refused: %v", done.GetError())
	}
	return done.GetResults()
}

// retain runs passes until there is no more, and returns how many.
func (r *rig) retain(now time.Time) int {
	r.t.Helper()
	for n := 1; ; n++ {
		more, err := r.l.Retain(now)
		if err != nil {
			r.t.Fatal(err)
		}
		if !more {
			return n
		}
		if n > 1000 {
			r.t.Fatal("retention does not end")
		}
	}
}

// reopened opens the ledger anew over the same store, which runs the guard.
func (r *rig) reopened() *rig {
	r.t.Helper()
	l, err := Open(r.db, Options{})
	if err != nil {
		r.t.Fatalf("the guard refuses what retention left: %v", err)
	}
	l.SetPolicy(policy)
	return &rig{r.t, r.db, l}
}

func keyed(id string) *messages.LedgerOp {
	in := input(id)
	in.IdempotencyKey = "key " + id
	return acceptInput(in, 0)
}

func known(r *rig, id string) bool {
	_, err := r.l.Task(id)
	if err != nil && !errors.Is(err, ErrUnknownTask) {
		r.t.Fatal(err)
	}
	return err == nil
}

func TestRetentionByTime(t *testing.T) {
	r := newRig(t, Options{})
	r.l.SetPolicy(policy)
	r.at(noon, keyed("a"), set("a", running), step("a", messages.JournalKind_JOURNAL_KIND_STARTED), output("a-o"), sent("a-o", ""))
	r.at(noon.Add(day), end("a", answered, "ok"))
	type row struct {
		after                       time.Duration
		journal, key, output, known bool
	}
	rows := []row{
		{2 * day, true, true, true, true},
		{8*day - time.Second, true, true, true, true},
		{8*day + time.Second, false, true, true, true},
		{30*day - time.Second, false, true, true, true},
		{30*day + time.Second, false, false, false, true},
		{91*day - time.Second, false, false, false, true},
		{91*day + time.Second, false, false, false, false},
	}
	for _, w := range rows {
		r.retain(noon.Add(w.after))
		got := row{after: w.after, known: known(r, "a"), key: count(t, r.db, store.Idempotency) == 1, journal: count(t, r.db, store.Journal) > 0}
		_, err := r.l.Output("a-o")
		got.output = err == nil
		if got != w {
			t.Errorf("after %s: %+v, want %+v", w.after, got, w)
		}
		r = r.reopened()
	}
	for _, s := range []store.Space{store.Inbox, store.Task, store.Idempotency, store.Journal, store.Output} {
		if n := count(t, r.db, s); n != 0 {
			t.Errorf("%d keys left in %s", n, s)
		}
	}
	if got := r.at(noon.Add(92*day), keyed("a")); got[0].GetAccepted().GetDuplicate() || got[0].GetAccepted().GetSequence() != 2 {
		t.Errorf("the same key long after: %v", got)
	}
}

func TestNothingGoesWithoutAPolicyOrBeforeItsEnd(t *testing.T) {
	r := newRig(t, Options{})
	r.at(noon, keyed("a"), keyed("b"), output("b-o"))
	r.at(noon, end("a", answered, "ok"))
	r.retain(noon.Add(10_000 * day))
	if !known(r, "a") {
		t.Error("a ledger without a policy removed a task")
	}
	r.l.SetPolicy(policy)
	for range 3 {
		r.retain(noon.Add(10_000 * day))
		r = r.reopened()
	}
	if known(r, "a") || !known(r, "b") || len(r.pending("")) != 1 {
		t.Errorf("a known %v, b known %v", known(r, "a"), known(r, "b"))
	}
	again := input("other")
	again.IdempotencyKey = "key b"
	if got := r.at(noon, acceptInput(again, 0)); !got[0].GetAccepted().GetDuplicate() || got[0].GetAccepted().GetInputId() != "b" {
		t.Error("the key of an open task was forgotten")
	}
	p, err := r.l.Pending(&messages.LedgerPending{})
	if err != nil || len(p.GetUnsent()) != 1 {
		t.Errorf("an output that was not sent: %v, %v", p.GetUnsent(), err)
	}
}

// An old task that is still open must not hold up those that came after it, and the
// inbox stays dense for the guard.
func TestRetentionAroundAnOpenTask(t *testing.T) {
	r := newRig(t, Options{})
	r.l.SetPolicy(policy)
	const n = 3000
	for i := range n {
		id := fmt.Sprintf("t%05d", i)
		ops := []*messages.LedgerOp{keyed(id)}
		if i != 1 && i != 1500 {
			ops = append(ops, end(id, answered, "ok"))
		}
		r.at(noon, ops...)
	}
	later := noon.Add(200 * day)
	if passes := r.retain(later); passes < n/passWrites {
		t.Errorf("%d passes: they are not small", passes)
	}
	if got := len(r.pending("")); got != 2 {
		t.Fatalf("%d open tasks", got)
	}
	if c := r.l.count; c.floor != 1 {
		t.Errorf("floor %d, want 1", c.floor)
	}
	if got := count(t, r.db, store.Task); got != 4 {
		t.Errorf("%d task keys, want 4", got)
	}
	r = r.reopened()
	r.at(later, end("t00001", messages.End_END_STOPPED, "stop"))
	r.retain(later.Add(91 * day))
	if c := r.l.count; c.floor != 1500 {
		t.Errorf("floor %d, want 1500", c.floor)
	}
	r.at(later, end("t01500", messages.End_END_STOPPED, "stop"))
	r.retain(later.Add(91 * day)) // the one that was skipped is looked at again
	if c := r.l.count; c.floor != n || count(t, r.db, store.Inbox) != 0 {
		t.Errorf("floor %d, %d inbox keys", c.floor, count(t, r.db, store.Inbox))
	}
	r = r.reopened()
	if got := r.at(later, accept("new"))[0].GetAccepted().GetSequence(); got != n+1 {
		t.Errorf("sequence %d after all are gone, want %d", got, n+1)
	}
}

// The guard still misses what goes missing above the floor.
func TestGuardAfterRetention(t *testing.T) {
	r := newRig(t, Options{})
	r.l.SetPolicy(policy)
	for _, id := range []string{"a", "b", "c", "d"} {
		r.at(noon, accept(id))
	}
	r.at(noon, end("a", answered, "ok"), end("c", answered, "ok"))
	r.retain(noon.Add(100 * day))
	if err := r.db.Update(func(x store.Txn) error { return x.Delete(inboxKey(3)) }); err != nil {
		t.Fatal(err)
	}
	_, err := Open(r.db, Options{})
	if err == nil || !strings.Contains(err.Error(), "inputs are missing in the inbox (3)") {
		t.Errorf("err = %v", err)
	}
}

func TestLongJournalGoesInPieces(t *testing.T) {
	r := newRig(t, Options{})
	r.l.SetPolicy(policy)
	r.at(noon, accept("a"), accept("b"))
	for range 3*passWrites + 7 {
		r.at(noon, step("a", messages.JournalKind_JOURNAL_KIND_REQUEST))
	}
	r.at(noon, step("b", messages.JournalKind_JOURNAL_KIND_REQUEST), end("a", answered, "ok"), end("b", answered, "ok"))
	later := noon.Add(8 * day)
	if more, err := r.l.Retain(later); err != nil || !more {
		t.Fatalf("more %v, %v", more, err)
	}
	if j, err := r.l.Journal("a"); err != nil || j != nil {
		t.Errorf("a journal that is half gone: %d, %v", len(j), err)
	}
	r = r.reopened() // a restart in between
	r.retain(later)
	if n := count(t, r.db, store.Journal); n != 0 {
		t.Errorf("%d journal keys left", n)
	}
}

func TestCrashLoopIsLaidAside(t *testing.T) {
	r := newRig(t, Options{})
	r.l.SetPolicy(policy)
	r.at(noon, accept("a"), set("a", running), step("a", messages.JournalKind_JOURNAL_KIND_STARTED),
		step("a", messages.JournalKind_JOURNAL_KIND_REQUEST))
	if _, err := r.l.Aside("a"); !errors.Is(err, ErrUnknownTask) {
		t.Fatalf("before the end: %v", err)
	}
	r.at(noon, end("a", failed, "crash_loop"))
	check := func(when string) {
		t.Helper()
		got, err := r.l.Aside("a")
		if err != nil || len(got.GetJournal()) != 2 || got.GetInput().GetId() != "a" || got.GetReason() != "crash_loop" || got.GetAtUs() != noon.UnixMicro() {
			t.Fatalf("%s: %v, %v", when, got, err)
		}
	}
	check("at once")
	r.retain(noon.Add(60 * day))
	check("when journals of others are long gone")
	r = r.reopened()
	r.retain(noon.Add(91 * day))
	r.retain(noon.Add(91 * day))
	if _, err := r.l.Aside("a"); !errors.Is(err, ErrUnknownTask) || count(t, r.db, store.Aside)+count(t, r.db, store.Journal) != 0 {
		t.Errorf("after its time: %v", err)
	}
}

// The end of a crash loop must not fail for the size of its input.
func TestCrashLoopOfALargeInput(t *testing.T) {
	r := newRig(t, Options{})
	in := input("a")
	in.Parts = textPart("")
	record, _ := store.EncodeRecord(version, inboxKey(1), &messages.InboxRecord{Sequence: 1, Input: in, AcceptedUs: noon.UnixMicro()})
	in.Parts = textPart(strings.Repeat("x", store.MaxValue-len(record)-8))
	if got := r.at(noon, acceptInput(in, 0)); got[0].GetError() != nil {
		t.Fatal(got[0].GetError())
	}
	r.at(noon, end("a", failed, "crash_loop"))
	if got, err := r.l.Aside("a"); err != nil || got.GetInput().GetId() != "a" || len(got.GetInput().GetParts()) != 0 {
		t.Errorf("%d parts, %v", len(got.GetInput().GetParts()), err)
	}
}

func TestStartsCountThoseWithoutAResult(t *testing.T) {
	r := newRig(t, Options{})
	r.do(accept("a"))
	start := func(want int32) {
		t.Helper()
		r.do(set("a", running))
		if got := r.pending("")[0].GetStarts(); got != want {
			t.Fatalf("%d starts, want %d", got, want)
		}
	}
	write := func(k messages.JournalKind) { r.do(step("a", k)) }
	start(1)
	write(messages.JournalKind_JOURNAL_KIND_STARTED)
	write(messages.JournalKind_JOURNAL_KIND_REQUEST)
	start(2) // what is written before each attempt is no result
	write(messages.JournalKind_JOURNAL_KIND_REQUEST)
	write(messages.JournalKind_JOURNAL_KIND_RESPONSE)
	start(1)
	write(messages.JournalKind_JOURNAL_KIND_TOOL_STARTED)
	start(2)
	write(messages.JournalKind_JOURNAL_KIND_TOOL_STARTED)
	start(3)
	write(messages.JournalKind_JOURNAL_KIND_TOOL_RESULT)
	start(1)
	r.do(setOp(&messages.SetTask{TaskId: "a", State: running, Resumed: true}))
	r.do(setOp(&messages.SetTask{TaskId: "a", State: running, Clean: true}))
	start(1)
	start(2)
}

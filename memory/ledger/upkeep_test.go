package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"homeagent/memory/block"
	"homeagent/memory/store"
	"homeagent/messages"
)

// noise is text that does not compress.
func noise(size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte('!' + rand.N(90))
	}
	return string(b)
}

// round is what the actor does in one round.
func (r *rig) round(now time.Time) bool {
	r.t.Helper()
	r.retain(now)
	again, err := r.l.Upkeep(r.t.Context(), now)
	if err != nil {
		r.t.Fatal(err)
	}
	return again
}

func TestBudget(t *testing.T) {
	r := openDir(t, t.TempDir())
	// 30 tasks of 1.2 MB each, ended an hour to thirty hours ago.
	for i := range 30 {
		id := fmt.Sprintf("t%02d", i)
		in := input(id)
		in.Parts = textPart(noise(400_000))
		at := noon.Add(-time.Duration(30-i) * time.Hour)
		r.at(at, acceptInput(in, 0))
		for range 2 {
			big := step(id, messages.JournalKind_JOURNAL_KIND_RESPONSE)
			big.GetJournal().Text = noise(400_000)
			r.at(at, big)
		}
		r.at(at, end(id, answered, "ok"))
	}
	p := Policy{Journal: 32 * time.Hour, Tasks: 64 * time.Hour, Keys: 64 * time.Hour, Outputs: day, Aside: day}
	r.l.SetPolicy(p)
	if r.round(noon) {
		t.Error("without a budget there is nothing to do again")
	}
	f := r.l.Figures()
	if f.GetBytes() < 30<<20 || f.GetUpkeep().GetSpaces()[0].GetSpace() != "journal" {
		t.Fatalf("figures %v", f)
	}
	p.Budget = 26 << 20
	r.l.SetPolicy(p)
	now, rounds := noon.Add(measureEvery), 0
	for r.round(now) {
		if rounds++; rounds > 10 {
			t.Fatal("upkeep does not end")
		}
	}
	f = r.l.Figures()
	if f.GetBytes() > p.Budget || f.GetUpkeep().GetFull() || f.GetUpkeep().GetPressure() == 0 || f.GetUpkeep().GetRemovedJournals() == 0 {
		t.Fatalf("after %d rounds: %v", rounds, f)
	}
	if !known(r, "t29") {
		t.Error("a result of an hour ago is gone")
	}
	if got := r.do(accept("more")); got[0].GetError() != nil {
		t.Errorf("an input is refused: %v", got)
	}
}

func TestBudgetThatCannotBeKept(t *testing.T) {
	r := openDir(t, t.TempDir())
	for i := range 40 {
		r.at(noon, events(event(fmt.Sprintf("e%02d", i), "", noise(400_000)))) // memory is not retention's
	}
	p := policy
	p.Budget = 4 << 20
	r.l.SetPolicy(p)
	rounds := 0
	for r.round(noon) && rounds < 10 {
		rounds++
	}
	if rounds != maxPressure {
		t.Errorf("full after %d steps, want %d", rounds, maxPressure)
	}
	got := r.at(noon, accept("a"))[0].GetError()
	if got.GetCode() != "store_full" || !strings.Contains(got.GetMessage(), "4.0 MiB") || !strings.Contains(got.GetMessage(), "payload 15.3 MiB") ||
		!strings.Contains(got.GetHint(), "core.store.budget") || got.GetRetryAfterMs() == 0 {
		t.Errorf("refused with %v", got)
	}
	if f := r.l.Figures().GetUpkeep(); !f.GetFull() || f.GetPressure() != maxPressure {
		t.Errorf("figures %v", f)
	}
	// What is under way goes on.
	r.at(noon, events(event("more", "", "text")))
	p.Budget = 1 << 30
	r.l.SetPolicy(p)
	r.round(noon.Add(measureFull - time.Second))
	if r.at(noon, accept("a"))[0].GetError() == nil {
		t.Error("the size was measured too early")
	}
	r.round(noon.Add(measureFull + time.Second))
	if got := r.at(noon, accept("a")); got[0].GetError() != nil {
		t.Errorf("still refused: %v", got)
	}
	for i := range maxPressure + 1 {
		r.round(noon.Add(time.Duration(i+2) * 2 * measureFull))
	}
	if f := r.l.Figures().GetUpkeep(); f.GetPressure() != 0 {
		t.Errorf("pressure %d in a store with much room", f.GetPressure())
	}
}

func TestUpkeepNamesABrokenStore(t *testing.T) {
	dir := t.TempDir()
	r := openDir(t, dir)
	r.do(accept("a"))
	if f := r.l.Figures(); f.GetBroken() != "" {
		t.Fatalf("broken: %s", f.GetBroken())
	}
	moved := dir + ".moved"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if _, err := r.l.Upkeep(t.Context(), noon); !errors.Is(err, store.ErrBroken) {
		t.Errorf("upkeep: %v", err)
	}
	if f := r.l.Figures(); !strings.Contains(f.GetBroken(), "is gone") {
		t.Errorf("broken: %q", f.GetBroken())
	}
	if got := r.try(accept("b")).GetError().GetCode(); got != "store_broken" {
		t.Errorf("code %q", got)
	}
	if err := os.Rename(moved, dir); err != nil {
		t.Fatal(err)
	}
}

func TestSweepOnceADay(t *testing.T) {
	r := newRig(t, Options{})
	r.l.SetPolicy(policy)
	for i := range 3 {
		if _, err := block.PutPayload(r.db, "image/png", []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	r.retain(time.Now())
	if n := count(t, r.db, store.Payload); n != 3 {
		t.Fatalf("%d payloads: those whose block may still come are gone", n)
	}
	later := time.Now().Add(sweepAge + time.Minute)
	r.retain(later)
	if n := count(t, r.db, store.Payload); n != 0 || r.l.Figures().GetUpkeep().GetRemovedPayloads() != 3 {
		t.Errorf("%d payloads left", n)
	}
	if _, err := block.PutPayload(r.db, "image/png", []byte{9}); err != nil {
		t.Fatal(err)
	}
	r.retain(later.Add(sweepEvery - time.Hour))
	if n := count(t, r.db, store.Payload); n != 1 {
		t.Error("the search ran before its time")
	}
}

// Tables that were too many to be verified at the start are verified soon after.
func TestUpkeepVerifiesTables(t *testing.T) {
	dir := t.TempDir()
	r := openDir(t, dir)
	for i := range 10 { // one table, so that no compaction removes it
		r.at(noon, events(event(fmt.Sprintf("e%02d", i), "", noise(400_000))))
	}
	if err := r.db.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(dir, store.Options{Reserve: -1, VerifyBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if db.Report().Unverified == 0 {
		t.Fatal("all tables were verified: the test shows nothing")
	}
	tables, err := os.ReadDir(dir + "/db")
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tables {
		if strings.HasSuffix(e.Name(), ".sst") {
			file, err := os.OpenFile(dir+"/db/"+e.Name(), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteAt([]byte("damage"), 1000); err != nil {
				t.Fatal(err)
			}
			_ = file.Close()
			break
		}
	}
	if _, err := l.Upkeep(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if d := l.Figures().GetUpkeep().GetDamage(); len(d) != 1 || !strings.Contains(d[0], ".sst") {
		t.Errorf("damage %v", d)
	}
}

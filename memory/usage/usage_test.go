package usage

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/configs"
	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
)

func price(in, out, cached, write float64) configs.Price {
	return configs.Price{In: &in, Out: &out, Cached: &cached, CacheWrite: &write}
}

func TestCost(t *testing.T) {
	three := 3.0
	for name, c := range map[string]struct {
		u    *messages.Usage
		p    configs.Price
		want int64
		ok   bool
	}{
		"plain":                  {&messages.Usage{Input: 1000, Output: 10, PromptTotal: 1000}, price(3, 15, 0.3, 3.75), 3150, true},
		"cached is part":         {&messages.Usage{Input: 1000, Output: 10, Cached: 900, PromptTotal: 1000}, price(3, 15, 0.3, 3.75), 300 + 270 + 150, true},
		"cached stands beside":   {&messages.Usage{Input: 10, Output: 7, Cached: 90, CacheWrite: 100, PromptTotal: 200}, price(3, 15, 0.3, 3.75), 30 + 27 + 375 + 105, true},
		"reasoning is part":      {&messages.Usage{Input: 5, Output: 100, Reasoning: 90, PromptTotal: 5, Total: 105}, price(0, 1, 0, 0), 100, true},
		"reasoning beside":       {&messages.Usage{Input: 5, Output: 10, Reasoning: 90, PromptTotal: 5, Total: 105}, price(0, 1, 0, 0), 100, true},
		"cached without a price": {&messages.Usage{Input: 10, Cached: 10, PromptTotal: 10}, configs.Price{In: &three}, 30, true},
		"no price":               {&messages.Usage{Input: 10, PromptTotal: 10}, configs.Price{}, 0, false},
		"no price of answers":    {&messages.Usage{Input: 10, Output: 1, PromptTotal: 10}, configs.Price{In: &three}, 0, false},
		"more cached than asked": {&messages.Usage{Input: 10, Cached: 99, PromptTotal: 10}, price(1, 1, 1, 1), 10, true},
		"nothing used":           {&messages.Usage{}, configs.Price{}, 0, true},
		"absurd":                 {&messages.Usage{Input: 1 << 62, PromptTotal: 1 << 62}, price(1e6, 1, 1, 1), 1<<62 - 1, true},
	} {
		if got, ok := Cost(c.u, c.p); got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %v; want %d, %v", name, got, ok, c.want, c.ok)
		}
	}
}

func tokens(in, out int64) *messages.Usage {
	return &messages.Usage{Input: in, Output: out, PromptTotal: in}
}

func TestBook(t *testing.T) {
	month := []*messages.UsageRow{
		{Day: "2027-02-28", Source: "a", CostMicros: 7},
		{Day: "2027-03-01", Source: "a", CostMicros: 5, Calls: 1},
		{Day: "2027-03-02", Source: "a", Model: "m", Agent: "main", CostMicros: 3, Calls: 2, Usage: tokens(1, 1)},
	}
	b := NewBook("2027-03-02", month)
	if day, m := b.Spent(); day != 3 || m != 8 {
		t.Fatalf("spent %d, %d", day, m)
	}
	before := proto.CloneOf(month[2])
	row := b.Note(Call{Source: "a", Model: "m", Agent: "main", Tokens: tokens(1000, 10), Price: price(1, 1, 1, 1), Failed: true})
	if row.GetCalls() != 3 || row.GetFailed() != 1 || row.GetCostMicros() != 1013 || row.GetUsage().GetInput() != 1001 {
		t.Errorf("%v", row)
	}
	if !proto.Equal(before, month[2]) {
		t.Error("a frozen row was changed")
	}
	b.Note(Call{Source: "b", Tokens: tokens(1, 1)})
	free := b.Note(Call{Source: "home", Tokens: tokens(1, 1), Free: true})
	none := b.Note(Call{Source: "c", Failed: true})
	if free.GetUnpriced() != 0 || none.GetUnpriced() != 0 || b.Today()[0] == nil || len(b.Today()) != 4 {
		t.Errorf("%v, %v, %d rows", free, none, len(b.Today()))
	}
	if day, m := b.Spent(); day != 1013 || m != 1018 {
		t.Errorf("spent %d, %d", day, m)
	}
	if b.Turn("2027-03-02") || !b.Turn("2027-03-03") || len(b.Today()) != 0 {
		t.Error("the day did not turn")
	}
	if day, m := b.Spent(); day != 0 || m != 1018 {
		t.Errorf("the next day: %d, %d", day, m)
	}
	b.Turn("2027-04-01")
	if _, m := b.Spent(); m != 0 {
		t.Errorf("the next month: %d", m)
	}
	for i := range MaxRows + 10 {
		b.Note(Call{Source: "a", Conversation: fmt.Sprint(i)})
	}
	if n := len(b.Today()); n != MaxRows+1 {
		t.Errorf("%d rows of a day", n)
	}
}

type rig struct {
	t  *testing.T
	db *store.DB
	l  *ledger.Ledger
	e  *Engine
}

func newRig(t *testing.T) *rig {
	t.Helper()
	db, err := store.Open("", store.Options{Reserve: -1, InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := ledger.Open(db, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, db, l, NewEngine(db)}
}

func (r *rig) do(op *messages.LedgerOp, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	at := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	if e := r.l.Execute(at, []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{op}, Sync: true}})[0].GetError(); e != nil {
		r.t.Fatal(e)
	}
}

func TestEngine(t *testing.T) {
	r := newRig(t)
	rows := []*messages.UsageRow{
		{Day: "2027-02-28", Source: "a", Agent: "main", Calls: 1, CostMicros: 1},
		{Day: "2027-03-01", Source: "a", Agent: "main", Channel: "cli", Conversation: "x", Calls: 2, CostMicros: 10, Usage: tokens(5, 1)},
		{Day: "2027-03-01", Source: "b", Agent: "main", Channel: "web", Conversation: "x", Calls: 4, CostMicros: 20, Unpriced: 1},
		{Day: "2027-03-02", Source: "a", Agent: "main/resident/cook", Calls: 8, CostMicros: 40},
	}
	for _, row := range rows {
		r.do(Put(row))
	}
	r.do(Put(rows[1])) // again: the same
	r.do(PutMarks(&messages.SourceMarks{Source: "a", Print: "p", Marks: []*messages.SourceMark{{Key: "k", UntilUs: 7, Broken: true}}}))
	r.do(PutMarks(&messages.SourceMarks{Source: "b"}))
	r.do(DropMarks("b"), nil)
	got, err := r.e.Load("2027-03")
	if err != nil || len(got.Rows) != 3 || len(got.Marks) != 1 || got.Marks[0].GetMarks()[0].GetUntilUs() != 7 || len(got.Damaged) != 0 {
		t.Fatalf("%v, %v", got, err)
	}
	ask := func(from, to string, by ...string) Sums {
		t.Helper()
		a, err := r.e.Ask(Query{From: from, To: to, By: by})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := ask("2027-03-01", "2027-03-02", "source")
	if len(a.Rows) != 2 || a.Rows[0].GetSource() != "a" || a.Rows[0].GetCalls() != 10 || a.Rows[0].GetDay() != "" || a.Total.GetCostMicros() != 70 {
		t.Errorf("by source: %v", a)
	}
	if a = ask("2027-03-01", "2027-03-01", "conversation"); len(a.Rows) != 2 || a.Rows[1].GetChannel() != "web" {
		t.Errorf("by conversation: %v", a.Rows)
	}
	if a = ask("2027-02-01", "2027-03-31"); len(a.Rows) != 0 || a.Total.GetCalls() != 15 || a.Total.GetUnpriced() != 1 {
		t.Errorf("the sum alone: %v", a)
	}
	if a = ask("2027-02-01", "2027-03-31", "day", "agent"); len(a.Rows) != 3 || a.Rows[2].GetAgent() != "main/resident/cook" {
		t.Errorf("by day and agent: %v", a.Rows)
	}
	newer := proto.CloneOf(rows[3])
	newer.Calls = 9
	s, err := r.e.Ask(Query{From: "2027-03-02", To: "2027-03-02", Newer: []*messages.UsageRow{newer, rows[0]}})
	if err != nil || s.Total.GetCalls() != 9 {
		t.Errorf("newer rows: %v, %v", s, err)
	}
	for _, q := range []Query{{From: "2027-3-1", To: "2027-03-01"}, {From: "2027-03-01", To: "2027-03-01", By: []string{"mood"}}} {
		if _, err := r.e.Ask(q); !errors.Is(err, ErrDay) && !errors.Is(err, ErrField) {
			t.Errorf("%v: %v", q, err)
		}
	}
	old, err := r.e.Old("2027-03-01", 10)
	if err != nil || len(old) != 1 {
		t.Fatalf("old %v, %v", old, err)
	}
	r.do(Drop(old[0]), nil)
	if a = ask("2027-02-01", "2027-02-28"); a.Total.GetCalls() != 0 {
		t.Errorf("an old day stays: %v", a)
	}
}

// A record that was damaged is named and keeps nothing else away.
func TestDamage(t *testing.T) {
	r := newRig(t)
	r.do(Put(&messages.UsageRow{Day: "2027-03-01", Source: "a", Calls: 1}))
	bad, err := Put(&messages.UsageRow{Day: "2027-03-01", Source: "b"})
	if err != nil {
		t.Fatal(err)
	}
	w := bad.GetWrite()
	w.Value = slices.Clone(w.Value)
	w.Value[len(w.Value)-1] ^= 1
	r.do(bad, nil)
	got, err := r.e.Load("2027-03")
	if err != nil || len(got.Rows) != 1 || len(got.Damaged) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	s, err := r.e.Ask(Query{From: "2027-03-01", To: "2027-03-01"})
	if err != nil || s.Total.GetCalls() != 1 || len(s.Damaged) != 1 {
		t.Fatalf("%v, %v", s, err)
	}
}

func FuzzDecode(f *testing.F) {
	op, err := Put(&messages.UsageRow{Day: "2027-03-01", Source: "a", Usage: tokens(1, 2)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(store.Usage.KeyString(string(op.GetWrite().GetKey())), op.GetWrite().GetValue())
	op, err = PutMarks(&messages.SourceMarks{Source: "a"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(store.Usage.KeyString(string(op.GetWrite().GetKey())), op.GetWrite().GetValue())
	f.Fuzz(func(t *testing.T, key, record []byte) {
		if r, err := DecodeRow(key, record); err == nil && ParseDay(r.GetDay()) != nil {
			t.Errorf("a row of the day %q", r.GetDay())
		}
		if m, err := DecodeMarks(key, record); err == nil && len(key) != 3+len(m.GetSource()) {
			t.Errorf("marks of %q under %q", m.GetSource(), key)
		}
	})
}

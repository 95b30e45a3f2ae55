package ledger

import (
	"fmt"
	"testing"

	"homeagent/memory/store"
	"homeagent/messages"
)

func benchLedger(b *testing.B) *rig {
	b.Helper()
	db, err := store.Open(b.TempDir(), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	l, err := Open(db, Options{})
	if err != nil {
		b.Fatal(err)
	}
	return &rig{b, db, l}
}

// BenchmarkAccept accepts inputs with one sync for each group.
func BenchmarkAccept(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("group=%d", n), func(b *testing.B) {
			r := benchLedger(b)
			id := 0
			for b.Loop() {
				group := make([]*messages.LedgerExecute, n)
				for i := range group {
					id++
					group[i] = &messages.LedgerExecute{Ops: []*messages.LedgerOp{accept(fmt.Sprintf("i%09d", id))}}
				}
				r.l.Execute(noon, group)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/input")
		})
	}
}

// BenchmarkJournal appends steps without sync.
func BenchmarkJournal(b *testing.B) {
	r := benchLedger(b)
	r.do(accept("a"))
	b.ReportAllocs()
	for b.Loop() {
		r.do(step("a", messages.JournalKind_JOURNAL_KIND_REQUEST))
	}
}

// BenchmarkTurn is the ledger's part of a turn: accept, start, two steps, commit
// with events and output, receipt, end; synced where the design says.
func BenchmarkTurn(b *testing.B) {
	r := benchLedger(b)
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprintf("i%09d", n)
		sync := func(ops ...*messages.LedgerOp) {
			d := r.l.Execute(noon, []*messages.LedgerExecute{{Ops: ops, Sync: true}})
			if d[0].GetError() != nil {
				b.Fatal(d[0].GetError())
			}
		}
		sync(accept(id))
		r.do(set(id, running), step(id, messages.JournalKind_JOURNAL_KIND_STARTED))
		r.do(step(id, messages.JournalKind_JOURNAL_KIND_REQUEST))
		r.do(step(id, messages.JournalKind_JOURNAL_KIND_RESPONSE))
		sync(events(event(id+"-i", "", "what was said"), event(id+"-r", "", "what was answered")), output(id+"-o"),
			step(id, messages.JournalKind_JOURNAL_KIND_COMMITTED))
		sync(sent(id+"-o", ""))
		sync(end(id, answered, "ok"))
	}
}

// BenchmarkOpen opens a ledger after a kill with 10,000 ended and 100 open tasks.
func BenchmarkOpen(b *testing.B) {
	r := benchLedger(b)
	for i := range 10_100 {
		id := fmt.Sprintf("i%09d", i)
		if r.do(accept(id)); i >= 100 {
			r.do(end(id, answered, "ok"))
		}
		if i < 100 {
			r.do(set(id, running), step(id, messages.JournalKind_JOURNAL_KIND_STARTED))
		}
	}
	for b.Loop() {
		if _, err := Open(r.db, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

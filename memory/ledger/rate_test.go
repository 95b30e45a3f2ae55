package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

// syncRate is how often the disk of dir makes one small write durable in a second.
func syncRate(b *testing.B, dir string) float64 {
	b.Helper()
	f, err := os.Create(filepath.Join(dir, "rate"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	page := make([]byte, 4096)
	n, begin := 0, time.Now()
	for time.Since(begin) < 500*time.Millisecond {
		if _, err := f.WriteAt(page, int64(n%256)*4096); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		n++
	}
	return float64(n) / time.Since(begin).Seconds()
}

// BenchmarkSenders has senders hand over inputs and wait for each, while one goroutine
// gives the engine all that has gathered, as the actor does. It shows inputs per
// second beside the syncs per second of the same disk in the same run.
func BenchmarkSenders(b *testing.B) {
	for _, senders := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("senders=%d", senders), func(b *testing.B) {
			r := benchLedger(b)
			rate := syncRate(b, b.TempDir())
			type request struct {
				exec *messages.LedgerExecute
				done chan *messages.LedgerDone
			}
			queue := make(chan request, senders)
			var engine sync.WaitGroup
			engine.Go(func() {
				for first := range queue {
					group, execs := []request{first}, []*messages.LedgerExecute{first.exec}
					for more := true; more && len(group) < 1024; {
						select {
						case q, ok := <-queue:
							if more = ok; ok {
								group, execs = append(group, q), append(execs, q.exec)
							}
						default:
							more = false
						}
					}
					for i, d := range r.l.Execute(noon, execs) {
						group[i].done <- d
					}
				}
			})
			var next atomic.Int64
			var all sync.WaitGroup
			begin, syncs := time.Now(), r.db.Stats().Syncs
			b.ResetTimer()
			for range senders {
				all.Go(func() {
					done := make(chan *messages.LedgerDone, 1)
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						queue <- request{&messages.LedgerExecute{Ops: []*messages.LedgerOp{accept(fmt.Sprintf("i%09d", n))}}, done}
						if d := <-done; d.GetError() != nil || d.GetResults()[0].GetAccepted() == nil {
							b.Error(d)
							return
						}
					}
				})
			}
			all.Wait()
			took := time.Since(begin).Seconds()
			b.StopTimer()
			close(queue)
			engine.Wait()
			b.ReportMetric(float64(b.N)/took, "inputs/s")
			b.ReportMetric(rate, "disk_syncs/s")
			b.ReportMetric(float64(b.N)/float64(max(1, r.db.Stats().Syncs-syncs)), "inputs/sync")
		})
	}
}

// BenchmarkJournalBytes tells what a turn with one tool call leaves in the store, for
// texts of the usual size.
func BenchmarkJournalBytes(b *testing.B) {
	r := benchLedger(b)
	before, err := r.db.Sizes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	entry := func(id string, k messages.JournalKind, e *messages.JournalEntry) *messages.LedgerOp {
		e.TaskId, e.Kind, e.AtUs, e.Attempt, e.Round = id, k, noon.UnixMicro(), 1, 1
		return &messages.LedgerOp{Op: &messages.LedgerOp_Journal{Journal: e}}
	}
	hash := fmt.Sprintf("%064x", 1)
	call := &messages.ToolInvocation{CallId: "c1", Name: "web_fetch", ArgumentsJson: []byte(`{"url":"https://example.org/a/page"}`)}
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprintf("01JQ8Z5V7M3T9K2C4R6W%06d", n)
		r.do(accept(id), set(id, running), entry(id, messages.JournalKind_JOURNAL_KIND_STARTED, &messages.JournalEntry{Input: input(id)}))
		for range 2 {
			r.do(entry(id, messages.JournalKind_JOURNAL_KIND_REQUEST, &messages.JournalEntry{RequestHash: hash}))
			r.do(entry(id, messages.JournalKind_JOURNAL_KIND_RESPONSE, &messages.JournalEntry{Response: &messages.CompletionResult{Text: noise(400)}}))
		}
		r.do(entry(id, messages.JournalKind_JOURNAL_KIND_TOOL_STARTED, &messages.JournalEntry{Call: call}))
		r.do(entry(id, messages.JournalKind_JOURNAL_KIND_TOOL_RESULT, &messages.JournalEntry{Result: &messages.ToolResult{CallId: "c1", Content: noise(2000)}}))
		r.do(entry(id, messages.JournalKind_JOURNAL_KIND_COMMITTED, &messages.JournalEntry{Text: noise(400)}), output(id+"-o"))
		r.do(sent(id+"-o", ""), end(id, answered, "ok"))
	}
	b.StopTimer()
	after, err := r.db.Sizes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after[store.Journal]-before[store.Journal])/float64(n), "journal_B/turn")
	total := int64(0)
	for s, size := range after {
		total += size - before[s]
	}
	b.ReportMetric(float64(total)/float64(n), "store_B/turn")
}

// BenchmarkRecover opens what a kill left of 10,000 tasks with journals: all open, or
// all ended. It is the part of a start that grows with the store.
func BenchmarkRecover(b *testing.B) {
	for _, open := range []bool{true, false} {
		b.Run(fmt.Sprintf("open=%v", open), func(b *testing.B) {
			live := b.TempDir()
			db, err := store.Open(live, store.Options{Reserve: -1})
			if err != nil {
				b.Fatal(err)
			}
			l, err := Open(db, Options{})
			if err != nil {
				b.Fatal(err)
			}
			r := &rig{b, db, l}
			for i := range 10_000 {
				id := fmt.Sprintf("i%09d", i)
				ops := []*messages.LedgerOp{accept(id), set(id, running)}
				for range 5 {
					ops = append(ops, step(id, messages.JournalKind_JOURNAL_KIND_RESPONSE))
				}
				if !open {
					ops = append(ops, end(id, answered, "ok"))
				}
				r.do(ops...)
			}
			if err := db.Sync(); err != nil {
				b.Fatal(err)
			}
			killed := b.TempDir()
			if err := os.CopyFS(killed, os.DirFS(live)); err != nil {
				b.Fatal(err)
			}
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				dir := b.TempDir()
				if err := os.CopyFS(dir, os.DirFS(killed)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				db, err := store.Open(dir, store.Options{Reserve: -1})
				if err != nil {
					b.Fatal(err)
				}
				l, err := Open(db, Options{})
				if err != nil {
					b.Fatal(err)
				}
				p, err := l.Pending(&messages.LedgerPending{})
				if err != nil || (len(p.GetTasks()) == 10_000) != open {
					b.Fatal(len(p.GetTasks()), err)
				}
				b.StopTimer()
				if err := db.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

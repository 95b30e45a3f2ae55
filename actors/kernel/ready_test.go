package kernel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	ledgerengine "homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
)

// killed lays out a data folder as a kill leaves it: 10,000 tasks with journals that have ended, and a hundred that wait.
func killed(tb testing.TB, data string) {
	tb.Helper()
	live := tb.TempDir()
	db, err := store.Open(live, store.Options{Reserve: -1})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := ledgerengine.Open(db, ledgerengine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range 10_100 {
		id := fmt.Sprintf("i%09d", i)
		ops := []*messages.LedgerOp{{Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: &messages.Input{
			Id: id, Channel: "api", Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "text of " + id}}},
			Principal: &messages.Principal{Id: "owner"},
		}}}}}
		if i < 10_000 {
			ops = append(ops, &messages.LedgerOp{Op: &messages.LedgerOp_SetTask{SetTask: &messages.SetTask{TaskId: id, State: messages.TaskState_TASK_STATE_RUNNING}}})
			for range 5 {
				ops = append(ops, &messages.LedgerOp{Op: &messages.LedgerOp_Journal{Journal: &messages.JournalEntry{
					TaskId: id, Kind: messages.JournalKind_JOURNAL_KIND_RESPONSE, Text: "what was done at this step",
				}}})
			}
			ops = append(ops, &messages.LedgerOp{Op: &messages.LedgerOp_End{End: &messages.EndTask{
				TaskId: id, End: messages.End_END_ANSWERED, Reason: "ok", AtUs: time.Now().UnixMicro(),
			}}})
		}
		done := l.Execute(time.Now(), []*messages.LedgerExecute{{Ops: ops}})
		if e := done[0].GetError(); e != nil {
			tb.Fatal(e)
		}
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(data, "store"), os.DirFS(live)); err != nil {
		tb.Fatal(err)
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkReady boots a whole node over what a kill left of 10,000 journaled tasks, until it takes input.
func BenchmarkReady(b *testing.B) {
	from := filepath.Join(b.TempDir(), "from")
	killed(b, from)
	var worst time.Duration
	for b.Loop() {
		b.StopTimer()
		dir, err := os.MkdirTemp("", "ha-") //nolint:usetesting // the path of b.TempDir is too long for a socket in it
		if err != nil {
			b.Fatal(err)
		}
		data := filepath.Join(dir, "d")
		if err := os.CopyFS(data, os.DirFS(from)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		begin := time.Now()
		n, err := Boot(context.Background(), Options{Data: data, Listen: "127.0.0.1:0", Name: "bench", Reserve: -1, NoLocals: true})
		if err != nil {
			b.Fatal(err)
		}
		worst = max(worst, time.Since(begin))
		b.StopTimer()
		if err := n.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(worst.Milliseconds()), "ms/worst")
}

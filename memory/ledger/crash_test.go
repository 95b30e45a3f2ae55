package ledger

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

// writerChild is the process that gets killed. It runs tasks through their
// whole life, several in a group, and says what was acknowledged:
//
//	A <id> <sequence>   accepted
//	J <id> <sequence>   journal entry written and synced
//	E <id>              ended
//
// Ids come from the last sequence, so that the next child goes on.
func writerChild(dir string) {
	db, err := store.Open(dir, store.Options{Reserve: -1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	l, err := Open(db, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	var open []string
	for n := l.LastSequence() + 1; ; n++ {
		id := fmt.Sprintf("i%06d", n)
		keyed := input(id)
		keyed.IdempotencyKey = "key " + id
		keyed.Parts = textPart(strings.Repeat("x", int(n*7919%30_000)+1))
		group := []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{acceptInput(keyed, 0)}}}
		for _, o := range open {
			group = append(group, &messages.LedgerExecute{Sync: true, Ops: []*messages.LedgerOp{
				set(o, running), step(o, messages.JournalKind_JOURNAL_KIND_REQUEST),
			}})
		}
		ending := ""
		if len(open) > 3 {
			ending = open[0]
			group = append(group, &messages.LedgerExecute{Sync: true, Ops: []*messages.LedgerOp{
				events(event(ending+"-e", "main", "said")), output(ending + "-o"), end(ending, answered, "ok"),
			}})
		}
		done := l.Execute(time.Now(), group)
		for i, d := range done {
			if d.GetError() != nil {
				fmt.Fprintln(os.Stderr, i, d.GetError())
				os.Exit(4)
			}
		}
		var said bytes.Buffer
		fmt.Fprintln(&said, "A", id, done[0].GetResults()[0].GetAccepted().GetSequence())
		for i, o := range open {
			fmt.Fprintln(&said, "J", o, done[i+1].GetResults()[1].GetSequence())
		}
		if ending != "" {
			fmt.Fprintln(&said, "E", ending, 0)
			open = open[1:]
		}
		open = append(open, id)
		_, _ = os.Stdout.Write(said.Bytes())
	}
}

// acknowledged is what all children so far have said.
type acknowledged struct {
	accepted map[string]uint64
	journal  map[string]uint64
	ended    map[string]bool
}

// TestKill kills the writer at seeded moments and wants all that it acknowledged,
// once.
func TestKill(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(3, 4))
	ack := acknowledged{map[string]uint64{}, map[string]uint64{}, map[string]bool{}}
	for round := range rounds {
		runAndKill(t, dir, 1+rnd.IntN(400), &ack)
		db, err := store.Open(dir, store.Options{Reserve: -1})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		l, err := Open(db, Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		ack.check(t, l)
		repeatAccept(t, l)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(ack.ended) == 0 || len(ack.journal) == 0 {
		t.Fatalf("too little was acknowledged to show anything: %d ends", len(ack.ended))
	}
}

func runAndKill(t *testing.T, dir string, lines int, ack *acknowledged) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEDGER_WRITER_DIR="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	for i := 0; scan.Scan(); i++ {
		if i == lines {
			_ = cmd.Process.Kill()
		}
		ack.take(t, scan.Text())
	}
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Fatalf("child: %s", stderr.String())
	}
}

func (a *acknowledged) take(t *testing.T, line string) {
	t.Helper()
	var kind, id string
	var n uint64
	if _, err := fmt.Sscan(line, &kind, &id, &n); err != nil {
		t.Fatalf("child said %q", line)
	}
	switch kind {
	case "A":
		if _, twice := a.accepted[id]; twice {
			t.Fatalf("%s was accepted twice", id)
		}
		a.accepted[id] = n
	case "J":
		a.journal[id] = n
	case "E":
		a.ended[id] = true
	}
}

// check wants every acknowledged fact in the ledger, and the inbox dense with
// each input once.
func (a *acknowledged) check(t *testing.T, l *Ledger) {
	t.Helper()
	for id, sequence := range a.accepted {
		s, err := l.Task(id)
		if err != nil {
			t.Fatalf("accepted input %s: %v", id, err)
		}
		if a.ended[id] && s.GetEnd() != answered {
			t.Fatalf("%s was ended and is %s", id, s.GetState())
		}
		if s.GetEnd() == answered {
			if _, err := l.Output(id + "-o"); err != nil {
				t.Fatalf("output of %s: %v", id, err)
			}
			if _, err := l.Event("main", id+"-e"); err != nil {
				t.Fatalf("event of %s: %v", id, err)
			}
			continue
		}
		p, err := l.Pending(&messages.LedgerPending{TaskId: id})
		if err != nil || len(p.GetTasks()) != 1 {
			t.Fatalf("%s is not pending: %v, %v", id, p, err)
		}
		if got := p.GetTasks()[0]; got.GetSequence() != sequence || uint64(len(got.GetJournal())) < a.journal[id] {
			t.Fatalf("%s: sequence %d of %d, %d journal entries of %d",
				id, got.GetSequence(), sequence, len(got.GetJournal()), a.journal[id])
		}
	}
	if last := l.LastSequence(); last < uint64(len(a.accepted)) {
		t.Fatalf("last sequence %d, %d accepted", last, len(a.accepted))
	}
}

// repeatAccept sends the last input again, as its sender would after a crash.
func repeatAccept(t *testing.T, l *Ledger) {
	t.Helper()
	last := l.LastSequence()
	again := input("other")
	again.IdempotencyKey = fmt.Sprintf("key i%06d", last)
	done := l.Execute(noon, []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{acceptInput(again, 0)}}})
	if a := done[0].GetResults()[0].GetAccepted(); !a.GetDuplicate() || a.GetSequence() != last {
		t.Fatalf("the same key after a crash: %v", a)
	}
}

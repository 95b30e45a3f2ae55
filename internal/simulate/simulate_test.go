package main

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// slice is how many seeds every test run covers, beside those that once failed.
const slice = 150

// TestSeeds runs a slice of seeds.
func TestSeeds(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"-seeds", strconv.Itoa(slice)}, &out, &out); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out.String())
	}
	if !strings.HasPrefix(out.String(), strconv.Itoa(slice)+" seeds, ") {
		t.Fatalf("it printed %q", out.String())
	}
}

// TestFoundBefore runs the seeds that have found something.
func TestFoundBefore(t *testing.T) {
	f, err := os.Open("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for in := bufio.NewScanner(f); in.Scan(); {
		word, why, _ := strings.Cut(strings.TrimSpace(in.Text()), " ")
		if word == "" || word == "#" {
			continue
		}
		seed, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if bad := newWorld(makePlan(seed), bug{}, nil).run(); bad != nil {
			t.Errorf("seed %d (%s): %v", seed, strings.TrimSpace(why), bad)
		}
	}
	if n == 0 {
		t.Fatal("the file names no seed")
	}
}

// TestSame shows that a seed stands for one run: its transcript is the same each time.
func TestSame(t *testing.T) {
	transcript := func(seed uint64) (uint64, uint64) {
		h := fnv.New64a()
		w := newWorld(makePlan(seed), bug{}, &recorder{out: h})
		_ = w.run()
		return h.Sum64(), w.made()
	}
	seen := map[uint64]bool{}
	for seed := range uint64(8) {
		a, steps := transcript(seed)
		b, again := transcript(seed)
		if a != b || steps != again || steps < 100 {
			t.Fatalf("seed %d: %d steps and %d steps, transcripts %x and %x", seed, steps, again, a, b)
		}
		seen[a] = true
	}
	if len(seen) != 8 {
		t.Fatalf("8 seeds made %d different runs", len(seen))
	}
}

// TestUsage shows what the command does with wrong words.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-seeds", "0"}, {"-seeds", "x"}, {"more"}, {"-workers", "0"}} {
		var out bytes.Buffer
		if code := run(args, &out, &out); code != 2 || out.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, out.String())
		}
	}
}

// TestReaches shows that the runs get to what they are for: every message of a turn's life, of approvals, timers, stops and
// residents is handed over, and tasks come to every end.
func TestReaches(t *testing.T) {
	seen, ends, reasons := map[string]int{}, map[messages.End]int{}, map[string]int{}
	for seed := range uint64(400) {
		w := newWorld(makePlan(seed), bug{}, nil)
		w.seen = seen
		if bad := w.run(); bad != nil {
			t.Fatalf("seed %d: %v", seed, bad)
		}
		for _, r := range w.disk.Tasks() {
			rec := w.disk.Record(r.GetInput().GetId())
			ends[rec.GetEnd()]++
			reasons[rec.GetReason()]++
		}
	}
	for _, m := range []proto.Message{
		&messages.Offer{}, &messages.Preempt{}, &messages.Suspended{}, &messages.Resume{}, &messages.Resumed{}, &messages.Cancel{}, &messages.Finished{},
		&messages.Steer{}, &messages.SteerTaken{}, &messages.TurnLost{}, &messages.StopAll{}, &messages.EditQueue{}, &messages.Drain{},
		&messages.CheckCalls{}, &messages.Parked{}, &messages.DecideApproval{}, &messages.ApprovalsDecided{}, &messages.ReleaseApprovals{},
		&messages.CallTool{}, &messages.CancelTool{}, &messages.DetachCall{}, &messages.ToolResult{}, &messages.SendOutput{}, &messages.OutputSent{},
		&messages.PutTimer{}, &messages.DeleteTimer{}, &messages.CreateAgent{}, &messages.DestroyAgent{}, &messages.CancelCompletion{}, &messages.Delta{},
		&messages.Error{},
	} {
		if name := fmt.Sprintf("%T", m); seen[name] == 0 {
			t.Errorf("no actor was ever given %s", name)
		}
	}
	for _, e := range []messages.End{
		messages.End_END_ANSWERED, messages.End_END_REFUSED, messages.End_END_STOPPED, messages.End_END_FAILED, messages.End_END_DUPLICATE, messages.End_END_EXPIRED,
	} {
		if ends[e] == 0 {
			t.Errorf("no task ended %v", e)
		}
	}
	for _, r := range []string{"ok", "stop", "tool_cap", "tools_denied", "length", "timeout", "agent_destroyed", "unknown_agent"} {
		if reasons[r] == 0 {
			t.Errorf("no task ended for the reason %s: %v", r, reasons)
		}
	}
}

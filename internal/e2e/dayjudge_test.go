package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// judge looks at all requests since the last time, when everything has ended.
func (d *day) judge(w *waking) {
	t := d.t
	ends := map[string]int{}
	for _, r := range d.requests {
		if r.id == "" {
			ends["never acknowledged"]++ // it had no key: nobody knows
			continue
		}
		got, err := w.owner.Input(bounded(t), r.id)
		if err != nil {
			t.Errorf("%s: %v", r.errand, err)
			continue
		}
		ends[d.verdict(w, r, got)]++
		d.mu.Lock()
		if n := d.ends[r.id]; n > 1 {
			t.Errorf("%s has %d terminal events", r.errand, n)
		}
		d.mu.Unlock()
	}
	d.judgeCalls(w)
	d.judgeOutputs()
	d.script.mu.Lock()
	defer d.script.mu.Unlock()
	for _, f := range d.script.faults {
		t.Errorf("a prompt was malformed: %s", f)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t.Logf("%d requests: %v; %d stops, %d not taken at once, %d suspended, %d steered, %d calls allowed and %d denied by people, %d model calls",
		len(d.requests), ends, len(d.stops), d.refused, d.suspended, d.steered, d.allowed, d.denied, d.script.asked)
	if ends["answered"] < len(d.requests)/3 {
		t.Errorf("only %d of %d were answered", ends["answered"], len(d.requests))
	}
	d.requests, d.ends, d.outputs = nil, map[string]int{}, map[string]map[string]int{}
}

// verdict is how a request ended, which must be one of the ways that it can.
func (d *day) verdict(w *waking, r *request, got *api.Task) string {
	switch {
	case got.State != "ended":
	case got.End == "answered":
		text := got.Text
		if got.By != "" {
			other, err := w.owner.Input(bounded(d.t), got.By)
			if err != nil {
				d.t.Errorf("%s was answered by %s: %v", r.errand, got.By, err)
				break
			}
			text = other.Text
		}
		if n := strings.Count(text, "Done "+r.errand+"."); n != 1 {
			d.t.Errorf("%s was answered with %q", r.errand, text)
		}
		return got.End
	case got.End == "stopped" && len(d.stops) > 0:
		return got.End
	case got.End == "failed" && got.Reason == "crash_loop" && got.Starts >= 3:
		return got.Reason
	}
	d.t.Errorf("%s ended as %+v", r.errand, got)
	return "wrong"
}

// judgeCalls compares what the model was told of its calls with what they left in the world.
func (d *day) judgeCalls(w *waking) {
	lines := d.lines()
	l, err := w.owner.Timers(bounded(d.t), "")
	if err != nil {
		d.t.Fatal(err)
	}
	timers := map[string][]api.Timer{}
	for _, timer := range l.Timers {
		timers[timer.Name] = append(timers[timer.Name], timer)
	}
	d.script.mu.Lock()
	defer d.script.mu.Unlock()
	told := map[string]int{}
	for _, r := range d.requests {
		for _, round := range d.script.errands[r.errand] {
			for _, c := range round {
				result := d.script.results[c.ID]
				told[c.Name+" "+result]++
				d.judgeCall(c, result, lines, timers)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(told)) {
		d.t.Logf("%5d %s", told[key], key)
	}
}

func (d *day) judgeCall(c providertest.Tool, result string, lines map[string]int, timers map[string][]api.Timer) {
	var args struct{ Content, Path, Name, Text string }
	decodeJSON(d.t, string(c.Args), &args)
	// ran says how often the call took effect, of those effects that can be counted.
	ran, least, most := 0, 0, 1
	switch result {
	case "": // it was never told: the task was stopped
	case "ok":
		least = 1
	case "denied", "cancelled":
		most = 0
	case "unknown_outcome":
		if c.Name != "files_append" {
			d.t.Errorf("whether call %s %s ran is not known, though it can be made again", c.Name, c.ID)
		}
	default:
		d.t.Errorf("call %s %s ended as %s", c.Name, c.ID, result)
	}
	switch c.Name {
	case "files_append":
		ran = lines[strings.TrimSpace(args.Content)]
	case "files_write":
		b, err := os.ReadFile(filepath.Join(d.n.data, "files", args.Path))
		if err == nil && string(b) == args.Content {
			ran = 1
		}
	case "output_send":
		d.mu.Lock()
		ids := map[string]bool{}
		for seen := range d.outputs[args.Text] {
			id, _, _ := strings.Cut(seen, " ")
			ids[id] = true
		}
		d.mu.Unlock()
		ran, least = len(ids), 0 // the plug may be pulled between the send and the reader: audit looks into the store
	case "timer_set":
		ran = len(timers[args.Name])
		for _, timer := range timers[args.Name] {
			if timer.Runs != 1 {
				d.t.Errorf("the timer %s ran %d times", args.Name, timer.Runs)
			}
		}
	default:
		return
	}
	if result == "unknown_outcome" {
		d.t.Logf("call %s, of which nothing is known, took effect %d times", c.ID, ran)
	}
	if ran < least || ran > most {
		d.t.Errorf("call %s %s, which the model was told was %q, took effect %d times", c.Name, c.ID, result, ran)
	}
}

// judgeOutputs looks at what the recording client has read: the same text comes under one id only, and that id once in a
// life of the node. The id is what a repeat is known by.
func (d *day) judgeOutputs() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for text, seen := range d.outputs {
		ids := map[string]bool{}
		for where, n := range seen {
			id, _, _ := strings.Cut(where, " ")
			ids[id] = true
			if n != 1 {
				d.t.Errorf("%q came %d times as %s", text, n, where)
			}
		}
		if len(ids) != 1 {
			d.t.Errorf("%q came as %v", text, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// audit reads the store of a node that has stopped: nothing is open, every task has ended once and its journal is whole,
// every output was sent, every report of the resident is one input of its parent.
func (d *day) audit() {
	t := d.t
	db, err := store.Open(filepath.Join(d.n.data, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	l, err := ledger.Open(db, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := l.Pending(&messages.LedgerPending{}); err != nil || len(p.GetTasks())+len(p.GetUnsent()) > 0 {
		t.Errorf("still open: %v %v", p, err)
	}
	var tasks, outputs []string
	err = db.View(func(txn store.Txn) error {
		for item, err := range txn.Scan(store.Range{Space: store.Task}) {
			if err != nil {
				return err
			}
			if key := string(item.Key()); len(key) == 26 { // the others list what is open and what ended when
				tasks = append(tasks, key)
			}
		}
		return nil
	})
	if err != nil || len(tasks) < 100 {
		t.Fatalf("%d tasks: %v", len(tasks), err)
	}
	reports, orders, cooked, entries := map[string]int{}, map[string]int{}, map[string]*messages.TaskStatus{}, 0
	for _, id := range tasks {
		s, err := l.Task(id)
		if err != nil || s.GetState() != messages.TaskState_TASK_STATE_ENDED || s.GetEnd() == messages.End_END_UNSPECIFIED {
			t.Errorf("task %s: %v %v", id, s, err)
			continue
		}
		for _, p := range s.GetInput().GetParts() {
			for _, f := range done.FindAllStringSubmatch(p.GetText(), -1) {
				reports[f[1]]++
			}
			for _, f := range errand.FindAllStringSubmatch(p.GetText(), -1) {
				orders[f[1]]++
			}
		}
		if s.GetInput().GetAgent() == "main/resident/cook" && s.GetInput().GetChannel() == "agents" && s.GetEnd() == messages.End_END_ANSWERED {
			for _, f := range done.FindAllStringSubmatch(s.GetText(), -1) {
				cooked[f[1]] = s
			}
		}
		journal, err := l.Journal(id)
		if err != nil {
			t.Errorf("journal of %s: %v", id, err)
		}
		entries += len(journal)
		outputs = append(outputs, d.auditJournal(id, journal)...)
	}
	for name, n := range orders {
		if n != 1 {
			t.Errorf("%s is %d inputs", name, n)
		}
	}
	unheard := 0
	for name, s := range cooked {
		switch {
		case reports[name] == 1:
		case reports[name] == 0 && d.stoppedDuring(s):
			unheard++ // what a resident still reports after a stop reaches nobody
		default:
			t.Errorf("the report of %s is %d inputs", name, reports[name])
		}
	}
	for _, id := range outputs {
		o, err := l.Output(id)
		if err != nil || o.GetReceipt() == nil || o.GetReceipt().GetError() != nil {
			t.Errorf("output %s: %v %v", id, o.GetReceipt(), err)
		}
	}
	t.Logf("%d tasks, %d journal entries, %d outputs, %d reports, %d not made after a stop",
		len(tasks), entries, len(outputs), len(reports), unheard)
	if entries == 0 || len(outputs) == 0 || len(reports) == 0 {
		t.Error("there was nothing to look at")
	}
}

// stoppedDuring tells whether somebody pressed stop about while a task was there.
func (d *day) stoppedDuring(s *messages.TaskStatus) bool {
	from, to := time.UnixMicro(s.GetAcceptedUs()).Add(-time.Second), time.UnixMicro(s.GetEndedUs()).Add(time.Second)
	return slices.ContainsFunc(d.stops, func(at time.Time) bool { return at.After(from) && at.Before(to) })
}

// auditJournal gives the outputs that a journal says were made: its answer, and what it sent on the way.
func (d *day) auditJournal(id string, journal []*messages.JournalEntry) (outputs []string) {
	count := map[string]int{}
	for _, e := range journal {
		switch e.GetKind() {
		case messages.JournalKind_JOURNAL_KIND_COMMITTED:
			count[fmt.Sprint("commit of attempt ", e.GetAttempt())]++
			if e.GetText() != "" && e.GetAttempt() <= 1 {
				outputs = append(outputs, id+"/o1")
			}
		case messages.JournalKind_JOURNAL_KIND_TOOL_STARTED:
			if e.GetCall().GetName() == "files_append" {
				count["start of "+e.GetCall().GetCallId()]++
			}
		case messages.JournalKind_JOURNAL_KIND_TOOL_RESULT:
			count["result of "+e.GetResult().GetCallId()]++
			if e.GetResult().GetName() == "output_send" && e.GetResult().GetError() == nil {
				outputs = append(outputs, e.GetResult().GetCallId()+"/send")
			}
		default: // the rest may be there more than once
		}
	}
	for what, n := range count {
		if n > 1 {
			d.t.Errorf("the journal of %s holds %d times: %s", id, n, what)
		}
	}
	return outputs
}

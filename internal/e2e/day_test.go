package e2e

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"homeagent/internal/client"
	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// TestDayOfWork lets people work with a node all day while its plug is pulled at random instants: inputs on several
// conversations and levels under keys that are repeated, interrupts, steers, stops, tools of all effect classes, calls
// that people decide on, sends in mid-turn, timers, a resident. Nothing may be lost or doubled.
func TestDayOfWork(t *testing.T) {
	d := newDay(t, 20261130)
	for hour := range rounds(1, 26) {
		if !t.Run(fmt.Sprint(hour), func(t *testing.T) { d.hour(t, 20) }) {
			return
		}
	}
	d.close(t)
}

// request is an input that somebody hands over.
type request struct {
	api.Submit
	errand string
	anna   bool
	id     string // empty until it was acknowledged
}

// day is one long run over one data folder.
type day struct {
	t      *testing.T
	n      *node
	v      *vendor
	anna   string // her token file
	script *script
	dice   *rand.Rand
	made   int

	requests []*request
	stops    []time.Time
	refused  int

	mu        sync.Mutex
	ends      map[string]int            // terminal events of tasks, in all lives
	outputs   map[string]map[string]int // texts of outputs, the ids under which they came, how often
	suspended int
	steered   int
	allowed   int
	denied    int
	deciding  bool // all approvals are decided, none is left for later
	lives     int
}

func newDay(t *testing.T, seed uint64) *day {
	d := &day{
		t: t, n: newNode(t), v: newVendor(t), script: newScript(seed), dice: rand.New(rand.NewPCG(seed, 2)),
		ends: map[string]int{}, outputs: map[string]map[string]int{},
	}
	d.n.env = []string{"HOMED_CORE_GUARD_PERSON_WRITE=ask", "HOMED_CORE_GUARD_TOOL_TIMER_SET=allow", "HOMED_CORE_TOOLS_SENDS=100"}
	d.n.start()
	d.n.addSource(d.v, "scripted")
	d.anna = d.n.holder("anna", "--principal", "person").file
	d.v.Serve(d.script.answer)
	if _, err := d.n.dial().CreateAgent(bounded(t), api.CreateAgent{Name: "cook", TaskPrompt: "Cook."}); err != nil {
		t.Fatal(err)
	}
	d.n.kill()
	return d
}

// hour kills the node so many times, the last time when everything is done and has been looked at.
func (d *day) hour(t *testing.T, kills int) {
	d.t, d.n.t, d.v.t = t, t, t
	for range kills - 1 {
		d.live()
		if t.Failed() {
			return
		}
	}
	d.finish()
}

// live runs the node, works with it and kills it: at an event, about the time at which a call of class once is made, or at
// any time; at last when nothing happens any more.
func (d *day) live() {
	at, pause := time.Duration(d.dice.IntN(400))*time.Millisecond, time.Duration(0)
	fits, count := func(*api.Event) bool { return true }, 1+d.dice.IntN(120)
	switch d.dice.IntN(3) {
	case 0:
		at = 700 * time.Millisecond
	case 1:
		at, pause, count = 700*time.Millisecond, time.Duration(d.dice.IntN(4000))*time.Microsecond, 1+d.dice.IntN(4)
		fits = func(e *api.Event) bool { return e.Tool != nil && e.Tool.Name == "files_append" && e.Tool.Result == nil }
	case 2:
		count = 0
	}
	moment, events := make(chan struct{}), 0
	w := d.wake(func(e *api.Event) {
		if !fits(e) {
			return
		}
		if events++; events == count {
			time.AfterFunc(pause, func() { close(moment) })
		}
	})
	plug := time.NewTimer(at)
	work := make(chan struct{})
	go func() {
		defer close(work)
		d.work(w, 3+d.dice.IntN(7))
	}()
	select {
	case <-moment:
	case <-plug.C:
	}
	d.n.kill()
	<-work
	w.sleep()
}

// waking is one life of the node as the people see it.
type waking struct {
	d           *day
	owner, anna *client.Client
	tape        *tape
	asks        chan *api.Approval
	over        chan struct{}
}

// wake starts the node; seen is called at each event.
func (d *day) wake(seen func(e *api.Event)) *waking {
	d.n.start()
	d.lives++
	anna, err := client.Open(client.Options{Node: "http://" + d.n.state().HTTP, TokenFile: d.anna})
	if err != nil {
		d.t.Fatal(err)
	}
	w := &waking{d: d, owner: d.n.dial(), anna: anna, asks: make(chan *api.Approval, 4096), over: make(chan struct{})}
	s, err := w.owner.Status(bounded(d.t))
	if err != nil {
		d.t.Fatal(err)
	}
	w.tape = d.n.tapeOf(fmt.Sprintf("%d-0", s.Epoch), func(e *api.Event) {
		d.note(e)
		if e.Approval != nil && e.Approval.State == "pending" {
			w.asks <- e.Approval
		}
		if seen != nil {
			seen(e)
		}
	}, api.EventTask, api.EventOutput, api.EventApproval, api.EventTimer, api.EventToolCall)
	w.tape.mu.Lock()
	gone := len(w.tape.syncs)
	w.tape.mu.Unlock()
	if gone > 0 {
		d.t.Fatal("the beginning of the stream is gone")
	}
	go w.decide()
	return w
}

// sleep ends what goes on about a node that is dead.
func (w *waking) sleep() {
	<-w.tape.over
	close(w.asks)
	<-w.over
	w.anna.Close()
	w.owner.Close()
}

// note keeps what the recording client has seen.
func (d *day) note(e *api.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case e.Task != nil && e.Task.Change == "ended":
		d.ends[e.TaskID]++
	case e.Task != nil && e.Task.Change == "suspended":
		d.suspended++
	case e.Task != nil && e.Task.Change == "steered":
		d.steered++
	case e.Type == api.EventOutput:
		if d.outputs[e.Text] == nil {
			d.outputs[e.Text] = map[string]int{}
		}
		d.outputs[e.Text][fmt.Sprintf("%s in life %d", e.Output.OutputID, d.lives)]++
	}
}

// draw is a number below n that follows from a text alone.
func draw(text string, n uint32) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32() % n
}

// decide is the owner looking at the calls that wait: some at once, some in a later life of the node. What the word is
// follows from the call.
func (w *waking) decide() {
	defer close(w.over)
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	defer cancel()
	word := func(a *api.Approval) {
		if !w.d.decidesAll() && draw(fmt.Sprint(a.ID, w.d.lives), 3) == 0 {
			return
		}
		allow := draw(a.ID, 4) > 0
		if _, err := w.owner.Decide(ctx, a.ID, a.Hash, allow, "said so"); err == nil {
			w.d.decided(allow)
		}
	}
	if l, err := w.owner.Approvals(ctx, false, ""); err == nil {
		for i := range l.Approvals {
			word(&l.Approvals[i])
		}
	}
	for a := range w.asks {
		word(a)
	}
}

func (d *day) decidesAll() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.deciding
}

func (d *day) decided(allow bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if allow {
		d.allowed++
	} else {
		d.denied++
	}
}

// work hands over what was not acknowledged yet, and so much that is new.
func (d *day) work(w *waking, most int) {
	for _, r := range d.requests {
		if r.id == "" && r.IdempotencyKey != "" && !w.hand(r) {
			return
		}
	}
	for range most {
		if draw := d.dice.IntN(100); draw < 3 {
			s := api.Stop{}
			if draw > 0 {
				s.Conversation = "work"
			}
			d.stops = append(d.stops, time.Now())
			if _, err := w.owner.Stop(bounded(d.t), s); err != nil {
				return
			}
			continue
		}
		r := d.next()
		d.requests = append(d.requests, r)
		if !w.hand(r) {
			return
		}
		if r.id != "" && r.IdempotencyKey != "" && d.dice.IntN(5) == 0 && !w.hand(r) {
			return
		}
	}
}

// hand hands a request over; false when the node is gone.
func (w *waking) hand(r *request) bool {
	c := w.owner
	if r.anna {
		c = w.anna
	}
	got, err := c.Submit(bounded(w.d.t), r.Submit)
	var no *client.Error
	switch {
	case errors.As(err, &no) && (no.Status == 429 || no.Status == 503):
		w.d.refused++
		return true // it is offered again in the next life
	case errors.As(err, &no):
		w.d.t.Errorf("%+v was refused: %v", r.Submit, err)
		return true
	case err != nil:
		return false
	case r.id != "" && (got.InputID != r.id || !got.Duplicate):
		w.d.t.Errorf("the key of %s names %+v now", r.id, got)
	}
	r.id = got.InputID
	return true
}

// next makes up a request.
func (d *day) next() *request {
	d.made++
	r := &request{errand: fmt.Sprintf("#e%d", d.made)}
	r.Text, r.IdempotencyKey = "Do "+r.errand+".", fmt.Sprint("key ", d.made)
	r.Channel, r.Conversation = "cli", []string{"home", "work", "kitchen"}[d.dice.IntN(3)]
	switch k := d.dice.IntN(20); {
	case k < 3:
		r.anna, r.Channel = true, "api"
	case k < 5:
		r.Agent, r.Channel = "main/resident/cook", "api"
	case k < 7:
		r.Mode = "interrupt"
	case k < 10:
		r.Level = api.Level(d.dice.IntN(4))
	case k < 13:
		r.Mode = "queue"
	case k < 14:
		r.IdempotencyKey = ""
	}
	if r.Channel == "cli" && d.dice.IntN(4) == 0 {
		r.Channel = "api"
	}
	d.script.learn(r.errand, d.calls(r))
	return r
}

// calls are what an errand takes.
func (d *day) calls(r *request) [][]providertest.Tool {
	var out [][]providertest.Tool
	for i := range d.dice.IntN(4) {
		name := fmt.Sprintf("%s/%d", r.errand, i)
		var round []providertest.Tool
		switch d.dice.IntN(7) {
		case 0, 1:
			round = append(round, tool("files_append", `{"path":"log.txt","content":"%s\n"}`, name))
		case 2:
			round = append(round, tool("files_write", `{"path":"notes/%s.txt","content":"%s"}`, strings.ReplaceAll(name[1:], "/", "-"), name))
		case 3:
			round = append(round, tool("files_list", `{"path":"files"}`), tool("time_now", `{}`))
		case 4:
			round = append(round, tool("output_send", `{"channel":"cli","text":"Note %s."}`, name))
		case 5:
			if r.anna || r.Agent != "" {
				continue
			}
			late := fmt.Sprintf("#t%d-%d", d.made, i)
			d.script.learn(late, nil)
			round = append(round, tool("timer_set", `{"in":"1s","text":"Do %s.","name":"%s"}`, late, late))
		case 6:
			if r.anna || r.Agent != "" {
				continue
			}
			child := fmt.Sprintf("#c%d-%d", d.made, i)
			d.script.learn(child, nil)
			round = append(round, tool("resident_agents", `{"action":"send","id":"cook","text":"Do %s."}`, child))
		}
		out = append(out, round)
	}
	return out
}

// finish brings a day's work to its end and looks at what came of it.
func (d *day) finish() {
	d.mu.Lock()
	d.deciding = true
	d.mu.Unlock()
	w := d.wake(nil)
	for again := true; again; again = d.owes() {
		d.work(w, 0)
		d.drain(w)
	}
	d.judge(w)
	d.mu.Lock()
	d.deciding = false
	d.mu.Unlock()
	d.n.kill()
	w.sleep()
}

// owes tells whether a request under a key was not taken yet.
func (d *day) owes() bool {
	return slices.ContainsFunc(d.requests, func(r *request) bool { return r.id == "" && r.IdempotencyKey != "" })
}

// drain waits until nothing is open and no timer is to come.
func (d *day) drain(w *waking) {
	ctx := bounded(d.t)
	for {
		w.tape.mu.Lock()
		news := w.tape.news
		w.tape.mu.Unlock()
		s, err := w.owner.Status(ctx)
		if err != nil {
			d.t.Fatal(err)
		}
		l, err := w.owner.Timers(ctx, "")
		if err != nil {
			d.t.Fatal(err)
		}
		open := s.Ledger.Open
		for _, timer := range l.Timers {
			if timer.Next != nil {
				open++
			}
		}
		if open == 0 {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			q, _ := w.owner.Scheduler(context.Background(), "", 0)
			r, _ := w.owner.Scheduler(context.Background(), "main/resident/cook", 0)
			d.t.Fatalf("%d tasks or timers do not end:\nmain %+v\ncook %+v\n%+v", open, q, r, l)
		}
	}
}

// lines counts the lines of the file that once-calls write to.
func (d *day) lines() map[string]int {
	b, err := os.ReadFile(filepath.Join(d.n.data, "files", "log.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	out := map[string]int{}
	for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		out[line]++
	}
	return out
}

// close stops the node in order and reads its store.
func (d *day) close(t *testing.T) {
	d.t, d.n.t, d.v.t = t, t, t
	d.n.start()
	d.n.stop()
	d.audit()
}

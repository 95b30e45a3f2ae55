package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"homeagent/internal/client"
	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// The names of these tests are those of recipes for what goes wrong with agents: R1 runs that end badly and take what
// waits with them, R2 steering at each instant, R3 people behind background work, R4 stop in every state, R8 calls and
// results that come apart, R12 approvals, R15 slots of timers. What of them lies between the actors is in the tests of
// the scheduler, the turn and the timers; here it is the whole node.

// paired fails the test when a request of the vendor holds calls without their results, or results without calls.
func (v *vendor) paired() {
	v.t.Helper()
	for i, a := range v.bodies() {
		var prompt []providertest.Said
		for _, m := range a.Messages {
			s := providertest.Said{Role: m.Role, ID: m.ToolCallID}
			for _, c := range m.ToolCalls {
				s.Calls = append(s.Calls, providertest.Tool{ID: c.ID})
			}
			prompt = append(prompt, s)
		}
		if fault := unpaired(prompt); fault != "" {
			v.t.Errorf("request %d: %s", i, fault)
		}
	}
}

// page is a server at home whose answers wait until they are let go; a tool that runs as long as a test wants it.
type page struct {
	*httptest.Server
	asked chan string
	gone  chan string
	open  chan struct{}
	once  sync.Once
}

// page makes it, and allows the node to fetch from it.
func (n *node) page() *page {
	n.t.Helper()
	p := &page{asked: make(chan string, 256), gone: make(chan string, 256), open: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked <- r.URL.Path
		select {
		case <-p.open:
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte("The page " + r.URL.Path + " says: well.")) // a reader that left is no failure of the page
		case <-r.Context().Done():
			p.gone <- r.URL.Path
		}
	}))
	n.t.Cleanup(p.Server.Close)
	n.t.Cleanup(p.release)
	n.waiter("config", "set", "core.egress.allow", strings.TrimPrefix(p.URL, "http://")).must(n.t)
	return p
}

// release lets all answers go.
func (p *page) release() { p.once.Do(func() { close(p.open) }) }

// fetch is a call that gets a path of the page.
func (p *page) fetch(path string) string { return fmt.Sprintf(`{"url":"%s%s"}`, p.URL, path) }

// comes waits for what a channel gives.
func comes(t *testing.T, what string, c <-chan string) string {
	t.Helper()
	select {
	case s := <-c:
		return s
	case <-bounded(t).Done():
		t.Fatalf("waiting for %s", what)
		return ""
	}
}

// TestR1EndsDrain hangs a model while three inputs wait, and ends its run in each way that there is: what waits is
// answered, once and in order, or ends with a word.
func TestR1EndsDrain(t *testing.T) {
	hang := providertest.Step{Match: "first", Text: []string{"One ", "two."}, Hold: providertest.Hold{Middle: "gate"}}
	cut := hang
	cut.Cut = "reset"
	for name, way := range map[string]struct {
		step providertest.Step
		do   func(n *node, v *vendor, task string)
		end  string
		rest string
	}{
		"provider error": {cut, func(_ *node, v *vendor, _ string) { v.Open("gate") }, "failed", "answered"},
		"timeout":        {hang, func(*node, *vendor, string) {}, "failed", "answered"},
		"killed": {hang, func(n *node, _ *vendor, task string) {
			n.waiter("kill", "agents/main/turn/"+task).must(n.t)
		}, "stopped", "answered"},
		"lost for ever": {hang, func(n *node, v *vendor, task string) {
			for i := range 3 {
				if i > 0 {
					v.happens(providertest.Held, func(e providertest.Event) bool { return e.Request == 2+i })
				}
				n.waiter("restart", "agents/main/turn/"+task).must(n.t)
			}
		}, "failed", "answered"},
		"user stop": {hang, func(n *node, _ *vendor, _ string) { n.waiter("stop").must(n.t) }, "stopped", "stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			n, v := withVendor(t)
			if name == "timeout" {
				n.waiter("config", "set", "core.llm.sources.scripted.timeout_idle", "500ms").must(t)
			}
			v.plays(way.step, providertest.Step{Match: "count", Text: []string{"Counted."}})
			tape := n.tape("")
			ids := []string{n.say("first")}
			v.held("gate")
			for i := range 3 {
				ids = append(ids, n.submit(api.Submit{Text: fmt.Sprintf("count %d", i), Mode: "queue"}).InputID)
			}
			way.do(n, v, ids[0])
			at := uint64(0)
			for i, id := range ids {
				end := way.rest
				if i == 0 {
					end = way.end
				}
				e := tape.ended(id, end)
				if e.Sequence < at && end == "answered" {
					t.Errorf("input %d ended before the one in front of it", i)
				}
				if e.Task.Reason == "" && end != "answered" {
					t.Errorf("input %d ended without a reason: %+v", i, e.Task)
				}
				at = e.Sequence
			}
			if got := n.ask("count again"); got.End != "answered" {
				t.Errorf("afterwards: %+v", got)
			}
			for _, id := range ids {
				tape.once(id, "ended")
			}
		})
	}
}

// TestR2SteerAtEachInstant says something more before the model answers, while it does, between two tools, while tools
// run beside each other, and in the last moment of a turn: it is answered each time, and calls keep their results.
func TestR2SteerAtEachInstant(t *testing.T) {
	more := providertest.Step{Match: "and more", Text: []string{"Both."}}
	text := func(h providertest.Hold) providertest.Step {
		return providertest.Step{Times: 1, Text: []string{"One ", "two."}, Hold: h}
	}
	for name, c := range map[string]struct {
		steps func(p *page) []providertest.Step
		gate  string
		pages int
		// skipped is how many calls are not run, since something new was said.
		skipped int
	}{
		"before the model": {steps: func(*page) []providertest.Step {
			return []providertest.Step{text(providertest.Hold{Headers: "gate"}), more}
		}, gate: "gate"},
		"in the stream": {steps: func(*page) []providertest.Step {
			return []providertest.Step{text(providertest.Hold{Middle: "gate"}), more}
		}, gate: "gate"},
		"at its end": {steps: func(*page) []providertest.Step {
			return []providertest.Step{text(providertest.Hold{End: "gate"}), more}
		}, gate: "gate"},
		"between tools": {steps: func(p *page) []providertest.Step {
			return []providertest.Step{uses("web_fetch", p.fetch("/a"), "files_append", `{"path":"log.txt","content":"never\n"}`), more}
		}, pages: 1, skipped: 1},
		"beside tools": {steps: func(p *page) []providertest.Step {
			two := uses("web_fetch", p.fetch("/a"))
			two.Tools = append(two.Tools, providertest.Tool{ID: "other", Name: "web_fetch", Args: json.RawMessage(p.fetch("/b"))})
			return []providertest.Step{two, more}
		}, pages: 2},
	} {
		t.Run(name, func(t *testing.T) {
			n, v := withVendor(t)
			p := n.page()
			v.plays(c.steps(p)...)
			tape := n.tape("")
			first := n.say("count")
			if c.gate != "" {
				v.held(c.gate)
			}
			for range c.pages {
				comes(t, "a page that is asked for", p.asked)
			}
			second := n.submit(api.Submit{Text: "and more"})
			if second.Outcome != "steered" {
				t.Errorf("it was taken as %+v", second)
			}
			v.Open("gate")
			p.release()
			tape.ended(first, "answered")
			end := tape.ended(second.InputID, "answered")
			if text := end.Task.Text + n.input(first).Text; !strings.Contains(text, "Both.") {
				t.Errorf("the second was not answered: %q", text)
			}
			tape.once(first, "ended")
			tape.once(second.InputID, "ended")
			v.paired()
			bodies := v.bodies()
			_, results := bodies[len(bodies)-1].results()
			skipped := 0
			for _, r := range results {
				if strings.Contains(r, "new input came") {
					skipped++
				}
			}
			if skipped != c.skipped {
				t.Errorf("%d calls were skipped: %q", skipped, results)
			}
			if _, err := os.Stat(filepath.Join(n.data, "files", "log.txt")); err == nil {
				t.Error("a call that was skipped took effect")
			}
		})
	}
}

// TestR2SteerAtTheLastMoment says something more again and again as an answer ends: it is answered with it or after it.
func TestR2SteerAtTheLastMoment(t *testing.T) {
	n, v := withVendor(t)
	tape := n.tape("")
	outcomes := map[string]int{}
	for i := range rounds(10, 100) {
		first, more := fmt.Sprintf("count %d.", i), fmt.Sprintf("and more %d.", i)
		v.plays(providertest.Step{Match: first, Text: []string{"Counted ", first}}, providertest.Step{Match: more, Text: []string{"More ", more}})
		task := n.say(first)
		if i%2 == 0 {
			v.happens(providertest.Finished, func(e providertest.Event) bool { return e.Request >= 2+2*i })
		} else {
			tape.await("the output", func(e *api.Event) bool { return e.Type == api.EventOutput && e.TaskID == task })
		}
		second := n.submit(api.Submit{Text: more})
		outcomes[second.Outcome]++
		tape.ended(task, "answered")
		end := tape.ended(second.InputID, "answered")
		text := end.Task.Text
		if end.Task.By != "" {
			text = n.input(end.Task.By).Text
		}
		if !strings.Contains(text, "More "+more) {
			t.Errorf("%d: taken as %s, answered with %q", i, second.Outcome, text)
		}
		tape.once(second.InputID, "ended")
	}
	t.Logf("taken as %v", outcomes)
}

// crowd hands over background work, with a person in the middle of it or not, and gives what each piece of work ended
// with and what its tools left.
func crowd(t *testing.T, work int, person bool) (texts map[string]string, log string) {
	n, v := newNode(t), newVendor(t)
	n.env = []string{"HOMED_CORE_AGENT_QUEUE_LIMIT=1000"}
	n.start()
	n.addSource(v, "scripted")
	s := newScript(3)
	s.learn("#person", nil)
	var come atomic.Bool // the person has
	v.Serve(func(q providertest.Question) providertest.Step {
		step := s.answer(q)
		switch last := q.Messages[len(q.Messages)-1].Text; {
		case strings.Contains(last, "#person."):
			come.Store(true)
		case person && !come.Load():
			step = providertest.Step{Text: []string{"Work ", "work."}, Hold: providertest.Hold{Middle: "gate"}}
		}
		return step
	})
	tape := n.tape("")
	var ids []string
	for i := range work {
		name := fmt.Sprintf("#w%d", i)
		s.learn(name, [][]providertest.Tool{{tool("files_append", `{"path":"log.txt","content":"%s\n"}`, name)}, {tool("time_now", `{}`)}})
		ids = append(ids, n.submit(api.Submit{Text: "Do " + name + ".", Channel: "api", Conversation: name, Level: api.Level(i % 2)}).InputID)
	}
	if person {
		v.held("gate")
		got := n.submit(api.Submit{Text: "Do #person."})
		if got.Outcome != "preempting" {
			t.Errorf("a person among background work is %+v", got)
		}
		first := tape.await("the first piece for the person", func(e *api.Event) bool {
			return e.Type == api.EventContentDelta && e.TaskID == got.InputID
		})
		tape.ended(got.InputID, "answered")
		for _, e := range tape.all(func(e *api.Event) bool { return e.Task != nil && e.Task.Change == "ended" }) {
			if e.Sequence < first.Sequence {
				t.Errorf("work ended before the person had an answer: %+v", e)
			}
		}
	}
	texts = map[string]string{}
	for i, id := range ids {
		texts[fmt.Sprint(i)] = tape.ended(id, "answered").Task.Text
	}
	for _, id := range ids {
		tape.once(id, "ended")
	}
	if person {
		sc, err := n.dial().Scheduler(bounded(t), "", 0)
		if err != nil || sc.Counters.Suspended == 0 || sc.Counters.Suspended != sc.Counters.Resumed || sc.Counters.Anomalies != 0 {
			t.Errorf("the scheduler counts %+v %v", sc, err)
		}
	}
	b, err := os.ReadFile(filepath.Join(n.data, "files", "log.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return texts, string(b)
}

// TestR3PersonAmongBackgroundWork answers a person before any of fifty tasks that wait, and the work ends as if nobody
// had come in between.
func TestR3PersonAmongBackgroundWork(t *testing.T) {
	calm, left := crowd(t, 50, false)
	disturbed, leftDisturbed := crowd(t, 50, true)
	for name, text := range calm {
		if disturbed[name] != text || text == "" {
			t.Errorf("task %s ended with %q undisturbed and %q disturbed", name, text, disturbed[name])
		}
	}
	sorted := func(s string) map[string]int {
		lines := map[string]int{}
		for _, l := range strings.Split(strings.TrimSpace(s), "\n") {
			lines[l]++
		}
		return lines
	}
	a, b := sorted(left), sorted(leftDisturbed)
	if len(a) != 50 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("the tools left %v undisturbed and %v disturbed", a, b)
	}
}

// TestR4StopInEveryState stops what a node does while it streams, fetches, waits for a person, has a resident work, and
// while inputs wait: all of it ends, pressing twice does no harm, what comes late is nothing any more.
func TestR4StopInEveryState(t *testing.T) {
	for name, c := range map[string]struct {
		steps func(p *page) []providertest.Step
		ready func(t *testing.T, n *node, v *vendor, p *page, r *tape, task string)
		over  func(t *testing.T, p *page)
	}{
		"stream": {
			steps: func(*page) []providertest.Step {
				return []providertest.Step{{Match: "talk", Text: []string{"Blah ", "blah."}, Hold: providertest.Hold{Middle: "gate"}}}
			},
			ready: func(_ *testing.T, _ *node, v *vendor, _ *page, _ *tape, _ string) { v.held("gate") },
		},
		"tool": {
			steps: func(p *page) []providertest.Step { return []providertest.Step{uses("web_fetch", p.fetch("/a"))} },
			ready: func(t *testing.T, _ *node, _ *vendor, p *page, _ *tape, _ string) { comes(t, "the page", p.asked) },
			over:  func(t *testing.T, p *page) { comes(t, "the end of the fetch", p.gone) },
		},
		"approval": {
			steps: func(*page) []providertest.Step {
				return []providertest.Step{uses("files_write", `{"path":"a.txt","content":"a"}`), {Match: "talk more", Text: []string{"Fine."}}}
			},
			ready: func(_ *testing.T, _ *node, _ *vendor, _ *page, r *tape, task string) { r.change(task, "parked") },
		},
		"resident": {
			steps: func(*page) []providertest.Step {
				return []providertest.Step{
					{Match: "soup", Text: []string{"Stir ", "stir."}, Hold: providertest.Hold{Middle: "gate"}},
					{Match: "talk", Times: 1, AfterTool: &no, Tools: []providertest.Tool{tool("resident_agents", `{"action":"create","id":"cook","task_prompt":"Make soup."}`)}},
					{Match: "talk", Text: []string{"Blah ", "blah."}, Hold: providertest.Hold{Middle: "main"}},
				}
			},
			ready: func(_ *testing.T, _ *node, v *vendor, _ *page, _ *tape, _ string) { v.held("gate"); v.held("main") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, v := withVendor(t)
			p := n.page()
			if name == "approval" {
				n.waiter("config", "set", "core.guard.owner.write", "ask").must(t)
			}
			v.plays(append(c.steps(p), providertest.Step{Match: "are you there", Text: []string{"Here."}})...)
			tape := n.tape("")
			task := n.say("talk")
			c.ready(t, n, v, p, tape, task)
			waits := n.submit(api.Submit{Text: "talk more", Mode: "queue", Level: json.RawMessage("0")}).InputID
			if name == "approval" {
				tape.ended(waits, "answered") // the slot was free for it
			}
			asked := len(v.bodies())
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					if _, err := n.dial().Stop(bounded(t), client.Stop{}); err != nil {
						t.Errorf("stop: %v", err)
					}
				})
			}
			both.Wait()
			tape.ended(task, "stopped")
			if name != "approval" {
				tape.ended(waits, "stopped")
			}
			if c.over != nil {
				c.over(t, p)
			}
			if name == "resident" {
				tape.await("the end of the resident's work", func(e *api.Event) bool {
					return e.Agent == "main/resident/cook" && e.Task != nil && e.Task.Change == "ended" && e.Task.End == "stopped"
				})
			}
			v.Open("gate")
			v.Open("main")
			p.release()
			if got := n.ask("are you there?"); got.End != "answered" || got.Text != "Here." {
				t.Errorf("afterwards: %+v", got)
			}
			if n := len(v.bodies()); n != asked+1 {
				t.Errorf("%d requests after the stop, not one", n-asked)
			}
			tape.once(task, "ended")
			if out := tape.all(func(e *api.Event) bool { return e.Type == api.EventOutput && e.TaskID == task }); len(out) > 0 {
				t.Errorf("what was stopped said %+v", out)
			}
			l, err := n.dial().Approvals(bounded(t), false, "")
			if err != nil || len(l.Approvals) != 0 {
				t.Errorf("questions that nobody waits for: %+v %v", l, err)
			}
		})
	}
}

// TestR4StopWhileTyping presses stop and types at the same time, again and again: each text is answered or stopped, once,
// and the node stays well.
func TestR4StopWhileTyping(t *testing.T) {
	n, _ := withVendor(t, providertest.Step{Text: []string{"Blah ", "blah."}})
	tape := n.tape("")
	ends := map[string]int{}
	for i := range rounds(10, 100) {
		ids := make([]string, 3)
		var both sync.WaitGroup
		for k := range ids {
			both.Go(func() {
				ids[k] = n.submit(api.Submit{Text: fmt.Sprintf("text %d %d", i, k), Mode: []string{"", "queue", "interrupt"}[k]}).InputID
			})
		}
		for range 2 {
			both.Go(func() {
				if _, err := n.dial().Stop(bounded(t), client.Stop{}); err != nil {
					t.Errorf("stop: %v", err)
				}
			})
		}
		both.Wait()
		for _, id := range ids {
			e := tape.change(id, "ended")
			ends[e.Task.End]++
			if e.Task.End != "answered" && e.Task.End != "stopped" {
				t.Errorf("a text ended as %+v", e.Task)
			}
			tape.once(id, "ended")
		}
	}
	t.Logf("%v", ends)
	if got := n.ask("are you there?"); got.End != "answered" {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestR8RestartBetweenCallAndResult kills the node while a call runs: the prompt that goes on has the call and its result
// together, and a call that is made again says so by nothing but its result.
func TestR8RestartBetweenCallAndResult(t *testing.T) {
	n, v := withVendor(t)
	p := n.page()
	n.waiter("config", "set", "core.guard.tainted.write", "allow").must(t)
	two := uses("web_fetch", p.fetch("/a"), "files_append", `{"path":"log.txt","content":"once\n"}`)
	two.Times, two.AfterTool = 0, &no // whether the answer got to disk before the kill is not known
	v.plays(two, providertest.Step{AfterTool: &yes, Text: []string{"Fetched."}})
	task := n.say("fetch")
	comes(t, "the page", p.asked)
	n.kill()
	n.start()
	tape := n.replay()
	comes(t, "the page once more", p.asked)
	p.release()
	tape.ended(task, "answered")
	v.paired()
	bodies := v.bodies()
	ids, results := bodies[len(bodies)-1].results()
	if strings.Join(ids, " ") != "cweb_fetch cfiles_append" {
		t.Errorf("%d requests; the last holds %v %q", len(bodies), ids, results)
	}
	contains(t, results[0], "says: well")
	b, err := os.ReadFile(filepath.Join(n.data, "files", "log.txt"))
	if err != nil || string(b) != "once\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

// TestR8CancelMidBatch interrupts a batch of calls: those that can be cancelled are made again, and every call has one
// result.
func TestR8CancelMidBatch(t *testing.T) {
	n, v := withVendor(t)
	p := n.page()
	batch := uses("web_fetch", p.fetch("/a"), "files_append", `{"path":"log.txt","content":"once\n"}`, "time_now", `{}`)
	batch.Match = "fetch"
	n.waiter("config", "set", "core.guard.tainted.write", "allow").must(t)
	v.plays(batch, providertest.Step{Match: "fire", Text: []string{"Out!"}}, providertest.Step{AfterTool: &yes, Text: []string{"Fetched."}})
	tape := n.tape("")
	task := n.say("fetch")
	comes(t, "the page", p.asked)
	fire := n.submit(api.Submit{Text: "fire", Level: json.RawMessage("3"), Conversation: "alarm"}).InputID
	comes(t, "the end of the fetch", p.gone)
	tape.ended(fire, "answered")
	comes(t, "the page once more", p.asked)
	p.release()
	tape.ended(task, "answered")
	v.paired()
	bodies := v.bodies()
	ids, _ := bodies[len(bodies)-1].results()
	if strings.Join(ids, " ") != "cweb_fetch cfiles_append ctime_now" {
		t.Errorf("the results are of %v", ids)
	}
	if b, err := os.ReadFile(filepath.Join(n.data, "files", "log.txt")); err != nil || string(b) != "once\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

// TestR8TrimAtEveryPosition lets a turn read more and more under a small budget: whatever the prompt leaves out, what it
// holds of calls and results belongs together.
func TestR8TrimAtEveryPosition(t *testing.T) {
	n, v := newNode(t), newVendor(t)
	n.env = []string{"HOMED_CORE_AGENT_CONTEXT_LIMIT=6000"}
	n.start()
	n.addSource(v, "scripted")
	n.waiter("config", "set", "core.guard.tainted.write", "allow").must(t)
	for i := range 3 {
		v.plays(says(fmt.Sprintf("Noted %d: %s", i, strings.Repeat("more and more ", 40))))
		n.ask(fmt.Sprintf("remember %d: %s", i, strings.Repeat("this and that ", 40)))
	}
	var steps []providertest.Step
	for i := range 12 {
		steps = append(steps, uses(
			"files_write", fmt.Sprintf(`{"path":"f%d.txt","content":"%s"}`, i, strings.Repeat("word ", 60*(1+i%4))),
			"files_read", fmt.Sprintf(`{"path":"f%d.txt"}`, i),
		))
	}
	v.plays(append(steps, says("Read."))...)
	if got := n.ask("read all"); got.End != "answered" && got.Reason == "" {
		t.Errorf("it ended as %+v", got)
	} else {
		t.Logf("it ended as %s (%s) %q after %d requests", got.End, got.Reason, got.Text, len(v.bodies()))
	}
	v.paired()
	smallest, largest := 1<<30, 0
	for _, a := range v.bodies() {
		smallest, largest = min(smallest, len(a.Messages)), max(largest, len(a.Messages))
	}
	t.Logf("prompts had %d to %d messages", smallest, largest)
}

// TestR15OverlapAndZone has work of a timer last longer than its interval, and moves the person to another time zone.
func TestR15OverlapAndZone(t *testing.T) {
	n, v := withVendor(t, providertest.Step{Text: []string{"Tick ", "tock."}, Hold: providertest.Hold{Middle: "gate"}})
	n.waiter("config", "set", "core.timers.min_interval", "1s").must(t)
	tape := n.tape("")
	timer := n.addTimer("--every", "1s", "--name", "ticks", "tick")
	first := tape.slot(timer.ID)
	if first.Timer.Outcome != "ran" {
		t.Errorf("the first slot is %+v", first.Timer)
	}
	v.held("gate")
	skipped := tape.await("a slot that is skipped", func(e *api.Event) bool { return e.Timer != nil && e.Timer.Outcome != "ran" })
	if skipped.Timer.Outcome != "skipped_overlap" || skipped.Timer.Reason == "" || skipped.TaskID != "" {
		t.Errorf("the slot beside it is %+v", skipped.Timer)
	}
	n.waiter("timers", "pause", timer.ID).must(t)
	v.Open("gate")
	tape.ended(first.TaskID, "answered")

	n.waiter("config", "set", "core.agent.timezone", "UTC").must(t)
	daily := n.addTimer("--cron", "30 4 * * *", "--name", "daily", "good morning")
	fixed := n.addTimer("--cron", "30 4 * * *", "--zone", "Asia/Shanghai", "--name", "fixed", "good morning")
	clock := func(id string) string { return n.timers()[id].Next.UTC().Format("15:04") }
	if clock(daily.ID) != "04:30" || clock(fixed.ID) != "20:30" {
		t.Errorf("due at %s and %s UTC", clock(daily.ID), clock(fixed.ID))
	}
	n.waiter("config", "set", "core.agent.timezone", "Asia/Shanghai").must(t)
	n.kill()
	n.start() // a zone that changed is looked at anew at a start at the latest
	if clock(daily.ID) != "20:30" || clock(fixed.ID) != "20:30" {
		t.Errorf("after the move due at %s and %s UTC", clock(daily.ID), clock(fixed.ID))
	}
	if d := time.Until(*n.timers()[daily.ID].Next); d <= 0 || d > 24*time.Hour {
		t.Errorf("the next one is due in %s", d)
	}
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/actors/ledger"
	"homeagent/actors/scheduler"
	"homeagent/messages"
)

// checks holds what must be true and looks at it after every step.
type checks struct {
	w *world
	// ends counts the published ends of each task; suspended tells which tasks are suspended by the events since the last
	// break, and of how many it is not known.
	ends      map[string]int
	suspended map[string]bool
	// reset tells that what runs was made anew: what was suspended then is not known by events.
	guards map[string]*guard
	// breaks are the times at which something ended that may have taken published events along.
	breaks []time.Time
	// odd are tasks to which something was done that changes what they come to.
	odd map[string]string
	// stops are the moments at which everything was stopped.
	stopped bool
	// handed are the writes that the ledger was given and that did not reach the disk yet.
	handed map[*messages.LedgerExecute]bool
	// ledgerFails tells that the ledger fails, or is about to: what it was given is lost then.
	ledgerFails bool
	// gone are residents that people destroyed.
	gone map[string]bool
}

func newChecks(w *world) *checks {
	return &checks{
		w: w, ends: map[string]int{}, suspended: map[string]bool{}, guards: map[string]*guard{}, odd: map[string]string{}, gone: map[string]bool{},
		handed: map[*messages.LedgerExecute]bool{},
	}
}

func (c *checks) now() time.Time { return c.w.host.Now() }

// booted forgets what a process knew.
func (c *checks) booted() {
	if c.w.rec != nil {
		h := c.w.host
		c.w.rec.now = h.Now
	}
	clear(c.guards)
	clear(c.suspended)
	clear(c.handed)
	c.ledgerFails = false
}

// stoppedInOrder looks at a node that has stopped in order.
func (c *checks) stoppedInOrder() {
	if len(c.handed) > 0 && !c.ledgerFails && !c.w.disk.Low && !c.w.disk.Broken() {
		c.w.violate("stop", "%d writes that the ledger had taken are not on disk after an orderly stop", len(c.handed))
	}
	clear(c.handed)
	c.ledgerFails = false
	c.breaks = append(c.breaks, c.now()) // what was written last, nobody was left to hear of
}

// crashed notes that the process ended without saying what it had still to say.
func (c *checks) crashed(at time.Time) { c.breaks = append(c.breaks, at) }

// failing notes that an actor is about to fail.
func (c *checks) failing(path string) {
	if id, ok := taskOf(path); ok {
		if c.odd[id] == "" {
			c.odd[id] = "failed"
		}
	}
	c.ledgerFails = c.ledgerFails || path == ledger.Kind
}

func (c *checks) restarted(path string) {
	c.breaks = append(c.breaks, c.now())
	for p := range c.guards {
		if p == path || strings.HasPrefix(p, path+"/") {
			delete(c.guards, p)
			clear(c.suspended)
		}
	}
}

func (c *checks) ended(path string) {
	if strings.HasSuffix(path, "/scheduler") {
		delete(c.guards, path)
		c.breaks = append(c.breaks, c.now())
	}
}

// killed notes that a person stopped a turn.
func (c *checks) killed(path string) {
	if id, ok := taskOf(path); ok {
		c.odd[id] = "killed"
	}
}

func (c *checks) destroyed(agent string) { c.gone[agent] = true }

func taskOf(path string) (string, bool) {
	_, id, ok := strings.Cut(path, "/turn/")
	return id, ok
}

// answered looks at what a person was told about an input.
func (c *checks) answered(f *fate) {
	r := f.result
	if r.GetError() != nil || r.GetDuplicate() {
		return
	}
	if c.w.disk.Record(f.input.GetId()) == nil {
		c.w.violate("accepted", "%s was accepted and is not on disk", f.input.GetId())
	}
}

// stepped looks at a step of a machine.
func (c *checks) stepped(path, kind string, m kit.Machine, e kit.Event, effects []kit.Effect) {
	c.w.rec.step(path, e, effects)
	if c.w.seen != nil {
		c.w.seen[fmt.Sprintf("%T", e.Msg)]++
	}
	if x, ok := e.Msg.(*messages.LedgerExecute); ok && kind == ledger.Kind {
		c.handed[x] = true
	}
	if kind != scheduler.Kind {
		return
	}
	g := c.guards[path]
	if g == nil {
		g = newGuard(c, path)
		c.guards[path] = g
	}
	g.stepped(m, e, effects)
}

// step looks at what depends on time alone.
func (c *checks) step() {
	for _, g := range c.guards {
		g.overdue()
	}
}

// published looks at an event.
func (c *checks) published(_ string, e *messages.AgentEvent) {
	switch e.GetType() {
	case messages.EventType_EVENT_TYPE_AGENT_OUTPUT:
		if o := e.GetOutput(); o != nil && ownerless[o.GetChannel()] {
			c.w.outside.reached(o, false)
		}
	case messages.EventType_EVENT_TYPE_APPROVAL:
		c.w.asked(e.GetApproval())
	case messages.EventType_EVENT_TYPE_TASK:
		c.change(e)
	default:
	}
}

func (c *checks) change(e *messages.AgentEvent) {
	id, ch := e.GetTaskId(), e.GetTask()
	switch ch.GetChange() {
	case "ended":
		c.ends[id]++
		if c.ends[id] > 1 {
			c.w.violate("one end", "the end of %s was published %d times", id, c.ends[id])
		}
		t := c.w.disk.Record(id)
		if t.GetState() != messages.TaskState_TASK_STATE_ENDED {
			c.w.violate("one end", "the end of %s was published and is not on disk", id)
		} else if t.GetEnd() != ch.GetEnded().GetEnd() || t.GetReason() != ch.GetEnded().GetReason() {
			c.w.violate("one end", "%s ended %v (%s) on disk and %v (%s) for people", id, t.GetEnd(), t.GetReason(), ch.GetEnded().GetEnd(), ch.GetEnded().GetReason())
		}
		delete(c.suspended, id)
	case "suspended":
		if c.suspended[id] {
			c.w.violate("suspended = resumed", "%s was suspended twice and not resumed in between", id)
		}
		c.suspended[id] = true
	case "resumed":
		delete(c.suspended, id)
	}
}

// open names the tasks that have not ended.
func (c *checks) open() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks are open:", c.w.disk.Open())
	for _, r := range c.w.disk.Tasks() {
		if t := c.w.disk.Record(r.GetInput().GetId()); t.GetState() != messages.TaskState_TASK_STATE_ENDED {
			fmt.Fprintf(&b, " %s of %s %s", r.GetInput().GetId(), t.GetAgent(), strings.TrimPrefix(t.GetState().String(), "TASK_STATE_"))
		}
	}
	return b.String()
}

// final looks at what must be true when all has come to its end.
func (c *checks) final() {
	w := c.w
	if err := w.disk.Check(); err != nil {
		w.violate("journal", "%v", err)
	}
	for _, r := range w.disk.Tasks() {
		c.finalTask(r)
	}
	for id := range c.suspended {
		w.violate("suspended = resumed", "%s was suspended and neither resumed nor ended", id)
	}
	for _, f := range w.results {
		c.finalFate(f)
	}
	c.finalOutputs()
}

func (c *checks) finalTask(r *messages.InboxRecord) {
	w, id := c.w, r.GetInput().GetId()
	t := w.disk.Record(id)
	if t.GetEnd() == messages.End_END_UNSPECIFIED {
		w.violate("one end", "%s has no end", id)
		return
	}
	if c.ends[id] == 0 && !c.mayBeSilent(t) {
		w.violate("one end", "%s ended %v (%s) and nobody was told", id, t.GetEnd(), t.GetReason())
	}
	switch {
	case t.GetEnd() != messages.End_END_ANSWERED:
	case t.GetBy() == "":
		c.finalAnswer(r.GetInput(), t)
	case !w.outside.read[t.GetBy()][textOf(r.GetInput().GetParts())]:
		w.violate("steer", "%s joined %s and counts as answered, and the model never read it", id, t.GetBy())
	}
	c.finalEnd(r.GetInput(), t)
}

// mayBeSilent tells whether the word of an end may have been lost: it was on disk before something broke.
func (c *checks) mayBeSilent(t *messages.TaskRecord) bool {
	window := time.Second // between the end of a turn and the word of it
	if c.w.plan.has(doLow) || c.w.plan.has(doSync) {
		window = time.Minute
	}
	for _, b := range c.breaks {
		if d := b.UnixMicro() - t.GetEndedUs(); d >= 0 && d <= window.Microseconds() {
			return true
		}
	}
	return false
}

// finalAnswer compares an answer with the script: the final texts of the rounds behind the last tools, one for each time
// that text joined behind an answer.
func (c *checks) finalAnswer(in *messages.Input, t *messages.TaskRecord) {
	id := in.GetId()
	joined := 0
	for _, r := range c.w.disk.Tasks() {
		if c.w.disk.Record(r.GetInput().GetId()).GetBy() == id {
			joined++
		}
	}
	parts := strings.Split(t.GetText(), "\n\n")
	if len(parts) > joined+1 {
		c.w.violate("output", "%s was answered %q with %d inputs that joined", id, t.GetText(), joined)
	}
	s := scriptOf(c.w.plan.seed, id)
	n, most := min(len(s.rounds), int(c.w.plan.rounds)+1), int(c.w.plan.rounds)+1
	for k := 2; k < n && c.mayDeny(); k++ { // all its calls may have been denied, and then it answers
		if parts[0] == answer(id, k) {
			n = k
		}
	}
	for i, p := range parts {
		for s.at(n).empty && i < joined { // nothing was said, and then text joined
			n++
		}
		if p != answer(id, n) && !(n == most+1 && p == answer(id, most)) {
			c.w.violate("output", "%s was answered %q, wanted %q in part %d", id, t.GetText(), answer(id, n), i+1)
			return
		}
		n++
	}
}

// finalEnd compares how a task ended with its script, where nothing was done to it that changes that.
func (c *checks) finalEnd(in *messages.Input, t *messages.TaskRecord) {
	if t.GetEnd() != messages.End_END_FAILED && t.GetEnd() != messages.End_END_STOPPED {
		return
	}
	id, reason := in.GetId(), t.GetReason()
	if by := t.GetBy(); by != "" { // it ends with the turn that took it
		id = by
	}
	switch {
	case t.GetEnd() == messages.End_END_STOPPED:
		if !c.stopped && c.odd[id] != "killed" && !c.gone[t.GetAgent()] && t.GetBy() == "" {
			c.w.violate("end", "%s ended as stopped (%s) and nobody stopped it", id, reason)
		}
	case reason == "crash_loop":
		if t.GetStarts() < 3 {
			c.w.violate("end", "%s ended as crash_loop after %d starts", id, t.GetStarts())
		}
	case !slices.Contains(c.mayFail(id), reason):
		c.w.violate("end", "%s failed with %s (%s), which its script does not hold", id, reason, t.GetText())
	}
}

// mayFail lists the reasons for which a task may fail by its script.
func (c *checks) mayFail(id string) []string {
	var out []string
	for _, r := range scriptOf(c.w.plan.seed, id).rounds {
		switch {
		case r.failure != 0:
			out = append(out, strings.ToLower(strings.TrimPrefix(r.failure.String(), "ERROR_KIND_")))
		case r.silent:
			out = append(out, "timeout")
		case r.empty:
			out = append(out, "empty_answer", "tool_cap")
		case r.over > 0:
			out = append(out, "context_overflow")
		}
	}
	if c.mayDeny() {
		out = append(out, "tools_denied")
	}
	if len(c.breaks) > 0 { // an actor that was asked did not answer in time
		out = append(out, "timeout", "store_broken", "actor_gone", "busy")
	}
	if c.w.plan.has(doSync) {
		out = append(out, "store_broken")
	}
	return out
}

// mayDeny tells whether calls may be denied: by a rule, or because guard could not be asked.
func (c *checks) mayDeny() bool {
	return len(c.w.plan.rules) > 0 || slices.ContainsFunc(c.w.plan.actions, func(a action) bool { return a.path == "guard" })
}

func (p *plan) has(do verb) bool {
	return slices.ContainsFunc(p.actions, func(a action) bool { return a.do == do })
}

// finalFate compares what a person was told with what is on disk.
func (c *checks) finalFate(f *fate) {
	id := f.input.GetId()
	t := c.w.disk.Record(id)
	switch {
	case f.result == nil:
	case f.result.GetDuplicate():
		first := c.w.disk.Record(f.result.GetInputId())
		if first == nil {
			c.w.violate("accepted", "%s was called a duplicate of %s, which is not there", id, f.result.GetInputId())
		}
		if t != nil && f.result.GetInputId() != id {
			c.w.violate("accepted", "%s was called a duplicate and was accepted as well", id)
		}
	case f.result.GetError() != nil:
		code := f.result.GetError().GetCode()
		if t != nil && t.GetEnd() != messages.End_END_REFUSED && code != "store_broken" {
			c.w.violate("accepted", "%s was refused (%s) and ended %v (%s)", id, code, t.GetEnd(), t.GetReason())
		}
	case t == nil:
		c.w.violate("accepted", "%s was accepted and is lost", id)
	}
	if k := f.input.GetIdempotencyKey(); k != "" && t != nil {
		for _, o := range c.w.results {
			oid := o.input.GetId()
			if oid != id && o.input.GetIdempotencyKey() == k && o.input.GetPrincipal().GetId() == f.input.GetPrincipal().GetId() && c.w.disk.Record(oid) != nil {
				c.w.violate("idempotency", "%s and %s have the key %q of one principal and were both accepted", id, oid, k)
			}
		}
	}
}

// finalOutputs wants every intended output to have reached people, with the text that is on record.
func (c *checks) finalOutputs() {
	intents := map[string]*messages.OutputIntent{}
	for _, r := range c.w.disk.Outputs() {
		o := r.GetIntent()
		intents[o.GetOutputId()] = o
		if o.GetChannel() == "agents" || r.GetReceipt().GetError() != nil { // given up, and the model was told
			continue
		}
		if len(c.w.outside.sent[o.GetOutputId()]) == 0 {
			c.w.violate("reply", "output %s on %s never reached anybody", o.GetOutputId(), o.GetChannel())
		}
	}
	for id := range c.w.outside.sent {
		if intents[id] == nil {
			c.w.violate("reply", "output %s was sent without an intent", id)
		}
	}
	for _, r := range c.w.disk.Tasks() {
		in := r.GetInput()
		t := c.w.disk.Record(in.GetId())
		if t.GetEnd() != messages.End_END_ANSWERED || t.GetBy() != "" || t.GetText() == "" || in.GetChannel() == "agents" {
			continue
		}
		sent := c.w.outside.sent[in.GetId()+"/o1"]
		if len(sent) == 0 {
			c.w.violate("reply", "%s was answered and the answer reached nobody", in.GetId())
		} else if sent[0].text != t.GetText() {
			c.w.violate("reply", "%s was answered %q and people read %q", in.GetId(), t.GetText(), sent[0].text)
		}
	}
}

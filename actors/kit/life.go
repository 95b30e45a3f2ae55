package kit

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"homeagent/messages"
)

// hull is what the runtime takes for the actor. One serves all actors of a Runtime: it sees the runtime's lifecycle
// messages alone, everything else goes through the cell.
type hull struct{ rt *Runtime }

func (h *hull) Receive(ctx actor.Context) {
	c := h.rt.byPID(ctx.Self())
	if c == nil {
		return
	}
	switch ctx.Message().(type) {
	case *actor.Started:
		c.start()
	case *actor.Restarting:
		c.teardown()
	case *actor.Stopping:
		c.halting = true
		c.set(shut)
		c.become(phaseStopping)
	case *actor.Stopped:
		c.finish()
	}
}

// start makes a new incarnation and steps it with Started.
func (c *cell) start() {
	c.failed = false
	again := c.restarts.Load()
	c.become(phaseStarting)
	c.sh = &shell{c: c}
	c.fresh()
	c.sh.machine = c.newMachine()
	c.step(Event{Msg: Started{Self: c.self, Restarts: int(again), Failure: c.why()}})
	if c.phase.Load() == phaseStarting {
		c.become(phaseRunning)
	}
	if c.paused { // the restart has let the user lane go
		c.become(phasePaused)
		c.Mailbox.PostSystemMessage(&actor.SuspendMailbox{})
	}
	if again == 0 {
		return
	}
	if c.parent != nil {
		c.parent.Mailbox.PostUserMessage(&kidRestarted{kid: c, failure: c.why()})
	}
	c.rt.notice(Fact{Code: FactRestarted, Path: c.path(), Kind: c.row.kind, Failure: c.why()})
}

// teardown ends an incarnation before the next one. One that failed is not asked; one that a person restarts is.
func (c *cell) teardown() {
	c.become(phaseRestarting)
	if !c.failed {
		c.distress().why = ""
		c.farewell()
		c.failed = true
	}
	c.dispose()
	c.unset(ready)
	c.shown.Store(nil)
	c.restarts.Add(1)
	c.rt.counts.restarts.Add(1)
}

// farewell steps the machine with Stopping. A panic here ends nothing else: the actor is on its way out.
func (c *cell) farewell() {
	defer func() {
		if r := recover(); r != nil {
			c.noteFailure(r, nil)
		}
	}()
	if c.sh != nil && c.sh.machine != nil {
		c.fresh()
		c.step(Event{Msg: Stopping{}})
	}
}

// dispose ends the incarnation: timers, watches, workers, and what Props.Close holds.
func (c *cell) dispose() {
	defer func() {
		if r := recover(); r != nil {
			c.noteFailure(r, nil)
		}
	}()
	sh := c.sh
	c.sh = nil
	if sh == nil {
		return
	}
	if !sh.end(c.row.restart.StopTimeout) {
		c.rt.log.Error("workers did not end", slog.String("actor", c.path()),
			slog.Duration("stop_timeout", c.row.restart.StopTimeout))
	}
	if c.closer != nil {
		c.closer()
	}
}

// finish is the end: the children have ended, the name is free in the runtime.
func (c *cell) finish() {
	if !c.failed {
		c.farewell()
	}
	c.dispose()
	c.over = true
	c.unset(ready)
	c.become(phaseEnded)
	if t := c.trouble; t != nil {
		for _, item := range t.held {
			c.control.Add(-1)
			c.dead(item)
		}
		t.held = nil
	}
	c.rt.tellEnd(c)
	if c.parent == nil {
		c.rt.forget(c)
	}
	if c.failed || c.paused {
		c.Mailbox.PostSystemMessage(&actor.ResumeMailbox{}) // so that those who wait in it are told
	}
}

// beginStop ends the actor once its children have ended. They get the same order; what they tell last is still handled.
func (c *cell) beginStop(drain bool) {
	if c.over || c.halting {
		return
	}
	c.closing = true
	c.set(shut)
	c.become(phaseStopping)
	if c.kids+c.leaving == 0 || c.failed || c.paused {
		c.ctx().Stop(c.ctx().Self())
		return
	}
	for _, kid := range c.children() {
		kid.order(drain)
	}
}

// order posts a stop order.
func (c *cell) order(drain bool) {
	if drain {
		c.Mailbox.PostUserMessage(&stopOrder{drain: true})
		return
	}
	c.postControl(&stopOrder{})
}

// kidGone is called when the runtime tells that a child has ended. The machine is told behind everything that the child
// had sent.
func (c *cell) kidGone(kid *cell) {
	if kid == nil || kid.parent != c {
		return
	}
	c.kids--
	c.leaving++
	c.rt.forget(kid)
	c.Mailbox.PostUserMessage(&kidEnded{sh: c.sh, kid: kid})
}

func (c *cell) kidEnded(m *kidEnded) {
	c.leaving--
	if c.closing && c.kids+c.leaving == 0 {
		defer c.ctx().Stop(c.ctx().Self())
	}
	if m.kid.watched && c.sh != nil && m.sh == c.sh {
		c.step(Event{Msg: Ended{Who: m.kid.self, Name: m.kid.name(), Failure: m.kid.lost(), ByPerson: m.kid.is(byPerson)}})
	}
}

// children are those that the runtime knows of, also such as have just ended.
func (c *cell) children() []*cell {
	pids := c.ctx().Children() //nolint:forbidigo // on the actor's own goroutine, and not kept
	list := make([]*cell, 0, len(pids))
	for _, pid := range pids {
		if kid := c.rt.byPID(pid); kid != nil {
			list = append(list, kid)
		}
	}
	return list
}

// spawnKind performs a Spawn effect.
func (c *cell) spawnKind(f Spawn) *messages.Error {
	if c.is(shut) || c.rt.draining.Load() {
		return errStopping(c.path())
	}
	factory := c.rt.kind(f.Kind)
	if factory == nil {
		return errKind(f.Kind)
	}
	props, err := factory(f.Params)
	if err != nil {
		return AsError(CodeSpawnFailed, err)
	}
	if props.Kind == "" {
		props.Kind = f.Kind
	}
	_, refusal := c.spawn(f.Name, props, f.Watch)
	return refusal
}

// spawn starts a child; it is called on the parent's goroutine.
func (c *cell) spawn(name string, props Props, watched bool) (*cell, *messages.Error) {
	if !goodName(name) {
		return nil, &messages.Error{
			Code: CodeBadName, Message: fmt.Sprintf("%q is no name of an actor", name),
			Hint: "use segments without spaces, divided by single slashes", Details: map[string]string{"name": name},
		}
	}
	if props.New == nil {
		return nil, &messages.Error{Code: CodeSpawnFailed, Message: fmt.Sprintf("kind %q makes no machine", props.Kind)}
	}
	kid := c.rt.newCell(c, props)
	kid.watched = watched
	path := name
	if c.path() != "" {
		path = c.path() + "/" + name
	}
	if c.rt.table.get(path) != nil || c.rt.embody(c, kid, name) != nil {
		return nil, &messages.Error{
			Code: CodeNameTaken, Message: fmt.Sprintf("an actor %q is running already", path),
			Details: map[string]string{"path": path},
		}
	}
	c.kids++
	return kid, nil
}

func goodName(name string) bool {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment == "." || segment == ".." || segment[0] == '$' {
			return false
		}
	}
	return true
}

// noteFailure counts and logs a failure and returns its text. stack is nil when the origin is not known.
func (c *cell) noteFailure(reason any, stack []byte) string {
	if p, ok := reason.(*workerPanic); ok {
		stack = p.stack
	}
	text := shorten(fmt.Sprint(reason))
	c.failure.Store(&text)
	c.rt.counts.failures.Add(1)
	c.rt.log.Error("actor failed", slog.String("actor", c.path()), slog.String("kind", c.row.kind),
		slog.String("reason", text), slog.String("message", c.current()), slog.String("stack", string(stack)))
	return text
}

// maxFailure bounds the text of a failure where people see it; the log has the whole stack.
const maxFailure = 400

func shorten(s string) string {
	if len(s) <= maxFailure {
		return s
	}
	return strings.ToValidUTF8(s[:maxFailure], "") + "…"
}

// current names the type of the message in hand, or of the last one; empty when the actor was idle for long.
func (c *cell) current() string {
	track := c.track.Load()
	if track == nil {
		return ""
	}
	t, _ := track.cur.Load().(reflect.Type)
	if t == nil {
		return ""
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

package kit

import (
	"math"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// cell is one actor as kit sees it, over all its incarnations. It is the mailbox of the runtime's actor: the stock one
// is embedded, and kit stands between it and the runtime's context, as invoker and as dispatcher. Thus one place sees
// every message, decides on its lane and keeps the figures; ordinary messages go from here straight to the machine, and
// the runtime's own messages go on to its context.
//
// Fields without a note belong to the actor's goroutine.
type cell struct {
	actor.Mailbox // the stock mailbox
	inner         actor.MessageInvoker

	rt         *Runtime       // fixed
	parent     *cell          // fixed; nil for the root
	row        *row           // fixed, shared
	newMachine func() Machine // fixed
	performer  func(Shell, Effect)
	closer     func()
	self       *messages.Address // fixed, frozen

	sh      *shell   // the incarnation; nil between two and after the last
	trouble *trouble // nil while nothing failed; see distress
	// record belongs to the parent's goroutine, which decides about restarts; nil while nothing failed. So does watched:
	// whether the parent wants Ended.
	record  atomic.Pointer[record]
	watched bool

	failed  bool  // a restart is pending: the mailbox is suspended, control is held
	paused  bool  // a person holds the user lane
	closing bool  // a stop is under way; children end first
	halting bool  // the runtime's own stop has come: no restart any more
	over    bool  // ended
	kids    int32 // children that have not ended
	leaving int32 // children that have ended and of which the machine was not told yet

	// The rest is read by other goroutines.

	next     atomic.Pointer[cell]   // in the table
	track    atomic.Pointer[track]  // while the sweeper looks at it
	shown    atomic.Pointer[shown]  // what the machine says about itself, or nil
	failure  atomic.Pointer[string] // last failure, or nil
	handled  atomic.Uint64
	since    atomic.Int64  // Unix microseconds
	mean     atomic.Uint32 // bits of a float32, microseconds
	refused  atomic.Uint32
	restarts atomic.Uint32
	control  atomic.Int32 // control items posted and not handled
	running  atomic.Int32 // activations of the mailbox at work: 0 or 1, for an instant 2
	phase    atomic.Int32
	flags    atomic.Uint32
}

// Flags of a cell.
const (
	ready    uint32 = 1 << iota // it has performed Ready
	shut                        // it takes no new children: a stop is under way
	gone                        // it has ended; what comes is a dead letter
	byPerson                    // a person has ordered its stop
)

func (c *cell) is(flag uint32) bool { return c.flags.Load()&flag != 0 }

// set sets a flag and reports whether it was not set before.
func (c *cell) set(flag uint32) bool { return c.flags.Or(flag)&flag == 0 }

func (c *cell) unset(flag uint32) { c.flags.And(^flag) }

// trouble is what an actor keeps once it has failed.
type trouble struct {
	why  string // what ended the earlier incarnation
	held []any  // control items that came while a restart was pending
}

// record is what a parent keeps of a child that has failed.
type record struct {
	failures []time.Time            // within the period of its row
	lost     atomic.Pointer[string] // why it was given up; its own end reads it too
}

func (c *cell) distress() *trouble {
	if c.trouble == nil {
		c.trouble = &trouble{}
	}
	return c.trouble
}

func (c *cell) why() string {
	if c.trouble == nil {
		return ""
	}
	return c.trouble.why
}

func (c *cell) lost() string {
	r := c.record.Load()
	if r == nil {
		return ""
	}
	why := r.lost.Load()
	if why == nil {
		return ""
	}
	return *why
}

// ctx is the runtime's context of this actor.
func (c *cell) ctx() actor.Context { return c.inner.(actor.Context) }

// name is the path below the parent.
func (c *cell) name() string {
	if c.parent == nil || c.parent.self.Path == "" {
		return c.self.Path
	}
	return c.self.Path[len(c.parent.self.Path)+1:]
}

// shown is what the machine says about itself.
type shown struct{ word, summary string }

// phases of an actor as kit sees them.
const (
	phaseStarting int32 = iota
	phaseRunning
	phasePaused
	phaseRestarting
	phaseStopping
	phaseEnded
)

var phaseWords = [...]string{"starting", "running", "paused", "restarting", "stopping", "ended"}

func (c *cell) path() string { return c.self.Path }

// become moves the actor to another phase and notes when.
func (c *cell) become(phase int32) {
	if c.phase.Swap(phase) != phase {
		c.since.Store(c.rt.now().UnixMicro())
	}
}

// RegisterHandlers is called once by the runtime at spawn, with its context as the invoker, after the name was found
// free. From here on the mailbox can take messages, so the cell is put into the table.
func (c *cell) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	c.inner = invoker
	path, _ := strings.CutPrefix(c.ctx().Self().GetId(), rootID)
	path, _ = strings.CutPrefix(path, "/")
	c.self = &messages.Address{Node: c.rt.cfg.Node, Path: path, Epoch: c.rt.cfg.Epoch}
	c.Mailbox.RegisterHandlers(c, c)
	c.rt.table.put(c)
}

// Throughput is how many messages are handled before other goroutines get their turn.
func (c *cell) Throughput() int { return 300 }

// Schedule starts an activation of the mailbox; it ends when the mailbox is empty or suspended.
func (c *cell) Schedule(fn func()) { go c.run(fn) }

func (c *cell) run(fn func()) {
	c.running.Add(1)
	c.rt.sweep.rouse(c)
	c.fresh()
	fn()
	c.running.Add(-1)
}

// timed says which messages are timed: 1 of 16, because two readings of the clock cost as much as all else here.
const timed = 15

// InvokeUserMessage is called by the stock mailbox for each item of the user lane.
func (c *cell) InvokeUserMessage(item any) {
	if c.handled.Add(1)&timed != 0 {
		c.user(item)
		return
	}
	start := c.rt.now()
	if t := c.track.Load(); t != nil {
		t.now, t.stale = start, false
	}
	c.user(item)
	c.note(c.rt.since(start))
}

// workerFailed fails the actor whose worker panicked. A worker of an earlier incarnation fails nothing any more.
func (c *cell) workerFailed(m *crashed) {
	if c.sh == nil || m.sh != c.sh {
		c.noteFailure(m.p, nil)
		return
	}
	c.sh.forget(m.w)
	panic(m.p)
}

// note takes one sample of the handling time into the running mean.
func (c *cell) note(d time.Duration) {
	us := float32(d) / 1e3
	if mean := math.Float32frombits(c.mean.Load()); mean != 0 {
		us = mean + (us-mean)/8
	}
	c.mean.Store(math.Float32bits(us))
}

func (c *cell) user(item any) {
	if c.over {
		c.dead(item)
		return
	}
	switch m := item.(type) {
	case *envelope:
		c.step(Event{From: m.from, Corr: m.corr, Msg: m.msg})
	case *private:
		c.stepPrivate(m)
	case *fired:
		c.stepFired(m)
	case *crashed:
		c.workerFailed(m)
	case *kidEnded:
		c.kidEnded(m)
	case *kidRestarted:
		if !m.kid.is(gone) {
			c.step(Event{Msg: Restarted{Who: m.kid.self, Name: m.kid.name(), Failure: m.failure}})
		}
	case *stopOrder:
		c.beginStop(m.drain)
	case *actor.PoisonPill:
		c.inner.InvokeUserMessage(m)
	case proto.Message:
		c.step(Event{Msg: m})
	default:
		c.inner.InvokeUserMessage(item)
	}
}

// InvokeSystemMessage is called by the stock mailbox for each item of the system lane: the runtime's own messages and
// our control lane.
func (c *cell) InvokeSystemMessage(item any) {
	switch m := item.(type) {
	case *actor.Restart:
		if c.halting || c.over {
			return // it would undo the stop
		}
		c.inner.InvokeSystemMessage(m)
	case *actor.Stop:
		c.halting = true
		c.inner.InvokeSystemMessage(m)
	case *actor.Terminated:
		c.kidGone(c.rt.byPID(m.Who)) // before a restart that waits for it spawns it anew
		c.inner.InvokeSystemMessage(m)
	case *envelope, *stopOrder, *exec:
		c.countControl()
		c.controlItem(m)
		return
	default:
		if m, ok := item.(proto.Message); ok && isControl(m) && !isRuntime(item) {
			c.countControl()
			c.control.Add(1)
			c.controlItem(&envelope{msg: m}) // from another node, by the runtime's own routing
			return
		}
		c.inner.InvokeSystemMessage(item)
	}
	c.release()
}

func (c *cell) countControl() {
	c.handled.Add(1)
	if t := c.track.Load(); t != nil {
		t.controls.Add(1)
	}
}

// isRuntime tells the runtime's own system messages from ours.
func isRuntime(item any) bool {
	switch item.(type) {
	case *actor.Started, *actor.Stop, *actor.Watch, *actor.Unwatch, *actor.Terminated, *actor.Failure, *actor.Restart:
		return true
	default:
		return false
	}
}

func (c *cell) controlItem(item any) {
	if _, stop := item.(*stopOrder); c.failed && !c.over && !stop {
		c.distress().held = append(c.trouble.held, item) // the incarnation that failed must not see it
		return
	}
	c.control.Add(-1)
	if c.over {
		c.dead(item)
		return
	}
	switch m := item.(type) {
	case *envelope:
		c.controlMessage(m)
	case *stopOrder:
		c.beginStop(m.drain)
	case *exec:
		m.run(c)
	}
}

func (c *cell) controlMessage(m *envelope) {
	switch m.msg.(type) {
	case *messages.Inspect:
		c.inspect(m)
	case *messages.PauseActor:
		c.pause()
		c.respond(m, &messages.Ok{})
	case *messages.UnpauseActor:
		c.unpause()
		c.respond(m, &messages.Ok{})
	default:
		c.step(Event{From: m.from, Corr: m.corr, Msg: m.msg})
	}
}

// respond answers an envelope in this actor's name.
func (c *cell) respond(m *envelope, answer proto.Message) {
	if m.from != nil {
		c.rt.reply(c, m.from, m.corr, answer)
	}
}

// release hands on the control items that were held, once a new incarnation stands. Each is taken off before it is
// handled: when it makes the actor fail again, the others wait on.
func (c *cell) release() {
	for t := c.trouble; t != nil && len(t.held) > 0 && !c.failed; {
		item := t.held[0]
		t.held = t.held[1:]
		c.controlItem(item)
	}
}

// EscalateFailure is called by the stock mailbox, still inside its recover, so the stack has the place of the panic.
func (c *cell) EscalateFailure(reason, item any) {
	text := c.noteFailure(reason, debug.Stack())
	if c.parent == nil {
		return // the root goes on; nothing of a machine runs in it
	}
	c.failed = true
	c.distress().why = text
	c.become(phaseRestarting)
	c.inner.EscalateFailure(reason, item)
}

// pause holds the user lane for a person; timers and results of workers wait as well.
func (c *cell) pause() {
	if c.paused {
		return
	}
	c.paused = true
	c.become(phasePaused)
	c.Mailbox.PostSystemMessage(&actor.SuspendMailbox{})
}

func (c *cell) unpause() {
	if !c.paused {
		return
	}
	c.paused = false
	c.become(phaseRunning)
	c.Mailbox.PostSystemMessage(&actor.ResumeMailbox{})
}

// dead counts an item that an ended actor was left with, and tells those who wait for an answer.
func (c *cell) dead(item any) {
	switch m := item.(type) {
	case *envelope:
		c.rt.deadLetter(c.path(), m.msg)
		if m.corr != "" && m.from != nil {
			c.rt.reply(c, m.from, m.corr, errGone(c.path()))
		}
	case *exec:
		m.drop()
	case *crashed:
		c.noteFailure(m.p, nil)
	case *private, *fired, *kidEnded, *kidRestarted, *stopOrder:
		// They were for an incarnation that is no more.
	case proto.Message:
		if !isRuntime(item) {
			c.rt.deadLetter(c.path(), m)
		}
	}
}

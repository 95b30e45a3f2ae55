package host

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

type itemKind int

const (
	itMessage itemKind = iota
	itPrivate          // an event of the actor's own
	itFired            // a timer ran down
	itKidEnded
	itKidRestarted
	itStopOrder
	// The rest is in the control lane only.
	itStarted
	itHalt // the end itself, once children have ended
	itKidGone
	itFailure
	itRestart
)

// item is what lies in a mailbox.
type item struct {
	kind itemKind
	from *messages.Address
	corr string
	msg  any
	sh   *shell  // the incarnation that it is meant for
	w    *worker // the worker that sent it
	last bool
	kid  *cell
	key  string
	seq  uint64
}

// lane is a queue.
type lane struct {
	list []item
	head int
}

func (l *lane) len() int { return len(l.list) - l.head }

func (l *lane) push(i item) { l.list = append(l.list, i) }

func (l *lane) pop() item {
	i := l.list[l.head]
	l.list[l.head] = item{}
	l.head++
	if l.head == len(l.list) {
		l.list, l.head = l.list[:0], 0
	}
	return i
}

// cell is one actor over all its incarnations; see actors/kit.
type cell struct {
	h      *Host
	parent *cell
	name   string
	path   string
	self   *messages.Address
	props  kit.Props

	control, user lane
	sh            *shell
	index         int // in Host.ready, or -1

	children []*cell
	watchers []watcher
	watched  bool
	leaving  int
	failures []time.Time
	why      string // what ended the earlier incarnation
	lost     string // why it was given up
	held     []item
	restarts int

	failed, restarting, paused, closing, halting, over, gone, shut, ordered, byPerson, ready, doomed bool
}

type watcher struct {
	c  *cell
	sh *shell
}

// injected is the panic that Fail asks for.
type injected struct{}

func (injected) String() string { return "failed on purpose" }

func (h *Host) spawn(parent *cell, name string, props kit.Props, watched bool) (*cell, *messages.Error) {
	if name == "" || strings.ContainsAny(name, " $") || props.New == nil {
		return nil, &messages.Error{Code: kit.CodeBadName, Message: fmt.Sprintf("%q is no name of an actor", name)}
	}
	path := name
	if parent != nil {
		path = parent.path + "/" + name
	}
	if h.cells[path] != nil {
		return nil, &messages.Error{Code: kit.CodeNameTaken, Message: fmt.Sprintf("an actor %q is running already", path)}
	}
	props.Restart, props.Limits = normal(props.Restart), bounds(props.Limits)
	c := &cell{
		h: h, parent: parent, name: name, path: path, props: props, index: -1, watched: watched,
		self: &messages.Address{Node: node, Path: path, Epoch: h.opt.Epoch},
	}
	h.cells[path] = c
	if parent != nil {
		parent.children = append(parent.children, c)
	}
	c.pushControl(item{kind: itStarted})
	return c, nil
}

func normal(r kit.Restart) kit.Restart {
	if r.Period <= 0 {
		r.Period = time.Minute
	}
	if r.Backoff <= 0 {
		r.Backoff = 50 * time.Millisecond
	}
	if r.MaxBackoff <= 0 {
		r.MaxBackoff = 10 * time.Second
	}
	return r
}

func bounds(l kit.Limits) kit.Limits {
	if l.Soft <= 0 {
		l.Soft = 4096
	}
	if l.Hard <= 0 {
		l.Hard = 16384
	}
	return l
}

func (c *cell) pushControl(i item) { c.control.push(i); c.settle() }
func (c *cell) pushUser(i item)    { c.user.push(i); c.settle() }

// settle enters the cell among those with something to do, or takes it out.
func (c *cell) settle() {
	h := c.h
	if h.gone {
		return
	}
	able := c.control.len() > 0 || c.user.len() > 0 && (c.over || !c.failed && !c.restarting && !c.paused)
	switch {
	case able && c.index < 0:
		c.index = len(h.ready)
		h.ready = append(h.ready, c)
	case !able && c.index >= 0:
		last := h.ready[len(h.ready)-1]
		h.ready[c.index], last.index = last, c.index
		h.ready = h.ready[:len(h.ready)-1]
		c.index = -1
	}
}

// next handles one item, control first.
func (c *cell) next() {
	if c.control.len() > 0 {
		c.handleControl(c.control.pop())
		c.release()
		return
	}
	if c.user.len() > 0 {
		c.handleUser(c.user.pop())
	}
}

func (c *cell) handleControl(i item) {
	switch i.kind {
	case itStarted:
		c.start()
	case itHalt:
		c.halt()
	case itKidGone:
		c.kidGone(i.kid)
	case itFailure:
		c.h.decide(i.kid)
	case itRestart:
		if !c.halting && !c.over {
			c.teardown()
		}
	case itStopOrder:
		c.beginStop(false)
	default:
		switch {
		case c.over:
			c.dead(i)
		case c.failed:
			c.held = append(c.held, i)
		default:
			c.controlMessage(i)
		}
	}
}

func (c *cell) controlMessage(i item) {
	switch i.msg.(type) {
	case *messages.PauseActor:
		c.paused = true
		c.h.reply(c, i.from, i.corr, &messages.Ok{})
	case *messages.UnpauseActor:
		c.paused = false
		c.h.reply(c, i.from, i.corr, &messages.Ok{})
	default:
		c.step(kit.Event{From: i.from, Corr: i.corr, Msg: i.msg})
	}
}

// release hands on the control items that were held while a restart was pending.
func (c *cell) release() {
	for len(c.held) > 0 && !c.failed && !c.restarting {
		i := c.held[0]
		c.held = c.held[1:]
		c.handleControl(i)
	}
}

func (c *cell) handleUser(i item) {
	if c.over {
		c.dead(i)
		return
	}
	switch i.kind {
	case itMessage:
		c.step(kit.Event{From: i.from, Corr: i.corr, Msg: i.msg})
	case itPrivate:
		c.private(i)
	case itFired:
		c.fired(i)
	case itKidEnded:
		c.kidEnded(i)
	case itKidRestarted:
		if !i.kid.gone {
			c.step(kit.Event{Msg: kit.Restarted{Who: i.kid.self, Name: i.kid.name, Failure: i.corr}})
		}
	case itStopOrder:
		c.beginStop(true)
	default:
	}
}

func (c *cell) private(i item) {
	if c.sh == nil || i.sh != c.sh {
		return
	}
	if i.w != nil && i.w.cancelled {
		return
	}
	switch v := i.msg.(type) {
	case nil:
	case kit.Event:
		c.step(v)
	case ended:
		for k, w := range c.sh.watching {
			if w == v.c {
				c.sh.watching = append(c.sh.watching[:k:k], c.sh.watching[k+1:]...)
				c.step(kit.Event{Msg: v.e})
				return
			}
		}
	default:
		c.step(kit.Event{Msg: v})
	}
}

// ended is the Ended of a watched actor.
type ended struct {
	c *cell
	e kit.Ended
}

func (c *cell) fired(i item) {
	if c.sh == nil || i.sh != c.sh {
		return
	}
	t := c.sh.timers[i.key]
	if t == nil || t.seq != i.seq {
		return
	}
	delete(c.sh.timers, i.key)
	c.step(kit.Event{Msg: t.msg})
}

func (c *cell) dead(i item) {
	if i.kind == itMessage && i.corr != "" && i.from != nil {
		c.h.reply(c, i.from, i.corr, errGone(c.path))
	}
}

// step gives an event to the machine and performs what it wants.
func (c *cell) step(e kit.Event) {
	sh := c.sh
	if sh == nil {
		m, _ := e.Msg.(proto.Message)
		c.dead(item{from: e.From, corr: e.Corr, msg: m})
		return
	}
	h := c.h
	h.steps++
	effects, ok := c.try(sh, e)
	if !ok {
		return
	}
	if h.obs.Stepped != nil {
		h.obs.Stepped(c.path, c.props.Kind, sh.machine, e, effects)
	}
	for _, f := range effects {
		sh.perform(f)
	}
}

// try steps the machine; a panic fails the actor.
func (c *cell) try(sh *shell, e kit.Event) (effects []kit.Effect, ok bool) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		ok = false
		if _, wanted := r.(injected); !wanted && c.h.obs.Panicked != nil {
			c.h.obs.Panicked(c.path, r, debug.Stack())
		}
		c.escalate(fmt.Sprint(r))
	}()
	if c.h.obs.Stepping != nil {
		c.h.obs.Stepping(c.path, c.props.Kind, e)
	}
	if c.doomed {
		c.doomed = false
		panic(injected{})
	}
	return sh.machine.Step(c.h.now, e), true
}

package host

import (
	"context"
	"time"

	"homeagent/actors/kit"
)

// start makes a new incarnation.
func (c *cell) start() {
	if c.halting || c.over {
		return
	}
	c.failed = false
	c.sh = &shell{c: c}
	m := c.props.New()
	if c.h.opt.Wrap != nil {
		m = c.h.opt.Wrap(c.props.Kind, m)
	}
	c.sh.machine = m
	c.step(kit.Event{Msg: kit.Started{Self: c.self, Restarts: c.restarts, Failure: c.why}})
	if c.restarts == 0 {
		return
	}
	if c.parent != nil {
		c.parent.pushUser(item{kind: itKidRestarted, kid: c, corr: c.why})
	}
	if c.h.obs.Restarted != nil {
		c.h.obs.Restarted(c.path, c.why)
	}
}

// escalate suspends the actor that failed and has its parent decide.
func (c *cell) escalate(why string) {
	c.failed, c.why = true, why
	if c.parent == nil {
		c.h.decide(c)
		return
	}
	c.parent.pushControl(item{kind: itFailure, kid: c})
}

// decide is the one supervisor strategy: by the row of the actor that failed.
func (h *Host) decide(c *cell) {
	if c.gone {
		return
	}
	p := c.parent
	if c.shut || p != nil && (p.closing || p.failed) {
		c.pushControl(item{kind: itHalt})
		return
	}
	row := &c.props.Restart
	kept := c.failures[:0]
	for _, t := range c.failures {
		if h.now.Sub(t) < row.Period {
			kept = append(kept, t)
		}
	}
	c.failures = append(kept, h.now)
	if n := len(c.failures); n <= row.Intensity {
		d := row.Backoff
		for i := 1; i < n && d < row.MaxBackoff; i++ {
			d *= 2
		}
		d = min(d, row.MaxBackoff)
		h.at(h.now.Add(d), func() {
			if !c.gone {
				c.pushControl(item{kind: itRestart})
			}
		})
		return
	}
	c.failures = nil
	if row.Escalate && p != nil {
		p.escalate(c.name + ": " + c.why)
		return
	}
	c.lost = c.why
	c.pushControl(item{kind: itHalt})
}

// teardown ends an incarnation before the next one; children end in between.
func (c *cell) teardown() {
	if !c.failed {
		c.why = ""
		c.farewell()
		c.failed = true
	}
	c.dispose()
	c.ready = false
	c.restarts++
	c.restarting = true
	c.haltChildren()
	c.proceed()
}

// proceed goes on with a restart or an end once no child is left.
func (c *cell) proceed() {
	if len(c.children) > 0 {
		return
	}
	switch {
	case c.halting:
		c.finish()
	case c.restarting:
		c.restarting = false
		c.start()
	}
}

func (c *cell) haltChildren() {
	for _, kid := range c.children {
		kid.pushControl(item{kind: itHalt})
	}
}

// halt is the runtime's stop.
func (c *cell) halt() {
	if c.halting || c.over {
		return
	}
	c.halting, c.shut, c.restarting = true, true, false
	c.haltChildren()
	c.proceed()
}

// order posts a stop order.
func (c *cell) order(drain bool) {
	if drain {
		c.pushUser(item{kind: itStopOrder})
		return
	}
	c.pushControl(item{kind: itStopOrder})
}

func (c *cell) beginStop(drain bool) {
	if c.over || c.halting {
		return
	}
	c.closing, c.shut = true, true
	if len(c.children)+c.leaving == 0 || c.failed || c.paused {
		c.pushControl(item{kind: itHalt})
		return
	}
	for _, kid := range c.children {
		if !kid.gone {
			kid.order(drain)
		}
	}
}

// farewell steps the machine with Stopping; a failure changes nothing any more.
func (c *cell) farewell() {
	if c.sh == nil {
		return
	}
	failed, why := c.failed, c.why
	c.doomed = false
	func() {
		defer func() { _ = recover() }()
		effects := c.sh.machine.Step(c.h.now, kit.Event{Msg: kit.Stopping{}})
		c.h.steps++
		if c.h.obs.Stepped != nil {
			c.h.obs.Stepped(c.path, c.props.Kind, c.sh.machine, kit.Event{Msg: kit.Stopping{}}, effects)
		}
		for _, f := range effects {
			c.sh.perform(f)
		}
	}()
	c.failed, c.why = failed, why
}

var cancelled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// dispose ends timers, watches and workers. Workers are waited for: what they do is done before the next incarnation.
func (c *cell) dispose() {
	sh := c.sh
	c.sh = nil
	if sh == nil {
		return
	}
	sh.ended = true
	for _, t := range sh.timers {
		c.h.drop(t.entry)
	}
	for _, w := range sh.watching {
		w.unwatch(c)
	}
	for _, w := range sh.workers {
		if !w.done {
			w.done = true
			c.h.drop(w.entry)
			w.fn(cancelled, func(any) {})
		}
	}
	if c.props.Close != nil {
		c.props.Close()
	}
}

// finish is the end.
func (c *cell) finish() {
	if !c.failed {
		c.farewell()
	}
	c.dispose()
	c.over, c.gone, c.ready = true, true, false
	h := c.h
	h.fates[c.path] = c.lost
	for _, w := range c.watchers {
		w.c.pushUser(item{kind: itPrivate, sh: w.sh, msg: ended{c, kit.Ended{Who: c.self, Failure: c.lost, ByPerson: c.byPerson}}})
	}
	c.watchers = nil
	for _, i := range c.held {
		c.dead(i)
	}
	c.held = nil
	if c.parent != nil {
		c.parent.pushControl(item{kind: itKidGone, kid: c})
	} else {
		h.forget(c)
	}
	if h.obs.Ended != nil {
		h.obs.Ended(c.path, c.lost)
	}
	c.settle()
}

func (h *Host) forget(c *cell) {
	if h.cells[c.path] == c {
		delete(h.cells, c.path)
	}
}

// kidGone frees the name of a child; the machine is told behind everything that the child had sent.
func (c *cell) kidGone(kid *cell) {
	for i, k := range c.children {
		if k == kid {
			c.children = append(c.children[:i:i], c.children[i+1:]...)
			break
		}
	}
	c.leaving++
	c.h.forget(kid)
	c.pushUser(item{kind: itKidEnded, sh: c.sh, kid: kid})
	c.proceed()
}

func (c *cell) kidEnded(i item) {
	c.leaving--
	if i.kid.watched && c.sh != nil && i.sh == c.sh {
		c.step(kit.Event{Msg: kit.Ended{Who: i.kid.self, Name: i.kid.name, Failure: i.kid.lost, ByPerson: i.kid.byPerson}})
	}
	if c.closing && len(c.children)+c.leaving == 0 {
		c.pushControl(item{kind: itHalt})
	}
}

func (c *cell) unwatch(by *cell) {
	for i, w := range c.watchers {
		if w.c == by {
			c.watchers = append(c.watchers[:i:i], c.watchers[i+1:]...)
			return
		}
	}
}

// timer is a running After.
type timer struct {
	seq   uint64
	msg   any
	entry *entry
}

// worker is one running Go.
type worker struct {
	key       string
	fn        func(ctx context.Context, emit func(any)) any
	entry     *entry
	cancelled bool
	done      bool
}

// workTime is how long a worker takes.
func (h *Host) workTime() time.Duration {
	if h.rng.IntN(50) == 0 {
		return time.Duration(h.rng.IntN(400)) * time.Millisecond
	}
	return time.Duration(20+h.rng.IntN(2000)) * time.Microsecond
}

package host

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// shell is one incarnation: its machine, and what ends with it. Performers of private effects see it as a kit.Shell.
type shell struct {
	c        *cell
	machine  kit.Machine
	timers   map[string]*timer
	seq      uint64
	watching []*cell
	workers  []*worker
	ended    bool
}

var _ kit.Shell = (*shell)(nil)

// Self implements kit.Shell.
func (sh *shell) Self() *messages.Address { return sh.c.self }

// Now implements kit.Shell.
func (sh *shell) Now() time.Time { return sh.c.h.now }

// Log implements kit.Shell.
func (sh *shell) Log() *slog.Logger { return quiet }

// Tell implements kit.Shell.
func (sh *shell) Tell(to *messages.Address, m proto.Message) *messages.Error {
	return sh.send(to, "", m)
}

// Post implements kit.Shell.
func (sh *shell) Post(v any) bool {
	if sh.ended || sh.c.gone {
		return false
	}
	sh.c.pushUser(item{kind: itPrivate, sh: sh, msg: v})
	return true
}

// Go implements kit.Shell. The worker does all that it does at one moment between now and its result.
func (sh *shell) Go(key string, _ time.Duration, fn func(ctx context.Context, emit func(any)) any) {
	h := sh.c.h
	w := &worker{key: key, fn: fn}
	sh.workers = append(sh.workers, w)
	w.entry = h.at(h.now.Add(h.workTime()), func() { sh.work(w) })
}

func (sh *shell) work(w *worker) {
	if w.done {
		return
	}
	w.done = true
	ctx := context.Background()
	if w.cancelled {
		ctx = cancelled
	}
	for i, o := range sh.workers {
		if o == w {
			sh.workers = append(sh.workers[:i:i], sh.workers[i+1:]...)
			break
		}
	}
	v := w.fn(ctx, func(v any) {
		if v != nil {
			sh.c.pushUser(item{kind: itPrivate, sh: sh, w: w, msg: v})
		}
	})
	if sh.c.h.gone {
		return // the process ended while it worked
	}
	sh.c.pushUser(item{kind: itPrivate, sh: sh, w: w, msg: v, last: true})
}

// CancelWork implements kit.Shell.
func (sh *shell) CancelWork(key string) {
	for _, w := range sh.workers {
		if w.key == key {
			w.cancelled = true
		}
	}
}

func (sh *shell) send(to *messages.Address, corr string, m proto.Message) *messages.Error {
	c, err := sh.c.h.find(to)
	if err != nil {
		return err
	}
	return c.deliver(sh.c.self, corr, m)
}

type controlMessage interface{ SystemMessage() }

// deliver puts a message into the mailbox, through admission.
func (c *cell) deliver(from *messages.Address, corr string, m proto.Message) *messages.Error {
	i := item{kind: itMessage, from: from, corr: corr, msg: m}
	if _, control := m.(controlMessage); control {
		c.pushControl(i)
		return nil
	}
	depth := c.user.len()
	if depth >= c.props.Limits.Soft && (corr != "" || depth >= c.props.Limits.Hard) {
		return &messages.Error{Code: kit.CodeBusy, Message: fmt.Sprintf("%q has %d messages waiting and takes no more", c.path, depth)}
	}
	c.pushUser(i)
	return nil
}

// reply answers in the name of an actor; replies pass admission always.
func (h *Host) reply(from *cell, to *messages.Address, corr string, m proto.Message) {
	if to == nil {
		return
	}
	if to.GetPath() == AskPath {
		if to.GetEpoch() == h.opt.Epoch && h.obs.Answered != nil {
			h.obs.Answered(corr, m)
		}
		return
	}
	c, err := h.find(to)
	if err != nil {
		return
	}
	i := item{kind: itMessage, from: from.self, corr: corr, msg: m}
	if _, control := m.(controlMessage); control {
		c.pushControl(i)
		return
	}
	c.pushUser(i)
}

func (sh *shell) perform(f kit.Effect) {
	c := sh.c
	switch f := f.(type) {
	case kit.Send:
		sh.performSend(f)
	case kit.Reply:
		c.h.reply(c, f.To, f.Corr, f.Msg)
	case kit.Publish:
		if f.Event.AtUs == 0 {
			f.Event.AtUs = c.h.now.UnixMicro()
		}
		if c.h.obs.Published != nil {
			c.h.obs.Published(c.path, f.Event)
		}
	case kit.After:
		sh.after(f)
	case kit.CancelAfter:
		sh.cancelAfter(f.Key)
	case kit.Spawn:
		if err := sh.spawnKind(f); err != nil {
			sh.Post(kit.Fault{Effect: f, Err: err})
		}
	case kit.Stop:
		if who, err := c.h.find(f.Who); err == nil {
			who.order(f.Drain)
		}
	case kit.Watch:
		sh.watch(f.Who)
	case kit.Unwatch:
		sh.unwatch(f.Who)
	case kit.Ready:
		if !c.ready {
			c.ready = true
			if c.h.obs.Ready != nil {
				c.h.obs.Ready(c.path)
			}
		}
	case kit.CancelWork:
		sh.CancelWork(f.Key)
	case kit.State, kit.Log:
	default:
		if c.props.Perform == nil {
			panic(fmt.Sprintf("host: %T has no performer in kind %s", f, c.props.Kind))
		}
		c.props.Perform(sh, f)
	}
}

func (sh *shell) performSend(f kit.Send) {
	err := sh.send(f.To, f.Corr, f.Msg)
	if err == nil {
		return
	}
	if err.GetCode() == kit.CodeBusy && f.Corr != "" {
		sh.Post(kit.Event{From: f.To, Corr: f.Corr, Msg: &messages.Busy{}})
		return
	}
	sh.Post(kit.Fault{Effect: f, Err: err})
}

func (sh *shell) after(f kit.After) {
	sh.cancelAfter(f.Key)
	if sh.timers == nil {
		sh.timers = map[string]*timer{}
	}
	sh.seq++
	h, i := sh.c.h, item{kind: itFired, sh: sh, key: f.Key, seq: sh.seq}
	sh.timers[f.Key] = &timer{
		seq: sh.seq, msg: f.Msg,
		entry: h.at(h.now.Add(max(f.D, 0)), func() { sh.c.pushUser(i) }),
	}
}

func (sh *shell) cancelAfter(key string) {
	if t := sh.timers[key]; t != nil {
		sh.c.h.drop(t.entry)
		delete(sh.timers, key)
	}
}

func (sh *shell) spawnKind(f kit.Spawn) *messages.Error {
	c := sh.c
	if c.shut {
		return &messages.Error{Code: kit.CodeStopping, Message: c.path + " is stopping"}
	}
	kind := c.h.opt.Kinds[f.Kind]
	if kind == nil {
		return &messages.Error{Code: kit.CodeUnknownKind, Message: "no actor kind " + f.Kind}
	}
	props, err := kind(f.Params)
	if err != nil {
		return kit.AsError(kit.CodeSpawnFailed, err)
	}
	_, refusal := c.h.spawn(c, f.Name, props, f.Watch)
	return refusal
}

func (sh *shell) watch(who *messages.Address) {
	h := sh.c.h
	c, err := h.find(who)
	if err != nil {
		sh.Post(kit.Ended{Who: who, Failure: h.fates[who.GetPath()]})
		return
	}
	if c.parent == sh.c {
		c.watched = true
		return
	}
	for _, w := range c.watchers {
		if w.c == sh.c && w.sh == sh {
			return
		}
	}
	c.watchers = append(c.watchers, watcher{sh.c, sh})
	sh.watching = append(sh.watching, c)
}

func (sh *shell) unwatch(who *messages.Address) {
	for i, c := range sh.watching {
		if c.path == who.GetPath() {
			sh.watching = append(sh.watching[:i:i], sh.watching[i+1:]...)
			c.unwatch(sh.c)
			break
		}
	}
	if c := sh.c.h.cells[who.GetPath()]; c != nil && c.parent == sh.c {
		c.watched = false
	}
}

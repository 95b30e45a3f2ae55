package kit

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// shell is one incarnation of an actor: its machine, and what must end with it. It is the Shell that performers see.
type shell struct {
	c       *cell
	machine Machine
	more    *holdings // what only some actors have; see hold
	ended   atomic.Bool
}

// holdings are what an incarnation holds besides its machine.
type holdings struct {
	timers   map[string]*timer
	timerSeq uint64
	watching map[*cell]bool
	workers  map[string][]*worker
	working  sync.WaitGroup
	ctx      context.Context // ends with the incarnation; nil until the first worker
	cancel   context.CancelFunc
	logger   *slog.Logger
	// lastTo and lastCell remember the latest receiver: most machines talk to the same one, by the same pointer.
	lastTo   *messages.Address
	lastCell *cell
}

// nothing stands for the holdings of one that holds nothing; it is only read.
var nothing holdings

// held is for reading.
func (sh *shell) held() *holdings {
	if sh.more == nil {
		return &nothing
	}
	return sh.more
}

// hold is for taking something.
func (sh *shell) hold() *holdings {
	if sh.more == nil {
		sh.more = &holdings{}
	}
	return sh.more
}

func (sh *shell) Self() *messages.Address { return sh.c.self }

func (sh *shell) Now() time.Time { return sh.c.rt.now() }

func (sh *shell) Log() *slog.Logger {
	h := sh.hold()
	if h.logger == nil {
		h.logger = sh.c.rt.log.With(slog.String("actor", sh.c.path()))
	}
	return h.logger
}

func (sh *shell) Tell(to *messages.Address, m proto.Message) *messages.Error {
	return sh.send(to, "", m)
}

func (sh *shell) Post(v any) bool {
	if sh.ended.Load() || sh.c.is(gone) {
		return false
	}
	sh.c.Mailbox.PostUserMessage(&private{sh: sh, v: v})
	return true
}

// send delivers in this actor's name.
func (sh *shell) send(to *messages.Address, corr string, m proto.Message) *messages.Error {
	h := sh.hold()
	c := h.lastCell
	if to == nil || to != h.lastTo || c.is(gone) {
		var e *messages.Error
		if c, e = sh.c.rt.find(to); e != nil {
			return e
		}
		h.lastTo, h.lastCell = to, c
	}
	return c.deliver(sh.c.self, corr, m)
}

// step gives an event to the machine and performs what it wants. The clock is read anew for each event, except after
// steps that had no effects: these do no IO, so they end within microseconds, and up to 16 of them share one reading.
func (c *cell) step(e Event) {
	if c.sh == nil {
		c.dead(&envelope{from: e.From, corr: e.Corr, msg: asMessage(e.Msg)})
		return
	}
	t := c.track.Load()
	if t == nil {
		t = &track{stale: true} // the sweeper let go of this actor an instant ago
	}
	if kind := reflect.TypeOf(e.Msg); kind != t.last {
		t.last = kind
		t.cur.Store(kind)
	}
	if t.stale {
		t.now, t.stale = c.rt.now(), false
	}
	effects := c.sh.machine.Step(t.now, e)
	if len(effects) == 0 {
		return
	}
	t.stale = true
	for _, f := range effects {
		c.sh.perform(f)
	}
}

// fresh makes the next step read the clock.
func (c *cell) fresh() {
	if t := c.track.Load(); t != nil {
		t.stale = true
	}
}

func asMessage(v any) proto.Message {
	m, _ := v.(proto.Message)
	return m
}

// stepPrivate gives an event of the actor's own to the machine it was meant for.
func (c *cell) stepPrivate(m *private) {
	if c.sh == nil || m.sh != c.sh {
		return
	}
	if m.w != nil {
		if m.w.cancelled {
			return
		}
		if m.last {
			c.sh.forget(m.w)
		}
	}
	if m.v == nil {
		return
	}
	c.fresh()
	switch v := m.v.(type) {
	case Event: // an answer that kit gives in another's name
		c.step(v)
	case late:
		c.step(Event{Msg: v.e})
	case ended:
		if w := c.sh.held().watching; w[v.c] { // else it was taken back meanwhile
			delete(w, v.c)
			c.step(Event{Msg: v.e})
		}
	default:
		c.step(Event{Msg: v})
	}
}

// perform does one effect.
func (sh *shell) perform(f Effect) {
	switch f := f.(type) {
	case Send:
		sh.performSend(f)
	case Reply:
		if f.To != nil {
			sh.c.rt.reply(sh.c, f.To, f.Corr, f.Msg)
		}
	case Publish:
		sh.c.rt.publish(sh.c, f.Event)
	case After:
		sh.after(f)
	case CancelAfter:
		sh.cancelAfter(f.Key)
	case Spawn:
		if err := sh.c.spawnKind(f); err != nil {
			sh.fault(f, err)
		}
	case Stop:
		sh.c.rt.order(f.Who, f.Drain)
	case Watch:
		sh.watch(f.Who)
	case Unwatch:
		sh.unwatch(f.Who)
	case Ready:
		sh.becomeReady()
	case State:
		sh.c.show(f)
	case CancelWork:
		sh.CancelWork(f.Key)
	case Log:
		sh.Log().Log(context.Background(), slog.Level(f.Level), f.Text, f.Attrs...) //nolint:sloglint // the machine's own text
	default:
		if sh.c.performer == nil {
			panic("kit: " + reflect.TypeOf(f).String() + " has no performer in kind " + sh.c.row.kind)
		}
		sh.c.performer(sh, f)
	}
}

// performSend sends; a request that the receiver is too busy for is answered in its name, any other failure comes back
// as Fault.
func (sh *shell) performSend(f Send) {
	err := sh.send(f.To, f.Corr, f.Msg)
	if err == nil {
		return
	}
	if c := sh.hold().lastCell; err.GetCode() == CodeBusy && f.Corr != "" {
		depth := c.Mailbox.UserMessageCount()
		busy := &messages.Busy{Depth: int64(depth), Refused: depth >= c.row.limits.Hard}
		sh.Post(Event{From: c.self, Corr: f.Corr, Msg: busy})
		return
	}
	sh.fault(f, err)
}

// fault tells the machine that an effect could not be performed. It goes through the mailbox, so that a machine which
// tries again at once does not shut out its control lane.
func (sh *shell) fault(f Effect, err *messages.Error) {
	sh.Post(Fault{Effect: f, Err: err})
}

func (sh *shell) becomeReady() {
	if sh.c.set(ready) {
		sh.c.rt.fact(Fact{Code: FactReady, Path: sh.c.path(), Kind: sh.c.row.kind})
	}
}

// show sets the word and line of the tree.
func (c *cell) show(s State) {
	next := shown{word: s.Word, summary: s.Summary}
	if old := c.shown.Load(); old != nil {
		if next.word == "" {
			next.word = old.word
		}
		if next.summary == "" {
			next.summary = old.summary
		}
		if *old == next {
			return
		}
		if old.word != next.word {
			c.since.Store(c.rt.now().UnixMicro())
		}
	} else if next.word != "" {
		c.since.Store(c.rt.now().UnixMicro())
	}
	c.shown.Store(&next)
}

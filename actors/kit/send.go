package kit

import (
	"context"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// Tell sends m to an actor of this node in nobody's name. m is frozen from here on. The error has a code: the actor is
// gone, its mailbox is full, or the node of the address cannot be reached. No error means that it was put into the
// mailbox.
func (rt *Runtime) Tell(to *messages.Address, m proto.Message) error {
	c, err := rt.find(to)
	if err == nil {
		err = c.deliver(nil, "", m)
	}
	return refuse(err)
}

// Ref is an actor resolved once, for those who send to it often. It stays with that actor: when it has ended, Tell says
// so, also when another one runs at the path by then.
type Ref struct{ c *cell }

// Ref resolves an address.
func (rt *Runtime) Ref(to *messages.Address) (Ref, error) {
	c, err := rt.find(to)
	return Ref{c}, refuse(err)
}

// Tell is Runtime.Tell to the actor of this Ref.
func (r Ref) Tell(m proto.Message) error {
	if r.c.is(gone) {
		return refuse(errGone(r.c.path()))
	}
	return refuse(r.c.deliver(nil, "", m))
}

// Resolve returns the full address of the actor that runs at path, with node and boot epoch.
func (rt *Runtime) Resolve(path string) (*messages.Address, bool) {
	c := rt.get(path)
	if c == nil {
		return nil, false
	}
	return c.self, true
}

// Notify steps the machine at path with v, one of the facts of an actor's life such as Restarted. The kernel uses it to
// tell actors about those whose facility they need. It reports false when nobody runs there.
func (rt *Runtime) Notify(path string, v Restarted) bool {
	c := rt.get(path)
	if c == nil {
		return false
	}
	c.postControl(&exec{
		run:  func(c *cell) { c.Mailbox.PostUserMessage(&private{sh: c.sh, v: v}) },
		drop: func() {},
	})
	return true
}

// reply answers in the name of from. An asker that is gone has no use for the answer, so it is a dead letter and no
// failure.
func (rt *Runtime) reply(from *cell, to *messages.Address, corr string, m proto.Message) {
	if to == nil {
		return
	}
	if to.Path == askPath {
		if to.Epoch != rt.cfg.Epoch || !rt.asks.answer(corr, m) {
			rt.deadLetter(askPath, m)
		}
		return
	}
	c, err := rt.find(to)
	if err != nil {
		rt.deadLetter(to.Path, m)
		return
	}
	c.answer(from.self, corr, m)
}

// publish hands an event to the events actor. An event is told to whoever listens; without the actor, or when it is
// full, it is a dead letter.
func (rt *Runtime) publish(from *cell, e *messages.AgentEvent) {
	if e == nil {
		return
	}
	if e.AtUs == 0 {
		e.AtUs = rt.now().UnixMicro()
	}
	c := rt.evCell.Load()
	if c == nil || c.is(gone) {
		if c = rt.get(rt.events.Path); c == nil {
			rt.deadLetter(rt.events.Path, e)
			return
		}
		rt.evCell.Store(c)
	}
	var self *messages.Address
	if from != nil {
		self = from.self
	}
	if c.deliver(self, "", e) != nil {
		rt.deadLetter(rt.events.Path, e)
	}
}

// notice publishes a fact as a system event and hands it to the observer.
func (rt *Runtime) notice(f Fact) {
	text := f.Path + ": " + string(f.Code)
	if f.Failure != "" {
		text += ": " + f.Failure
	}
	rt.publish(nil, &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_SYSTEM, Text: text,
		Detail: &messages.AgentEvent_System{System: &messages.SystemNotice{Code: string(f.Code), Path: f.Path}},
	})
	rt.fact(f)
}

func (rt *Runtime) fact(f Fact) {
	if rt.cfg.Observe != nil {
		rt.cfg.Observe(f)
	}
}

// order tells an actor to stop; one that is gone has stopped.
func (rt *Runtime) order(who *messages.Address, drain bool) {
	if c, err := rt.find(who); err == nil {
		c.order(drain)
	}
}

// deadLetter counts a message that reached nobody and logs it once per type of message: what is lost every second
// must not fill the log.
func (rt *Runtime) deadLetter(path string, m proto.Message) {
	rt.counts.deadLetters.Add(1)
	name := "private"
	if m != nil {
		name = string(m.ProtoReflect().Descriptor().Name())
	}
	if _, known := rt.unknown.LoadOrStore(name, true); !known {
		rt.log.Info("dead letter", slog.String("actor", path), slog.String("message", name),
			slog.String("note", "further ones of this type are only counted"))
	}
}

// lostByRuntime counts what the actor runtime itself could not deliver. It is called on the sender's goroutine. A watch
// of an actor that is gone must be answered, as the runtime's own listener would.
func (rt *Runtime) lostByRuntime(v any) {
	e, ok := v.(*actor.DeadLetterEvent)
	if !ok {
		return
	}
	if w, ok := e.Message.(*actor.Watch); ok {
		if p, alive := rt.system.ProcessRegistry.Get(w.Watcher); alive {
			p.SendSystemMessage(w.Watcher, &actor.Terminated{Who: e.PID, Why: actor.TerminatedReason_NotFound})
		}
	}
	if m, ok := e.Message.(proto.Message); ok && !isRuntime(m) {
		rt.deadLetter(e.PID.GetId(), m)
	}
}

// quieter hands the actor runtime's own log on with everything below warning lowered to debug: what it calls
// information, kit reports itself.
type quieter struct{ inner slog.Handler }

func lower(v slog.Level) slog.Level {
	if v < slog.LevelWarn {
		return slog.LevelDebug
	}
	return v
}

func (q quieter) Enabled(ctx context.Context, v slog.Level) bool {
	return q.inner.Enabled(ctx, lower(v))
}

func (q quieter) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	return q.inner.Handle(ctx, r)
}

func (q quieter) WithAttrs(as []slog.Attr) slog.Handler { return quieter{q.inner.WithAttrs(as)} }

func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.inner.WithGroup(name)} }

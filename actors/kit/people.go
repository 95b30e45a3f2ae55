package kit

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// SpawnTop starts an actor directly below the root. Name may have several segments.
func (rt *Runtime) SpawnTop(name string, props Props) (*messages.Address, error) {
	if rt.draining.Load() {
		return nil, refuse(errStopping(rt.cfg.Node))
	}
	type result struct {
		c   *cell
		err *messages.Error
	}
	done := make(chan result, 1)
	rt.root.postControl(&exec{
		run: func(root *cell) {
			c, err := root.spawn(name, props, false)
			done <- result{c, err}
		},
		drop: func() { done <- result{nil, errStopping(rt.cfg.Node)} },
	})
	r := <-done
	if r.err != nil {
		return nil, refuse(r.err)
	}
	return r.c.self, nil
}

// SpawnKind is SpawnTop for a registered kind and its parameters.
func (rt *Runtime) SpawnKind(kind, name string, params proto.Message) (*messages.Address, error) {
	f := rt.kind(kind)
	if f == nil {
		return nil, refuse(errKind(kind))
	}
	props, err := f(params)
	if err != nil {
		return nil, refuse(AsError(CodeSpawnFailed, err))
	}
	if props.Kind == "" {
		props.Kind = kind
	}
	return rt.SpawnTop(name, props)
}

func errKind(kind string) *messages.Error {
	return &messages.Error{
		Code: CodeUnknownKind, Message: fmt.Sprintf("no actor kind %q is registered", kind),
		Details: map[string]string{"kind": kind},
	}
}

// forPeople finds an actor that a person wants to handle; those of the kernel's own table are refused.
func (rt *Runtime) forPeople(path, verb string) (*cell, error) {
	c := rt.get(path)
	if c == nil {
		return nil, refuse(errGone(path))
	}
	if c.row.system {
		return nil, refuse(&messages.Error{
			Code: CodeSystemActor, Message: fmt.Sprintf("%q is part of the node itself; people cannot %s it", path, verb),
			Hint: "stop the node instead", Details: map[string]string{"path": path},
		})
	}
	return c, nil
}

// Stop ends an actor at a person's wish, its children first, and waits until it has ended, at most for its stop timeout.
// Messages that wait in it are lost; its parent is told who wished it. Actors of the kernel's own table are refused with code system_actor.
func (rt *Runtime) Stop(ctx context.Context, path string) error {
	c, err := rt.forPeople(path, "stop")
	if err != nil {
		return err
	}
	c.set(byPerson)
	return rt.stopCell(ctx, c, false)
}

// Restart makes a new incarnation of an actor at a person's wish: its children end, its machine is stepped with
// Stopping, and what waits in its mailbox is kept. It returns when the restart has begun.
func (rt *Runtime) Restart(ctx context.Context, path string) error {
	c, err := rt.forPeople(path, "restart")
	if err != nil {
		return err
	}
	return c.do(ctx, func(c *cell) {
		c.Mailbox.PostSystemMessage(&actor.SuspendMailbox{})
		c.Mailbox.PostSystemMessage(&actor.Restart{})
	})
}

// Pause holds the user lane of an actor: messages, timers and results of workers wait; the control lane goes on.
// Pausing twice is pausing once.
func (rt *Runtime) Pause(ctx context.Context, path string) error {
	c, err := rt.forPeople(path, "pause")
	if err != nil {
		return err
	}
	return c.do(ctx, (*cell).pause)
}

// Resume lets a paused actor go on. One that is not paused stays as it is.
func (rt *Runtime) Resume(ctx context.Context, path string) error {
	c, err := rt.forPeople(path, "resume")
	if err != nil {
		return err
	}
	return c.do(ctx, (*cell).unpause)
}

// do runs f on the actor's goroutine and waits for it.
func (c *cell) do(ctx context.Context, f func(*cell)) error {
	ctx, cancel := context.WithTimeout(ctx, c.rt.cfg.AskTimeout)
	defer cancel()
	done := make(chan *messages.Error, 1)
	c.postControl(&exec{
		run:  func(c *cell) { f(c); done <- nil },
		drop: func() { done <- errGone(c.path()) },
	})
	select {
	case err := <-done:
		return refuse(err)
	case <-ctx.Done():
		return refuse(AsError(CodeTimeout, ctx.Err()))
	}
}

// stopCell orders a stop and waits for the end.
func (rt *Runtime) stopCell(ctx context.Context, c *cell, drain bool) error {
	ended := c.done()
	c.order(drain)
	t := time.NewTimer(c.row.restart.StopTimeout)
	defer t.Stop()
	select {
	case <-ended:
		return nil
	case <-t.C:
	case <-ctx.Done():
	}
	return refuse(&messages.Error{
		Code: CodeStopTimeout, Message: fmt.Sprintf("%q has not ended yet", c.path()),
		Hint: "it ends when the message in hand is done", Details: map[string]string{"path": c.path()},
	})
}

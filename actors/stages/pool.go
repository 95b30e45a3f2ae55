package stages

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// mostStuck is how many runs of one handler may be over their deadline and not have returned.
const mostStuck = 8

// pool runs the handlers of a stage. It is safe for concurrent runs and outlives restarts of the actor.
type pool struct {
	stage     messages.Stage
	observers []*handler
	modifiers []*handler
	running   sync.WaitGroup
}

type handler struct {
	Handler
	stuck atomic.Int32
}

func newPool(s messages.Stage, handlers []Handler) *pool {
	p := &pool{stage: s}
	for _, h := range handlers {
		if h.Deadline <= 0 {
			h.Deadline = defaultDeadline
		}
		if h.Modifies {
			p.modifiers = append(p.modifiers, &handler{Handler: h})
		} else {
			p.observers = append(p.observers, &handler{Handler: h})
		}
	}
	return p
}

// wait returns when every handler has returned.
func (p *pool) wait() { p.running.Wait() }

// run runs all handlers on c, which it does not change, and returns the context that they leave.
func (p *pool) run(ctx context.Context, c *messages.StageContext) (*messages.StageContext, []*messages.StageFault) {
	observed := make([]*messages.StageFault, len(p.observers))
	var observing sync.WaitGroup
	given := c // modifiers replace c while observers look at what was given
	for i, h := range p.observers {
		own := proto.CloneOf(given)
		observing.Go(func() { observed[i] = p.observe(ctx, h, own, given) })
	}
	var faults []*messages.StageFault
	for _, h := range p.modifiers {
		var f *messages.StageFault
		c, f = p.modify(ctx, h, c)
		if f != nil {
			faults = append(faults, f)
		}
		if c.GetResponse() != "" {
			break
		}
	}
	observing.Wait()
	for _, f := range observed {
		if f != nil {
			faults = append(faults, f)
		}
	}
	return c, faults
}

// observe runs an observer; what it writes into its copy is a fault.
func (p *pool) observe(ctx context.Context, h *handler, own, given *messages.StageContext) *messages.StageFault {
	if f := p.call(ctx, h, own); f != nil {
		return f
	}
	if !proto.Equal(own, given) {
		return fault(h, ReasonForbidden, "an observer changed the context; its changes were dropped")
	}
	return nil
}

// modify runs a modifier on a copy of c and returns c with the permitted changes.
func (p *pool) modify(
	ctx context.Context, h *handler, c *messages.StageContext,
) (*messages.StageContext, *messages.StageFault) {
	own := proto.CloneOf(c)
	if f := p.call(ctx, h, own); f != nil {
		if h.Guard {
			c = denyAll(c, h.Name)
		}
		return c, f
	}
	merged, forbidden := merge(p.stage, h.Name, c, own)
	if forbidden != "" {
		return merged, fault(h, ReasonForbidden, "not permitted in "+Name(p.stage)+": "+forbidden)
	}
	return merged, nil
}

// denyAll denies the calls that a failed guard could not check.
func denyAll(c *messages.StageContext, guard string) *messages.StageContext {
	c = proto.CloneOf(c)
	for _, inv := range c.GetCalls() {
		if inv.GetDenied() == "" {
			inv.Denied = fmt.Sprintf("The rule %q could not be checked.", guard)
		}
	}
	return c
}

func fault(h *handler, reason, detail string) *messages.StageFault {
	return &messages.StageFault{Handler: h.Name, Reason: reason, Detail: detail}
}

// call runs a handler until its deadline. A handler that is late goes on alone, with its copy.
func (p *pool) call(ctx context.Context, h *handler, own *messages.StageContext) *messages.StageFault {
	if h.stuck.Load() >= mostStuck {
		return fault(h, ReasonTimeout, fmt.Sprintf("not called: %d earlier runs have not returned", mostStuck))
	}
	ctx, cancel := context.WithTimeout(ctx, h.Deadline)
	defer cancel()
	done := make(chan *messages.StageFault, 1)
	var state atomic.Int32 // 0 under way, 1 returned, 2 given up
	p.running.Go(func() {
		f := h.try(ctx, own)
		if !state.CompareAndSwap(0, 1) {
			h.stuck.Add(-1)
		}
		done <- f
	})
	select {
	case f := <-done:
		return f
	case <-ctx.Done():
	}
	h.stuck.Add(1)
	if !state.CompareAndSwap(0, 2) { // it returned in the same moment
		h.stuck.Add(-1)
		return <-done
	}
	return fault(h, ReasonTimeout, fmt.Sprintf("not done within %v", h.Deadline.Round(time.Microsecond)))
}

// try runs the handler and turns a panic into a fault.
func (h *handler) try(ctx context.Context, own *messages.StageContext) (f *messages.StageFault) {
	defer func() {
		if v := recover(); v != nil {
			f = fault(h, ReasonPanic, fmt.Sprint(v))
		}
	}()
	if err := h.Run(ctx, own); err != nil {
		return fault(h, ReasonError, err.Error())
	}
	return nil
}

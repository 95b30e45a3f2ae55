package admin

import (
	"context"
	"time"

	"homeagent/messages"
	"homeagent/messages/api"
)

const (
	// pollEvery is how often a waiting caller asks the ledger: events tell it first, the ledger tells it surely.
	pollEvery = 5 * time.Second
	// beginLimit is how long a subscription may take to stand.
	beginLimit = 10 * time.Second
)

// watch follows one task to its end.
type watch struct {
	*subscription
	id string
	// due says that the ledger is to be asked before anything is waited for.
	due bool
}

// watch subscribes to a task; it stands when watch returns, so nothing of a task submitted afterwards is missed.
func (f *face) watch(ctx context.Context, id string, types ...messages.EventType) (*watch, *refusal) {
	sub, no := f.subscribe(opened{Types: types, Task: id})
	if no != nil {
		return nil, no
	}
	begin, cancel := context.WithTimeout(ctx, beginLimit)
	defer cancel()
	if no := sub.begun(begin); no != nil {
		sub.close()
		return nil, no
	}
	return &watch{subscription: sub, id: id}, nil
}

// end waits until the task has ended and tells how. It returns nil without a refusal when ctx ends first. see gets each
// event on the way and may be nil; it returns false to give up, which counts as the end of ctx. tick is called at least
// every heartbeat while nothing comes, through see with a nil event.
func (w *watch) end(ctx context.Context, see func(*messages.AgentEvent) bool) (*api.Task, *refusal) {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	beat := time.NewTicker(w.f.deps.Heartbeat)
	defer beat.Stop()
	for {
		if w.due {
			w.due = false
			if t, no := w.f.taskOf(ctx, w.id); no == nil && t.End != "" {
				return t, nil
			}
		}
		select {
		case <-w.out.wake:
			done, goOn, no := w.take(see)
			switch {
			case no != nil:
				return nil, no
			case done:
				w.due = true
				return w.ended(ctx)
			case !goOn:
				return nil, nil
			}
		case <-beat.C:
			if see != nil && !see(nil) {
				return nil, nil
			}
		case <-poll.C:
			w.due = true
		case <-ctx.Done():
			return nil, nil
		case <-w.f.stopping():
			return nil, drainingRefusal()
		}
	}
}

// take goes through what came. A gap makes the ledger due.
func (w *watch) take(see func(*messages.AgentEvent) bool) (done, goOn bool, no *refusal) {
	ps, slow, err := w.out.take()
	if err != nil {
		return false, false, refusalOf(err)
	}
	w.due = w.due || slow
	for _, p := range ps {
		w.due = w.due || p.sync
		for _, e := range p.batch.GetEvents() {
			if see != nil && !see(e) {
				return false, false, nil
			}
			done = done || e.GetTask().GetEnded() != nil
		}
	}
	return done, true, nil
}

// ended asks the ledger for the whole of the end; the event says that it is on disk.
func (w *watch) ended(ctx context.Context) (*api.Task, *refusal) {
	// The bound of the wait must not cut off the answer that came in time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	return w.f.taskOf(ctx, w.id)
}

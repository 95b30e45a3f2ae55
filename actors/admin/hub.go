package admin

import (
	"context"
	"sync"

	"homeagent/messages"
	"homeagent/messages/api"
)

// hub finds the outlet of each subscription. HTTP handlers open and close outlets; the actor fills them.
type hub struct {
	mu      sync.Mutex
	outlets map[string]*outlet
	// most is how many may be open, limit how many events may wait in one.
	most, limit int
}

func newHub(most, limit int) *hub {
	return &hub{outlets: make(map[string]*outlet), most: most, limit: limit}
}

// open makes the outlet of name, which no other has.
func (h *hub) open(name string) (*outlet, *refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.outlets) >= h.most {
		return nil, refused(429, "too_many_streams", "The node has as many open streams as it takes.",
			"Close one that is no longer read.")
	}
	o := &outlet{name: name, limit: h.limit, wake: make(chan struct{}, 1)}
	h.outlets[name] = o
	return o, nil
}

func (h *hub) find(name string) *outlet {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.outlets[name]
}

func (h *hub) close(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.outlets, name)
}

func (h *hub) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.outlets)
}

// outlet is the bounded queue of one connection: filled on the actor's goroutine, emptied by the HTTP handler's.
type outlet struct {
	name  string
	limit int
	wake  chan struct{} // one token: there is something to take

	mu      sync.Mutex
	queue   []portion
	waiting int
	slow    bool
	err     *messages.Error
}

// portion is one batch with what the machine found about it.
type portion struct {
	batch *messages.EventBatch
	sync  bool
}

// push adds a batch; one that does not fit makes the outlet slow for good and lets go of what waits.
func (o *outlet) push(p portion) {
	o.mu.Lock()
	n := len(p.batch.GetEvents())
	switch {
	case o.slow || o.err != nil:
	case o.waiting > 0 && o.waiting+n > o.limit: // a first batch is taken whatever its size: a replay is bounded by the ring
		o.slow, o.queue = true, nil
	default:
		o.queue = append(o.queue, p)
		o.waiting += n
	}
	o.mu.Unlock()
	o.signal()
}

func (o *outlet) refuse(err *messages.Error) {
	o.mu.Lock()
	o.err = err
	o.mu.Unlock()
	o.signal()
}

func (o *outlet) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take empties the queue. slow means that events were lost and nothing comes any more.
func (o *outlet) take() (ps []portion, slow bool, err *messages.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ps, o.queue, o.waiting = o.queue, nil, 0
	return ps, o.slow, o.err
}

// subscription is what an HTTP handler holds of an open stream.
type subscription struct {
	f   *face
	out *outlet
}

// subscribe opens an outlet and asks for its events. The caller closes it.
func (f *face) subscribe(ask opened) (*subscription, *refusal) {
	ask.Name = f.newID("stream/")
	out, no := f.hub.open(ask.Name)
	if no != nil {
		return nil, no
	}
	if !f.post(ask) {
		f.hub.close(ask.Name)
		return nil, drainingRefusal()
	}
	return &subscription{f: f, out: out}, nil
}

// begun waits for the first batch, with which the subscription stands, and leaves it in the queue.
func (s *subscription) begun(ctx context.Context) *refusal {
	select {
	case <-s.out.wake:
	case <-ctx.Done():
		return refused(504, api.CodeTimeout, "The event stream did not begin in time.", "Try again.")
	case <-s.f.stopping():
		return drainingRefusal()
	}
	s.out.signal()
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if s.out.err != nil {
		return refusalOf(s.out.err)
	}
	return nil
}

// close ends the subscription; events under way are dropped.
func (s *subscription) close() {
	s.f.hub.close(s.out.name)
	s.f.post(closed{Name: s.out.name})
}

// post steps the machine of the incarnation that lives now.
func (f *face) post(v any) bool {
	sh := f.shell.Load()
	return sh != nil && (*sh).Post(v)
}

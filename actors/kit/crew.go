package kit

import (
	"context"
	"sync"
	"time"
)

const (
	// maxResting is how many workers rest at most, and restTime how long.
	maxResting = 16
	restTime   = 5 * time.Second
)

// crew runs workers. A turn starts a dozen of them one after the other, and a new goroutine begins with a small stack that
// is copied again and again while an engine goes deep; so one that has ended its work rests for a while and takes the next.
// They all end with the runtime. The zero value is ready.
type crew struct {
	mu      sync.Mutex
	resting []*hand // the one that rested last goes first
	closed  bool
}

// hand is one goroutine of the crew.
type hand struct{ next chan job }

// job is what a worker does.
type job struct {
	sh  *shell
	ctx context.Context
	w   *worker
	fn  func(context.Context, func(any)) any
}

// start gives the job to a goroutine of its own until it is done; it does not wait.
func (c *crew) start(j job) {
	c.mu.Lock()
	n := len(c.resting) - 1
	if n < 0 {
		c.mu.Unlock()
		go c.serve(j)
		return
	}
	h := c.resting[n]
	c.resting[n] = nil
	c.resting = c.resting[:n]
	c.mu.Unlock()
	h.next <- j // it has room for one, and who rests has none
}

// serve does jobs until nobody has brought one for restTime.
func (c *crew) serve(j job) {
	h := &hand{next: make(chan job, 1)}
	for {
		j.sh.work(j.ctx, j.w, j.fn)
		j = job{} //nolint:wastedassign // who rests holds nothing of the last job
		if !c.rest(h) {
			return
		}
		t := time.NewTimer(restTime)
		var more bool
		select {
		case j, more = <-h.next:
		case <-t.C:
			if c.leave(h) {
				return
			}
			j, more = <-h.next // taken off the list an instant ago
		}
		t.Stop()
		if !more {
			return
		}
	}
}

// rest lines up for the next job; false when there is to be none.
func (c *crew) rest(h *hand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.resting) >= maxResting {
		return false
	}
	c.resting = append(c.resting, h)
	return true
}

// leave takes h off the list; false when it is not there any more.
func (c *crew) leave(h *hand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.resting {
		if other == h {
			c.resting = append(c.resting[:i], c.resting[i+1:]...)
			return true
		}
	}
	return false
}

// close ends those that rest; those at work end after it.
func (c *crew) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, h := range c.resting {
		close(h.next)
	}
	c.resting = nil
}

package kit

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// timer is a running After.
type timer struct {
	seq uint64
	t   *time.Timer
	msg any
	due time.Time
}

func (sh *shell) after(f After) {
	sh.cancelAfter(f.Key)
	h := sh.hold()
	if h.timers == nil {
		h.timers = make(map[string]*timer)
	}
	h.timerSeq++
	item := &fired{sh: sh, key: f.Key, seq: h.timerSeq}
	d := max(f.D, 0)
	h.timers[f.Key] = &timer{
		seq: h.timerSeq, msg: f.Msg, due: sh.Now().Add(d),
		t: time.AfterFunc(d, func() { sh.c.Mailbox.PostUserMessage(item) }),
	}
}

func (sh *shell) cancelAfter(key string) {
	timers := sh.held().timers
	if t := timers[key]; t != nil {
		t.t.Stop()
		delete(timers, key) // one that has fired already finds its sequence gone
	}
}

func (c *cell) stepFired(m *fired) {
	if c.sh == nil || m.sh != c.sh {
		return
	}
	timers := c.sh.held().timers
	t := timers[m.key]
	if t == nil || t.seq != m.seq {
		return
	}
	delete(timers, m.key)
	c.fresh()
	c.step(Event{Msg: t.msg})
}

// worker is one running Go. cancelled belongs to the actor's goroutine.
type worker struct {
	key       string
	started   time.Time
	cancel    context.CancelFunc
	cancelled bool
}

// workerPanic is the reason with which an actor fails whose worker panicked.
type workerPanic struct {
	key    string
	reason any
	stack  []byte
}

func (p *workerPanic) String() string { return fmt.Sprintf("worker %q: %v", p.key, p.reason) }

func (sh *shell) Go(key string, limit time.Duration, fn func(ctx context.Context, emit func(any)) any) {
	h := sh.hold()
	if h.ctx == nil {
		h.ctx, h.cancel = context.WithCancel(context.Background())
		h.workers = make(map[string][]*worker)
	}
	w := &worker{key: key, started: sh.Now()}
	var ctx context.Context
	if limit > 0 {
		ctx, w.cancel = context.WithTimeout(h.ctx, limit)
	} else {
		ctx, w.cancel = context.WithCancel(h.ctx)
	}
	h.workers[key] = append(h.workers[key], w)
	h.working.Add(1)
	sh.c.rt.crew.start(job{sh, ctx, w, fn})
}

// work is what the worker's goroutine does. What it emits and its result go into the user lane in order.
func (sh *shell) work(ctx context.Context, w *worker, fn func(context.Context, func(any)) any) {
	defer sh.more.working.Done()
	defer w.cancel()
	defer func() {
		if r := recover(); r != nil {
			p := &workerPanic{key: w.key, reason: r, stack: debug.Stack()}
			sh.c.Mailbox.PostUserMessage(&crashed{sh: sh, w: w, p: p})
		}
	}()
	emit := func(v any) {
		if v != nil {
			sh.c.Mailbox.PostUserMessage(&private{sh: sh, w: w, v: v})
		}
	}
	v := fn(ctx, emit)
	sh.c.Mailbox.PostUserMessage(&private{sh: sh, w: w, v: v, last: true})
}

func (sh *shell) CancelWork(key string) {
	workers := sh.held().workers
	for _, w := range workers[key] {
		w.cancelled = true
		w.cancel()
	}
	delete(workers, key)
}

// forget takes a worker that has ended off the list.
func (sh *shell) forget(w *worker) {
	workers := sh.held().workers
	list := workers[w.key]
	for i, other := range list {
		if other != w {
			continue
		}
		if len(list) == 1 {
			delete(workers, w.key)
		} else {
			workers[w.key] = append(list[:i:i], list[i+1:]...)
		}
		return
	}
}

// end ends everything that belongs to the incarnation and reports whether its workers ended within limit.
func (sh *shell) end(limit time.Duration) bool {
	sh.ended.Store(true)
	h := sh.more
	if h == nil {
		return true
	}
	for _, t := range h.timers {
		t.t.Stop()
	}
	h.timers = nil
	sh.unwatchAll()
	if h.ctx == nil {
		return true
	}
	h.cancel()
	return sh.await(limit)
}

// await waits for the workers. This holds up the actor's goroutine, which has nothing else to do any more.
func (sh *shell) await(limit time.Duration) bool {
	done := make(chan struct{})
	go func() {
		sh.more.working.Wait()
		close(done)
	}()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

package kit

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// sweepEvery is how often the sweeper looks at the actors that are at work: the resolution of ages and of the watchdog.
const sweepEvery = 100 * time.Millisecond

// rateSpan is the time constant of the rate: what lies further back than this counts for a third or less.
const rateSpan = 2 * time.Second

// sweeper finds what nobody should pay for at each message: ages, rates, and handlers that run long. One goroutine
// looks at the actors that were at work since its last look; when there are none it rests until an activation of a
// mailbox wakes it, so an idle node sleeps.
type sweeper struct {
	rt      *Runtime
	mu      sync.Mutex
	fresh   []*cell // became active since the last sweep
	resting atomic.Bool
	wake    chan struct{}
	quit    chan struct{}
	done    chan struct{}
	seen    map[*cell]*track // the sweeper's goroutine writes it, under mu
}

// track is what the sweeper remembers of an active actor.
type track struct {
	handled uint64
	at      time.Time // of the last sweep
	rate    float64
	busy    time.Time // since when the message in hand is in hand; zero when none is
	told    bool      // the watchdog has reported it
	marks   []mark
}

// mark says that by then so many messages had been posted.
type mark struct {
	at     time.Time
	posted uint64
}

// maxMarks bounds what the sweeper remembers of one actor's backlog; when it is full every other mark goes, so that the
// age of a long backlog is known less exactly.
const maxMarks = 32

func newSweeper(rt *Runtime) *sweeper {
	s := &sweeper{
		rt: rt, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		seen: make(map[*cell]*track),
	}
	s.resting.Store(true)
	go s.loop()
	return s
}

// add is called by an activation that finds its actor not looked after.
func (s *sweeper) add(c *cell) {
	if !c.active.CompareAndSwap(false, true) {
		return
	}
	s.mu.Lock()
	s.fresh = append(s.fresh, c)
	s.mu.Unlock()
	if s.resting.Load() {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

func (s *sweeper) stop() {
	close(s.quit)
	<-s.done
}

func (s *sweeper) loop() {
	defer close(s.done)
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		s.resting.Store(true)
		select {
		case <-s.quit:
			return
		case <-s.wake:
		}
		s.resting.Store(false)
		for busy := true; busy; {
			t.Reset(sweepEvery)
			select {
			case <-s.quit:
				return
			case <-t.C:
			}
			busy = s.sweep(time.Now())
		}
	}
}

// sweep looks at all active actors once and reports whether there are any left.
func (s *sweeper) sweep(now time.Time) bool {
	s.rt.counts.sweeps.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.fresh {
		if s.seen[c] == nil {
			s.seen[c] = &track{at: now.Add(-sweepEvery)}
			s.seen[c].handled = c.swept.Load()
		}
	}
	s.fresh = s.fresh[:0]
	for c, t := range s.seen {
		if t.look(c, now) {
			continue
		}
		// Idle. An activation that comes from here on adds it again; one that came just before is seen here.
		c.active.Store(false)
		if (c.running.Load() > 0 || c.handled.Load() != t.handled) && c.active.CompareAndSwap(false, true) {
			continue
		}
		delete(s.seen, c)
	}
	return len(s.seen)+len(s.fresh) > 0
}

// look takes one look at an actor and reports whether it is still at work.
func (t *track) look(c *cell, now time.Time) bool {
	running := c.running.Load() > 0
	depth := c.Mailbox.UserMessageCount()
	handled := c.handled.Load()
	delta := handled - t.handled
	t.handled = handled
	c.swept.Store(handled)
	t.measure(c, delta, now)
	t.age(c, handled, depth, now)
	if !running || delta > 0 {
		t.busy, t.told = time.Time{}, false
		c.busySince.Store(0)
	}
	if running && t.busy.IsZero() {
		t.busy = now
		c.busySince.Store(now.UnixMicro())
	}
	if running && !t.told && now.Sub(t.busy) >= c.props.Limits.Slow {
		t.told = true
		c.rt.slow(c, now.Sub(t.busy))
	}
	return running || depth > 0 || delta > 0
}

// measure moves the rate on. It is kept with its time, so that it decays by itself while nobody looks.
func (t *track) measure(c *cell, delta uint64, now time.Time) {
	span := now.Sub(t.at)
	t.at = now
	if span <= 0 {
		return
	}
	keep := math.Exp(-span.Seconds() / rateSpan.Seconds())
	old := c.rateAt(now.Add(-span))
	c.rate.Store(math.Float64bits(old*keep + float64(delta)/span.Seconds()*(1-keep)))
	c.rated.Store(now.UnixMicro())
}

// rateAt is the rate in messages per second as of now.
func (c *cell) rateAt(now time.Time) float64 {
	rate := math.Float64frombits(c.rate.Load())
	if rate == 0 {
		return 0
	}
	since := now.Sub(time.UnixMicro(c.rated.Load()))
	rate *= math.Exp(-max(since, 0).Seconds() / rateSpan.Seconds())
	if rate < 0.01 {
		return 0
	}
	return rate
}

// age finds how long the oldest message has waited: its number in the order of arrival is the next one to be handled,
// and the marks say by when that number had been posted.
func (t *track) age(c *cell, handled uint64, depth int, now time.Time) {
	if depth == 0 {
		t.marks = t.marks[:0]
		c.oldest.Store(0)
		return
	}
	next := handled + 1
	first := 0
	for first < len(t.marks) && t.marks[first].posted < next {
		first++
	}
	t.marks = append(t.marks[:0], t.marks[first:]...)
	if posted := handled + uint64(depth); len(t.marks) == 0 || t.marks[len(t.marks)-1].posted < posted {
		t.marks = append(t.marks, mark{at: now, posted: posted})
	}
	if len(t.marks) > maxMarks {
		for i := 1; 2*i < len(t.marks); i++ {
			t.marks[i] = t.marks[2*i]
		}
		t.marks = t.marks[:(len(t.marks)+1)/2]
	}
	c.oldest.Store(t.marks[0].at.UnixMicro())
}

// slow reports a message that is handled for too long.
func (rt *Runtime) slow(c *cell, took time.Duration) {
	rt.counts.slow.Add(1)
	rt.log.Warn("actor handles a message for long", slog.String("actor", c.path()),
		slog.String("message", c.current()), slog.Duration("so_far", took),
		slog.Duration("limit", c.props.Limits.Slow))
	rt.fact(Fact{Code: FactSlow, Path: c.path(), Kind: c.props.Kind})
}

package kit

import (
	"log/slog"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// sweepEvery is how often the sweeper looks at the actors that are at work: the resolution of ages and of the watchdog.
const sweepEvery = 100 * time.Millisecond

// rateSpan is the time constant of the rate: what lies further back than this counts for a third or less.
const rateSpan = 2 * time.Second

// minRate is what counts as no rate. While nobody is at work, fadeEvery is how often the sweeper looks whether the last
// rates have faded to it.
const (
	minRate   = 0.05
	fadeEvery = 5 * time.Second
)

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
	seen    map[*cell]*track // the sweeper's goroutine alone
}

// track is what an actor has while it is at work, and until its rate has faded.
type track struct {
	// Of the actor's goroutine: the time that steps share while it is not stale.
	now   time.Time
	stale bool
	last  reflect.Type // what cur holds

	// Written by one and read by others. Times are Unix microseconds, zero means none.
	controls  atomic.Uint64 // control items handled meanwhile; by the actor
	cur       atomic.Value  // reflect.Type of the message in hand, or of the last one; by the actor
	rate      atomic.Uint64 // bits of a float64; this and the rest by the sweeper
	rated     atomic.Int64  // when the rate was measured
	oldest    atomic.Int64  // when the oldest message was seen first
	busySince atomic.Int64  // since when the message in hand is in hand

	// Of the sweeper.
	handled uint64
	at      time.Time // of the last look
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

// rouse is called at each activation of a mailbox.
func (s *sweeper) rouse(c *cell) {
	known := c.track.Load() != nil
	if known && !s.resting.Load() {
		return
	}
	if !known && c.track.CompareAndSwap(nil, &track{handled: c.handled.Load(), at: time.Now()}) {
		s.mu.Lock()
		s.fresh = append(s.fresh, c)
		s.mu.Unlock()
	}
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
	for {
		if !s.rest() {
			return
		}
		for busy := true; busy; {
			select {
			case <-s.quit:
				return
			case <-time.After(sweepEvery):
			}
			busy = s.sweep(time.Now())
		}
	}
}

// rest waits until an actor is at work, or for a while when rates have to fade, and reports whether to go on.
func (s *sweeper) rest() bool {
	s.resting.Store(true)
	defer s.resting.Store(false)
	var faded <-chan time.Time
	if len(s.seen) > 0 {
		if s.sweep(time.Now()) {
			return true // somebody came before resting was to be seen
		}
		faded = time.After(fadeEvery)
	}
	select {
	case <-s.quit:
		return false
	case <-s.wake:
	case <-faded:
	}
	return true
}

// sweep looks at all active actors once and reports whether any of them is at work.
func (s *sweeper) sweep(now time.Time) bool {
	s.rt.counts.sweeps.Add(1)
	s.mu.Lock()
	for _, c := range s.fresh {
		s.seen[c] = c.track.Load()
	}
	s.fresh = s.fresh[:0]
	s.mu.Unlock()
	busy := false
	for c, t := range s.seen {
		switch {
		case t.look(c, now):
			busy = true
		case t.rateAt(now) == 0 || c.is(gone):
			if s.release(c, t) {
				delete(s.seen, c)
			} else {
				busy = true
			}
		}
	}
	return busy
}

// release takes the track off an idle actor. An activation that comes from here on makes a new one; of one that came
// just before, one of us two sees the other.
func (s *sweeper) release(c *cell, t *track) bool {
	c.track.Store(nil)
	if c.running.Load() == 0 && c.handled.Load() == t.handled {
		return true
	}
	return !c.track.CompareAndSwap(nil, t)
}

// look takes one look at an actor and reports whether it is still at work.
func (t *track) look(c *cell, now time.Time) bool {
	running := c.running.Load() > 0
	depth := c.Mailbox.UserMessageCount()
	handled := c.handled.Load()
	delta := handled - t.handled
	t.handled = handled
	t.measure(delta, now)
	t.age(handled-t.controls.Load(), depth, now)
	if !running || delta > 0 {
		t.busy, t.told = time.Time{}, false
		t.busySince.Store(0)
	}
	if running && t.busy.IsZero() {
		t.busy = now
		t.busySince.Store(now.UnixMicro())
	}
	if running && !t.told && now.Sub(t.busy) >= c.row.limits.Slow {
		t.told = true
		c.rt.slow(c, now.Sub(t.busy))
	}
	return running || depth > 0 || delta > 0
}

// measure moves the rate on. It is kept with its time, so that it fades by itself while nobody looks.
func (t *track) measure(delta uint64, now time.Time) {
	span := now.Sub(t.at)
	if span <= 0 {
		return
	}
	keep := math.Exp(-span.Seconds() / rateSpan.Seconds())
	rate := t.rateAt(now) + float64(delta)/span.Seconds()*(1-keep)
	t.at = now
	t.rate.Store(math.Float64bits(rate))
	t.rated.Store(now.UnixMicro())
}

// rateAt is the rate in messages per second as of now.
func (t *track) rateAt(now time.Time) float64 {
	rate := math.Float64frombits(t.rate.Load())
	if rate == 0 {
		return 0
	}
	since := now.Sub(time.UnixMicro(t.rated.Load()))
	rate *= math.Exp(-max(since, 0).Seconds() / rateSpan.Seconds())
	if rate < minRate {
		return 0
	}
	return rate
}

// age finds how long the oldest message of the user lane has waited: its number in the order of arrival is the next one to be handled,
// and the marks say by when that number had been posted.
func (t *track) age(handled uint64, depth int, now time.Time) {
	if depth == 0 {
		t.marks = t.marks[:0]
		t.oldest.Store(0)
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
		t.marks = thin(t.marks)
	}
	t.oldest.Store(t.marks[0].at.UnixMicro())
}

// thin keeps every other mark. Of two neighbours the later one goes into the earlier one's place: the age of what it
// stands for is then taken for greater than it is, by the distance between the two, never for less.
func thin(marks []mark) []mark {
	kept := marks[:0]
	for i := 0; i < len(marks); i += 2 {
		m := marks[i]
		if i+1 < len(marks) {
			m.posted = marks[i+1].posted
		}
		kept = append(kept, m)
	}
	return kept
}

// slow reports a message that is handled for too long.
func (rt *Runtime) slow(c *cell, took time.Duration) {
	rt.counts.slow.Add(1)
	rt.log.Warn("actor handles a message for long", slog.String("actor", c.path()),
		slog.String("message", c.current()), slog.Duration("so_far", took),
		slog.Duration("limit", c.row.limits.Slow))
	rt.fact(Fact{Code: FactSlow, Path: c.path(), Kind: c.row.kind})
}

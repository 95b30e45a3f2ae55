package kit

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// supervision is the one supervisor strategy of a Runtime. It decides by the row of the child that failed, on the
// parent's goroutine: restart after a back-off, or above the intensity stop, or restart the parent. The runtime's own
// strategies are not used: its back-off is linear and never gives up.
type supervision struct{ rt *Runtime }

func (s *supervision) HandleFailure(
	_ *actor.ActorSystem, sup actor.Supervisor, pid *actor.PID, _ *actor.RestartStatistics, reason, message any,
) {
	c := s.rt.byPID(pid)
	if c == nil || c.parent == nil || c.is(gone) {
		return
	}
	p := c.parent
	if c.is(shut) || p.closing || p.failed {
		sup.StopChildren(pid) // it ends anyway
		return
	}
	row := &c.row.restart
	rec := c.record.Load()
	if rec == nil {
		rec = &record{}
		c.record.Store(rec)
	}
	rec.failures = within(rec.failures, s.rt.now(), row.Period)
	if n := len(rec.failures); n <= row.Intensity {
		c.restartAfter(s.rt.delay(row, n))
		return
	}
	rec.failures = nil
	text := *c.failure.Load()
	if row.Escalate && p.parent != nil {
		p.failed = true
		why := shorten(fmt.Sprintf("%s: %s", c.name(), text))
		p.distress().why = why
		p.failure.Store(&why)
		p.become(phaseRestarting)
		s.rt.log.Error("actor escalates", slog.String("actor", c.path()), slog.String("reason", text))
		sup.EscalateFailure(reason, message) // restart or stop follows above; never resume
		return
	}
	rec.lost.Store(&text)
	s.rt.counts.givenUp.Add(1)
	s.rt.notice(Fact{Code: FactGivenUp, Path: c.path(), Kind: c.row.kind, Failure: text})
	sup.StopChildren(pid)
}

// within adds now to the times that lie within period.
func within(times []time.Time, now time.Time, period time.Duration) []time.Time {
	kept := times[:0]
	for _, t := range times {
		if now.Sub(t) < period {
			kept = append(kept, t)
		}
	}
	return append(kept, now)
}

// restartAfter restarts the actor after d. The message goes straight into its mailbox, where one that is stopping by
// then drops it.
func (c *cell) restartAfter(d time.Duration) {
	c.rt.log.Warn("actor restarts", slog.String("actor", c.path()), slog.Duration("after", d))
	time.AfterFunc(d, func() {
		if !c.is(gone) {
			c.Mailbox.PostSystemMessage(&actor.Restart{})
		}
	})
}

// delay before the n-th restart in a row, from 1: it doubles up to the cap, and its random share only shortens it.
func (rt *Runtime) delay(row *Restart, n int) time.Duration {
	d := row.Backoff
	for i := 1; i < n && d < row.MaxBackoff; i++ {
		d *= 2
	}
	d = min(d, row.MaxBackoff)
	rt.randMu.Lock()
	share := rt.rand.Float64()
	rt.randMu.Unlock()
	return d - time.Duration(float64(d)*row.Jitter*share)
}

// normal fills in what a zero means.
func (r Restart) normal() Restart {
	if r.Period <= 0 {
		r.Period = time.Minute
	}
	if r.Backoff <= 0 {
		r.Backoff = 50 * time.Millisecond
	}
	if r.MaxBackoff <= 0 {
		r.MaxBackoff = 10 * time.Second
	}
	if r.StopTimeout <= 0 {
		r.StopTimeout = 5 * time.Second
	}
	r.Jitter = min(max(r.Jitter, 0), 1)
	return r
}

func (l Limits) normal() Limits {
	if l.Soft <= 0 {
		l.Soft = 4096
	}
	if l.Hard <= 0 {
		l.Hard = 16384
	}
	if l.Slow <= 0 {
		l.Slow = 250 * time.Millisecond
	}
	return l
}

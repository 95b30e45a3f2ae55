package timers

import (
	"time"

	"github.com/hashicorp/cronexpr"

	"homeagent/messages"
)

// MaxPassed is the most slots that Passed counts.
const MaxPassed = 100

// Schedule tells the slots of one timer.
type Schedule struct {
	kind  messages.TimerKind
	at    time.Time
	every time.Duration
	expr  *cronexpr.Expression
	loc   *time.Location
}

// NewSchedule reads when a timer is due; node is the zone of a timer that names none. The error is an *Error.
func NewSchedule(t *messages.Timer, node *time.Location) (*Schedule, error) {
	s := &Schedule{kind: t.GetKind(), at: time.UnixMicro(t.GetAtUs()).UTC(), loc: node}
	if name := t.GetZone(); name != "" {
		var err error
		if s.loc, err = Zone(name); err != nil {
			return nil, err
		}
	}
	switch s.kind {
	case messages.TimerKind_TIMER_KIND_ONCE:
		return s, checkAt(t.GetAtUs())
	case messages.TimerKind_TIMER_KIND_INTERVAL:
		if n := t.GetEverySeconds(); n < 1 || n > MaxEvery {
			return nil, bad("every", "The time between slots must be from 1 second to 366 days.", "Write it such as 30m, 12h or 1d.")
		}
		s.every = time.Duration(t.GetEverySeconds()) * time.Second
		return s, checkAt(t.GetAtUs())
	case messages.TimerKind_TIMER_KIND_CRON:
		var err error
		s.expr, err = parseCron(t.GetCron())
		return s, err
	case messages.TimerKind_TIMER_KIND_UNSPECIFIED:
	}
	return nil, bad("at", "The timer does not say when it is due.", "Set one of at, in, every and cron.")
}

// MaxEvery is the longest interval in seconds: 366 days.
const MaxEvery = 366 * 24 * 60 * 60

// The years in which slots are.
const firstYear, lastYear = 1970, 9999

func checkAt(us int64) error {
	if y := time.UnixMicro(us).UTC().Year(); us < 0 || y < firstYear || y > lastYear {
		return bad("at", "The time is out of range.", "Use a time between 1970 and 9999.")
	}
	return nil
}

// Zone is the location in which its times are read and shown.
func (s *Schedule) Zone() *time.Location { return s.loc }

// Next is the first slot after t, in UTC; false when there is none.
func (s *Schedule) Next(t time.Time) (time.Time, bool) {
	t = time.UnixMicro(t.UnixMicro()).UTC()
	switch s.kind {
	case messages.TimerKind_TIMER_KIND_ONCE:
		return s.at, s.at.After(t)
	case messages.TimerKind_TIMER_KIND_INTERVAL:
		if s.at.After(t) {
			return s.at, true
		}
		every := s.every.Microseconds()
		k := (t.UnixMicro()-s.at.UnixMicro())/every + 1
		next := time.UnixMicro(s.at.UnixMicro() + k*every).UTC()
		return next, next.Year() <= lastYear
	case messages.TimerKind_TIMER_KIND_CRON:
		return s.nextCron(t)
	default:
		return time.Time{}, false
	}
}

// nextCron looks for the first match of the wall clock that is due after t. While the wall clock shows an hour for the
// second time, matches were due the first time, and the search goes on behind them.
func (s *Schedule) nextCron(t time.Time) (time.Time, bool) {
	for w := wall(t, s.loc); ; {
		if w = s.expr.Next(w); w.IsZero() {
			return w, false
		}
		if slot := instant(w, s.loc); slot.After(t) {
			return slot, true
		}
	}
}

// Passed tells the latest slot after the first time and not after the second, and how many there are between them, at
// most MaxPassed; zero when there is none.
func (s *Schedule) Passed(after, until time.Time) (latest time.Time, count int) {
	for slot, ok := s.Next(after); ok && !slot.After(until); slot, ok = s.Next(slot) {
		latest = slot
		if count++; count == MaxPassed {
			return s.last(latest, until), count
		}
	}
	return latest, count
}

// last is the latest slot up to until, when at least known is one. It looks in ever longer stretches before until, so
// that no long run of slots is walked through.
func (s *Schedule) last(known, until time.Time) time.Time {
	if s.kind == messages.TimerKind_TIMER_KIND_INTERVAL {
		every := s.every.Microseconds()
		return time.UnixMicro(until.UnixMicro() - (until.UnixMicro()-s.at.UnixMicro())%every).UTC()
	}
	for back := time.Hour; ; back *= 4 {
		from := until.Add(-back)
		if !from.After(known) {
			from = known.Add(-time.Microsecond)
		}
		var found time.Time
		for slot, ok := s.Next(from); ok && !slot.After(until); slot, ok = s.Next(slot) {
			found = slot
		}
		if !found.IsZero() {
			return found
		}
	}
}

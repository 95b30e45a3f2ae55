package timers

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"homeagent/configs"
	"homeagent/messages"
)

const (
	// MaxText is the longest text of a timer in bytes.
	MaxText = 16 << 10
	// MaxName is the longest name of a timer in bytes.
	MaxName = 100
	// maxID bounds an id, an agent path, a channel and a conversation.
	maxID = 256
)

// Limits are what the settings allow.
type Limits struct {
	// Shortest is the shortest time between slots of an interval.
	Shortest time.Duration
	// Grace is how far in the past a single slot may be.
	Grace time.Duration
}

// Read makes the timer of a request whole: times as people write them are read in its zone, or in that of the node, and
// what it leaves open gets its default. It returns a copy, with its schedule. The error is an *Error.
func Read(p *messages.PutTimer, now time.Time, node *time.Location, l Limits) (*messages.Timer, *Schedule, error) {
	t := proto.CloneOf(p.GetTimer())
	if t == nil {
		return nil, nil, bad("timer", "There is no timer.", "")
	}
	if err := checkWords(t); err != nil {
		return nil, nil, err
	}
	loc := node
	if t.GetZone() != "" {
		var err error
		if loc, err = Zone(t.GetZone()); err != nil {
			return nil, nil, err
		}
	}
	if err := readWhen(t, p, now, loc); err != nil {
		return nil, nil, err
	}
	s, err := NewSchedule(t, node)
	if err != nil {
		return nil, nil, err
	}
	if err := checkWhen(t, now, l); err != nil {
		return nil, nil, err
	}
	fill(t)
	return t, s, nil
}

// fill puts the defaults where nothing was said.
func fill(t *messages.Timer) {
	if t.GetAgent() == "" {
		t.Agent = "main"
	}
	if t.GetMissed() == messages.MissedPolicy_MISSED_POLICY_UNSPECIFIED {
		t.Missed = messages.MissedPolicy_MISSED_POLICY_SKIP
		if t.GetReminder() || t.GetKind() == messages.TimerKind_TIMER_KIND_ONCE {
			t.Missed = messages.MissedPolicy_MISSED_POLICY_RUN_ONCE
		}
	}
	if t.GetOverlap() == messages.OverlapPolicy_OVERLAP_POLICY_UNSPECIFIED {
		t.Overlap = messages.OverlapPolicy_OVERLAP_POLICY_SKIP
	}
}

// checkWords looks at all that is not a time.
func checkWords(t *messages.Timer) error {
	for _, f := range []struct {
		field, value string
		most         int
	}{
		{"timer_id", t.GetTimerId(), maxID},
		{"name", t.GetName(), MaxName},
		{"agent", t.GetAgent(), maxID},
		{"channel", t.GetChannel(), maxID},
		{"conversation", t.GetConversation(), maxID},
	} {
		if len(f.value) > f.most || !utf8.ValidString(f.value) || strings.ContainsFunc(f.value, unicode.IsControl) {
			return bad(f.field, "The "+f.field+" is too long or holds signs that cannot be shown.", "")
		}
	}
	switch {
	case t.GetTimerId() == "":
		return bad("timer_id", "The timer has no id.", "")
	case strings.TrimSpace(t.GetText()) == "":
		return bad("text", "The timer says nothing.", "Set the text that the agent is told when it is due.")
	case len(t.GetText()) > MaxText:
		return bad("text", "The text is longer than 16 KiB.", "Put the rest into a file, and name the file.")
	case !utf8.ValidString(t.GetText()):
		return bad("text", "The text is not UTF-8.", "")
	case t.Level != nil && (t.GetLevel() < 0 || t.GetLevel() > 3):
		return bad("level", "A timer has a level from 0 to 3.", "Leave it out: a reminder has 3, anything else 0.")
	case messages.MissedPolicy_name[int32(t.GetMissed())] == "":
		return bad("missed", "There is no such policy.", "Use skip or run_once.")
	case messages.OverlapPolicy_name[int32(t.GetOverlap())] == "":
		return bad("overlap", "There is no such policy.", "Use skip or queue.")
	}
	return nil
}

// readWhen fills kind, at and every from what people wrote.
func readWhen(t *messages.Timer, p *messages.PutTimer, now time.Time, loc *time.Location) error {
	at, in, every, cron := strings.TrimSpace(p.GetAt()), strings.TrimSpace(p.GetIn()), strings.TrimSpace(p.GetEvery()), t.GetCron()
	if at == "" && in == "" && every == "" {
		return nil // the fields of the timer stand
	}
	switch {
	case cron != "":
		return bad("cron", "A cron expression says by itself when the timer is due.", "Leave out at, in and every.")
	case at != "" && in != "":
		return bad("in", "A timer is due at a time or in a while, not both.", "Leave out one of at and in.")
	}
	start := ceil(now)
	switch {
	case at != "":
		var err error
		if start, err = parseAt(at, now, loc); err != nil {
			return err
		}
	case in != "":
		d, err := duration("in", in)
		if err != nil {
			return err
		}
		start = ceil(now.Add(d))
	}
	t.Kind, t.AtUs, t.EverySeconds = messages.TimerKind_TIMER_KIND_ONCE, start.UnixMicro(), 0
	if every == "" {
		return nil
	}
	d, err := duration("every", every)
	if err != nil {
		return err
	}
	if d%time.Second != 0 {
		return bad("every", "The time between slots has whole seconds.", "")
	}
	if at == "" && in == "" { // the first slot is after one interval
		t.AtUs = ceil(now.Add(d)).UnixMicro()
	}
	t.Kind, t.EverySeconds = messages.TimerKind_TIMER_KIND_INTERVAL, int64(d/time.Second)
	return nil
}

// ceil rounds up to whole seconds: a slot has no fraction.
func ceil(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

// maxIn is how far ahead a duration may lead: a hundred years.
const maxIn = 100 * 366 * 24 * time.Hour

func duration(field, text string) (time.Duration, error) {
	d, err := configs.ParseDuration(text)
	if err != nil || d > maxIn {
		return 0, bad(field, quote(text)+" is no duration for a timer.", "Write it such as 90s, 1h30m, 2d or 1w; at most 100 years.")
	}
	return d, nil
}

// stamps are forms with an offset, locals those that are read in the zone of the timer.
var (
	stamps = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00"}
	locals = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}
	clocks = []string{"15:04:05", "15:04"}
)

// parseAt reads a time as people write it. A time of day alone is the next one.
func parseAt(text string, now time.Time, loc *time.Location) (time.Time, error) {
	for _, f := range stamps {
		if t, err := time.Parse(f, text); err == nil {
			return ceil(t.UTC()), nil
		}
	}
	for _, f := range locals {
		if t, err := time.Parse(f, text); err == nil {
			return instant(ceil(t), loc), nil
		}
	}
	for _, f := range clocks {
		c, err := time.Parse(f, text)
		if err != nil {
			continue
		}
		today := wall(now, loc)
		w := time.Date(today.Year(), today.Month(), today.Day(), c.Hour(), c.Minute(), c.Second(), 0, time.UTC)
		if t := instant(w, loc); t.After(now) {
			return t, nil
		}
		return instant(w.AddDate(0, 0, 1), loc), nil
	}
	return time.Time{}, bad("at", quote(text)+" is no time.",
		`Write RFC 3339 such as "2027-03-01T09:00:00+01:00", a local time such as "2027-03-01 09:00", or a time of day such as "09:00".`)
}

// checkWhen holds the times against the clock and the settings.
func checkWhen(t *messages.Timer, now time.Time, l Limits) error {
	switch t.GetKind() {
	case messages.TimerKind_TIMER_KIND_ONCE:
		at := time.UnixMicro(t.GetAtUs())
		if at.Before(now.Add(-l.Grace)) {
			return bad("at", "The time "+at.UTC().Format(time.RFC3339)+" has passed.", "Give a time in the future; in is counted from now.")
		}
	case messages.TimerKind_TIMER_KIND_INTERVAL:
		if d := time.Duration(t.GetEverySeconds()) * time.Second; d < l.Shortest {
			return bad("every", "The time between slots is at least "+configs.FormatDuration(l.Shortest)+" here.",
				"Take a longer one, or set core.timers.min_interval.")
		}
	case messages.TimerKind_TIMER_KIND_CRON, messages.TimerKind_TIMER_KIND_UNSPECIFIED:
	}
	return nil
}

package timers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

func TestRead(t *testing.T) {
	berlin, err := Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := at(t, "2026-12-01T10:00:00Z").Add(300 * time.Millisecond)
	limits := Limits{Shortest: time.Minute, Grace: time.Minute}
	put := func(change func(p *messages.PutTimer)) *messages.PutTimer {
		p := &messages.PutTimer{Timer: &messages.Timer{TimerId: "T", Text: "water the plants"}}
		change(p)
		return p
	}
	const once, interval, cron = messages.TimerKind_TIMER_KIND_ONCE, messages.TimerKind_TIMER_KIND_INTERVAL, messages.TimerKind_TIMER_KIND_CRON
	for _, c := range []struct {
		name   string
		put    *messages.PutTimer
		kind   messages.TimerKind
		next   string
		missed messages.MissedPolicy
	}{
		{"in, rounded up", put(func(p *messages.PutTimer) { p.In = "1s" }), once, "2026-12-01T10:00:02Z", messages.MissedPolicy_MISSED_POLICY_RUN_ONCE},
		{"rfc 3339", put(func(p *messages.PutTimer) { p.At = "2027-03-01T09:00:00+08:00" }), once, "2027-03-01T01:00:00Z", messages.MissedPolicy_MISSED_POLICY_RUN_ONCE},
		{"local", put(func(p *messages.PutTimer) { p.At = "2027-03-01 09:00" }), once, "2027-03-01T08:00:00Z", messages.MissedPolicy_MISSED_POLICY_RUN_ONCE},
		{"local in its own zone", put(func(p *messages.PutTimer) { p.At, p.Timer.Zone = "2027-03-01 09:00", "Asia/Shanghai" }), once, "2027-03-01T01:00:00Z", messages.MissedPolicy_MISSED_POLICY_RUN_ONCE},
		{"local, skipped by the clock", put(func(p *messages.PutTimer) { p.At = "2027-03-28T02:30" }), once, "2027-03-28T01:00:00Z", messages.MissedPolicy_MISSED_POLICY_RUN_ONCE},
		{"local, twice on the clock", put(func(p *messages.PutTimer) { p.At = "2027-10-31 02:30:00" }), once, "2027-10-31T00:30:00Z", messages.MissedPolicy_MISSED_POLICY_RUN_ONCE},
		{"time of day, still to come", put(func(p *messages.PutTimer) { p.At = "11:01" }), once, "2026-12-01T10:01:00Z", messages.MissedPolicy_MISSED_POLICY_RUN_ONCE},
		{"time of day, tomorrow", put(func(p *messages.PutTimer) { p.At = "11:00" }), once, "2026-12-02T10:00:00Z", messages.MissedPolicy_MISSED_POLICY_RUN_ONCE},
		{"a past within the grace", put(func(p *messages.PutTimer) { p.At = "2026-12-01T09:59:30Z" }), once, "2026-12-01T09:59:30Z", messages.MissedPolicy_MISSED_POLICY_RUN_ONCE},
		{"every", put(func(p *messages.PutTimer) { p.Every = "1h30m" }), interval, "2026-12-01T11:30:01Z", messages.MissedPolicy_MISSED_POLICY_SKIP},
		{"every, from an anchor", put(func(p *messages.PutTimer) { p.Every, p.At = "1d", "2026-11-01T08:00:00Z" }), interval, "2026-12-02T08:00:00Z", messages.MissedPolicy_MISSED_POLICY_SKIP},
		{"every, a reminder", put(func(p *messages.PutTimer) { p.Every, p.Timer.Reminder = "1d", true }), interval, "2026-12-02T10:00:01Z", messages.MissedPolicy_MISSED_POLICY_RUN_ONCE},
		{"cron", put(func(p *messages.PutTimer) { p.Timer.Cron, p.Timer.Kind = "0 9 * * *", cron }), cron, "2026-12-02T08:00:00Z", messages.MissedPolicy_MISSED_POLICY_SKIP},
	} {
		got, s, err := Read(c.put, now, berlin, limits)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		from := now
		if c.name == "a past within the grace" {
			from = now.Add(-time.Minute)
		}
		next, ok := s.Next(from)
		if got.GetKind() != c.kind || !ok || !next.Equal(at(t, c.next)) || got.GetMissed() != c.missed || got.GetAgent() != "main" {
			t.Errorf("%s: %v, next %s", c.name, got, next)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	now := at(t, "2026-12-01T10:00:00Z")
	limits := Limits{Shortest: time.Minute, Grace: time.Minute}
	for _, c := range []struct {
		field, code string
		change      func(p *messages.PutTimer)
	}{
		{"at", CodeBad, func(*messages.PutTimer) {}},
		{"at", CodeBad, func(p *messages.PutTimer) { p.At = "2026-12-01T09:58:00Z" }},
		{"at", CodeBad, func(p *messages.PutTimer) { p.At = "tomorrow at noon" }},
		{"at", CodeBad, func(p *messages.PutTimer) { p.At = "2026-02-30 09:00" }},
		{"at", CodeBad, func(p *messages.PutTimer) { p.At = "99999-01-01T00:00:00Z" }},
		{"at", CodeBad, func(p *messages.PutTimer) {
			p.Timer.Kind, p.Timer.AtUs = messages.TimerKind_TIMER_KIND_ONCE, 1<<62
		}},
		{"at", CodeBad, func(p *messages.PutTimer) {
			p.Timer.Kind, p.Timer.AtUs = messages.TimerKind_TIMER_KIND_INTERVAL, -1
			p.Timer.EverySeconds = 60
		}},
		{"in", CodeBad, func(p *messages.PutTimer) { p.In = "-5m" }},
		{"in", CodeBad, func(p *messages.PutTimer) { p.In = "soon" }},
		{"in", CodeBad, func(p *messages.PutTimer) { p.In = "15000w" }},
		{"in", CodeBad, func(p *messages.PutTimer) { p.In = "99999999999999999999h" }},
		{"in", CodeBad, func(p *messages.PutTimer) { p.In, p.At = "5m", "09:00" }},
		{"every", CodeBad, func(p *messages.PutTimer) { p.Every = "0" }},
		{"every", CodeBad, func(p *messages.PutTimer) { p.Every = "1s" }},
		{"every", CodeBad, func(p *messages.PutTimer) { p.Every = "90500ms" }},
		{"every", CodeBad, func(p *messages.PutTimer) { p.Every = "53w" }},
		{"every", CodeBad, func(p *messages.PutTimer) {
			p.Timer.Kind, p.Timer.EverySeconds = messages.TimerKind_TIMER_KIND_INTERVAL, -60
		}},
		{"cron", CodeBad, func(p *messages.PutTimer) { p.Timer.Cron, p.Every = "* * * * *", "1d" }},
		{"zone", CodeZone, func(p *messages.PutTimer) { p.In, p.Timer.Zone = "5m", "Beijing" }},
		{"text", CodeBad, func(p *messages.PutTimer) { p.In, p.Timer.Text = "5m", " \n" }},
		{"text", CodeBad, func(p *messages.PutTimer) { p.In, p.Timer.Text = "5m", strings.Repeat("x", MaxText+1) }},
		{"text", CodeBad, func(p *messages.PutTimer) { p.In, p.Timer.Text = "5m", "\xff" }},
		{"name", CodeBad, func(p *messages.PutTimer) { p.In, p.Timer.Name = "5m", strings.Repeat("x", MaxName+1) }},
		{"name", CodeBad, func(p *messages.PutTimer) { p.In, p.Timer.Name = "5m", "a\x00b" }},
		{"level", CodeBad, func(p *messages.PutTimer) { p.In, p.Timer.Level = "5m", proto.Int32(4) }},
		{"level", CodeBad, func(p *messages.PutTimer) { p.In, p.Timer.Level = "5m", proto.Int32(-1) }},
		{"missed", CodeBad, func(p *messages.PutTimer) { p.In, p.Timer.Missed = "5m", 9 }},
		{"overlap", CodeBad, func(p *messages.PutTimer) { p.In, p.Timer.Overlap = "5m", 9 }},
		{"timer_id", CodeBad, func(p *messages.PutTimer) { p.In, p.Timer.TimerId = "5m", "" }},
	} {
		p := &messages.PutTimer{Timer: &messages.Timer{TimerId: "T", Text: "x"}}
		c.change(p)
		_, _, err := Read(p, now, time.UTC, limits)
		var e *Error
		if !errors.As(err, &e) || e.Field != c.field || e.Code != c.code || e.Proto().GetDetails()["field"] != c.field {
			t.Errorf("%v: %v, want %s of %s", p, err, c.code, c.field)
		}
	}
}

// Nonsense in place of an expression is refused with the field and a hint, never a panic and never a timer that is silent.
func TestCronNonsense(t *testing.T) {
	for _, x := range []string{
		"", " ", "nonsense", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 32 * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "-1 * * * *",
		"*/0 * * * *", "*/99 * * * *", "5-1 9 * * *", "* 22-2 * * *", "* * * NOV-FEB *", "* * * * FRI-MON", "1,,2 * * * *", ", * * * *", "1-2-3 * * * *",
		"a b c d e", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "@reboot", "@every 5m", "@", "TZ=UTC * * * * *", "CRON_TZ=", "99999999999999999999 * * * *",
		"1.5 * * * *", "*\x00 * * * *", "Ⅴ * * * *", strings.Repeat("1,", 200) + "1 * * * *",
	} {
		_, err := NewSchedule(&messages.Timer{Kind: messages.TimerKind_TIMER_KIND_CRON, Cron: x}, time.UTC)
		var e *Error
		if !errors.As(err, &e) || e.Field != "cron" || e.Code != CodeBad || e.Hint == "" || e.Message == "" {
			t.Errorf("%q: %v", x, err)
		}
	}
}

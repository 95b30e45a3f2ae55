package timers

import (
	"errors"
	"testing"
	"time"

	"homeagent/messages"
)

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v.UTC()
}

func cronTimer(t testing.TB, expr, zone string) *Schedule {
	t.Helper()
	s, err := NewSchedule(&messages.Timer{Kind: messages.TimerKind_TIMER_KIND_CRON, Cron: expr, Zone: zone}, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The slots of a cron timer on days when clocks change, in leap years, and where zones do odd things.
func TestCronSlots(t *testing.T) {
	for _, c := range []struct {
		name, expr, zone, from string
		want                   []string
	}{
		{"a plain day", "30 8 * * 1-5", "Europe/Berlin", "2026-12-04T12:00:00Z", []string{"2026-12-07T07:30:00Z", "2026-12-08T07:30:00Z"}},
		{"Sunday is 0 and 7", "0 9 * * 7", "UTC", "2026-12-01T00:00:00Z", []string{"2026-12-06T09:00:00Z", "2026-12-13T09:00:00Z"}},
		{"day of month or day of week", "0 0 13 * 5", "UTC", "2026-12-01T00:00:00Z", []string{"2026-12-04T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z"}},

		{"clocks go forward: a time that is skipped is due right after", "30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", []string{"2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"}},
		{"clocks go forward: several that are skipped are one", "*/20 2 * * *", "America/New_York", "2027-03-13T12:00:00Z", []string{"2027-03-14T07:00:00Z", "2027-03-15T06:00:00Z", "2027-03-15T06:20:00Z"}},
		{"clocks go forward: every quarter stays in step", "*/15 * * * *", "America/New_York", "2027-03-14T06:44:00Z", []string{"2027-03-14T06:45:00Z", "2027-03-14T07:00:00Z", "2027-03-14T07:15:00Z"}},
		{"clocks go back: a time that comes twice is due once", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"clocks go back: looked at while it comes again", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"clocks go back: the second hour is quiet", "0,30 * * * *", "America/New_York", "2026-11-01T05:00:00Z", []string{"2026-11-01T05:30:00Z", "2026-11-01T07:00:00Z", "2026-11-01T07:30:00Z"}},
		{"half an hour forward", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"half an hour back", "45 1 * * *", "Australia/Lord_Howe", "2027-04-03T00:00:00Z", []string{"2027-04-03T14:45:00Z", "2027-04-04T15:15:00Z"}},
		{"no midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", []string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
		{"a day that is skipped", "0 12 30 12 *", "Pacific/Apia", "2011-12-28T00:00:00Z", []string{"2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"}},

		{"leap day", "0 0 29 2 *", "UTC", "2026-12-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"last day of the month", "0 0 L * *", "UTC", "2028-01-31T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z"}},
		{"a descriptor", "@weekly", "Asia/Shanghai", "2026-12-01T00:00:00Z", []string{"2026-12-05T16:00:00Z"}},
		{"the year ends", "59 23 31 12 *", "Asia/Kathmandu", "2026-12-31T18:14:00Z", []string{"2027-12-31T18:14:00Z"}},
	} {
		s := cronTimer(t, c.expr, c.zone)
		from := at(t, c.from)
		for _, want := range c.want {
			got, ok := s.Next(from)
			if !ok || !got.Equal(at(t, want)) {
				t.Errorf("%s: %q in %s after %s is %s, want %s", c.name, c.expr, c.zone, from.Format(time.RFC3339), got.Format(time.RFC3339), want)
				break
			}
			from = got
		}
	}
}

// A whole year of zones that change their clocks: slots go up, each wall time is due once, and none is forgotten.
func TestEveryWallTimeOnce(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Shanghai", "America/St_Johns"} {
		s := cronTimer(t, "*/10 * * * *", zone)
		loc, err := Zone(zone)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for slot, ok := s.Next(at(t, "2026-01-01T00:00:00Z")); slot.Year() < 2027; slot, ok = s.Next(slot) {
			w := slot.In(loc).Format("2006-01-02 15:04")
			if !ok || seen[w] {
				t.Fatalf("%s: %s is due twice", zone, w)
			}
			seen[w] = true
		}
		for u := at(t, "2026-01-01T00:10:00Z"); u.Year() < 2027; u = u.Add(10 * time.Minute) {
			if w := u.In(loc).Format("2006-01-02 15:04"); !seen[w] {
				t.Fatalf("%s: %s was never due", zone, w)
			}
		}
	}
}

func TestIntervalAndOnce(t *testing.T) {
	iv := &messages.Timer{Kind: messages.TimerKind_TIMER_KIND_INTERVAL, AtUs: at(t, "2026-03-28T09:00:00Z").UnixMicro(), EverySeconds: 86400}
	s, err := NewSchedule(iv, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"2020-01-01T00:00:00Z", "2026-03-28T09:00:00Z"}, // the anchor is a slot
		{"2026-03-28T09:00:00Z", "2026-03-29T09:00:00Z"}, // elapsed time, whatever the clock on the wall does
		{"2026-03-28T08:59:59Z", "2026-03-28T09:00:00Z"},
		{"2036-03-28T10:00:00Z", "2036-03-29T09:00:00Z"}, // from the anchor, not from when it was looked at
	} {
		if got, ok := s.Next(at(t, c[0])); !ok || !got.Equal(at(t, c[1])) {
			t.Errorf("after %s: %s, want %s", c[0], got, c[1])
		}
	}
	once, err := NewSchedule(&messages.Timer{Kind: messages.TimerKind_TIMER_KIND_ONCE, AtUs: at(t, "2026-03-28T09:00:00Z").UnixMicro()}, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := once.Next(at(t, "2026-03-28T09:00:00Z")); ok {
		t.Error("a single slot came twice")
	}
	if got, ok := once.Next(at(t, "2026-03-28T08:59:59Z")); !ok || !got.Equal(at(t, "2026-03-28T09:00:00Z")) {
		t.Errorf("the single slot is %s", got)
	}
}

func TestPassed(t *testing.T) {
	hourly := cronTimer(t, "0 * * * *", "UTC")
	minutely := cronTimer(t, "* * * * *", "Europe/Berlin")
	leap := cronTimer(t, "0 0 29 2 *", "UTC")
	second, err := NewSchedule(&messages.Timer{Kind: messages.TimerKind_TIMER_KIND_INTERVAL, AtUs: at(t, "2026-01-01T00:00:00Z").UnixMicro(), EverySeconds: 1}, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s             *Schedule
		after, until  string
		latest        string
		count         int
		what          string
		mayTakeLonger bool
	}{
		{hourly, "2026-01-01T00:00:00Z", "2026-01-01T00:59:59Z", "", 0, "none", false},
		{hourly, "2026-01-01T00:00:00Z", "2026-01-01T03:00:00Z", "2026-01-01T03:00:00Z", 3, "the end counts, the beginning does not", false},
		{minutely, "2026-01-01T00:00:00Z", "2027-01-01T00:00:30Z", "2027-01-01T00:00:00Z", MaxPassed, "a year of minutes", false},
		{second, "2026-01-01T00:00:00Z", "2046-01-01T00:00:00Z", "2046-01-01T00:00:00Z", MaxPassed, "twenty years of seconds", false},
		{leap, "2026-01-01T00:00:00Z", "2040-01-01T00:00:00Z", "2036-02-29T00:00:00Z", 3, "leap days", false},
	} {
		latest, n := c.s.Passed(at(t, c.after), at(t, c.until))
		if n != c.count || (n > 0 && !latest.Equal(at(t, c.latest))) {
			t.Errorf("%s: %d, the latest %s; want %d, %s", c.what, n, latest, c.count, c.latest)
		}
	}
}

func TestZoneOfTheNode(t *testing.T) {
	tm := &messages.Timer{Kind: messages.TimerKind_TIMER_KIND_CRON, Cron: "0 8 * * *"}
	for zone, want := range map[string]string{"Asia/Shanghai": "2026-12-02T00:00:00Z", "America/New_York": "2026-12-01T13:00:00Z"} {
		loc, err := Zone(zone)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSchedule(tm, loc)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := s.Next(at(t, "2026-12-01T12:00:00Z")); !got.Equal(at(t, want)) || s.Zone() != loc {
			t.Errorf("%s: %s, want %s", zone, got, want)
		}
	}
	for _, zone := range []string{"Mars/Olympus", "Local", "../etc/passwd", "Europe"} {
		tm.Zone = zone
		var e *Error
		if _, err := NewSchedule(tm, time.UTC); !errors.As(err, &e) || e.Code != CodeZone || e.Hint == "" {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, s := range []string{"* * * * *", "5-1 9 * * *", "@daily", "0 0 30 2 *", "0 0 L * *", "0 0 15W * *", "0 0 * * 5L", "0 0 * * 1#5", "1,,2 * * * *", "*/7 0-23/5 ? JAN-dec MON", "TZ=", "L-3 * * * *"} {
		f.Add(s)
	}
	from := time.Date(2026, 10, 25, 0, 10, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := NewSchedule(&messages.Timer{Kind: messages.TimerKind_TIMER_KIND_CRON, Cron: text, Zone: "Europe/Berlin"}, time.UTC)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Field != "cron" || e.Hint == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		slot := from
		for range 5 {
			next, ok := s.Next(slot)
			if !ok {
				return
			}
			if !next.After(slot) {
				t.Fatalf("%q: %s comes after %s", text, next, slot)
			}
			slot = next
		}
	})
}

func BenchmarkNextCron(b *testing.B) {
	s := cronTimer(b, "30 8 * * 1-5", "Europe/Berlin")
	slot := at(b, "2026-01-01T00:00:00Z")
	for b.Loop() {
		if slot, _ = s.Next(slot); slot.Year() > 2090 {
			slot = at(b, "2026-01-01T00:00:00Z")
		}
	}
}

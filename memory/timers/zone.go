package timers

import (
	"strconv"
	"sync"
	"time"
	_ "time/tzdata" // zones are needed on systems without a zone database too
)

// zones are the locations that were loaded; only names of the database get in, so that they bound it.
var zones sync.Map // string to *time.Location

// maxZone is the longest name of a zone in bytes; the longest of the database has 32.
const maxZone = 64

// Zone returns the location of an IANA name, or an *Error with CodeZone.
func Zone(name string) (*time.Location, error) {
	if l, ok := zones.Load(name); ok {
		return l.(*time.Location), nil
	}
	if name != "" && name != "Local" && len(name) <= maxZone {
		if l, err := time.LoadLocation(name); err == nil {
			zones.Store(name, l)
			return l, nil
		}
	}
	return nil, &Error{
		Code: CodeZone, Field: "zone", Message: "There is no time zone " + quote(name) + ".",
		Hint: "Use an IANA name such as Asia/Shanghai, Europe/Berlin or UTC, or leave it out for the zone of the node.",
	}
}

// quote quotes a text of a person, cut when it is long.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

// wall is the wall clock of loc at t, written as UTC.
func wall(t time.Time, loc *time.Location) time.Time {
	_, offset := t.In(loc).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instant is when the wall clock of loc shows w, which is written as UTC: the first time when it does so twice, the first
// instant after the gap when it never does.
func instant(w time.Time, loc *time.Location) time.Time {
	// Date is right by one of the two offsets around a change, but does not say by which.
	near := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), 0, loc)
	start, end := near.ZoneBounds()
	around := []time.Time{near}
	if !start.IsZero() {
		around = append(around, start.Add(-time.Second))
	}
	if !end.IsZero() {
		around = append(around, end)
	}
	var first time.Time
	for _, a := range around {
		_, offset := a.In(loc).Zone()
		t := w.Add(-time.Duration(offset) * time.Second)
		if wall(t, loc).Equal(w) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !first.IsZero() {
		return first.UTC()
	}
	for _, change := range []time.Time{start, end} {
		if !change.IsZero() && wall(change.Add(-time.Second), loc).Before(w) && wall(change, loc).After(w) {
			return change.UTC()
		}
	}
	return near.UTC()
}

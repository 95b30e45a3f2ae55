package lexical

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// date is a day or month that a query names; zero fields are not said.
type date struct{ year, month, day int }

// holds reports whether a time in the person's zone is of that date.
func (d date) holds(t time.Time) bool {
	return (d.year == 0 || d.year == t.Year()) && d.month == int(t.Month()) && (d.day == 0 || d.day == t.Day())
}

const (
	monthName = `(january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?`
	hanNumber = `([0-9]{1,2}|[一二三四五六七八九十]{1,3})`
)

// dateForms are the ways dates are written; the groups are named y, m, d.
var dateForms = func() []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, s := range []string{
		`(?:(?P<y>[0-9]{4})年)?(?P<m>` + hanNumber + `)月(?:(?P<d>` + hanNumber + `)[日号])?`,
		`\b(?P<y>[0-9]{4})[-/](?P<m>[0-9]{1,2})[-/](?P<d>[0-9]{1,2})\b`,
		`(?i)\b(?P<d>[0-9]{1,2})(?:st|nd|rd|th)?(?: of)? (?P<m>` + monthName + `)(?:,? (?P<y>[0-9]{4}))?\b`,
		`(?i)\b(?P<m>` + monthName + `) (?P<d>[0-9]{1,2})(?:st|nd|rd|th)?\b(?:,? (?P<y>[0-9]{4}))?`,
		`(?i)\b(?P<m>` + monthName + `),? (?P<y>[0-9]{4})\b`,
		`(?i)\b(?:in|of|during|since|until) (?P<m>` + monthName + `)\b`,
	} {
		out = append(out, regexp.MustCompile(s))
	}
	return out
}()

// datesIn returns the dates that a text names, and the terms that spell them.
func datesIn(text string) (dates []date, spelt map[string]bool) {
	text = norm.NFKC.String(text)
	for _, form := range dateForms {
		text = form.ReplaceAllStringFunc(text, func(span string) string {
			m := form.FindStringSubmatch(span)
			if m == nil {
				return span // it began at a boundary that the span alone does not have
			}
			group := func(name string) string {
				if i := form.SubexpIndex(name); i >= 0 {
					return m[i]
				}
				return ""
			}
			d := date{number(group("y")), month(group("m")), number(group("d"))}
			if d.month < 1 || d.month > 12 || d.day > 31 {
				return span
			}
			dates = append(dates, d)
			if spelt == nil {
				spelt = map[string]bool{}
			}
			for _, t := range Terms(span) {
				spelt[t] = true
			}
			return " "
		})
	}
	return dates, spelt
}

func month(s string) int {
	s = strings.ToLower(s)
	if len(s) >= 3 && s[0] >= 'a' && s[0] <= 'z' {
		return 1 + strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", s[:3])/3
	}
	return number(s)
}

// number reads digits or Chinese numerals up to 99; zero for anything else.
func number(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	tens, ones, seen := 0, 0, false
	for _, r := range s {
		if r == '十' {
			tens, ones, seen = max(1, ones), 0, true
			continue
		}
		i := strings.IndexRune("一二三四五六七八九", r)
		if i < 0 {
			return 0
		}
		ones = i/len("一") + 1
	}
	if seen {
		return 10*tens + ones
	}
	return ones
}

package timers

import (
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"
)

// maxCron is the longest expression in bytes.
const maxCron = 256

// cronFields are the five fields in order, as people are told.
var cronFields = [...]struct{ name, legal string }{
	{"minute", "0-59"},
	{"hour", "0-23"},
	{"day of month", "1-31 or L"},
	{"month", "1-12 or JAN-DEC"},
	{"day of week", "0-7 or SUN-SAT, 0 and 7 are Sunday"},
}

// descriptors stand for whole expressions.
var descriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

var cronNames = map[string]int{
	"JAN": 1, "FEB": 2, "MAR": 3, "APR": 4, "MAY": 5, "JUN": 6, "JUL": 7, "AUG": 8, "SEP": 9, "OCT": 10, "NOV": 11, "DEC": 12,
	"SUN": 0, "MON": 1, "TUE": 2, "WED": 3, "THU": 4, "FRI": 5, "SAT": 6,
}

const cronHint = `Five fields: minute, hour, day of month, month, day of week, such as "30 8 * * 1-5"; or @hourly, @daily, @weekly, @monthly, @yearly.`

// parseCron reads an expression; what can never be due is refused.
func parseCron(text string) (*cronexpr.Expression, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, bad("cron", "The expression is empty.", cronHint)
	}
	if len(text) > maxCron {
		return nil, bad("cron", "The expression is longer than "+strconv.Itoa(maxCron)+" bytes.", cronHint)
	}
	full := text
	if strings.HasPrefix(text, "@") {
		var ok bool
		if full, ok = descriptors[strings.ToLower(text)]; !ok {
			return nil, bad("cron", "There is no "+quote(text)+".", cronHint+" For every so often, set every.")
		}
	}
	fields := strings.Fields(full)
	if strings.Contains(fields[0], "=") {
		return nil, bad("cron", "An expression names no time zone.", "Set zone.")
	}
	if len(fields) != len(cronFields) {
		return nil, bad("cron", "The expression has "+strconv.Itoa(len(fields))+" fields and not five.", cronHint)
	}
	for i, f := range fields {
		if err := checkField(i, f); err != nil {
			return nil, err
		}
	}
	x, err := cronexpr.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, bad("cron", quote(text)+" cannot be read: "+err.Error()+".", cronHint)
	}
	// No calendar repeats later than 400 years, and the parser ends with 2099: what has no match from 2000 on has none.
	if x.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, bad("cron", quote(text)+" never matches: there is no such day.", "Correct day of month and month.")
	}
	return x, nil
}

// checkField refuses what the parser takes and then has no value for: an empty item, or a range that goes down. It also
// tells what is legal, where the parser only says that something is not.
func checkField(i int, field string) error {
	no := func(what, hint string) error {
		return bad("cron", "The field "+cronFields[i].name+" "+what+": "+quote(field)+".", hint+" It takes "+cronFields[i].legal+", *, lists a,b and steps */n.")
	}
	for item := range strings.SplitSeq(field, ",") {
		span, step, stepped := strings.Cut(item, "/")
		low, high, ranged := strings.Cut(span, "-")
		if item == "" || span == "" || low == "" || (ranged && high == "") || (stepped && step == "") {
			return no("has an empty part", "")
		}
		for _, r := range item {
			if !strings.ContainsRune("*?/-#", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
				return no("holds a sign that means nothing here", "")
			}
		}
		if !ranged {
			continue
		}
		from, ok := cronValue(low)
		to, alsoOK := cronValue(high)
		if ok && alsoOK && from > to {
			return no("has a range that goes down", "Write it as two, such as 22-23,0-2.")
		}
	}
	return nil
}

func cronValue(s string) (int, bool) {
	if len(s) >= 3 {
		if v, ok := cronNames[strings.ToUpper(s[:3])]; ok {
			return v, true
		}
	}
	v, err := strconv.Atoi(s)
	return v, err == nil
}

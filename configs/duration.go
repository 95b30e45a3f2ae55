package configs

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// durationForms is what a person is told about durations.
const durationForms = "a duration such as 250ms, 30s, 1h30m, 2d or 1w2d3h: a whole or decimal number with a unit " +
	"(w, d, h, m, s, ms, us, ns), larger units first"

type unit struct {
	name  string
	scale uint64
}

// durationUnits is ordered from the largest down: the order a text must keep.
var durationUnits = []unit{
	{"w", uint64(7 * 24 * time.Hour)},
	{"d", uint64(24 * time.Hour)},
	{"h", uint64(time.Hour)},
	{"m", uint64(time.Minute)},
	{"s", uint64(time.Second)},
	{"ms", uint64(time.Millisecond)},
	{"us", uint64(time.Microsecond)},
	{"ns", 1},
}

var (
	errForm     = errors.New("not in a legal form")
	errOverflow = errors.New("too large")
	errFraction = errors.New("finer than the smallest unit")
)

// ParseDuration is the one reader of durations in the node: whole or decimal
// numbers with units from ns to h plus d (24 hours) and w (7 days), larger units
// first, each at most once ("1w2d3h", "1.5h"), or a bare "0". A day is always
// 24 hours. There are no negative durations. The error is an *Error with
// CodeBadValue; callers that know the key add it.
func ParseDuration(text string) (time.Duration, error) {
	d, err := parseDuration(text)
	if err != nil {
		return 0, &Error{Code: CodeBadValue, Message: quoteValue(text) + " is " + err.Error(), Hint: "use " + durationForms + "; or 0"}
	}
	return d, nil
}

func parseDuration(text string) (time.Duration, error) {
	rest := strings.TrimSpace(text)
	if rest == "0" {
		return 0, nil
	}
	if rest == "" {
		return 0, errForm
	}
	var total uint64
	next := 0 // the first unit that may still follow
	for rest != "" {
		number, tail := splitNumber(rest)
		name, tail := splitUnit(tail)
		at := unitIndex(name)
		if number == "" || at < next {
			return 0, errForm
		}
		part, err := scaled(number, durationUnits[at].scale)
		if err != nil {
			return 0, err
		}
		sum, carry := bits.Add64(total, part, 0)
		if carry != 0 || sum > math.MaxInt64 {
			return 0, errOverflow
		}
		total, next, rest = sum, at+1, tail
	}
	return time.Duration(total), nil //nolint:gosec // bounded by MaxInt64 above
}

// splitNumber cuts the leading digits, with at most one point, off text.
func splitNumber(text string) (number, rest string) {
	i, point := 0, false
	for ; i < len(text); i++ {
		if text[i] == '.' && !point {
			point = true
			continue
		}
		if text[i] < '0' || text[i] > '9' {
			break
		}
	}
	return text[:i], text[i:]
}

func splitUnit(text string) (name, rest string) {
	i := strings.IndexFunc(text, func(r rune) bool { return r == '.' || (r >= '0' && r <= '9') })
	if i < 0 {
		i = len(text)
	}
	return text[:i], text[i:]
}

func unitIndex(name string) int {
	if name == "µs" || name == "μs" {
		name = "us"
	}
	for i, u := range durationUnits {
		if u.name == name {
			return i
		}
	}
	return -1
}

// scaled returns number × scale exactly, or says why it cannot.
func scaled(number string, scale uint64) (uint64, error) {
	whole, fraction, hasPoint := strings.Cut(number, ".")
	if whole == "" || (hasPoint && fraction == "") {
		return 0, errForm
	}
	n, err := strconv.ParseUint(whole, 10, 64)
	if err != nil {
		return 0, errOverflow // digits only, so nothing else can be wrong
	}
	high, low := bits.Mul64(n, scale)
	if high != 0 {
		return 0, errOverflow
	}
	part, err := scaledFraction(strings.TrimRight(fraction, "0"), scale)
	if err != nil {
		return 0, err
	}
	sum, carry := bits.Add64(low, part, 0)
	if carry != 0 {
		return 0, errOverflow
	}
	return sum, nil
}

// scaledFraction returns 0.fraction × scale when that is a whole number. Eighteen
// digits are the most that can be one: no scale here has more factors of ten.
func scaledFraction(fraction string, scale uint64) (uint64, error) {
	if fraction == "" {
		return 0, nil
	}
	if len(fraction) > 18 {
		return 0, errFraction
	}
	n, err := strconv.ParseUint(fraction, 10, 64)
	if err != nil {
		return 0, errForm
	}
	power := uint64(1)
	for range fraction {
		power *= 10
	}
	high, low := bits.Mul64(n, scale)
	quotient, remainder := bits.Div64(high, low, power) // high < power because n < power
	if remainder != 0 {
		return 0, errFraction
	}
	return quotient, nil
}

// FormatDuration writes d in the form ParseDuration reads, with the largest
// units first and zero parts left out: 36h is "1d12h", 0 is "0". d is not
// negative.
func FormatDuration(d time.Duration) string {
	if d < 0 {
		panic("configs: negative duration")
	}
	if d == 0 {
		return "0"
	}
	var b strings.Builder
	rest := uint64(d)
	for _, u := range durationUnits {
		if n := rest / u.scale; n > 0 {
			b.WriteString(strconv.FormatUint(n, 10))
			b.WriteString(u.name)
			rest -= n * u.scale
		}
	}
	return b.String()
}

// quoteValue quotes a value for a message, cut when it is long.
func quoteValue(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

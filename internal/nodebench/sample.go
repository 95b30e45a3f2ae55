package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// sample collects measured values of one kind, in one unit.
type sample []float64

// add notes a duration in milliseconds.
func (s *sample) add(d time.Duration) { *s = append(*s, float64(d)/float64(time.Millisecond)) }

// quantile is the value that the share q of the sample does not exceed, by the nearest rank; q is above 0 and at most 1.
// A sample without values has none, which is a fault of the caller.
func (s sample) quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// figure sums a sample up; want is the number of values that it must have.
func (s sample) figure(name, unit string, want int) (Figure, error) {
	if len(s) == 0 || len(s) != want {
		return Figure{}, fmt.Errorf("%w: %s has %d values, not %d", errNothing, name, len(s), want)
	}
	return Figure{
		Name: name, Unit: unit, N: len(s), P50: s.quantile(0.5), P95: s.quantile(0.95), P99: s.quantile(0.99), Min: slices.Min(s), Max: slices.Max(s),
	}, nil
}

// Target is what a figure must not exceed.
type Target struct {
	// Of is the quantile it holds for: "p50", "p95" or "p99".
	Of string `json:"of"`
	// Most is the limit, in the figure's unit.
	Most float64 `json:"most"`
}

// Figure is one measured quantity.
type Figure struct {
	Name string `json:"name"`
	// Unit is ms, MB or %; 1 MB is 1,000,000 bytes.
	Unit string  `json:"unit"`
	N    int     `json:"n"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	// Target is nil for a figure that is shown for comparison only; OK tells whether it is met.
	Target *Target `json:"target,omitempty"`
	OK     bool    `json:"ok,omitempty"`
	// Note says what the figure is, where its name does not.
	Note string `json:"note,omitempty"`
}

// within sets the target of a figure and judges it.
func (f Figure) within(of string, most float64) Figure {
	value := f.P50
	switch of {
	case "p95":
		value = f.P95
	case "p99":
		value = f.P99
	}
	f.Target, f.OK = &Target{of, most}, cmp.Compare(value, most) <= 0
	return f
}

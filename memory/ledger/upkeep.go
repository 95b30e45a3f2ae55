package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"homeagent/memory/block"
	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	// maxPressure is how many times the retention times are halved at most.
	maxPressure = 4
	// measureEvery is how often the spaces are measured, measureFull while the store is
	// over its budget.
	measureEvery = 10 * time.Minute
	measureFull  = time.Minute
	// verifyEvery is how often all tables are read and their checksums compared.
	verifyEvery = 7 * 24 * time.Hour
	// sweepEvery is how often payloads without a block are looked for; sweepAge is how
	// old such a payload must be.
	sweepEvery = 24 * time.Hour
	sweepAge   = 24 * time.Hour
	sweepStep  = 256
)

// sweep removes some payloads that never got a block: their sender failed between
// storing the content and referring to it.
func (l *Ledger) sweep(now time.Time) (more bool, err error) {
	if l.keep.sweep == "" && now.Sub(l.keep.swept) < sweepEvery {
		return false, nil
	}
	n, next, err := block.Sweep(l.db, now.Add(-sweepAge), l.keep.sweep, sweepStep)
	if err != nil {
		return false, err
	}
	l.keep.sweep = next
	if next == "" {
		l.keep.swept = now
	}
	l.mu.Lock()
	l.keep.removed.Payloads += uint64(n)
	l.mu.Unlock()
	return next != "", nil
}

// Upkeep looks after the files: it checks that they are still there, measures the
// spaces, lets the database give back space, and compares the size with the budget.
// It tells whether another round of Retain and Upkeep should follow soon. It may run
// beside everything else, but not beside itself. A broken store is an error that wraps
// store.ErrBroken.
func (l *Ledger) Upkeep(ctx context.Context, now time.Time) (again bool, err error) {
	if err := l.db.Check(); err != nil {
		return false, err
	}
	if err := l.verify(ctx, now); err != nil {
		return false, err
	}
	l.mu.Lock()
	policy, full, pressure, removed := l.keep.policy, l.keep.full != nil, l.keep.pressure, l.keep.removed
	l.mu.Unlock()
	every := measureEvery
	if full || pressure > 0 {
		every = measureFull
	}
	if !l.keep.measured.IsZero() && now.Sub(l.keep.measured) < every && removed == l.keep.shrunk {
		return false, nil
	}
	over := policy.Budget > 0 && l.db.Stats().Bytes > policy.Budget
	compact := over && removed != l.keep.shrunk
	if err := l.db.Compact(ctx, compact); err != nil {
		if !errors.Is(err, store.ErrDiskLow) { // then there is no room to make room
			return false, err
		}
	}
	sizes, err := l.db.Sizes(ctx)
	if err != nil {
		return false, err
	}
	l.keep.measured, l.keep.shrunk = now, removed
	return l.weigh(now, sizes, l.db.Stats().Bytes), nil
}

// weigh compares the size with the budget. Each step of pressure is followed by a
// round of Retain before the next is decided.
func (l *Ledger) weigh(now time.Time, sizes map[store.Space]int64, bytes int64) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.keep
	k.sizes, k.looked = sizes, now
	budget := k.policy.Budget
	switch {
	case budget <= 0:
		k.pressure, k.full = 0, nil
	case bytes > budget && k.pressure < maxPressure:
		k.pressure++
		l.log.Warn("store over its budget: what has ended is kept for a shorter time",
			"bytes", bytes, "budget", budget, "halved", k.pressure)
		// The next round measures whatever Retain finds.
		k.measured = time.Time{}
		return true
	case bytes > budget:
		if k.full == nil {
			l.log.Error("store full: inputs are refused", "bytes", bytes, "budget", budget, "largest", largest(sizes, 5))
		}
		k.full = fullError(budget, sizes)
	case k.full != nil:
		k.full = nil
		l.log.Info("the store has room again", "bytes", bytes, "budget", budget)
	case bytes < budget/4*3 && k.pressure > 0:
		k.pressure--
	}
	return false
}

// fullError tells a sender what takes the space.
func fullError(budget int64, sizes map[store.Space]int64) *messages.Error {
	return &messages.Error{
		Code:         "store_full",
		Message:      fmt.Sprintf("The store has reached its budget of %s. Largest: %s.", size(budget), largest(sizes, 3)),
		Hint:         "Raise core.store.budget, shorten core.retention.* or forget memories; the node goes on by itself.",
		RetryAfterMs: measureFull.Milliseconds(),
		Details:      map[string]string{"largest": largest(sizes, 5)},
	}
}

// bySize orders spaces by what they take, the largest first.
func bySize(sizes map[store.Space]int64) []store.Space {
	return slices.SortedFunc(maps.Keys(sizes), func(a, b store.Space) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b))
	})
}

func largest(sizes map[store.Space]int64, most int) string {
	spaces := bySize(sizes)
	var out []string
	for _, s := range spaces[:min(most, len(spaces))] {
		out = append(out, fmt.Sprintf("%s %s", s, size(sizes[s])))
	}
	return strings.Join(out, ", ")
}

// size writes bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// verify reads all tables now and then; the first time soon after a start that did
// not read all of them. What is found is shown and logged: the data in question is
// not known, and what is sound must go on.
func (l *Ledger) verify(ctx context.Context, now time.Time) error {
	k := &l.keep
	if k.verified.IsZero() && l.db.Report().Unverified == 0 {
		k.verified = now
	}
	if !k.verified.IsZero() && now.Sub(k.verified) < verifyEvery {
		return nil
	}
	found, err := l.db.VerifyTables(ctx)
	if err != nil {
		return err
	}
	k.verified = now
	l.mu.Lock()
	defer l.mu.Unlock()
	k.damage = nil
	for _, d := range found {
		l.log.Error("store damaged", "damage", d.String())
		k.damage = append(k.damage, d.String())
	}
	return nil
}

func (l *Ledger) upkeepFigures() *messages.UpkeepFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.keep
	out := &messages.UpkeepFigures{
		BudgetBytes: k.policy.Budget, Pressure: int32(k.pressure), Full: k.full != nil,
		RemovedJournals: k.removed.Journals, RemovedTasks: k.removed.Tasks, RemovedKeys: k.removed.Keys,
		RemovedOutputs: k.removed.Outputs, RemovedAsides: k.removed.Asides, RemovedPayloads: k.removed.Payloads,
		Damage: slices.Clone(k.damage),
	}
	if !k.looked.IsZero() {
		out.LookedUs = k.looked.UnixMicro()
	}
	for _, s := range bySize(k.sizes) {
		out.Spaces = append(out.Spaces, &messages.SpaceSize{Space: s.String(), Bytes: k.sizes[s]})
	}
	return out
}

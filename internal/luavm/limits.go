package luavm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limits bound one call into a script. A zero field takes the default.
type Limits struct {
	// Instructions is the budget of one call in interpreter instructions,
	// string work included. Default 5,000,000 (about a quarter of a second).
	Instructions int64
	// Time is the longest a call may take. Default 10 s.
	Time time.Duration
	// String is the largest string that a library function or the .. operator
	// may build, in bytes. Default 64 MiB.
	String int
}

func (l Limits) filled() Limits {
	if l.Instructions <= 0 {
		l.Instructions = 5_000_000
	}
	if l.Time <= 0 {
		l.Time = 10 * time.Second
	}
	if l.String <= 0 {
		l.String = 64 << 20
	}
	return l
}

// clockEvery is the number of instructions between two looks at the clock and
// at the caller's context: about 0.1 ms of interpretation.
const clockEvery = 1024

// budget is the context that the interpreter asks once per instruction. A nil
// channel from Done means go on: that select costs least.
type budget struct {
	outer    context.Context
	left     int64
	tick     int64
	deadline time.Time
	err      error
}

var (
	_    context.Context = (*budget)(nil)
	shut                 = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
)

func (b *budget) reset(ctx context.Context, l Limits, now time.Time) {
	*b = budget{outer: ctx, left: l.Instructions, tick: clockEvery, deadline: now.Add(l.Time)}
}

// Done counts one instruction; once it has given the closed channel it always
// will, so pcall cannot outlive the end of its budget.
func (b *budget) Done() <-chan struct{} {
	b.left--
	b.tick--
	if b.left >= 0 && b.tick > 0 && b.err == nil {
		return nil
	}
	return b.slow()
}

func (b *budget) slow() <-chan struct{} {
	b.check()
	if b.err != nil {
		return shut
	}
	return nil
}

func (b *budget) check() {
	if b.err != nil {
		return
	}
	b.tick = clockEvery
	switch {
	case b.left < 0:
		b.err = ErrBudget
	case b.outer.Err() != nil:
		b.err = context.Cause(b.outer)
	case !time.Now().Before(b.deadline):
		b.err = ErrDeadline
	}
}

// charge takes n instructions for work that a library function is about to do.
func (b *budget) charge(n int) error {
	b.left -= int64(n)
	b.tick -= int64(n)
	if b.left < 0 || b.tick <= 0 {
		b.check()
	}
	return b.err
}

func (b *budget) Err() error                  { return b.err }
func (b *budget) Deadline() (time.Time, bool) { return b.deadline, true }
func (b *budget) Value(any) any               { return nil }

// why names the end of a budget for people; limits give the figures.
func (b *budget) why(l Limits) string {
	switch {
	case errors.Is(b.err, ErrBudget):
		return fmt.Sprintf("the script used up its %d instructions for one call (an endless loop?)", l.Instructions)
	case errors.Is(b.err, ErrDeadline):
		return fmt.Sprintf("the script took longer than the %v allowed for one call", l.Time)
	default:
		return "the call was cancelled: " + b.err.Error()
	}
}

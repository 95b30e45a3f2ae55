package kit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// End stops an actor and all below it, system actors included, and waits: level by level from the bottom, each after
// what is in its mailbox, at most for its stop timeout; then at once, for a quarter of that more. It returns an error of
// code stop_timeout that names who was left behind; ending an actor that is gone is no error. The kernel stops with it.
func (rt *Runtime) End(ctx context.Context, path string) error {
	c := rt.get(path)
	if c == nil || c == rt.root {
		return nil
	}
	c.set(shut)
	return rt.endAll(ctx, func(other *cell) bool {
		for ; other != nil; other = other.parent {
			if other == c {
				return true
			}
		}
		return false
	})
}

// Shutdown ends all actors, bottom-up, and the runtime with them. What did not end in its time is named in the error.
// From its start on nothing new is spawned. A second call does nothing.
func (rt *Runtime) Shutdown(ctx context.Context) error {
	var err error
	rt.down.Do(func() {
		rt.draining.Store(true)
		err = rt.endAll(ctx, func(c *cell) bool { return c != rt.root })
		rt.endRoot(ctx)
		rt.crew.close()
		rt.sweep.stop()
		rt.system.Shutdown()
	})
	return err
}

// abreast is how many actors are ended at the same time: with all of a crowded level at once, each would wait for the
// others and its own timeout would mean nothing.
const abreast = 256

// maxNamed bounds how many of those left behind an error names.
const maxNamed = 8

// endAll ends the actors that among picks, level by level. Who is spawned meanwhile is found by the next look.
func (rt *Runtime) endAll(ctx context.Context, among func(*cell) bool) error {
	left := make(map[*cell]error)
	for {
		level := rt.deepest(func(c *cell) bool { return left[c] == nil && among(c) })
		if len(level) == 0 {
			return leftBehind(left)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		slots := make(chan struct{}, abreast)
		for _, c := range level {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if err := rt.endCell(ctx, c); err != nil {
					mu.Lock()
					defer mu.Unlock()
					left[c] = err
				}
			})
		}
		wg.Wait()
	}
}

// leftBehind makes one error of those that did not end, by path.
func leftBehind(left map[*cell]error) error {
	cells := slices.SortedFunc(maps.Keys(left), func(a, b *cell) int { return strings.Compare(a.path(), b.path()) })
	var errs []error
	for i, c := range cells {
		if i == maxNamed {
			errs = append(errs, fmt.Errorf("and %d more", len(cells)-i))
			break
		}
		errs = append(errs, left[c])
	}
	return errors.Join(errs...)
}

// deepest returns the lowest level of the tree among the actors that pick picks.
func (rt *Runtime) deepest(pick func(*cell) bool) []*cell {
	var level []*cell
	depth := -1
	for _, c := range rt.table.all() {
		if !pick(c) {
			continue
		}
		d := 0
		for p := c.parent; p != nil; p = p.parent {
			d++
		}
		if d > depth {
			depth, level = d, level[:0]
		}
		if d == depth {
			level = append(level, c)
		}
	}
	slices.SortFunc(level, func(a, b *cell) int { return strings.Compare(a.path(), b.path()) })
	return level
}

// endCell ends one actor: after what is in its mailbox, and when that takes too long, at once.
func (rt *Runtime) endCell(ctx context.Context, c *cell) error {
	c.set(shut)
	// A user lane that is held, by a person or by a pending restart, never drains.
	phase := c.phase.Load()
	err := rt.stopCell(ctx, c, phase != phasePaused && phase != phaseRestarting)
	if err == nil {
		return nil
	}
	rt.log.Warn("actor did not drain", slog.String("actor", c.path()), slog.String("message", c.current()))
	c.Mailbox.PostSystemMessage(&actor.Stop{})
	t := time.NewTimer(c.row.restart.StopTimeout / 4)
	defer t.Stop()
	select {
	case <-c.done():
		return nil
	case <-t.C:
		rt.log.Error("actor left behind", slog.String("actor", c.path()), slog.String("message", c.current()))
		return err
	}
}

// endRoot ends the root. It does not wait for children that were left behind: they are named already.
func (rt *Runtime) endRoot(ctx context.Context) {
	rt.root.order(false)
	if len(rt.table.all()) > 1 {
		return
	}
	select {
	case <-rt.root.done():
	case <-ctx.Done():
	}
}

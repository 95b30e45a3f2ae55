package kit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestCrew shows that one worker does what comes one after the other, leaves when nothing comes, and ends with the crew.
func TestCrew(t *testing.T) {
	run(t, func(w *world) {
		sh := &shell{c: w.root}
		sh.hold()
		did := 0
		do := func() {
			sh.more.working.Add(1)
			w.crew.start(job{sh, t.Context(), &worker{cancel: func() {}}, func(context.Context, func(any)) any { did++; return nil }})
			synctest.Wait()
		}
		for range 3 {
			do()
			if n := restingOf(&w.crew); n != 1 {
				t.Fatalf("%d rest, want the one that did it all", n)
			}
		}
		time.Sleep(restTime)
		synctest.Wait()
		if n := restingOf(&w.crew); n != 0 {
			t.Fatalf("%d rest after restTime", n)
		}
		do()
		w.crew.close()
		do()
		if n := restingOf(&w.crew); n != 0 || did != 5 {
			t.Fatalf("%d rest in a crew that is closed, %d of 5 jobs done", n, did)
		}
	})
}

// TestCrewKeepsItsPlaces shows that of many workers at once no more than maxResting rest afterwards.
func TestCrewKeepsItsPlaces(t *testing.T) {
	run(t, func(w *world) {
		sh := &shell{c: w.root}
		sh.hold()
		hold, done := make(chan struct{}), make(chan struct{}, 2*maxResting)
		for range 2 * maxResting {
			sh.more.working.Add(1)
			w.crew.start(job{sh, t.Context(), &worker{cancel: func() {}}, func(context.Context, func(any)) any {
				<-hold
				done <- struct{}{}
				return nil
			}})
		}
		close(hold)
		synctest.Wait()
		if n := len(done); n != 2*maxResting {
			t.Errorf("%d jobs done of %d", n, 2*maxResting)
		}
		if n := restingOf(&w.crew); n != maxResting {
			t.Errorf("%d rest, want %d", n, maxResting)
		}
	})
}

// restingOf counts those who rest; they leave by the clock, on goroutines of their own.
func restingOf(c *crew) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.resting)
}

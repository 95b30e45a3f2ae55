package kit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// launch is the private effect of the machines of these tests.
type launch struct {
	Private
	run func(sh Shell)
}

func launcher(a act) Props {
	p := props(a)
	p.Perform = func(sh Shell, e Effect) { e.(launch).run(sh) }
	return p
}

// TestTimers shows replacement, cancelling, order and the end with the incarnation.
func TestTimers(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		begin := time.Now()
		p := props(func(now time.Time, e Event) []Effect {
			if _, ok := e.Msg.(string); ok {
				d.add(fmt.Sprintf("%s@%s", e.Msg, now.Sub(begin)))
			}
			boom(e)
			if s, ok := e.Msg.(Started); ok && s.Restarts == 0 {
				return []Effect{
					After{Key: "a", D: time.Second, Msg: "old"},
					After{Key: "a", D: 2 * time.Second, Msg: "new"},
					After{Key: "b", D: time.Second, Msg: "never"},
					CancelAfter{Key: "b"},
					CancelAfter{Key: "none"},
					After{Key: "c", D: -1, Msg: "now"},
					After{Key: "d", D: time.Hour, Msg: "not after the restart"},
				}
			}
			return nil
		})
		p.Restart = Restart{Intensity: 1}
		a := w.top("a", p)
		time.Sleep(3 * time.Second)
		w.tell(a, user("boom"))
		time.Sleep(2 * time.Hour)
		d.want(t, "now@0s new@2s")
	})
}

// TestCancelledTimerThatHasFired cancels a timer whose message lies in the mailbox already.
func TestCancelledTimerThatHasFired(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		gate := make(chan struct{})
		a := w.top("a", props(func(_ time.Time, e Event) []Effect {
			d.add(word(e.Msg))
			switch word(e.Msg) {
			case "started":
				return []Effect{After{Key: "k", D: time.Second, Msg: "tick"}}
			case "block":
				<-gate
				return []Effect{CancelAfter{Key: "k"}, After{Key: "k", D: time.Hour, Msg: "late"}}
			}
			return nil
		}))
		w.tell(a, user("block"))
		time.Sleep(2 * time.Second)
		close(gate)
		time.Sleep(59 * time.Minute)
		d.want(t, "started block")
		time.Sleep(2 * time.Minute)
		d.want(t, "started block late")
	})
}

// TestWorkers shows the order of what a worker emits, its result, its limit and its cancellation.
func TestWorkers(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		start := launch{run: func(sh Shell) {
			sh.Go("emits", 0, func(_ context.Context, emit func(any)) any {
				emit("1")
				emit(nil)
				emit("2")
				return "3"
			})
			sh.Go("limited", time.Second, func(ctx context.Context, _ func(any)) any {
				<-ctx.Done()
				return "limit:" + ctx.Err().Error()
			})
			for range 2 {
				sh.Go("cancelled", 0, func(ctx context.Context, emit func(any)) any {
					<-ctx.Done()
					emit("must not come")
					return "must not come"
				})
			}
			sh.Go("silent", 0, func(context.Context, func(any)) any { return nil })
		}}
		a := w.top("a", launcher(func(_ time.Time, e Event) []Effect {
			d.add(word(e.Msg))
			switch word(e.Msg) {
			case "started":
				return []Effect{start}
			case "cancel":
				return []Effect{CancelWork{Key: "cancelled"}, CancelWork{Key: "none"}}
			}
			return nil
		}))
		synctest.Wait()
		if sh := w.get("a").sh.more; len(sh.workers) != 2 || len(sh.workers["cancelled"]) != 2 {
			t.Errorf("workers %v", sh.workers)
		}
		w.tell(a, user("cancel"))
		time.Sleep(2 * time.Second)
		d.want(t, "started 1 2 3 cancel limit:context deadline exceeded")
		if sh := w.get("a").sh.more; len(sh.workers) != 0 {
			t.Errorf("workers %v", sh.workers)
		}
	})
}

// TestWorkerPanicFailsTheActor shows that a worker's panic restarts the actor and that nothing of another worker of the
// earlier incarnation comes through.
func TestWorkerPanicFailsTheActor(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		start := launch{run: func(sh Shell) {
			sh.Go("other", 0, func(ctx context.Context, _ func(any)) any { <-ctx.Done(); return "late" })
			sh.Go("bad", 0, func(context.Context, func(any)) any { panic("worker boom") })
		}}
		p := launcher(func(_ time.Time, e Event) []Effect {
			d.add(word(e.Msg))
			if s, ok := e.Msg.(Started); ok {
				d.add(s.Failure)
				if s.Restarts == 0 {
					return []Effect{start}
				}
			}
			return nil
		})
		p.Restart = Restart{Intensity: 1}
		w.top("a", p)
		time.Sleep(time.Second)
		d.want(t, `started  started worker "bad": worker boom`)
		if !strings.Contains(w.log.String(), "TestWorkerPanicFailsTheActor") {
			t.Error("the stack of the worker is not in the log")
		}
	})
}

// TestWorkersAreAwaited shows that Close comes after the workers, and that one which does not end is left behind.
func TestWorkersAreAwaited(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		hold := make(chan struct{})
		p := launcher(func(_ time.Time, e Event) []Effect {
			if word(e.Msg) != "started" {
				return nil
			}
			return []Effect{launch{run: func(sh Shell) {
				sh.Go("k", 0, func(ctx context.Context, _ func(any)) any {
					<-ctx.Done()
					time.Sleep(time.Second)
					d.add("worker")
					return nil
				})
			}}}
		})
		p.Close = func() { d.add("close") }
		w.top("a", p)
		synctest.Wait()
		if err := w.End(context.Background(), "a"); err != nil {
			t.Error(err)
		}
		d.want(t, "worker close")
		stuck := launcher(func(_ time.Time, e Event) []Effect {
			if word(e.Msg) != "started" {
				return nil
			}
			return []Effect{launch{run: func(sh Shell) {
				sh.Go("k", 0, func(context.Context, func(any)) any { <-hold; return nil })
			}}}
		})
		stuck.Restart.StopTimeout = time.Second
		w.top("b", stuck)
		synctest.Wait()
		if err := w.End(context.Background(), "b"); err != nil && Code(err) != CodeStopTimeout {
			t.Error(err)
		}
		if !strings.Contains(w.log.String(), "workers did not end") {
			t.Error("not logged")
		}
		close(hold)
		synctest.Wait()
	})
}

func TestPost(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		var keep Shell
		p := launcher(func(_ time.Time, e Event) []Effect {
			d.add(word(e.Msg))
			boom(e)
			if word(e.Msg) == "started" && keep == nil {
				return []Effect{launch{run: func(sh Shell) { keep = sh }}}
			}
			return nil
		})
		p.Restart = Restart{Intensity: 1}
		a := w.top("a", p)
		synctest.Wait()
		if !keep.Post("posted") || keep.Self() != a || keep.Now().IsZero() || keep.Log() == nil {
			t.Error("a shell that does not work")
		}
		if err := keep.Tell(Path("none"), user("x")); err.GetCode() != CodeGone {
			t.Errorf("%v", err)
		}
		w.tell(a, user("boom"))
		time.Sleep(time.Second)
		if keep.Post("of an earlier incarnation") {
			t.Error("posted to the next incarnation")
		}
		d.want(t, "started posted boom started")
	})
}

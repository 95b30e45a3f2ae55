package kit

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStopEndsChildrenFirst shows that a parent still hears what its child tells last, before Ended.
func TestStopEndsChildrenFirst(t *testing.T) {
	for _, drain := range []bool{false, true} {
		run(t, func(w *world) {
			var d diary
			w.kid(Restart{}, func(_ time.Time, e Event) []Effect {
				if word(e.Msg) == "stopping" {
					d.add("k:stopping")
					return []Effect{Send{To: Path("p"), Msg: user("last")}}
				}
				return nil
			})
			p := props(parent(&d, true))
			p.Close = func() { d.add("closed") }
			w.top("p", p)
			synctest.Wait()
			w.get("p").order(drain)
			synctest.Wait()
			d.want(t, "p:started k:stopping p:last p:ended(k/1,) p:stopping closed")
			w.top("p", p) // the name is free
			synctest.Wait()
		})
	}
}

// TestEndTellsWhoWished shows that a parent can tell a person's stop from every other end.
func TestEndTellsWhoWished(t *testing.T) {
	run(t, func(w *world) {
		var told []bool
		w.kid(Restart{}, func(time.Time, Event) []Effect { return nil })
		w.top("p", props(func(_ time.Time, e Event) []Effect {
			switch m := e.Msg.(type) {
			case Started:
				return []Effect{
					Spawn{Kind: "kid", Name: "k/1", Watch: true, Params: user("param")},
					Spawn{Kind: "kid", Name: "k/2", Watch: true, Params: user("param")},
				}
			case Ended:
				told = append(told, m.ByPerson)
			}
			return nil
		}))
		synctest.Wait()
		if err := w.Stop(context.Background(), "p/k/1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.get("p").order(false)
		synctest.Wait()
		if !slices.Equal(told, []bool{true, false}) {
			t.Errorf("by a person: %v", told)
		}
	})
}

func TestDrainHandlesWhatWaits(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		gate := make(chan struct{})
		a := w.top("a", props(func(_ time.Time, e Event) []Effect {
			d.add(word(e.Msg))
			if word(e.Msg) == "block" {
				<-gate
			}
			return nil
		}))
		for _, s := range []string{"block", "1", "2"} {
			w.tell(a, user(s))
		}
		synctest.Wait()
		w.get("a").order(true)
		w.tell(a, user("3"))
		close(gate)
		synctest.Wait()
		d.want(t, "started block 1 2 stopping")
		if n := w.Counters().DeadLetters; n != 1 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// TestSelfStopInOneStep shows the common end of a child: it tells its result and stops itself.
func TestSelfStopInOneStep(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		w.kid(Restart{}, func(_ time.Time, e Event) []Effect {
			if word(e.Msg) == "started" {
				return []Effect{Send{To: Path("p"), Msg: user("done")}, Stop{Who: e.Msg.(Started).Self}}
			}
			return nil
		})
		w.top("p", props(parent(&d, true)))
		synctest.Wait()
		d.want(t, "p:started p:done p:ended(k/1,)")
		// A name is free again once Ended has come.
		w.tell(Path("p"), user("x"))
		synctest.Wait()
	})
}

// TestShutdownLevels shows that the bottom ends first, and that one that is stuck is named and does not stop the rest.
func TestShutdownLevels(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		note := func(name string) act {
			return func(_ time.Time, e Event) []Effect {
				if word(e.Msg) == "stopping" {
					d.add(name)
				}
				return nil
			}
		}
		w.kid(Restart{}, note("kid"))
		w.top("p", props(func(now time.Time, e Event) []Effect {
			if word(e.Msg) == "started" {
				return []Effect{Spawn{Kind: "kid", Name: "k", Params: user("param")}}
			}
			return note("parent")(now, e)
		}))
		gate := make(chan struct{})
		stuck := props(func(_ time.Time, e Event) []Effect {
			if word(e.Msg) == "block" {
				<-gate
			}
			return nil
		})
		stuck.Restart.StopTimeout = 4 * time.Second
		s := w.top("stuck", stuck)
		w.tell(s, user("block"))
		synctest.Wait()
		begin := time.Now()
		err := w.Shutdown(context.Background())
		if err == nil || !strings.Contains(err.Error(), "stuck") || Code(err) != CodeStopTimeout {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("took %s", took)
		}
		d.want(t, "kid parent")
		if _, err := w.SpawnTop("late", props(echo)); Code(err) != CodeStopping {
			t.Errorf("%v", err)
		}
		close(gate)
		synctest.Wait()
		if err := w.Shutdown(context.Background()); err != nil {
			t.Errorf("second: %v", err)
		}
	})
}

func TestEndOfSubtree(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		w.kid(Restart{}, func(_ time.Time, e Event) []Effect { d.add("k:" + word(e.Msg)); return nil })
		sys := props(parent(&d, true))
		sys.System = true
		w.top("p", sys)
		w.top("other", props(echo))
		synctest.Wait()
		if err := w.End(context.Background(), "p"); err != nil {
			t.Error(err)
		}
		d.want(t, "p:started k:started k:stopping p:ended(k/1,) p:stopping")
		w.ask("other", user("x"))
		if err := w.End(context.Background(), "p"); err != nil {
			t.Errorf("second: %v", err)
		}
	})
}

// TestFailureWhileStopping shows that no restart gets in the way of an end.
func TestFailureWhileStopping(t *testing.T) {
	run(t, func(w *world) {
		p := props(func(_ time.Time, e Event) []Effect {
			if word(e.Msg) == "stopping" {
				panic("in stopping")
			}
			boom(e)
			return nil
		})
		p.Restart = Restart{Intensity: 10, Backoff: time.Minute, MaxBackoff: time.Minute}
		a := w.top("a", p)
		w.tell(a, user("boom"))
		w.top("b", p)
		synctest.Wait()
		begin := time.Now()
		for _, path := range []string{"a", "b"} {
			if err := w.End(context.Background(), path); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %s", took)
		}
		time.Sleep(2 * time.Minute) // the pending restart finds nobody
	})
}

// TestFailureWhileDraining shows that an actor which fails on its way out is not restarted first.
func TestFailureWhileDraining(t *testing.T) {
	run(t, func(w *world) {
		gate := make(chan struct{})
		p := props(func(_ time.Time, e Event) []Effect {
			if word(e.Msg) == "block" {
				<-gate
			}
			boom(e)
			return nil
		})
		p.Restart = Restart{Intensity: 10, Backoff: time.Minute, MaxBackoff: time.Minute}
		a := w.top("a", p)
		w.tell(a, user("block"))
		w.tell(a, user("boom"))
		synctest.Wait()
		go close(gate)
		begin := time.Now()
		if err := w.End(context.Background(), "a"); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %s", took)
		}
	})
}

// TestRestartDoesNotUndoAStop shows that a restart which comes due while a stop waits for a child is dropped.
func TestRestartDoesNotUndoAStop(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		gate := make(chan struct{})
		w.kid(Restart{}, func(_ time.Time, e Event) []Effect {
			if word(e.Msg) == "boom" {
				<-gate
			}
			return nil
		})
		top := props(parent(&d, false))
		top.Restart = Restart{Intensity: 3, Backoff: time.Second}
		p := w.top("p", top)
		synctest.Wait()
		w.tell(p, user("kill"))
		w.tell(p, user("boom"))
		synctest.Wait()
		w.get("p").order(false)
		time.Sleep(time.Minute)
		close(gate)
		synctest.Wait()
		if _, alive := w.Actor("p"); alive {
			t.Error("it still runs")
		}
		d.want(t, "p:started p:kill p:boom")
	})
}

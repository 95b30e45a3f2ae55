package kit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// boom makes the machines of these tests panic.
func boom(e Event) {
	if word(e.Msg) == "boom" {
		panic("boom")
	}
}

// TestRestartsBackOff shows true exponential back-off at the same path, and the end above the intensity.
func TestRestartsBackOff(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		begin := time.Now()
		p := props(func(now time.Time, e Event) []Effect {
			if s, ok := e.Msg.(Started); ok {
				d.add(fmt.Sprintf("%d@%s:%s", s.Restarts, now.Sub(begin), s.Failure))
				if s.Self.GetPath() != "a" {
					t.Errorf("self %v", s.Self)
				}
			}
			boom(e)
			return nil
		})
		p.Restart = Restart{Intensity: 4, Period: time.Minute, Backoff: 100 * time.Millisecond, MaxBackoff: 500 * time.Millisecond}
		a := w.top("a", p)
		for range 5 {
			w.tell(a, user("boom"))
			time.Sleep(2 * time.Second)
			synctest.Wait()
			begin = begin.Add(2 * time.Second)
		}
		synctest.Wait()
		d.want(t, "0@0s: 1@100ms:boom 2@200ms:boom 3@400ms:boom 4@500ms:boom")
		if _, alive := w.Actor("a"); alive {
			t.Error("still there")
		}
		c := w.Counters()
		if c.Failures != 5 || c.Restarts != 4 || c.GivenUp != 1 {
			t.Errorf("%+v", c)
		}
		if !strings.HasSuffix(w.factCodes(), "actor_given_up:a") || !strings.Contains(w.log.String(), "life_test.go") {
			t.Errorf("facts %s, or no stack in the log", w.factCodes())
		}
	})
}

// TestOldFailuresDoNotCount shows that the back-off and the count start anew after a healthy period.
func TestOldFailuresDoNotCount(t *testing.T) {
	run(t, func(w *world) {
		p := props(func(_ time.Time, e Event) []Effect { boom(e); return nil })
		p.Restart = Restart{Intensity: 1, Period: 10 * time.Second}
		a := w.top("a", p)
		for range 5 {
			w.tell(a, user("boom"))
			time.Sleep(11 * time.Second)
		}
		if c := w.Counters(); c.Restarts != 5 || c.GivenUp != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestJitterShortens(t *testing.T) {
	run(t, func(w *world) {
		row := Restart{Backoff: time.Second, Jitter: 0.5}.normal()
		seen := map[time.Duration]bool{}
		for range 20 {
			d := w.delay(&row, 1)
			if d > time.Second || d < 500*time.Millisecond {
				t.Fatalf("delay %s", d)
			}
			seen[d] = true
		}
		if len(seen) < 10 {
			t.Errorf("%d different delays", len(seen))
		}
	})
}

// TestMailboxOutlivesRestart shows that what waits is kept in both lanes until a new incarnation stands.
func TestMailboxOutlivesRestart(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		gate := make(chan struct{})
		p := Props{Kind: "test", Restart: Restart{Intensity: 3}}
		n := 0
		p.New = func() Machine {
			n++
			me := n
			return act(func(_ time.Time, e Event) []Effect {
				d.add(fmt.Sprintf("%d:%s", me, word(e.Msg)))
				if word(e.Msg) == "block" {
					<-gate
					panic("boom")
				}
				return nil
			})
		}
		a := w.top("a", p)
		w.tell(a, user("block"))
		w.tell(a, user("next"))
		synctest.Wait()
		close(gate)
		synctest.Wait() // in back-off now
		w.tell(a, urgent("control"))
		synctest.Wait()
		if info, _ := w.Actor("a"); info.State != "restarting" || info.MailboxControl != 1 || info.LastFailure != "boom" {
			t.Errorf("%v", info)
		}
		time.Sleep(time.Second)
		d.want(t, "1:started 1:block 2:started 2:control 2:next")
		if info, _ := w.Actor("a"); info.State != "running" || info.MailboxControl != 0 || info.Restarts != 1 {
			t.Errorf("%v", info)
		}
	})
}

// parent spawns kind kid under name "k/1", tells it "boom" when told to, and notes what it hears of it.
func parent(d *diary, watch bool) act {
	return func(_ time.Time, e Event) []Effect {
		d.add("p:" + word(e.Msg))
		switch word(e.Msg) {
		case "started":
			return []Effect{Spawn{Kind: "kid", Name: "k/1", Watch: watch, Params: user("param")}}
		case "kill":
			return []Effect{Send{To: Path("p/k/1"), Msg: user("boom")}}
		case "stop":
			return []Effect{Stop{Who: Path("p/k/1")}}
		case "drain":
			return []Effect{Stop{Who: Path("p/k/1"), Drain: true}}
		case "boom":
			panic("parent boom")
		}
		return nil
	}
}

func (w *world) kid(row Restart, a act) {
	w.Register("kid", func(params proto.Message) (Props, error) {
		if word(params) != "param" {
			w.t.Errorf("params %v", params)
		}
		p := props(a)
		p.Kind, p.Restart = "", row
		return p, nil
	})
}

// TestParentHears shows Restarted while a child is restarted, and Ended with the failure when it is given up.
func TestParentHears(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		w.kid(Restart{Intensity: 1}, func(_ time.Time, e Event) []Effect { boom(e); return nil })
		p := w.top("p", props(parent(&d, true)))
		for range 2 {
			w.tell(p, user("kill"))
			time.Sleep(time.Second)
		}
		d.want(t, "p:started p:kill p:restarted(k/1,boom) p:kill p:ended(k/1,boom)")
	})
}

// TestEscalation shows a failure going up: the parent is restarted as a whole and spawns its child anew.
func TestEscalation(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		w.kid(Restart{Intensity: 1, Escalate: true}, func(_ time.Time, e Event) []Effect {
			d.add("k:" + word(e.Msg))
			boom(e)
			return nil
		})
		top := props(parent(&d, true))
		top.Restart = Restart{Intensity: 1}
		p := w.top("p", top)
		synctest.Wait()
		for range 2 {
			w.tell(p, user("kill"))
			time.Sleep(time.Second)
		}
		d.want(t, "p:started k:started p:kill k:boom k:started p:restarted(k/1,boom) p:kill k:boom "+
			"p:started k:started")
		if info, _ := w.Actor("p"); info.Restarts != 1 || !strings.Contains(info.LastFailure, "k/1: boom") {
			t.Errorf("%v", info)
		}
		if info, ok := w.Actor("p/k/1"); !ok || info.Restarts != 0 {
			t.Errorf("%v", info)
		}
	})
}

// TestEscalationStopsAtTheTop shows that a failure that nobody takes ends the actor and leaves the root alone.
func TestEscalationStopsAtTheTop(t *testing.T) {
	run(t, func(w *world) {
		p := props(func(_ time.Time, e Event) []Effect { boom(e); return nil })
		p.Restart = Restart{Escalate: true}
		a := w.top("a", p)
		b := w.top("b", props(echo))
		w.tell(a, user("boom"))
		synctest.Wait()
		if _, alive := w.Actor("a"); alive {
			t.Error("a still runs")
		}
		w.ask(b.GetPath(), user("still here"))
		w.top("a", p)
	})
}

func TestPanicInNewAndInStarted(t *testing.T) {
	run(t, func(w *world) {
		n := 0
		p := Props{Kind: "test", Restart: Restart{Intensity: 5}}
		p.New = func() Machine {
			n++
			if n == 1 {
				panic("new")
			}
			me := n
			return act(func(_ time.Time, e Event) []Effect {
				if _, ok := e.Msg.(Started); ok && me == 2 {
					panic("started")
				}
				return echo(time.Time{}, e)
			})
		}
		w.top("a", p)
		if got := word(w.ask("a", user("x"))); got != "x" || n != 3 {
			t.Errorf("%q after %d", got, n)
		}
	})
}

func TestSpawnRefusals(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		w.kid(Restart{}, func(time.Time, Event) []Effect { return nil })
		w.Register("bad", func(proto.Message) (Props, error) { return Props{}, fmt.Errorf("bad parameters") })
		w.top("p", props(func(_ time.Time, e Event) []Effect {
			if f, ok := e.Msg.(Fault); ok {
				d.add(f.Effect.(Spawn).Name + ":" + f.Err.GetCode())
			}
			if word(e.Msg) != "started" {
				return nil
			}
			return []Effect{
				Spawn{Kind: "kid", Name: "a", Params: user("param")},
				Spawn{Kind: "kid", Name: "a", Params: user("param")},
				Spawn{Kind: "none", Name: "b"},
				Spawn{Kind: "bad", Name: "c"},
				Spawn{Kind: "kid", Name: "d//e", Params: user("param")},
				Spawn{Kind: "kid", Name: "$f", Params: user("param")},
			}
		}))
		synctest.Wait()
		d.want(t, "a:name_taken b:unknown_kind c:spawn_failed d//e:bad_name $f:bad_name")
		if _, err := w.SpawnTop("p", props(echo)); Code(err) != CodeNameTaken {
			t.Errorf("%v", err)
		}
		if _, err := w.SpawnKind("none", "x", nil); Code(err) != CodeUnknownKind {
			t.Errorf("%v", err)
		}
		if _, err := w.SpawnKind("kid", "x", user("param")); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// TestPeople shows pause, resume, restart and stop by a person, and that system actors are refused.
func TestPeople(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		ctx := context.Background()
		a := w.top("a", props(func(_ time.Time, e Event) []Effect {
			d.add(word(e.Msg))
			return nil
		}))
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		must(w.Pause(ctx, "a"))
		must(w.Pause(ctx, "a"))
		w.tell(a, user("held"))
		w.tell(a, urgent("through"))
		synctest.Wait()
		must(w.Restart(ctx, "a"))
		if info, _ := w.Actor("a"); info.State != "paused" {
			t.Errorf("state %s", info.State)
		}
		must(w.Resume(ctx, "a"))
		must(w.Stop(ctx, "a"))
		d.want(t, "started through stopping started held stopping")
		sys := props(echo)
		sys.System = true
		w.top("s", sys)
		for _, f := range []func(context.Context, string) error{w.Stop, w.Restart, w.Pause} {
			if err := f(ctx, "s"); Code(err) != CodeSystemActor {
				t.Errorf("%v", err)
			}
			if err := f(ctx, "none"); Code(err) != CodeGone {
				t.Errorf("%v", err)
			}
		}
		if got, ok := w.ask("s", &messages.Inspect{}).(*messages.Inspected); !ok || string(got.GetStateJson()) != "{}" {
			t.Errorf("%v", got)
		}
	})
}

// TestWatch shows Ended of an actor that is no child: of one that stops, of one that was given up before, and none
// after Unwatch.
func TestWatch(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		die := props(func(_ time.Time, e Event) []Effect { boom(e); return nil })
		a, b, c := w.top("a", die), w.top("b", die), w.top("c", die)
		w.tell(b, user("boom"))
		synctest.Wait()
		me := w.top("w", props(func(_ time.Time, e Event) []Effect {
			switch m := e.Msg.(type) {
			case Started:
				return []Effect{Watch{a}, Watch{b}, Watch{c}, Watch{Path("never")}}
			case Ended:
				d.add(m.Who.GetPath() + ":" + m.Failure)
			case *messages.Principal:
				return []Effect{Unwatch{c}}
			}
			return nil
		}))
		synctest.Wait()
		w.tell(me, user("unwatch"))
		synctest.Wait()
		w.tell(a, user("boom"))
		w.get("c").order(false)
		synctest.Wait()
		d.want(t, "b:boom never: a:boom")
	})
}

// TestWatchEndsWithTheIncarnation shows that a watch of an earlier incarnation is not told to the next one.
func TestWatchEndsWithTheIncarnation(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		a := w.top("a", props(echo))
		p := props(func(_ time.Time, e Event) []Effect {
			d.add(word(e.Msg))
			if s, ok := e.Msg.(Started); ok && s.Restarts == 0 {
				return []Effect{Watch{a}}
			}
			boom(e)
			return nil
		})
		p.Restart = Restart{Intensity: 3}
		me := w.top("w", p)
		w.tell(me, user("boom"))
		time.Sleep(time.Second)
		w.get("a").order(false)
		synctest.Wait()
		d.want(t, "started boom started")
	})
}

func TestNotify(t *testing.T) {
	run(t, func(w *world) {
		var d diary
		w.top("a", props(func(_ time.Time, e Event) []Effect { d.add(word(e.Msg)); return nil }))
		if !w.Notify("a", Restarted{Who: Path("b"), Failure: "f"}) || w.Notify("b", Restarted{}) {
			t.Error("wrong report")
		}
		synctest.Wait()
		d.want(t, "started restarted(,f)")
	})
}

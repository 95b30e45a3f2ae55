package kit

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// showing is a machine that shows something.
type showing struct {
	act
	show func() any
}

func (s showing) Show() any { return s.show() }

// outline writes a tree as paths, nested by parentheses.
func outline(a *messages.ActorInfo) string {
	s := a.GetPath() + ":" + a.GetState()
	if len(a.GetChildren()) == 0 {
		return s
	}
	var kids []string
	for _, k := range a.GetChildren() {
		kids = append(kids, outline(k))
	}
	return s + "(" + strings.Join(kids, " ") + ")"
}

func TestTree(t *testing.T) {
	run(t, func(w *world) {
		w.Register("kid", func(proto.Message) (Props, error) {
			return props(func(_ time.Time, e Event) []Effect {
				return []Effect{State{Word: "suspended"}, State{Summary: "waits"}, Ready{}}
			}), nil
		})
		w.top("b", props(func(_ time.Time, e Event) []Effect {
			if word(e.Msg) == "started" {
				return []Effect{Spawn{Kind: "kid", Name: "turn/2"}, Spawn{Kind: "kid", Name: "turn/1"}}
			}
			return nil
		}))
		sys := props(echo)
		sys.System = true
		w.top("a", sys)
		synctest.Wait()
		if got := outline(w.Tree()); got != ":running(a:running b:running(b/turn/1:suspended b/turn/2:suspended))" {
			t.Error(got)
		}
		kid, ok := w.Actor("b/turn/1")
		if !ok || kid.Summary != "waits" || kid.Kind != "test" || kid.Node != "n1" || kid.Handled != 0 || kid.SinceUs == 0 {
			t.Errorf("%v", kid)
		}
		if a, _ := w.Actor("a"); !a.System {
			t.Error("a is a system actor")
		}
		if !strings.Contains(w.factCodes(), "actor_ready:b/turn/1") {
			t.Error(w.factCodes())
		}
		if a, ok := w.Resolve("b"); !ok || a.GetEpoch() != 7 {
			t.Errorf("%v", a)
		}
		if _, ok := w.Resolve("none"); ok {
			t.Error("resolved nobody")
		}
	})
}

// TestTreeByPath shows top-level actors below those whose path begins theirs, whoever was first.
func TestTreeByPath(t *testing.T) {
	run(t, func(w *world) {
		for _, path := range []string{"m/graph/x", "m/graph", "m", "mm/graph", "lone/deep"} {
			w.top(path, props(echo))
		}
		synctest.Wait()
		want := ":running(lone/deep:running m:running(m/graph:running(m/graph/x:running)) mm/graph:running)"
		if got := outline(w.Tree()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestInspect shows the machine's state and what its shell holds.
func TestInspect(t *testing.T) {
	run(t, func(w *world) {
		other := w.top("other", props(echo))
		w.Register("kid", func(proto.Message) (Props, error) { return props(echo), nil })
		broken := false
		m := showing{act: func(_ time.Time, e Event) []Effect {
			if word(e.Msg) != "started" {
				return nil
			}
			return []Effect{
				After{Key: "t", D: time.Minute},
				Watch{other},
				Spawn{Kind: "kid", Name: "k"},
				launch{run: func(sh Shell) {
					sh.Go("w", 0, func(ctx context.Context, _ func(any)) any { <-ctx.Done(); return nil })
				}},
			}
		}, show: func() any {
			if broken {
				panic("cannot")
			}
			return map[string]int{"n": 1}
		}}
		p := launcher(nil)
		p.New = func() Machine { return m }
		w.top("a", p)
		time.Sleep(time.Second)
		got := w.ask("a", &messages.Inspect{}).(*messages.Inspected)
		want := `{"machine":{"n":1},"timers":{"t":"59s"},"workers":{"w":["1s"]},"watching":["other"],"children":["k"]}`
		if string(got.GetStateJson()) != want {
			t.Errorf("got %s", got.GetStateJson())
		}
		broken = true
		if _, err := w.Ask(context.Background(), Path("a"), &messages.Inspect{}); Code(err) != CodeBroken {
			t.Errorf("%v", err)
		}
		if n := w.Counters().Failures; n != 0 {
			t.Errorf("showing ended the actor: %d failures", n)
		}
	})
}

// TestFigures shows ages, rates, the watchdog and the message in hand, and that the sweeper rests when all is quiet.
func TestFigures(t *testing.T) {
	run(t, func(w *world) {
		gate := make(chan struct{})
		p := props(func(_ time.Time, e Event) []Effect {
			if word(e.Msg) == "block" {
				<-gate
			}
			return nil
		})
		p.Limits.Slow = 2 * time.Second
		a := w.top("a", p)
		w.tell(a, user("block"))
		time.Sleep(time.Second)
		w.tell(a, user("1"))
		time.Sleep(500 * time.Millisecond)
		w.tell(a, user("2"))
		w.tell(a, urgent("u"))
		time.Sleep(250 * time.Millisecond)
		info, _ := w.Actor("a")
		if info.MailboxUser != 2 || info.MailboxControl != 1 || info.Current != "Principal" {
			t.Errorf("%v", info)
		}
		// The age is known to a sweep: "1" has waited 750 ms, "block" is in hand for 1750 ms.
		if info.OldestMs < 600 || info.OldestMs > 750 || info.CurrentMs < 1600 || info.CurrentMs > 1750 {
			t.Errorf("oldest %d, current %d", info.OldestMs, info.CurrentMs)
		}
		if n := w.Counters().Slow; n != 0 {
			t.Errorf("slow %d", n)
		}
		time.Sleep(time.Second)
		if n := w.Counters().Slow; n != 1 || !strings.Contains(w.factCodes(), "actor_slow:a") {
			t.Errorf("slow %d", n)
		}
		close(gate)
		for range 100 {
			w.tell(a, user("x"))
			time.Sleep(100 * time.Millisecond)
		}
		info, _ = w.Actor("a")
		if info.Rate < 9 || info.Rate > 11 || info.OldestMs != 0 || info.Current != "" || info.Handled != 104 {
			t.Errorf("%v", info)
		}
		time.Sleep(2 * time.Second)
		if info, _ = w.Actor("a"); info.Rate < 3 || info.Rate > 5 {
			t.Errorf("rate after a time constant of silence: %v", info.Rate)
		}
		time.Sleep(time.Minute)
		quiet := w.Counters().Sweeps
		time.Sleep(time.Hour)
		if n := w.Counters().Sweeps; n != quiet {
			t.Errorf("%d sweeps while idle", n-quiet)
		}
		if w.get("a").track.Load() != nil {
			t.Error("an idle actor is tracked")
		}
		w.tell(a, user("x"))
		time.Sleep(time.Second)
		if n := w.Counters().Sweeps; n == quiet {
			t.Error("the sweeper does not wake")
		}
	})
}

// TestMeanIsSampled shows that one of sixteen messages is timed.
func TestMeanIsSampled(t *testing.T) {
	run(t, func(w *world) {
		a := w.top("a", props(func(_ time.Time, e Event) []Effect {
			time.Sleep(3 * time.Millisecond)
			return nil
		}))
		for range 40 {
			w.tell(a, user("x"))
		}
		time.Sleep(time.Second)
		if info, _ := w.Actor("a"); info.MeanUs != 3000 {
			t.Errorf("mean %v", info.MeanUs)
		}
	})
}

// TestAgeOfLongBacklog shows that thinned marks never make a backlog younger than it is.
func TestAgeOfLongBacklog(t *testing.T) {
	now := time.Unix(1000, 0)
	var tr track
	posted := map[uint64]time.Time{}
	handled, depth := uint64(0), 0
	for i := range 1000 {
		now = now.Add(sweepEvery)
		for range 3 {
			depth++
			posted[handled+uint64(depth)] = now.Add(-sweepEvery / 2)
		}
		if i%3 == 0 {
			handled, depth = handled+4, depth-4
			if depth < 0 {
				handled, depth = handled-uint64(-depth), 0
			}
		}
		tr.age(handled, depth, now)
		if depth == 0 {
			continue
		}
		told := now.Sub(time.UnixMicro(tr.oldest.Load()))
		if real := now.Sub(posted[handled+1]); told < real-sweepEvery {
			t.Fatalf("sweep %d: told %s of %s", i, told, real)
		}
		if len(tr.marks) > maxMarks {
			t.Fatalf("%d marks", len(tr.marks))
		}
	}
	if depth == 0 {
		t.Fatal("no backlog was made")
	}
}

// TestStepsShareTheClock shows when the time is read anew.
func TestStepsShareTheClock(t *testing.T) {
	run(t, func(w *world) {
		var times []time.Time
		a := w.top("a", props(func(now time.Time, e Event) []Effect {
			if word(e.Msg) == "started" {
				return nil
			}
			times = append(times, now)
			time.Sleep(time.Millisecond)
			if word(e.Msg) == "effect" {
				return []Effect{State{}}
			}
			return nil
		}))
		synctest.Wait()
		begin := time.Now()
		for _, s := range []string{"1", "2", "effect", "3", "4"} {
			w.tell(a, user(s))
		}
		time.Sleep(time.Second)
		w.tell(a, user("5"))
		synctest.Wait()
		var got []time.Duration
		for _, at := range times {
			got = append(got, at.Sub(begin))
		}
		want := []time.Duration{0, 0, 0, 3 * time.Millisecond, 3 * time.Millisecond, time.Second}
		if len(got) != len(want) {
			t.Fatalf("%v", got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}

func TestNewRuntimeRefuses(t *testing.T) {
	if _, err := NewRuntime(Config{}); err == nil {
		t.Error("no node name")
	}
	if _, err := NewRuntime(Config{Node: "n"}); err == nil {
		t.Error("no logger")
	}
}

func TestErrors(t *testing.T) {
	err := refuse(errBusy("a", 5))
	if Code(err) != CodeBusy || !strings.Contains(err.Error(), "5 messages") || refuse(nil) != nil {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		err  error
		code string
	}{{err, CodeBusy}, {context.DeadlineExceeded, CodeTimeout}, {context.Canceled, CodeCancelled}, {strings.NewReader("").UnreadByte(), "own"}} {
		if got := AsError("own", c.err).GetCode(); got != c.code {
			t.Errorf("%v: %s", c.err, got)
		}
	}
	if AsError("own", nil) != nil || Code(nil) != "" {
		t.Error("nil is no error")
	}
}

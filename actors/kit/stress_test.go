package kit

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
)

// TestStress does everything at once, from many goroutines, to a few actors with children, workers, timers and watches;
// whatever comes of each, and most are refused at times, the end must be orderly.
func TestStress(t *testing.T) {
	rt, err := NewRuntime(Config{Node: "n", Seed: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	row := Restart{Intensity: 2, Period: time.Second, Backoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond, Jitter: 1}
	machine := func(kid bool) Props {
		p := launcher(func(_ time.Time, e Event) []Effect {
			boom(e)
			switch word(e.Msg) {
			case "started":
				if kid {
					return []Effect{After{Key: "t", D: time.Millisecond, Msg: "tick"}}
				}
				effects := []Effect{Watch{Path("a0")}, Watch{Path("a1/k/1")}}
				for i := range 3 {
					effects = append(effects, Spawn{Kind: "kid", Name: fmt.Sprintf("k/%d", i), Watch: true})
				}
				return effects
			case "work":
				return []Effect{launch{run: func(sh Shell) {
					sh.Go("w", 10*time.Millisecond, func(ctx context.Context, emit func(any)) any {
						emit("x")
						<-ctx.Done()
						return "y"
					})
				}}, CancelWork{Key: "none"}}
			}
			return []Effect{e.Reply(user("answer")), Send{To: Path("a0/k/0"), Msg: user("hello"), Corr: "c"}}
		})
		p.Restart = row
		p.Restart.Escalate = kid
		return p
	}
	rt.Register("kid", func(proto.Message) (Props, error) { return machine(true), nil })
	ctx := context.Background()
	var wg sync.WaitGroup
	var asked, answered int
	var mu sync.Mutex
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 400 {
				top := fmt.Sprintf("a%d", r.IntN(3))
				any := top
				if r.IntN(2) == 0 {
					any = fmt.Sprintf("%s/k/%d", top, r.IntN(3))
				}
				switch r.IntN(10) {
				case 0:
					_ = rt.Tell(Path(any), user("boom"))
				case 1:
					_ = rt.Tell(Path(any), urgent("boom"))
				case 2:
					_ = rt.Tell(Path(any), user("work"))
				case 3:
					_ = rt.Restart(ctx, any)
				case 4:
					_ = rt.Pause(ctx, any)
					_ = rt.Resume(ctx, any)
				case 5:
					_ = rt.Stop(ctx, any)
				case 6:
					rt.Tree()
				case 7, 8:
					_, _ = rt.SpawnTop(top, machine(false))
				case 9:
					short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
					_, err := rt.Ask(short, Path(any), user("q"))
					cancel()
					mu.Lock()
					asked++
					if err == nil {
						answered++
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	c := rt.Counters()
	if c.Failures == 0 || c.Restarts == 0 || c.GivenUp == 0 || answered == 0 {
		t.Errorf("too little happened: %+v, %d of %d answered", c, answered, asked)
	}
	end, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := rt.Shutdown(end); err != nil {
		t.Error(err)
	}
	if n := rt.Counters().Actors; n != 0 {
		t.Errorf("%d actors left: %v", n, outline(rt.Tree()))
	}
	rt.endsMu.Lock()
	defer rt.endsMu.Unlock()
	if len(rt.ends) != 0 || len(rt.asks.waiting) != 0 {
		t.Errorf("%d ends and %d asks left", len(rt.ends), len(rt.asks.waiting))
	}
}

package kit

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// benchRuntime is a runtime without a log.
func benchRuntime(tb testing.TB) *Runtime {
	tb.Helper()
	rt, err := NewRuntime(Config{Node: "bench", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := rt.Shutdown(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return rt
}

// counter counts messages and closes done at the goal. The goal is set before any message is sent.
type counter struct {
	n, goal int64
	done    chan struct{}
}

func (c *counter) hit() {
	c.n++
	if c.n == c.goal {
		close(c.done)
	}
}

func wide() Limits { return Limits{Soft: 1 << 30, Hard: 1 << 30} }

// cost is what a flood of messages took, on the clock and of the processors.
type cost struct{ wall, cpu time.Duration }

func measure(f func()) cost {
	runtime.GC()
	wall, used := time.Now(), cpu()
	f()
	return cost{time.Since(wall), cpu() - used}
}

// floodKit measures n messages from one producer to one actor of kit, by its address or by a Ref.
func floodKit(tb testing.TB, n int, ref bool) cost {
	rt := benchRuntime(tb)
	c := &counter{goal: int64(n), done: make(chan struct{})}
	p := props(func(_ time.Time, e Event) []Effect {
		if _, ok := e.Msg.(*messages.Ok); ok {
			c.hit()
		}
		return nil
	})
	p.Limits = wide()
	a, err := rt.SpawnTop("some/actor/of-usual-length", p)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := rt.Ref(a)
	if err != nil {
		tb.Fatal(err)
	}
	m := &messages.Ok{}
	return measure(func() {
		for range n {
			if ref {
				err = r.Tell(m)
			} else {
				err = rt.Tell(a, m)
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
		<-c.done
	})
}

// floodStock is the same with an actor of the runtime as it comes, by its resolved PID.
func floodStock(tb testing.TB, n int) cost {
	quiet := slog.New(slog.DiscardHandler)
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	c := &counter{goal: int64(n), done: make(chan struct{})}
	pid := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*messages.Ok); ok {
			c.hit()
		}
	}))
	m := &messages.Ok{}
	defer sys.Root.Stop(pid)
	return measure(func() {
		for range n {
			sys.Root.Send(pid, m)
		}
		<-c.done
	})
}

// BenchmarkTell compares a message to an actor of kit with one to an actor of the bare runtime, in turns within one run.
// Both senders hold the receiver resolved, a Ref here and a PID there; address is the same by an address that is looked
// up each time. A ratio is kit's throughput by the stock one's; the target is 0.85 or more.
func BenchmarkTell(b *testing.B) {
	const n, rounds = 300_000, 9
	for range b.N {
		var stock, ref, address []cost
		for range rounds {
			stock = append(stock, floodStock(b, n))
			ref = append(ref, floodKit(b, n, true))
			address = append(address, floodKit(b, n, false))
		}
		wall := func(c cost) time.Duration { return c.wall }
		used := func(c cost) time.Duration { return c.cpu }
		b.ReportMetric(float64(median(stock, wall))/n, "ns/stock")
		b.ReportMetric(float64(median(ref, wall))/n, "ns/kit")
		b.ReportMetric(ratio(stock, ref, wall), "ratio")
		b.ReportMetric(ratio(stock, ref, used), "cpu-ratio")
		b.ReportMetric(ratio(stock, address, wall), "address-ratio")
		b.ReportMetric(ratio(stock, address, used), "address-cpu-ratio")
	}
}

func ratio(stock, ours []cost, of func(cost) time.Duration) float64 {
	return float64(median(stock, of)) / float64(median(ours, of))
}

func median(cs []cost, of func(cost) time.Duration) time.Duration {
	if len(cs) == 0 {
		panic("nothing was measured")
	}
	ds := make([]time.Duration, 0, len(cs))
	for _, c := range cs {
		ds = append(ds, of(c))
	}
	slices.Sort(ds)
	return ds[len(ds)/2]
}

// BenchmarkSendBetween is a Send of a machine that tells its sender: an envelope.
func BenchmarkSendBetween(b *testing.B) {
	rt := benchRuntime(b)
	c := &counter{goal: int64(b.N), done: make(chan struct{})}
	p := props(func(_ time.Time, e Event) []Effect {
		if e.From != nil {
			c.hit()
		}
		return nil
	})
	p.Limits = wide()
	to, err := rt.SpawnTop("receiver", p)
	if err != nil {
		b.Fatal(err)
	}
	m := &messages.Ok{}
	send := []Effect{Send{To: to, Msg: m}}
	q := props(func(_ time.Time, e Event) []Effect {
		if _, ok := e.Msg.(*messages.Ok); ok {
			return send
		}
		return nil
	})
	q.Limits = wide()
	from, err := rt.SpawnTop("sender", q)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := rt.Tell(from, m); err != nil {
			b.Fatal(err)
		}
	}
	<-c.done
}

// BenchmarkAsk is a request from outside of the tree and its answer.
func BenchmarkAsk(b *testing.B) {
	rt := benchRuntime(b)
	a, err := rt.SpawnTop("echo", props(echo))
	if err != nil {
		b.Fatal(err)
	}
	m := &messages.Ok{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rt.Ask(context.Background(), a, m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInterrupt measures the time from sending a control message to its handling while 100,000 user messages of
// 2 us each are queued. The targets: p99 100 us or less.
func BenchmarkInterrupt(b *testing.B) {
	for range b.N {
		lat := interrupts(b, 1000)
		b.ReportMetric(float64(lat[len(lat)/2].Nanoseconds())/1e3, "us-p50")
		b.ReportMetric(float64(lat[len(lat)*99/100].Nanoseconds())/1e3, "us-p99")
		b.ReportMetric(float64(lat[len(lat)-1].Nanoseconds())/1e3, "us-max")
	}
}

const backlog = 100_000

// interrupts returns samples sorted.
func interrupts(tb testing.TB, samples int) []time.Duration {
	rt := benchRuntime(tb)
	var sent atomic.Int64
	var left atomic.Int64
	got := make(chan time.Duration, 1)
	base := time.Now()
	p := props(func(_ time.Time, e Event) []Effect {
		switch e.Msg.(type) {
		case *messages.Cancel:
			got <- time.Since(base) - time.Duration(sent.Load())
		case *messages.Ok:
			left.Add(-1)
			for t := time.Now(); time.Since(t) < 2*time.Microsecond; {
			}
		}
		return nil
	})
	p.Limits = wide()
	a, err := rt.SpawnTop("busy", p)
	if err != nil {
		tb.Fatal(err)
	}
	fill := func() {
		for left.Load() < backlog {
			left.Add(1)
			if err := rt.Tell(a, &messages.Ok{}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	var lat []time.Duration
	for range samples {
		fill()
		sent.Store(int64(time.Since(base)))
		if err := rt.Tell(a, &messages.Cancel{}); err != nil {
			tb.Fatal(err)
		}
		lat = append(lat, <-got)
	}
	if left.Load() < backlog/2 {
		tb.Fatalf("only %d messages were queued", left.Load())
	}
	if len(lat) != samples {
		tb.Fatal("nothing was measured")
	}
	slices.Sort(lat)
	return lat
}

// BenchmarkIdleActor reports the memory of one idle actor; the target is 1.2 kB or less.
func BenchmarkIdleActor(b *testing.B) {
	const n = 100_000
	for range b.N {
		rt := benchRuntime(b)
		before := heap()
		spawnMany(b, rt, n)
		waitIdle(b, rt)
		b.ReportMetric(float64(heap()-before)/n, "B/actor")
		runtime.KeepAlive(rt)
	}
}

// waitIdle waits until the sweeper has let go of all actors.
func waitIdle(tb testing.TB, rt *Runtime) {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for begin := time.Now(); time.Since(begin) < time.Minute; <-look.C {
		if !slices.ContainsFunc(rt.table.all(), func(c *cell) bool { return c.track.Load() != nil }) {
			return
		}
	}
	tb.Fatal("the sweeper never rests")
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// spawnMany starts n actors below one parent and waits until the last has started.
func spawnMany(tb testing.TB, rt *Runtime, n int) {
	var wg sync.WaitGroup
	wg.Add(n)
	rt.Register("idle", func(proto.Message) (Props, error) {
		return Props{New: func() Machine { return &starter{wg: &wg} }}, nil
	})
	_, err := rt.SpawnTop("many", props(func(_ time.Time, e Event) []Effect {
		if _, ok := e.Msg.(Started); !ok {
			return nil
		}
		effects := make([]Effect, n)
		for i := range effects {
			effects[i] = Spawn{Kind: "idle", Name: fmt.Sprintf("turn/%026d", i)}
		}
		return effects
	}))
	if err != nil {
		tb.Fatal(err)
	}
	wg.Wait()
}

// starter is a small machine.
type starter struct{ wg *sync.WaitGroup }

func (s *starter) Step(_ time.Time, e Event) []Effect {
	if _, ok := e.Msg.(Started); ok {
		s.wg.Done()
	}
	return nil
}

// BenchmarkTree is the reading of a tree of 10,000 actors.
func BenchmarkTree(b *testing.B) {
	rt := benchRuntime(b)
	spawnMany(b, rt, 10_000)
	b.ResetTimer()
	for b.Loop() {
		root := rt.Tree()
		if n := len(root.GetChildren()[0].GetChildren()); n != 10_000 {
			b.Fatalf("%d actors", n)
		}
	}
}

// BenchmarkSpawn starts and ends an actor.
func BenchmarkSpawn(b *testing.B) {
	rt := benchRuntime(b)
	p := props(func(time.Time, Event) []Effect { return nil })
	i := 0
	for b.Loop() {
		i++
		if _, err := rt.SpawnTop(strconv.Itoa(i), p); err != nil {
			b.Fatal(err)
		}
		ended := rt.get(strconv.Itoa(i)).done()
		rt.order(Path(strconv.Itoa(i)), false)
		<-ended
	}
}

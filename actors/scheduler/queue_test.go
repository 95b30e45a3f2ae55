package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"homeagent/messages"
)

// TestQueueOrder compares a queue with a sorted slice over random changes.
func TestQueueOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var q queue
	var want []*task
	next := uint64(0)
	for range 20000 {
		if rng.IntN(100) < 55 || len(want) == 0 {
			next++
			x := &task{input: &messages.Input{Id: fmt.Sprint(next)}, sequence: next, rank: int64(-rng.IntN(3))}
			at, _ := slices.BinarySearchFunc(want, x, order)
			want = slices.Insert(want, at, x)
			q.insert(x)
		} else {
			i := rng.IntN(len(want))
			if !q.remove(want[i]) || q.remove(want[i]) {
				t.Fatal("a task is removed once")
			}
			want = slices.Delete(want, i, i+1)
		}
		if q.n != len(want) || len(want) > 0 && q.head() != want[0] {
			t.Fatalf("%d in the queue, %d wanted", q.n, len(want))
		}
		if len(want) > 0 {
			if i := rng.IntN(len(want)); q.index(want[i]) != i {
				t.Fatalf("index %d, want %d", q.index(want[i]), i)
			}
		}
	}
	if got := slices.Collect(q.all()); !slices.Equal(got, want) || len(q.chunks) < 2 {
		t.Fatalf("%d tasks in %d chunks, want %d", len(got), len(q.chunks), len(want))
	}
	for _, x := range want {
		q.remove(x)
	}
	if q.head() != nil || len(q.chunks) != 0 {
		t.Fatal("not empty")
	}
}

// BenchmarkStep measures one input's whole life in the scheduler (offer, spawned, finished, end on disk: four steps) with
// so many others waiting.
func BenchmarkStep(b *testing.B) {
	for _, waiting := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprint(waiting, " queued"), func(b *testing.B) {
			m := New(params).(*state)
			m.loaded = true
			now := start
			seq := uint64(0)
			next := func() *messages.Input {
				seq++
				in := input(fmt.Sprintf("i%09d", seq), 1, fmt.Sprint("text ", seq))
				in.CreatedUs = now.UnixMicro()
				return in
			}
			for range waiting + 1 {
				m.Step(now, offer(next(), seq))
			}
			inputs := make([]*messages.Input, b.N)
			for i := range inputs {
				inputs[i] = next()
			}
			first := seq - uint64(b.N)
			b.ReportAllocs()
			b.ResetTimer()
			for i, in := range inputs {
				now = now.Add(time.Millisecond)
				c := m.current
				m.Step(now, spawned(c.id(), c.gen))
				m.Step(now, offer(in, first+uint64(i)+1))
				m.Step(now, finished(c.id(), c.gen, "x"))
				m.Step(now, ended(c.id()))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4, "ns/step")
			if n := m.waitingCount(); n != waiting {
				b.Fatalf("%d wait, want %d", n, waiting)
			}
		})
	}
}

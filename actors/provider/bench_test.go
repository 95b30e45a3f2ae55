package provider_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"homeagent/messages"
	"homeagent/providers/providertest"
)

// BenchmarkInterrupt measures from the cancel's sending to the moment at which
// the model server sees its connection closed, by way of three actors.
func BenchmarkInterrupt(b *testing.B) {
	v := vendor(b, providertest.Step{Text: []string{"a", "b"}, Hold: providertest.Hold{Middle: "never"}})
	w := newWorld(b, nil, source("a", v.URL())...)
	var took []time.Duration
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprintf("t/%d/1", n)
		w.complete(id, "hello")
		await(b, v, providertest.Held, n)
		start := time.Now()
		w.send(&messages.CancelCompletion{CallId: id, Reason: "preempt"})
		took = append(took, await(b, v, providertest.Closed, n).At.Sub(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}

// BenchmarkFallback measures a request whose first source fails at once.
func BenchmarkFallback(b *testing.B) {
	bad := vendor(b, providertest.Step{Status: 400, Body: `{"error":{"message":"no","code":"unsupported_value"}}`})
	good := vendor(b, providertest.Step{Text: []string{"hi"}})
	w := newWorld(b, nil, append(source("a", bad.URL()), source("b", good.URL(), "priority", "1")...)...)
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprintf("t/%d/1", n)
		w.complete(id, "hello")
		if done, _, _ := w.done(id); done.GetResult().GetText() != "hi" {
			b.Fatal(done)
		}
	}
	if got := len(bad.Requests()); got < n {
		b.Fatalf("%d of %d requests reached the first source", got, n)
	}
}

// BenchmarkComplete is a whole completion by way of the actors and loopback.
func BenchmarkComplete(b *testing.B) {
	v := vendor(b, providertest.Step{Text: []string{"hi"}})
	w := newWorld(b, nil, source("a", v.URL())...)
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprintf("t/%d/1", n)
		w.complete(id, "hello")
		if done, _, _ := w.done(id); done.GetResult().GetText() != "hi" {
			b.Fatal(done)
		}
	}
}

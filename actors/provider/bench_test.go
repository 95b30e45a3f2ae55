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
	percentiles(b, took)
}

// percentiles reports the middle and the slow end.
func percentiles(b *testing.B, took []time.Duration) {
	b.Helper()
	if len(took) == 0 {
		b.Fatal("nothing was measured")
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}

// BenchmarkFallback measures the switch: from the moment at which the first
// source has sent its refusal until the second one has the request. A model that
// is missing cools nothing, so that each request goes that way.
func BenchmarkFallback(b *testing.B) {
	bad := vendor(b, providertest.Step{Status: 404, Body: `{"error":{"message":"no such model","code":"model_not_found"}}`})
	good := vendor(b, providertest.Step{Text: []string{"hi"}})
	w := newWorld(b, nil, append(source("a", bad.URL()), source("b", good.URL(), "priority", "1")...)...)
	var took []time.Duration
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprintf("t/%d/1", n)
		w.complete(id, "hello")
		if done, _, _ := w.done(id); done.GetResult().GetText() != "hi" {
			b.Fatal(done)
		}
		took = append(took, await(b, good, providertest.Received, n).At.Sub(await(b, bad, providertest.Received, n).At))
	}
	percentiles(b, took)
}

// BenchmarkFirstToken measures what the node adds to the first piece of an
// answer: from its sending at the server until the turn has it.
func BenchmarkFirstToken(b *testing.B) {
	v := vendor(b, providertest.Step{Text: []string{"a", "b"}, Hold: providertest.Hold{Middle: "go"}})
	w := newWorld(b, nil, source("a", v.URL())...)
	var took []time.Duration
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprintf("t/%d/1", n)
		w.complete(id, "hello")
		var at time.Time
		for at.IsZero() {
			if d, ok := (<-w.in).(*messages.Delta); ok && d.GetText() != "" {
				at = time.Now()
			}
		}
		took = append(took, at.Sub(await(b, v, providertest.PieceSent, n).At))
		v.Open("go")
		w.done(id)
		v.Shut("go")
	}
	percentiles(b, took)
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

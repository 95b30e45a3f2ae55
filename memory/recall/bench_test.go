package recall

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"homeagent/memory/graphmem"
	"homeagent/messages"
)

// vocabulary of made-up talk: words drawn with the frequencies of a natural one.
type vocabulary struct {
	words []string
	zipf  *rand.Zipf
	rng   *rand.Rand
}

func newVocabulary(seed uint64) *vocabulary {
	v := &vocabulary{rng: rand.New(rand.NewPCG(seed, 2))}
	v.zipf = rand.NewZipf(v.rng, 1.1, 4, 30_000)
	for i := range 30_001 {
		v.words = append(v.words, fmt.Sprintf("w%sx", strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(i))))
	}
	return v
}

func (v *vocabulary) text(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(v.words[v.zipf.Uint64()] + " ")
	}
	return b.String()
}

// said makes n events of a few conversations, a minute apart.
func (v *vocabulary) said(n int) []*messages.Event {
	var out []*messages.Event
	for i := range n {
		id := fmt.Sprintf("E%08d", i)
		out = append(out, &messages.Event{
			EventId: id, Kind: messages.EventKind_EVENT_KIND_INPUT, Agent: "main", Conversation: fmt.Sprint("c", i%3),
			AtUs:   noon.Add(time.Duration(i) * time.Minute).UnixMicro(),
			Blocks: []*messages.Block{{BlockId: id + "/b", Content: &messages.Part{Content: &messages.Part_Text{Text: v.text(8 + v.rng.IntN(20))}}}},
		})
	}
	return out
}

// quantiles reports p50 and p99 of a benchmark.
func quantiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkRecall asks questions of four words of a memory with so many events, and a tenth as many facts.
func BenchmarkRecall(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := open(b, b.TempDir())
			v := newVocabulary(1)
			start := time.Now()
			m.add(v.said(n)...)
			b.Logf("%d events in %v", n, time.Since(start))
			for from := 0; from < n/10; from += 100 {
				var facts []graphmem.Fact
				for i := range 100 {
					facts = append(facts, graphmem.Fact{
						ID: fmt.Sprintf("F%08d", from+i), Subject: v.words[v.zipf.Uint64()], Predicate: v.words[v.zipf.Uint64()],
						Object: v.words[v.zipf.Uint64()], LearnedAt: noon,
					})
				}
				if _, err := m.graph.Commit(context.Background(), facts); err != nil {
					b.Fatal(err)
				}
			}
			b.Logf("with %d facts in %v", n/10, time.Since(start))
			var took []time.Duration
			for range 200 {
				m.ask(Question{Text: v.text(4) + "?"})
			}
			for b.Loop() {
				q := v.text(4) + "?"
				start := time.Now()
				m.ask(Question{Text: q})
				took = append(took, time.Since(start))
			}
			quantiles(b, took)
		})
	}
}

// BenchmarkAppend is what a turn's commit pays for events and index.
func BenchmarkAppend(b *testing.B) {
	m := open(b, b.TempDir())
	m.add(newVocabulary(1).said(2_000)...)
	n := 0
	for b.Loop() {
		n++
		m.say("main", fmt.Sprintf("remember that the number of box %d is %d and that it stands in the cellar beside the old bicycle", n, n*7))
	}
}

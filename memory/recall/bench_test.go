package recall

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"homeagent/messages"
)

// fill stores n events of made-up talk: words drawn with the frequencies of a
// natural vocabulary.
func fill(b *testing.B, m *memory, n int) (words []string) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 4, 30_000)
	for i := range 30_000 {
		words = append(words, fmt.Sprintf("w%sx", strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(i))))
	}
	var events []*messages.Event
	for i := range n {
		var text strings.Builder
		for range 8 + rng.IntN(20) {
			text.WriteString(words[zipf.Uint64()] + " ")
		}
		id := fmt.Sprintf("E%08d", i)
		events = append(events, &messages.Event{
			EventId: id, Kind: messages.EventKind_EVENT_KIND_INPUT, Agent: "main", Conversation: fmt.Sprint("c", i%3),
			AtUs:   noon.Add(time.Duration(i) * time.Minute).UnixMicro(),
			Blocks: []*messages.Block{{BlockId: id + "/b", Content: &messages.Part{Content: &messages.Part_Text{Text: text.String()}}}},
		})
	}
	start := time.Now()
	m.add(events...)
	b.Logf("%d events in %v", n, time.Since(start))
	return words
}

func BenchmarkRecall(b *testing.B) {
	m := open(b, b.TempDir())
	words := fill(b, m, 20_000)
	rng := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(rng, 1.1, 4, 30_000)
	var longest time.Duration
	for b.Loop() {
		q := words[zipf.Uint64()] + " " + words[zipf.Uint64()] + " " + words[zipf.Uint64()] + " " + words[zipf.Uint64()]
		start := time.Now()
		m.ask(Question{Text: q})
		longest = max(longest, time.Since(start))
	}
	b.ReportMetric(float64(longest.Microseconds()), "longest-us")
}

// BenchmarkAppend is what a turn's commit pays for events and index.
func BenchmarkAppend(b *testing.B) {
	m := open(b, b.TempDir())
	fill(b, m, 2_000)
	n := 0
	for b.Loop() {
		n++
		m.say("main", fmt.Sprintf("remember that the number of box %d is %d and that it stands in the cellar beside the old bicycle", n, n*7))
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"homeagent/memory/lexical"
)

// figures are what was measured of one file. The keys up to latency_ms are what others may rely on.
type figures struct {
	File       string             `json:"file"`
	Questions  int                `json:"questions"`
	Recall     map[string]float64 `json:"recall"`
	MRR        float64            `json:"mrr"`
	Categories map[string]score   `json:"categories"`
	BM25       score              `json:"bm25"`
	Latency    latency            `json:"latency_ms"`

	Intervals     map[string][2]float64 `json:"intervals"`
	Conversations map[string]score      `json:"conversations"`
	// Channels are rankings by one sign alone, Without those that lack one.
	Channels map[string]score `json:"channels,omitempty"`
	Without  map[string]score `json:"without,omitempty"`
	// Events and Indexing say what was remembered and how long it took.
	Events   int     `json:"events"`
	Indexing float64 `json:"indexing_seconds"`
}

// latency of recall, end to end, in milliseconds.
type latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// library is a file with the memories of its conversations.
type library struct {
	file
	memories []*memory
	indexing time.Duration
}

func (l *library) close() (err error) {
	for _, m := range l.memories {
		if e := m.close(); err == nil {
			err = e
		}
	}
	return err
}

// study has the conversations of a file remembered, in folders below dir.
func study(f file, dir string) (*library, error) {
	l := &library{file: f}
	start := time.Now()
	for i := range f.corpora {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return l, err
		}
		m, err := remember(sub, &f.corpora[i])
		if err != nil {
			return l, fmt.Errorf("%s: %w", f.corpora[i].name, err)
		}
		l.memories = append(l.memories, m)
	}
	l.indexing = time.Since(start)
	return l, nil
}

// depth is how many items are asked for, so that the last cut is full even when two items have one label.
const depth = 40

// run asks all questions once.
func (l *library) run(weights *lexical.Weights) (out []outcome, took []time.Duration, err error) {
	for i := range l.corpora {
		c := &l.corpora[i]
		for j := range c.questions {
			a, d, err := l.memories[i].ask(c.questions[j].text, depth, weights)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %q: %w", c.name, c.questions[j].text, err)
			}
			out = append(out, judge(c.name, &c.questions[j], l.memories[i].found(&a)))
			took = append(took, d)
		}
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("%s: %w", l.name, errNothing)
	}
	return out, took, nil
}

// plain asks plain BM25 all questions.
func (l *library) plain() (out []outcome) {
	for i := range l.corpora {
		c := &l.corpora[i]
		x := newBM25(c)
		for j := range c.questions {
			out = append(out, judge(c.name, &c.questions[j], x.find(c.questions[j].text)))
		}
	}
	return out
}

// measure makes the figures of a file; signs adds the rankings by and without each sign.
func (l *library) measure(signs bool) (*figures, error) {
	list, took, err := l.run(nil)
	if err != nil {
		return nil, err
	}
	whole := withIntervals(list)
	out := &figures{
		File: l.name, Questions: whole.Questions, Recall: whole.Recall, MRR: whole.MRR, Intervals: whole.Intervals,
		Categories: map[string]score{}, Conversations: map[string]score{}, BM25: withIntervals(l.plain()),
		Latency: quantiles(took), Indexing: round(l.indexing.Seconds()),
	}
	for i := range l.corpora {
		out.Events += len(l.corpora[i].events)
	}
	for name, part := range by(list, func(o *outcome) string { return o.category }) {
		out.Categories[name] = withIntervals(part)
	}
	for name, part := range by(list, func(o *outcome) string { return o.corpus }) {
		out.Conversations[name] = summarise(part)
	}
	if !signs {
		return out, nil
	}
	out.Channels, out.Without = map[string]score{}, map[string]score{}
	for _, s := range lexical.SignNames() {
		d := lexical.DefaultWeights()
		only, without := lexical.Weights{}, d
		*only.Sign(s), *without.Sign(s) = *d.Sign(s), 0
		for w, into := range map[*lexical.Weights]map[string]score{&only: out.Channels, &without: out.Without} {
			list, _, err := l.run(w)
			if err != nil {
				return nil, err
			}
			into[s] = summarise(list)
		}
	}
	return out, nil
}

func quantiles(took []time.Duration) latency {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return round(float64(d.Microseconds()) / 1000) }
	return latency{P50: ms(took[len(took)/2]), P99: ms(took[len(took)*99/100])}
}

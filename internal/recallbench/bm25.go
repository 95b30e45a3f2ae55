package main

import (
	"cmp"
	"math"
	"slices"

	"homeagent/memory/lexical"
)

// bm25 is the plain ranking to compare with: stemmed words and the speaker's name, k1 1.2, b 0.75, no structure.
type bm25 struct {
	labels  []string
	lengths []float64
	mean    float64
	counts  map[string]map[int]float64
}

func newBM25(c *corpus) *bm25 {
	x := &bm25{counts: map[string]map[int]float64{}}
	for n, e := range c.events {
		terms := append(lexical.Terms(lexical.EventText(e)), lexical.Terms(e.GetPrincipal().GetName())...)
		x.labels = append(x.labels, c.labels[e.GetEventId()])
		x.lengths = append(x.lengths, float64(len(terms)))
		x.mean += float64(len(terms)) / float64(len(c.events))
		for _, t := range terms {
			if x.counts[t] == nil {
				x.counts[t] = map[int]float64{}
			}
			x.counts[t][n]++
		}
	}
	return x
}

// find returns the labels of all that holds a word of the question, best first.
func (x *bm25) find(text string) []string {
	const k1, b = 1.2, 0.75
	scores := map[int]float64{}
	asked := lexical.Terms(text)
	slices.Sort(asked)
	for _, t := range slices.Compact(asked) {
		df := float64(len(x.counts[t]))
		idf := math.Log(1 + (float64(len(x.labels))-df+0.5)/(df+0.5))
		for n, tf := range x.counts[t] {
			scores[n] += idf * tf * (k1 + 1) / (tf + k1*(1-b+b*x.lengths[n]/x.mean))
		}
	}
	order := make([]int, 0, len(scores))
	for n := range scores {
		order = append(order, n)
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(scores[j], scores[i]), cmp.Compare(i, j)) })
	var out []string
	seen := map[string]bool{}
	for _, n := range order {
		if l := x.labels[n]; !seen[l] {
			seen[l] = true
			out = append(out, l)
		}
	}
	return out
}

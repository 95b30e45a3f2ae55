package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
)

// cuts are the k of recall@k.
var cuts = []int{1, 3, 5, 10, 20}

// outcome is how one question was answered.
type outcome struct {
	category, corpus string
	recall           [5]float64 // by cuts
	reciprocal       float64
}

// judge compares what was found with the evidence.
func judge(corpus string, q *question, found []string) outcome {
	out := outcome{category: q.category, corpus: corpus}
	for _, e := range q.evidence {
		at := slices.Index(found, e)
		if at < 0 {
			continue
		}
		out.reciprocal = max(out.reciprocal, 1/float64(at+1))
		for i, k := range cuts {
			if at < k {
				out.recall[i] += 1 / float64(len(q.evidence))
			}
		}
	}
	return out
}

// score is what a ranking reached: recall in percent by k, MRR 0 to 1.
type score struct {
	Questions int                   `json:"questions"`
	Recall    map[string]float64    `json:"recall"`
	MRR       float64               `json:"mrr"`
	Intervals map[string][2]float64 `json:"intervals,omitempty"`
}

func mean(list []outcome, of func(*outcome) float64) float64 {
	sum := 0.0
	for i := range list {
		sum += of(&list[i])
	}
	return sum / float64(len(list))
}

func summarise(list []outcome) score {
	s := score{Questions: len(list), Recall: map[string]float64{}}
	for i, k := range cuts {
		s.Recall[strconv.Itoa(k)] = round(100 * mean(list, func(o *outcome) float64 { return o.recall[i] }))
	}
	s.MRR = round(mean(list, func(o *outcome) float64 { return o.reciprocal }))
	return s
}

// withIntervals adds 95 % intervals by bootstrap over the questions.
func withIntervals(list []outcome) score {
	const rounds = 1000
	s := summarise(list)
	s.Intervals = map[string][2]float64{}
	rng := rand.New(rand.NewPCG(1, uint64(len(list))))
	draws := make([][]float64, len(cuts))
	sample := make([]outcome, len(list))
	for range rounds {
		for i := range sample {
			sample[i] = list[rng.IntN(len(list))]
		}
		for i := range cuts {
			draws[i] = append(draws[i], 100*mean(sample, func(o *outcome) float64 { return o.recall[i] }))
		}
	}
	for i, k := range cuts {
		slices.Sort(draws[i])
		s.Intervals[strconv.Itoa(k)] = [2]float64{round(draws[i][rounds*25/1000]), round(draws[i][rounds*975/1000])}
	}
	return s
}

// by groups outcomes.
func by(list []outcome, key func(*outcome) string) map[string][]outcome {
	out := map[string][]outcome{}
	for i := range list {
		if k := key(&list[i]); k != "" {
			out[k] = append(out[k], list[i])
		}
	}
	return out
}

// round keeps four decimals.
func round(v float64) float64 { return float64(int64(v*1e4+0.5)) / 1e4 }

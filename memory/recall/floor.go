package recall

import (
	"cmp"
	"slices"

	"homeagent/memory/lexical"
	"homeagent/messages"
)

// Measured on the labelled conversations with questions whose answer is there and questions of other conversations: below
// Floor memory has nothing on a question. See docs/benchmarks.md for the curve.
const (
	// Floor is the relevance that the best of what was said must have to answer a question.
	Floor = 0.36
	// floorTelling is that for a text which asks nothing: what it brings to mind may be further off.
	floorTelling = 0.18
	// weak is the share of the best relevance below which an item is not listed, unless it alone holds a telling word.
	weak = 0.4
)

// floor is what the best text must reach for a question.
func floor(q *Question, query *lexical.Query) float64 {
	switch {
	case q.Floor != nil:
		return *q.Floor
	case query.Asks:
		return Floor
	}
	return floorTelling
}

// strong leaves out what hardly bears on the question: all texts when even the best does not reach the floor, else the weak
// ones. The best text of each telling word stays, and whatever holds a symbol of the question. list is sorted by score.
func strong(list []candidate, floor float64) []candidate {
	best, exact := 0.0, false
	for i := range list {
		best = max(best, list[i].item.GetRelevance())
		exact = exact || list[i].exact
	}
	if best < floor && !exact {
		return nil
	}
	have := map[string]bool{}
	return slices.DeleteFunc(list, func(c candidate) bool {
		first := false
		for _, t := range c.telling {
			first = first || !have[t]
			have[t] = true
		}
		return !first && !c.exact && c.item.GetRelevance() < weak*best
	})
}

// channels lists what spoke for a text, the weightiest first.
func channels(h *lexical.Hit, w *lexical.Weights) []*messages.ChannelScore {
	var out []*messages.ChannelScore
	h.Signs.Each(w, func(name string, value float64) {
		if value != 0 {
			out = append(out, &messages.ChannelScore{Channel: name, Score: value})
		}
	})
	slices.SortStableFunc(out, func(a, b *messages.ChannelScore) int { return cmp.Compare(b.GetScore(), a.GetScore()) })
	return out
}

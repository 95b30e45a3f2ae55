package configs

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns up to most of the candidates that a person who wrote name may
// have meant, best first: those within a third of the name's length in edits
// (insert, delete, replace, swap of neighbours), and those that hold the same
// last dotted segment. Nothing near gives an empty list.
func Nearest(name string, candidates []string, most int) []string {
	return nearest(name, candidates, most)
}

func nearest(name string, candidates []string, most int) []string {
	type scored struct {
		text     string
		distance int
	}
	limit := max(2, min(len(name)/3, 8))
	last := lastSegment(name)
	var found []scored
	for _, candidate := range candidates {
		d := distance(name, candidate)
		if d > limit && strings.Contains(name, ".") {
			// A right last segment in the wrong place is as good as a near miss.
			if tail := distance(last, lastSegment(candidate)); tail <= min(1, len(last)/4) {
				d = limit
			}
		}
		if d <= limit {
			found = append(found, scored{candidate, d})
		}
	}
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.text, b.text))
	})
	if len(found) > most {
		found = found[:most]
	}
	texts := make([]string, len(found))
	for i, f := range found {
		texts[i] = f.text
	}
	return texts
}

func lastSegment(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}

// distance counts the edits from a to b (optimal string alignment), over runes.
// Long inputs are cut: beyond a key's length they are far from every key.
func distance(left, right string) int {
	a, b := clip([]rune(left)), clip([]rune(right))
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}

func clip(runes []rune) []rune {
	const most = 128
	return runes[:min(len(runes), most)]
}

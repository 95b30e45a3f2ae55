package lexical

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTop compares with the definition: all that hold evidence in order; the first k, then each that brings a term that
// those before it do not hold.
func TestTop(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	extra := 0
	for round := range 300 {
		a := &accumulator{blocks: map[uint32]*block{}}
		var all []scored
		for range rng.IntN(2000) {
			n := uint64(rng.IntN(5000))
			b := a.block(uint32(n / blockSize))
			if b.matched[n%blockSize] != 0 {
				continue
			}
			// Few scores, so that there are equal ones; common terms, and rare ones on poor texts.
			s := scored{n, 1 << rng.IntN(3), float32(1 + rng.IntN(40))}
			if rng.IntN(50) == 0 {
				s.matched, s.score = 1<<(3+rng.IntN(61)), 0.5
			}
			b.matched[n%blockSize], b.score[n%blockSize] = s.matched, s.score
			all = append(all, s)
		}
		slices.SortFunc(all, better)
		k := 1 + rng.IntN(40)
		var want []uint64
		var have uint64
		for i, s := range all {
			if i < k || s.matched&^have != 0 {
				want = append(want, s.n)
				have |= s.matched
			}
		}
		extra += max(0, len(want)-k)
		if got := a.top(k, ^uint64(0)); !slices.Equal(got, want) {
			t.Fatalf("round %d, the best %d: %v, not %v", round, k, got, want)
		}
	}
	if extra == 0 {
		t.Error("no text was taken for a rare term")
	}
}

package vector

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// clustered returns n vectors around a few centres, as those of texts are.
func clustered(rng *rand.Rand, n, dim int) [][]float32 {
	centres := make([][]float32, 64)
	for i := range centres {
		centres[i] = make([]float32, dim)
		for k := range centres[i] {
			centres[i][k] = float32(rng.NormFloat64())
		}
	}
	out := make([][]float32, n)
	for i := range out {
		out[i] = make([]float32, dim)
		c := centres[rng.IntN(len(centres))]
		for k := range out[i] {
			out[i][k] = c[k] + float32(rng.NormFloat64())
		}
	}
	return out
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func fill(t testing.TB, x *Index, list [][]float32) {
	t.Helper()
	for i, v := range list {
		if err := x.Add(uint64(i+1), "s", v); err != nil {
			t.Fatal(err)
		}
	}
}

// The scan finds what an exact comparison finds, with the same cosines but for rounding.
func TestSearchIsNearlyExact(t *testing.T) {
	const n, dim, k = 5000, 100, 10
	rng := rand.New(rand.NewPCG(1, 2))
	list := clustered(rng, n, dim)
	x := New("s", dim)
	fill(t, x, list)
	hit, asked := 0, 0
	for range 20 {
		q := slices.Clone(list[rng.IntN(n)])
		for i := range q {
			q[i] += float32(rng.NormFloat64() / 2)
		}
		order := make([]uint64, n)
		for i := range order {
			order[i] = uint64(i + 1)
		}
		slices.SortFunc(order, func(a, b uint64) int { return cmp.Compare(cosine(q, list[b-1]), cosine(q, list[a-1])) })
		got, err := x.Search("s", q, k)
		if err != nil || len(got) != k {
			t.Fatalf("%d found, %v", len(got), err)
		}
		for _, g := range got {
			asked++
			if slices.Contains(order[:k], g.Number) {
				hit++
			}
			if d := math.Abs(g.Cosine - cosine(q, list[g.Number-1])); d > 0.02 {
				t.Errorf("cosine of %d is off by %v", g.Number, d)
			}
		}
	}
	if float64(hit) < 0.95*float64(asked) {
		t.Errorf("%d of %d are the nearest", hit, asked)
	}
}

func TestAddReplaceDelete(t *testing.T) {
	x := New("s", 3)
	fill(t, x, [][]float32{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}})
	first := func(v ...float32) uint64 {
		t.Helper()
		got, err := x.Search("s", v, 1)
		if err != nil || len(got) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		return got[0].Number
	}
	if n := first(0, 2, 0.1); n != 2 {
		t.Errorf("nearest is %d", n)
	}
	if !x.Delete(2) || x.Delete(2) || x.Delete(9) || x.Len() != 2 {
		t.Errorf("deleting: %d left", x.Len())
	}
	if n := first(0, 2, 0.1); n == 2 {
		t.Error("the deleted one is found")
	}
	// Its place is taken by the next.
	if err := x.Add(7, "s", []float32{0, 1, 0}); err != nil || len(x.numbers) != 3 {
		t.Errorf("%d places, %v", len(x.numbers), err)
	}
	if err := x.Add(7, "s", []float32{-1, 0, 0}); err != nil || x.Len() != 3 || first(-1, 0, 0) != 7 || first(0, 1, 1) != 3 {
		t.Errorf("replacing: %d, %v", x.Len(), err)
	}
	if got, err := x.Search("s", []float32{0, 0, 0}, 5); err != nil || got != nil {
		t.Errorf("nothing to look for: %v, %v", got, err)
	}
	if err := x.Add(8, "s", []float32{0, 0, 0}); err != nil {
		t.Errorf("a vector without length: %v", err)
	}
}

func TestOnlyEqualSpacesCompare(t *testing.T) {
	x := New("s", 3)
	nan := float32(math.NaN())
	for _, c := range []struct {
		space string
		v     []float32
	}{{"other", []float32{1, 0, 0}}, {"s", []float32{1, 0}}, {"s", nil}, {"s", []float32{1, nan, 0}}} {
		if err := x.Add(1, c.space, c.v); !errors.Is(err, ErrSpace) {
			t.Errorf("add %v of %s: %v", c.v, c.space, err)
		}
		if _, err := x.Search(c.space, c.v, 1); !errors.Is(err, ErrSpace) {
			t.Errorf("search %v of %s: %v", c.v, c.space, err)
		}
	}
}

func BenchmarkSearch100k(b *testing.B) {
	const n, dim = 100_000, 300
	rng := rand.New(rand.NewPCG(1, 2))
	list := clustered(rng, n, dim)
	x := New("s", dim)
	fill(b, x, list)
	for b.Loop() {
		if _, err := x.Search("s", list[rng.IntN(n)], 10); err != nil {
			b.Fatal(err)
		}
	}
}

package vector

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
)

const (
	// signs is the number of directions, width how many words hold their bits.
	signs = 512
	width = signs / 64
	// Rescored is how many of the nearest by sign are compared by their components.
	Rescored = 500
)

// Index holds vectors of one space by a number that the caller gives. Make it with New.
type Index struct {
	fingerprint string
	dim         int
	rotation    []float32 // signs rows of dim

	mu      sync.RWMutex
	place   map[uint64]int
	numbers []uint64
	bits    []uint64 // width for each
	rows    []int8   // dim for each
	scales  []float32
	gone    []uint64 // bitmap of places
	free    []int
}

// New returns an empty index of a space.
func New(fingerprint string, dim int) *Index {
	x := &Index{fingerprint: fingerprint, dim: dim, place: map[uint64]int{}, rotation: make([]float32, signs*dim)}
	// The directions are the same in every process, so that bits may be kept.
	rng := rand.New(rand.NewPCG(0x686f6d656167656e, 0x74766563746f7231))
	for i := range x.rotation {
		x.rotation[i] = float32(rng.NormFloat64())
	}
	return x
}

// Len is the number of vectors.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.place)
}

// Space returns fingerprint and dimension of the space.
func (x *Index) Space() (fingerprint string, dim int) { return x.fingerprint, x.dim }

func (x *Index) check(fingerprint string, v []float32) error {
	if fingerprint != x.fingerprint || len(v) != x.dim {
		return fmt.Errorf("%w: %s with %d components, not %s with %d", ErrSpace, fingerprint, len(v), x.fingerprint, x.dim)
	}
	for _, c := range v {
		if math.IsNaN(float64(c)) || math.IsInf(float64(c), 0) {
			return fmt.Errorf("%w: a component is no number", ErrSpace)
		}
	}
	return nil
}

// sketch returns the sign bits of v.
func (x *Index) sketch(v []float32) (out [width]uint64) {
	for i := range signs {
		sum := float32(0)
		row := x.rotation[i*x.dim : (i+1)*x.dim]
		for k, c := range v {
			sum += row[k] * c
		}
		if sum > 0 {
			out[i/64] |= 1 << (i % 64)
		}
	}
	return out
}

// Add stores a vector under a number; one that is there is replaced. v is not kept.
func (x *Index) Add(number uint64, fingerprint string, v []float32) error {
	if err := x.check(fingerprint, v); err != nil {
		return err
	}
	sketch := x.sketch(v)
	norm := 0.0
	top := float32(0)
	for _, c := range v {
		norm += float64(c) * float64(c)
		top = max(top, float32(math.Abs(float64(c))))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.place[number]
	switch n := len(x.free); {
	case ok:
	case n > 0:
		at, x.free = x.free[n-1], x.free[:n-1]
	default:
		at = len(x.numbers)
		x.numbers = append(x.numbers, 0)
		x.scales = append(x.scales, 0)
		x.bits = append(x.bits, make([]uint64, width)...)
		x.rows = append(x.rows, make([]int8, x.dim)...)
		if at/64 >= len(x.gone) {
			x.gone = append(x.gone, 0)
		}
	}
	x.place[number] = at
	x.numbers[at] = number
	x.gone[at/64] &^= 1 << (at % 64)
	copy(x.bits[at*width:], sketch[:])
	row := x.rows[at*x.dim : (at+1)*x.dim]
	// Components of a vector of length one, as steps of its largest.
	x.scales[at] = 0
	if top > 0 {
		x.scales[at] = top / 127 / float32(math.Sqrt(norm))
		for i, c := range v {
			row[i] = int8(math.Round(float64(c / top * 127)))
		}
	}
	return nil
}

// Delete removes the vector of a number, and reports whether there was one.
func (x *Index) Delete(number uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.place[number]
	if !ok {
		return false
	}
	delete(x.place, number)
	x.gone[at/64] |= 1 << (at % 64)
	x.free = append(x.free, at)
	return true
}

// Near is a vector that was found.
type Near struct {
	Number uint64
	// Cosine to what was looked for, -1 to 1.
	Cosine float64
}

// Search returns the k nearest to v, nearest first.
func (x *Index) Search(fingerprint string, v []float32, k int) ([]Near, error) {
	if err := x.check(fingerprint, v); err != nil {
		return nil, err
	}
	norm := 0.0
	for _, c := range v {
		norm += float64(c) * float64(c)
	}
	if norm == 0 || k <= 0 {
		return nil, nil
	}
	sketch := x.sketch(v)
	x.mu.RLock()
	defer x.mu.RUnlock()
	list := make([]Near, 0, max(Rescored, k))
	for _, at := range x.nearest(&sketch, max(Rescored, k)) {
		sum := float32(0)
		for i, c := range x.rows[at*x.dim : (at+1)*x.dim] {
			sum += v[i] * float32(c)
		}
		list = append(list, Near{x.numbers[at], float64(sum*x.scales[at]) / math.Sqrt(norm)})
	}
	slices.SortFunc(list, func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(b.Number, a.Number))
	})
	return list[:min(k, len(list))], nil
}

// nearest returns the places of the n nearest by sign. The lock is held.
func (x *Index) nearest(q *[width]uint64, n int) []int {
	distances := make([]uint16, len(x.numbers))
	var count [signs + 1]int
	for at := range distances {
		b := x.bits[at*width : at*width+width : at*width+width]
		d := bits.OnesCount64(b[0]^q[0]) + bits.OnesCount64(b[1]^q[1]) + bits.OnesCount64(b[2]^q[2]) + bits.OnesCount64(b[3]^q[3]) +
			bits.OnesCount64(b[4]^q[4]) + bits.OnesCount64(b[5]^q[5]) + bits.OnesCount64(b[6]^q[6]) + bits.OnesCount64(b[7]^q[7])
		if x.gone[at/64]&(1<<(at%64)) != 0 {
			distances[at] = signs + 1
			continue
		}
		distances[at] = uint16(d)
		count[d]++
	}
	limit, sum := 0, 0
	for ; limit < signs && sum+count[limit] < n; limit++ {
		sum += count[limit]
	}
	out := make([]int, 0, n)
	edge := n - sum // how many of those at the limit are taken
	for at, d := range distances {
		switch {
		case int(d) < limit:
			out = append(out, at)
		case int(d) == limit && edge > 0:
			edge--
			out = append(out, at)
		}
	}
	return out
}

package embed

import (
	"hash/fnv"
	"math"

	"homeagent/memory/lexical"
)

// Space names a vector space.
type Space struct {
	// Fingerprint tells spaces apart; vectors of different ones never compare.
	Fingerprint string
	// Dim is the number of components.
	Dim int
}

// Embedder makes vectors of texts.
type Embedder interface {
	// Space is the same for the life of the embedder.
	Space() Space
	// Embed returns a vector of length one, or nil for a text of which nothing is known. The caller owns it.
	Embed(text string) []float32
}

// unit scales v to length one; nil when it has none.
func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsInf(sum, 0) || math.IsNaN(sum) {
		return nil
	}
	f := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= f
	}
	return v
}

// hashedDim is the number of components of Hashed, hashedSpread how many of them each term sets.
const (
	hashedDim    = 512
	hashedSpread = 4
)

// Hashed embeds the terms of a text, each as a few components picked by its hash. The zero value is ready.
type Hashed struct{}

// Space implements Embedder.
func (Hashed) Space() Space { return Space{Fingerprint: "terms-hashed-1", Dim: hashedDim} }

// Embed implements Embedder.
func (Hashed) Embed(text string) []float32 {
	counts := map[string]int{}
	for _, t := range lexical.Terms(text) {
		counts[t]++
	}
	if len(counts) == 0 {
		return nil
	}
	out := make([]float32, hashedDim)
	for t, n := range counts {
		h := fnv.New64a()
		_, _ = h.Write([]byte(t))
		bits := h.Sum64()
		w := float32(1 + math.Log(float64(n)))
		for range hashedSpread {
			if bits&(1<<15) != 0 {
				out[bits%hashedDim] += w
			} else {
				out[bits%hashedDim] -= w
			}
			bits >>= 16
		}
	}
	return unit(out)
}

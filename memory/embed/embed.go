package embed

import "math"

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

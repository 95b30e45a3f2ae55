package embed

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Words are static word vectors.
type Words struct {
	space   Space
	index   map[string]int32 // word to row; the rows are in the order of the file, the most frequent first
	rows    []int8
	scales  []float32
	longest int // characters of the longest word without spaces between words
}

// Space implements Embedder.
func (w *Words) Space() Space { return w.space }

// Len is the number of words.
func (w *Words) Len() int { return len(w.scales) }

// Has reports whether a word is known as it is written.
func (w *Words) Has(word string) bool {
	_, ok := w.index[word]
	return ok
}

// rare is a of SIF: how fast the weight of a word falls with its frequency.
const rare = 1e-3

// weight is that of smooth inverse frequency, the frequency taken from the rank.
func (w *Words) weight(row int32) float32 {
	h := math.Log(float64(len(w.scales))) + 0.577
	return float32(rare / (rare + 1/(float64(row+1)*h)))
}

// Embed implements Embedder.
func (w *Words) Embed(text string) []float32 {
	out := make([]float32, w.space.Dim)
	w.each(text, func(row int32) {
		f := w.weight(row) * w.scales[row]
		for i, x := range w.rows[int(row)*w.space.Dim : int(row+1)*w.space.Dim] {
			out[i] += f * float32(x)
		}
	})
	return unit(out)
}

// each calls fn with the rows of the words of a text: the longest known words where a script does not part them.
func (w *Words) each(text string, fn func(row int32)) {
	text = strings.ToLower(norm.NFKC.String(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case joined(r):
			text = text[w.cut(text, fn):]
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			end := strings.IndexFunc(text, func(r rune) bool {
				return joined(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\'' && r != '-'
			})
			if end < 0 {
				end = len(text)
			}
			w.word(text[:end], fn)
			text = text[end:]
		default:
			text = text[size:]
		}
	}
}

// word looks up a word, or what is before and behind a mark in it.
func (w *Words) word(s string, fn func(row int32)) {
	if row, ok := w.index[s]; ok {
		fn(row)
		return
	}
	for _, p := range strings.FieldsFunc(s, func(r rune) bool { return r == '\'' || r == '-' }) {
		if row, ok := w.index[p]; ok && len(p) < len(s) {
			fn(row)
		}
	}
}

// cut takes the longest known word at the beginning of text, and returns its length; a character that begins none is skipped.
func (w *Words) cut(text string, fn func(row int32)) int {
	best, first := 0, 0
	at, n := 0, 0
	for at < len(text) && n < w.longest {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !joined(r) {
			break
		}
		at, n = at+size, n+1
		if first == 0 {
			first = at
		}
		if _, ok := w.index[text[:at]]; ok {
			best = at
		}
	}
	if best == 0 {
		_, size := utf8.DecodeRuneInString(text)
		return max(first, size)
	}
	fn(w.index[text[:best]])
	return best
}

// joined reports scripts that do not part words.
func joined(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

package embed

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of loading.
const (
	// DefaultTop is how many words are loaded when Options does not say.
	DefaultTop = 200_000
	// MaxTop and MaxDim bound what is loaded; a row takes a byte for each component and some 60 for the word.
	MaxTop = 2_000_000
	MaxDim = 2048
	// maxWord is the longest word in bytes; longer ones are left out.
	maxWord = 64
	// maxLine is the longest line of a text file.
	maxLine = 64 << 10
)

// Options of Load.
type Options struct {
	// Top is the most words, from the beginning of the file, where the frequent ones are; zero means DefaultTop.
	Top int
}

// Load reads word vectors from a file, by its content: a text file with a line of two numbers at its head (fastText .vec,
// word2vec, Numberbatch), such a file packed with gzip, or a fastText binary file that is not quantised.
func Load(path string, o Options) (w *Words, err error) {
	if o.Top == 0 {
		o.Top = DefaultTop
	}
	if o.Top < 1 || o.Top > MaxTop {
		return nil, fmt.Errorf("%w: %d words", ErrBig, o.Top)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("word vectors: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, fmt.Errorf("%w: %d bytes at least", ErrTruncated, len(head))
	}
	if binary.LittleEndian.Uint32(head) == fastTextMagic {
		return loadBinary(f, o.Top)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("word vectors: %w", err)
	}
	if head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		return readText(z, o.Top)
	}
	return readText(f, o.Top)
}

// builder collects rows.
type builder struct {
	w    *Words
	hash hash.Hash
	most int
}

func newBuilder(form string, dim, top int) *builder {
	b := &builder{w: &Words{space: Space{Dim: dim}, index: map[string]int32{}, longest: 1}, hash: sha256.New(), most: top}
	fmt.Fprintf(b.hash, "%s %d\n", form, dim)
	return b
}

func (b *builder) full() bool { return len(b.w.scales) >= b.most }

// add appends a row unless the word is there. v is not kept.
func (b *builder) add(word string, v []float32) error {
	if _, ok := b.w.index[word]; ok || word == "" || len(word) > maxWord || !utf8.ValidString(word) {
		return nil
	}
	top := float32(0)
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("%w: a component of %q is no number", ErrFormat, word)
		}
		top = max(top, float32(math.Abs(float64(x))))
	}
	if top == 0 {
		return nil
	}
	start := len(b.w.rows)
	for _, x := range v {
		b.w.rows = append(b.w.rows, int8(math.Round(float64(x/top*127))))
	}
	b.hash.Write([]byte(word))
	b.hash.Write([]byte{0})
	for _, x := range b.w.rows[start:] {
		b.hash.Write([]byte{byte(x)})
	}
	b.w.index[word] = int32(len(b.w.scales))
	b.w.scales = append(b.w.scales, top/127)
	if r, _ := utf8.DecodeRuneInString(word); joined(r) {
		b.w.longest = max(b.w.longest, utf8.RuneCountInString(word))
	}
	return nil
}

func (b *builder) done() (*Words, error) {
	if len(b.w.scales) == 0 {
		return nil, fmt.Errorf("%w: no word in it", ErrFormat)
	}
	b.w.space.Fingerprint = "words-" + hex.EncodeToString(b.hash.Sum(nil)[:12])
	return b.w, nil
}

// readText reads lines of a word and its components. The first line says how many there are of both.
func readText(r io.Reader, top int) (*Words, error) {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	if !s.Scan() {
		return nil, scanned(s.Err(), "the first line")
	}
	var count, dim int
	if n, err := fmt.Sscanf(s.Text(), "%d %d", &count, &dim); n != 2 || err != nil || len(strings.Fields(s.Text())) != 2 {
		return nil, fmt.Errorf("%w: the first line has no two numbers", ErrFormat)
	}
	if count < 1 || dim < 1 {
		return nil, fmt.Errorf("%w: %d words of %d components", ErrFormat, count, dim)
	}
	if dim > MaxDim {
		return nil, fmt.Errorf("%w: %d components", ErrBig, dim)
	}
	b := newBuilder("text", dim, min(top, count))
	v := make([]float32, dim)
	read := 0
	for ; read < count && !b.full() && s.Scan(); read++ {
		word, rest, _ := strings.Cut(s.Text(), " ")
		n := 0
		for part := range strings.FieldsSeq(rest) {
			x, err := strconv.ParseFloat(part, 32)
			if err != nil || n == dim {
				return nil, fmt.Errorf("%w: line %d", ErrFormat, read+2)
			}
			v[n] = float32(x)
			n++
		}
		if n != dim {
			if !s.Scan() {
				return nil, fmt.Errorf("%w: line %d", ErrTruncated, read+2)
			}
			return nil, fmt.Errorf("%w: line %d has %d components of %d", ErrFormat, read+2, n, dim)
		}
		if err := b.add(name(word), v); err != nil {
			return nil, fmt.Errorf("line %d: %w", read+2, err)
		}
	}
	if err := s.Err(); err != nil {
		return nil, scanned(err, fmt.Sprint("line ", read+2))
	}
	if read < count && !b.full() {
		return nil, fmt.Errorf("%w: %d words of %d", ErrTruncated, read, count)
	}
	return b.done()
}

func scanned(err error, where string) error {
	switch {
	case err == nil, errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %s", ErrTruncated, where)
	case errors.As(err, new(flate.CorruptInputError)), errors.Is(err, bufio.ErrTooLong), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("%w: %s: %w", ErrFormat, where, err)
	}
	return fmt.Errorf("%s: %w", where, err)
}

// name takes the word out of a term such as /c/en/ice_cream; words are kept in lower case.
func name(term string) string {
	if rest, ok := strings.CutPrefix(term, "/c/"); ok {
		if _, word, ok := strings.Cut(rest, "/"); ok {
			term = word
		}
	}
	return strings.ToLower(term)
}

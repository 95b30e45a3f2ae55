package embed

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	fastTextMagic   = 793712314
	fastTextVersion = 12
	// maxEntries bounds the dictionary of a binary file.
	maxEntries = 20_000_000
)

// fastText is a binary file that is being read.
type fastText struct {
	f          *os.File
	dim        int
	words      int64
	bucket     int64
	minn, maxn int
	top        []string
	base       int64 // offset of the input matrix
	rows       int64
	size       int64
}

// header is what a binary file begins with, behind magic and version.
type header struct {
	Dim, Ws, Epoch, MinCount, Neg, WordNgrams, Loss, Model, Bucket, Minn, Maxn, LrUpdateRate int32
	Sampling                                                                                 float64
}

func loadBinary(f *os.File, top int) (*Words, error) {
	t := &fastText{f: f}
	if err := t.open(top); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%w: in its dictionary", ErrTruncated)
		}
		return nil, err
	}
	b := newBuilder("fasttext", t.dim, top)
	sum, row := make([]float32, t.dim), make([]byte, 4*t.dim)
	for i, word := range t.top {
		clear(sum)
		n := 1
		if err := t.addRow(sum, row, int64(i)); err != nil {
			return nil, err
		}
		for _, h := range t.grams(word) {
			if err := t.addRow(sum, row, t.words+h); err != nil {
				return nil, err
			}
			n++
		}
		for k := range sum {
			sum[k] /= float32(n)
		}
		if err := b.add(strings.ToLower(word), sum); err != nil {
			return nil, err
		}
	}
	return b.done()
}

// open reads the head and the dictionary, and finds the matrix.
func (t *fastText) open(top int) error {
	info, err := t.f.Stat()
	if err != nil {
		return fmt.Errorf("word vectors: %w", err)
	}
	t.size = info.Size()
	if _, err := t.f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("word vectors: %w", err)
	}
	r := &counter{r: bufio.NewReaderSize(t.f, 1<<20)}
	var magic, version int32
	var h header
	for _, v := range []any{&magic, &version, &h} {
		if err := binary.Read(r, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	if magic != fastTextMagic || version != fastTextVersion {
		return fmt.Errorf("%w: version %d of its binary form, not %d", ErrFormat, version, fastTextVersion)
	}
	if h.Dim < 1 || h.Bucket < 0 || h.Minn < 0 || h.Maxn < h.Minn && h.Maxn != 0 || h.Maxn > 64 {
		return fmt.Errorf("%w: its head makes no sense", ErrFormat)
	}
	if h.Dim > MaxDim {
		return fmt.Errorf("%w: %d components", ErrBig, h.Dim)
	}
	t.dim, t.bucket, t.minn, t.maxn = int(h.Dim), int64(h.Bucket), int(h.Minn), int(h.Maxn)
	if err := t.dictionary(r, top); err != nil {
		return err
	}
	return t.matrix(r)
}

func (t *fastText) dictionary(r *counter, top int) error {
	var d struct {
		Size, Words, Labels int32
		Tokens, Pruned      int64
	}
	if err := binary.Read(r, binary.LittleEndian, &d); err != nil {
		return err
	}
	if d.Words < 1 || d.Labels < 0 || d.Size != d.Words+d.Labels || d.Size > maxEntries {
		return fmt.Errorf("%w: a dictionary of %d words and %d labels in %d entries", ErrFormat, d.Words, d.Labels, d.Size)
	}
	if d.Pruned >= 0 {
		return fmt.Errorf("%w: it is pruned; take the whole model", ErrFormat)
	}
	t.words = int64(d.Words)
	for i := range d.Size {
		word, err := r.r.ReadString(0)
		r.n += int64(len(word))
		if err != nil {
			return err
		}
		var entry struct {
			Count int64
			Type  int8
		}
		if err := binary.Read(r, binary.LittleEndian, &entry); err != nil {
			return err
		}
		if int(i) < top && i < d.Words {
			t.top = append(t.top, word[:len(word)-1])
		}
	}
	return nil
}

func (t *fastText) matrix(r *counter) error {
	var quantised bool
	var m struct{ Rows, Columns int64 }
	if err := binary.Read(r, binary.LittleEndian, &quantised); err != nil {
		return err
	}
	if quantised {
		return fmt.Errorf("%w: it is quantised; take the whole model", ErrFormat)
	}
	if err := binary.Read(r, binary.LittleEndian, &m); err != nil {
		return err
	}
	if m.Columns != int64(t.dim) || m.Rows != t.words+t.bucket {
		return fmt.Errorf("%w: a matrix of %d rows and %d columns", ErrFormat, m.Rows, m.Columns)
	}
	t.base, t.rows = r.n, m.Rows
	if t.size-t.base < t.rows*int64(4*t.dim) {
		return fmt.Errorf("%w: its matrix has %d bytes of %d", ErrTruncated, t.size-t.base, t.rows*int64(4*t.dim))
	}
	return nil
}

func (t *fastText) addRow(sum []float32, buf []byte, row int64) error {
	if _, err := t.f.ReadAt(buf, t.base+row*int64(len(buf))); err != nil {
		return fmt.Errorf("word vectors: row %d: %w", row, err)
	}
	for i := range sum {
		sum[i] += math.Float32frombits(binary.LittleEndian.Uint32(buf[4*i:]))
	}
	return nil
}

// grams returns the buckets of the parts of a word, as fastText makes them.
func (t *fastText) grams(word string) []int64 {
	if t.maxn == 0 || t.bucket == 0 || word == "</s>" {
		return nil
	}
	w := "<" + word + ">"
	var out []int64
	for i := 0; i < len(w); i++ {
		if !utf8.RuneStart(w[i]) {
			continue
		}
		for j, n := i, 1; j < len(w) && n <= t.maxn; n++ {
			j++
			for j < len(w) && !utf8.RuneStart(w[j]) {
				j++
			}
			if n >= t.minn && (n != 1 || i != 0 && j != len(w)) {
				out = append(out, int64(gramHash(w[i:j]))%t.bucket)
			}
		}
	}
	return out
}

// gramHash is FNV-1a with bytes taken as signed, which is how the models were made.
func gramHash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h ^= uint32(int32(int8(s[i])))
		h *= 16777619
	}
	return h
}

// counter counts what is read.
type counter struct {
	r *bufio.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

package embed

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func file(t testing.TB, content []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(p, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func load(t testing.TB, content string) *Words {
	t.Helper()
	w, err := Load(file(t, []byte(content)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func cosine(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

const some = "6 3\nthe 0.1 0.1 0.1\nCar 1 0 0\nautomobile 0.9 0.1 0\ntree 0 1 0\n汽车 1 0.05 0\n树 0 1 0.1\n"

func TestWords(t *testing.T) {
	w := load(t, some)
	if w.Len() != 6 || w.Space().Dim != 3 || !strings.HasPrefix(w.Space().Fingerprint, "words-") || !w.Has("car") {
		t.Fatalf("%d words of %+v", w.Len(), w.Space())
	}
	near := func(a, b string) float64 { return cosine(w.Embed(a), w.Embed(b)) }
	if near("the car", "an automobile") < 0.95 || near("the car", "a tree") > 0.5 || near("我的汽车", "car") < 0.95 || near("那棵树", "tree") < 0.95 {
		t.Errorf("car and automobile %v, car and tree %v", near("the car", "an automobile"), near("the car", "a tree"))
	}
	if v := w.Embed("nothing of it !? 天"); v != nil {
		t.Errorf("unknown words give %v", v)
	}
	if n := cosine(w.Embed("car tree"), w.Embed("car tree")); math.Abs(n-1) > 1e-5 {
		t.Errorf("length %v", n)
	}
	// The same file is the same space, another one is not.
	if load(t, some).Space() != w.Space() || load(t, strings.Replace(some, "tree 0 1", "tree 0 2", 1)+"").Space() == (Space{}) {
		t.Error("the fingerprint changes")
	}
	if load(t, strings.Replace(some, "0.9 0.1", "0.8 0.3", 1)).Space() == w.Space() {
		t.Error("another table has the same fingerprint")
	}
}

func TestTopPackedAndTerms(t *testing.T) {
	var z bytes.Buffer
	g := gzip.NewWriter(&z)
	if _, err := g.Write([]byte("3 2\n/c/en/Ice_cream 1 0\n/c/zh/冰淇淋 0.9 0.1\n/c/de/baum 0 1\n")); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := Load(file(t, z.Bytes()), Options{Top: 2})
	if err != nil || w.Len() != 2 || !w.Has("ice_cream") || !w.Has("冰淇淋") || w.Has("baum") {
		t.Fatalf("%+v, %v", w, err)
	}
}

func TestRefuses(t *testing.T) {
	long := "1 2\n" + strings.Repeat("x", maxLine) + " 1 2\n"
	for name, c := range map[string]struct {
		content string
		want    error
	}{
		"empty":          {"", ErrTruncated},
		"no head":        {"the 1 2 3\n", ErrFormat},
		"text":           {"hello world and more\n", ErrFormat},
		"no words":       {"0 3\n", ErrFormat},
		"negative":       {"3 -1\n", ErrFormat},
		"too wide":       {"3 99999\nx 1\n", ErrBig},
		"few words":      {"3 2\na 1 2\nb 1 2\n", ErrTruncated},
		"half a line":    {"2 3\na 1 2 3\nb 1 2", ErrTruncated},
		"short line":     {"2 3\na 1 2\nb 1 2 3\n", ErrFormat},
		"long line":      {"1 2\na 1 2 3\n", ErrFormat},
		"no number":      {"1 2\na 1 x\n", ErrFormat},
		"not a number":   {"1 2\na NaN 1\n", ErrFormat},
		"infinite":       {"1 2\na Inf 1\n", ErrFormat},
		"all zero":       {"1 2\na 0 0\n", ErrFormat},
		"endless word":   {long, ErrFormat},
		"broken gzip":    {"\x1f\x8b\x08\x00rubbish", ErrTruncated},
		"no gzip":        {"\x1f\x8b\x07\x00\x00\x00\x00\x00\x00\x00\x00", ErrFormat},
		"short fastText": {"\xba\x16\x4f\x2f\x0c\x00\x00\x00", ErrTruncated},
	} {
		if w, err := Load(file(t, []byte(c.content)), Options{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, w, err, c.want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Load(file(t, []byte(some)), Options{Top: MaxTop + 1}); !errors.Is(err, ErrBig) {
		t.Errorf("too many: %v", err)
	}
}

// binaryModel writes a fastText model of the given words; the row of each word is its number, those of the buckets zero but
// for those that parts of "car" fall into.
func binaryModel(t testing.TB, words []string, change func(*header)) []byte {
	t.Helper()
	const bucket = 50
	h := header{Dim: 2, Bucket: bucket, Minn: 3, Maxn: 3, WordNgrams: 1}
	if change != nil {
		change(&h)
	}
	var out bytes.Buffer
	put := func(v any) {
		t.Helper()
		if err := binary.Write(&out, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	put(int32(fastTextMagic))
	put(int32(fastTextVersion))
	put(h)
	put([]int32{int32(len(words)), int32(len(words)), 0})
	put([]int64{100, -1})
	for _, w := range words {
		out.WriteString(w + "\x00")
		put(int64(1))
		put(int8(0))
	}
	put(false)
	put([]int64{int64(len(words) + bucket), 2})
	for i := range words {
		put([]float32{float32(i + 1), 1})
	}
	for i := range bucket {
		v := []float32{0, 0}
		for _, g := range []string{"<ca", "car", "ar>"} {
			if int(gramHash(g)%bucket) == i {
				v = []float32{0, 4}
			}
		}
		put(v)
	}
	return out.Bytes()
}

func TestFastText(t *testing.T) {
	model := binaryModel(t, []string{"</s>", "car", "x"}, nil)
	w, err := Load(file(t, model), Options{})
	if err != nil || w.Len() != 3 || w.Space().Dim != 2 {
		t.Fatalf("%v, %v", w, err)
	}
	// (2, 1) and three parts of (0, 4): the mean has 2 to 13.
	if v := w.Embed("car"); math.Abs(float64(v[0]/v[1])-2.0/13) > 0.01 {
		t.Errorf("car is %v", v)
	}
	for n := range len(model) - 1 {
		if _, err := Load(file(t, model[:n]), Options{}); err == nil {
			t.Fatalf("the first %d bytes of %d are taken", n, len(model))
		}
	}
	for name, change := range map[string]func(*header){
		"wide":   func(h *header) { h.Dim = MaxDim + 1 },
		"no dim": func(h *header) { h.Dim = 0 },
		"matrix": func(h *header) { h.Bucket = 49 },
		"grams":  func(h *header) { h.Minn, h.Maxn = 5, 2 },
	} {
		if _, err := Load(file(t, binaryModel(t, []string{"a"}, change)), Options{}); !errors.Is(err, ErrFormat) && !errors.Is(err, ErrBig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(some))
	f.Add(binaryModel(f, []string{"car"}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := Load(file(t, b), Options{Top: 100})
		if err != nil {
			return
		}
		for row := range w.index {
			if v := w.Embed(row); v != nil && math.Abs(cosine(v, v)-1) > 1e-3 {
				t.Fatal(fmt.Sprint("length of ", v))
			}
		}
	})
}

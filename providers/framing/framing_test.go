package framing_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"homeagent/providers/framing"
)

func all(t testing.TB, k framing.Kind, r io.Reader, limit int) ([]string, error) {
	t.Helper()
	f, err := framing.New(k, r, limit)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for {
		e, err := f.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		s := e.Name + "|" + string(e.Data)
		if e.ID != "" {
			s += "|id=" + e.ID
		}
		if e.Partial {
			s += "|partial"
		}
		out = append(out, s)
	}
}

var sseCases = []struct {
	name, in string
	want     []string
}{
	{"plain", "data: a\n\ndata: b\n\n", []string{"message|a", "message|b"}},
	{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"message|a", "message|b"}},
	{"cr", "data: a\r\rdata: b\r\r", []string{"message|a", "message|b"}},
	{"mixed ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\r", []string{"message|a", "message|b", "message|c"}},
	{"no space", "data:a\n\ndata:  b\n\n", []string{"message|a", "message| b"}},
	{"comments", ": hello\n\n: x\ndata: a\n: y\n\n:\n\n", []string{"message|a"}},
	{"multi line", "data: a\ndata: b\ndata:\ndata\ndata: c\n\n", []string{"message|a\nb\n\n\nc"}},
	{"bom", "\xef\xbb\xbfdata: a\n\n", []string{"message|a"}},
	{"bom only once", "\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"message|a"}},
	{"no last blank line", "data: a\n\ndata: b\n", []string{"message|a", "message|b|partial"}},
	{"no last line end", "data: a\n\ndata: b", []string{"message|a", "message|b|partial"}},
	{"names", "event: ping\ndata: a\n\nevent: x\n\ndata: b\n\n", []string{"ping|a", "message|b"}},
	{"ids", "id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []string{"message|a|id=7", "message|b|id=7", "message|c"}},
	{"retry and unknown", "retry: 10\nfoo: bar\nbaz\ndata: a\n\n", []string{"message|a"}},
	{"empty data", "data\n\ndata:\n\n", []string{"message|", "message|"}},
	{"nothing", "", nil},
	{"only comments", ": a\n\n: b\n", nil},
	{"utf8", "data: äöü😀\n\n", []string{"message|äöü😀"}},
	{"colon in data", "data: {\"a\": \"b:c\"}\n\n", []string{`message|{"a": "b:c"}`}},
}

// readers are the ways bytes may arrive; none may change the result.
func readers(in string, seed uint64) map[string]io.Reader {
	return map[string]io.Reader{
		"whole":     strings.NewReader(in),
		"one byte":  iotest.OneByteReader(strings.NewReader(in)),
		"half":      iotest.HalfReader(strings.NewReader(in)),
		"data+eof":  iotest.DataErrReader(strings.NewReader(in)),
		"random":    &splitter{[]byte(in), rand.New(rand.NewPCG(seed, 1))},
		"with gaps": &gaps{r: iotest.OneByteReader(strings.NewReader(in))},
	}
}

type splitter struct {
	b   []byte
	rnd *rand.Rand
}

func (s *splitter) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b[:1+s.rnd.IntN(min(len(s.b), 7))])
	s.b = s.b[n:]
	return n, nil
}

// gaps gives nothing on every second read, as readers may.
type gaps struct {
	r    io.Reader
	gave bool
}

func (g *gaps) Read(p []byte) (int, error) {
	if g.gave = !g.gave; g.gave {
		return 0, nil
	}
	return g.r.Read(p)
}

func TestSSE(t *testing.T) {
	for _, c := range sseCases {
		for seed := range uint64(8) {
			for name, r := range readers(c.in, seed) {
				got, err := all(t, framing.SSE, r, 0)
				if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("%s, %s: got %q, %v; want %q", c.name, name, got, err, c.want)
				}
			}
		}
	}
}

func TestLineEndsAreEqual(t *testing.T) {
	const in = "\xef\xbb\xbfevent: a\ndata: {\"x\":\ndata: 1}\n\n: ping\n\nid: 3\ndata: ü\n\n"
	want, err := all(t, framing.SSE, strings.NewReader(in), 0)
	if err != nil || len(want) != 2 {
		t.Fatal(want, err)
	}
	for _, end := range []string{"\r\n", "\r"} {
		other := strings.ReplaceAll(in, "\n", end)
		for seed := range uint64(20) {
			for name, r := range readers(other, seed) {
				if got, err := all(t, framing.SSE, r, 0); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%q, %s: got %q, %v", end, name, got, err)
				}
			}
		}
	}
}

// A lone CR must end its event at once: the next byte may be minutes away.
func TestCRDoesNotWait(t *testing.T) {
	pr, pw := io.Pipe()
	defer pw.Close()
	f, err := framing.New(framing.SSE, pr, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = pw.Write([]byte("data: a\r\r")) }()
	if e, err := f.Next(); err != nil || string(e.Data) != "a" {
		t.Fatalf("%q, %v", e.Data, err)
	}
}

func TestLimit(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	got, err := all(t, framing.SSE, strings.NewReader("data: "+long+"\n\ndata: b\n\n"), 0)
	if err != nil || len(got) != 2 || got[0] != "message|"+long {
		t.Fatalf("5 MB event: %d events, %v", len(got), err)
	}
	const limit = 1000
	for _, c := range []struct {
		kind framing.Kind
		in   string
	}{
		{framing.SSE, "data: " + strings.Repeat("x", limit+1) + "\n\n"},
		{framing.SSE, "data: " + strings.Repeat("x", limit+1)},
		{framing.SSE, strings.Repeat("data: yyyyyyyyy\n", 200) + "\n"},
		{framing.SSE, ": " + strings.Repeat("x", limit+1) + "\n\n"},
		{framing.NDJSON, strings.Repeat("x", limit+1) + "\n"},
		{framing.NDJSON, strings.Repeat("x", limit+1)},
		{framing.JSON, strings.Repeat("x", limit+1)},
	} {
		for name, r := range readers(c.in, 1) {
			if _, err := all(t, c.kind, r, limit); !errors.Is(err, framing.ErrTooLarge) {
				t.Errorf("%s %.20q, %s: %v, want ErrTooLarge", c.kind, c.in, name, err)
			}
		}
	}
	if got, err := all(t, framing.NDJSON, strings.NewReader(strings.Repeat("x", limit)+"\n"), limit); err != nil || len(got) != 1 {
		t.Errorf("at the limit: %v, %v", got, err)
	}
}

func TestNDJSON(t *testing.T) {
	const in = "\xef\xbb\xbf{\"a\":1}\r\n\n  {\"b\":\"ü\"}  \n{\"c\":3}"
	want := []string{`message|{"a":1}`, `message|{"b":"ü"}`, `message|{"c":3}|partial`}
	for name, r := range readers(in, 3) {
		if got, err := all(t, framing.NDJSON, r, 0); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestJSON(t *testing.T) {
	for in, want := range map[string]int{" {\"a\":\n1} \n": 1, "": 0, " \n": 0, "\xef\xbb\xbf[]": 1} {
		if got, err := all(t, framing.JSON, strings.NewReader(in), 0); err != nil || len(got) != want {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
}

func TestBodyErrorIsNoEnd(t *testing.T) {
	broken := errors.New("connection reset")
	for _, k := range []framing.Kind{framing.SSE, framing.NDJSON, framing.JSON} {
		r := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken))
		if _, err := all(t, k, r, 0); !errors.Is(err, broken) {
			t.Errorf("%s: %v", k, err)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		declared framing.Kind
		header   string
		want     framing.Kind
	}{
		{framing.SSE, "text/event-stream; charset=utf-8", framing.SSE},
		{framing.SSE, "application/json", framing.JSON},
		{framing.JSON, "text/event-stream", framing.SSE},
		{framing.NDJSON, "application/x-ndjson", framing.NDJSON},
		{framing.SSE, "", framing.SSE},
		{framing.SSE, "text/plain", framing.SSE},
		{framing.SSE, "Text/Event-Stream;;bad", framing.SSE},
	} {
		if got := framing.Choose(c.declared, c.header); got != c.want {
			t.Errorf("Choose(%s, %q) = %s, want %s", c.declared, c.header, got, c.want)
		}
	}
	if _, err := framing.Parse("xml"); !errors.Is(err, framing.ErrUnknown) {
		t.Error(err)
	}
	if _, err := framing.New("xml", nil, 0); !errors.Is(err, framing.ErrUnknown) {
		t.Error(err)
	}
}

// FuzzSplit checks that the places where reads end never change the events.
func FuzzSplit(f *testing.F) {
	for _, c := range sseCases {
		f.Add([]byte(c.in), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		for _, k := range []framing.Kind{framing.SSE, framing.NDJSON} {
			want, werr := all(t, k, bytes.NewReader(in), 1<<16)
			got, gerr := all(t, k, &splitter{in, rand.New(rand.NewPCG(seed, 2))}, 1<<16)
			if fmt.Sprint(got, gerr) != fmt.Sprint(want, werr) {
				t.Fatalf("%s: whole %q %v, split %q %v", k, want, werr, got, gerr)
			}
		}
	})
}

func BenchmarkSSE(b *testing.B) {
	event := "data: " + strings.Repeat("x", 330) + "\n\n"
	in := strings.Repeat(event, 1000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := framing.New(framing.SSE, strings.NewReader(in), 0)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			if _, err := f.Next(); err != nil {
				break
			}
			n++
		}
		if n != 1000 {
			b.Fatal(n)
		}
	}
}

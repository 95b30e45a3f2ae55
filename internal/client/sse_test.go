package client

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// read decodes all frames of s into one text each.
func read(r io.Reader) (out []string, err error) {
	d := newDecoder(r, nil)
	for {
		f, err := d.next()
		if err != nil {
			return out, err
		}
		out = append(out, fmt.Sprintf("%s/%s/%s", f.id, f.name, f.data))
	}
}

func TestDecoder(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "id: 1-2\nevent: x\ndata: {}\n\n", "1-2/x/{}"},
		{"no space", "id:1\ndata:a\n\n", "1//a"},
		{"one space goes", "data:  a\n\n", "// a"},
		{"several lines", "data: a\ndata\ndata: b\n\n", "//a\n\nb"},
		{"comments and unknown fields", ": hi\nfoo: bar\nretry: 5\ndata: a\n\n", "//a"},
		{"without data it is no frame", "id: 1\n\ndata: b\n\n", "//b"},
		{"CRLF", "data: a\r\ndata: b\r\n\r\n", "//a\nb"},
		{"CR", "data: a\r\rdata: b\r\r", "//a|//b"},
		{"cut off", "data: a\n\ndata: b\n", "//a"},
		{"cut off in a line", "data: a\n\ndata: b", "//a"},
		{"byte order mark", "\ufeffdata: a\n\n\ufeffdata: b\n\n", "//a"},
		{"id with zero", "id: 1\x002\ndata: a\n\n", "//a"},
		{"empty", "", ""},
		{"only ends", "\n\r\n\r", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(c.in), "by byte": iotest.OneByteReader(strings.NewReader(c.in)),
			} {
				got, err := read(r)
				if !errors.Is(err, io.EOF) || strings.Join(got, "|") != c.want {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
		})
	}
}

func TestDecoderBoundsAFrame(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"one line":   io.MultiReader(strings.NewReader("data: "), neverEnds{}),
		"many lines": strings.NewReader(strings.Repeat("data: a\n", 1000)),
	} {
		d := newDecoder(r, nil)
		d.max = 1000
		if _, err := d.next(); !errors.Is(err, ErrStream) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	fits := strings.Repeat("data: 0123456789\n\n", 1000) // frames are bounded, not streams
	d := newDecoder(strings.NewReader(fits), nil)
	d.max = 100
	for range 1000 {
		if _, err := d.next(); err != nil {
			t.Fatal(err)
		}
	}
}

type neverEnds struct{}

func (neverEnds) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func FuzzDecoder(f *testing.F) {
	f.Add("id: 1-2\nevent: x\ndata: {}\n\n")
	f.Add("\ufeffdata\r\rdata: b\r\n\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		whole, err := read(strings.NewReader(in))
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		byByte, _ := read(iotest.OneByteReader(strings.NewReader(in)))
		if strings.Join(whole, "|") != strings.Join(byByte, "|") {
			t.Fatalf("%q and %q", whole, byByte)
		}
		if n := strings.Count(in, "data"); len(whole) > n {
			t.Fatalf("%d frames of %d data fields", len(whole), n)
		}
	})
}

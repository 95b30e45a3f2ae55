package main

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/term"
)

// display is a terminal as its user sees it: each place holds a character, or the right half of one.
type display struct {
	width  int
	rows   [][]rune
	row    int
	at     int
	beyond bool // the last place of the row was just written, and the cursor waits there
}

const half = '\x00'

func (d *display) put(r rune) {
	w := columns(string(r))
	if d.beyond || d.at+w > d.width {
		d.row, d.at, d.beyond = d.row+1, 0, false
	}
	for len(d.rows) <= d.row {
		d.rows = append(d.rows, []rune(strings.Repeat(" ", d.width)))
	}
	d.rows[d.row][d.at] = r
	if w == 2 {
		d.rows[d.row][d.at+1] = half
	}
	if d.at += w; d.at == d.width {
		d.at, d.beyond = d.width-1, true
	}
}

// Write draws characters and moves the cursor.
func (d *display) Write(b []byte) (int, error) {
	for s := string(b); s != ""; {
		if rest, ok := strings.CutPrefix(s, "\x1b["); ok {
			i := strings.IndexAny(rest, "ABCDJK")
			n, err := strconv.Atoi(rest[:i])
			if err != nil {
				n = 1
			}
			switch rest[i] {
			case 'A':
				d.row -= n
			case 'B':
				d.row += n
			case 'C':
				d.at += n
			case 'D':
				d.at -= n
			}
			s, d.beyond = rest[i+1:], false
			continue
		}
		switch r := []rune(s)[0]; r {
		case '\r':
			d.at, d.beyond = 0, false
		case '\n':
			d.row++
		default:
			d.put(r)
		}
		s = s[len(string([]rune(s)[0])):]
	}
	return len(b), nil
}

// String is what stands there; rows that are not full are filled up, but for the last one.
func (d *display) String() string {
	var b strings.Builder
	for _, r := range d.rows {
		b.WriteString(strings.ReplaceAll(string(r), string(half), ""))
	}
	return strings.TrimRight(b.String(), " ")
}

func TestWideCharactersAreEdited(t *testing.T) {
	const left, right, del = "\x1b[D", "\x1b[C", "\x1b[3~"
	for typed, want := range map[string]string{
		"plain":                               "plain",
		"plain\x1b[1~a\x1b[4~z\x1bOHb\x1bOFy": "baplainzy",
		"plain\x7f\x7f":                       "pla",
		"管家你好\x7f\x7fab":                      "管家ab",
		"管家" + left + "a":                     "管a家",
		"管家" + left + left + del:              "家",
		"a管b" + left + left + "\x7f":          "管b",
		"管家" + left + right + "\x7f":          "管",
		"管\x7f\x7f\x7f":                       "",
		"管家" + del + right:                    "管家",
		"管家\x01" + del + "x":                  "x家",
		"一 二\x17三":                            "一 三",
		"\ue001\ue000a":                       "a",
		"管a\x14":                              "管a",
		"管家\x02\x02\x06" + "z\x1b[F.":         "管z家.",
		"好ab" + "\x01" + "管家一二三四五六七八":         "管家一二三四五六七八好ab",
		"a管家一二三四五六七八九十\x7f\x7f\x7fx":          "a管家一二三四五六七x",
		"管家一二三四五六七八\x01a\x01bc":               "bca管家一二三四五六七八",
	} {
		for _, width := range []int{80, 12, 13} {
			d := &display{width: width}
			in := &keys{r: strings.NewReader(typed + "\r"), presses: make(chan os.Signal, 1)}
			ed := term.NewTerminal(struct {
				io.Reader
				io.Writer
			}{in, shown{d}}, prompt)
			ed.AutoCompleteCallback = wideLine{prompt: len(prompt), width: width}.key
			if err := ed.SetSize(width, 24); err != nil {
				t.Fatal(err)
			}
			line, err := ed.ReadLine()
			if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
				t.Fatal(err)
			}
			if got := unfilled(line); got != want {
				t.Errorf("%q gives %q, want %q", typed, got, want)
			}
			if got := d.String(); !sameText(got, strings.TrimRight(prompt+want, " "), width) {
				t.Errorf("%q shows %q on %d places, want %q", typed, got, width, want)
			}
		}
	}
}

// sameText compares what a terminal shows with a text; a row ends with a gap where a wide character had no room.
func sameText(shows, text string, width int) bool {
	var b strings.Builder
	place := 0
	for _, r := range text {
		w := columns(string(r))
		if place%width+w > width {
			b.WriteByte(' ')
			place++
		}
		b.WriteRune(r)
		place += w
	}
	return b.String() == shows
}

func TestKeysTakeCtrlCOut(t *testing.T) {
	presses := make(chan os.Signal, 1)
	k := &keys{r: strings.NewReader("a\x03b\x03\x03c"), presses: presses}
	b := make([]byte, 100)
	n, err := k.Read(b)
	if err != nil || string(b[:n]) != "abc" || len(presses) != 1 {
		t.Errorf("%q, %v, %d presses", b[:n], err, len(presses))
	}
}

// onebyone reads a byte at a time, as a slow line brings them.
type onebyone struct{ r io.Reader }

func (o onebyone) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

func TestKeysWaitForWholeCharacters(t *testing.T) {
	k := &keys{r: onebyone{strings.NewReader("管é\x7f")}}
	b, err := io.ReadAll(k)
	if want := "管é" + string(keyBack); err != nil || string(b) != want {
		t.Errorf("%q, %v, want %q", b, err, want)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("管家\x7f\x1b[D\x03\xe7"))
	f.Fuzz(func(t *testing.T, typed []byte) {
		k := &keys{r: strings.NewReader(string(typed)), presses: make(chan os.Signal, 1)}
		b, err := io.ReadAll(k)
		if err != nil || len(b) > 3*len(typed)+3 {
			t.Errorf("%q became %q, %v", typed, b, err)
		}
		line, pos := "", 0
		for _, r := range string(b) {
			if next, at, ok := (wideLine{prompt: 2, width: 10}).key(line, pos, r); ok {
				line, pos = next, at
			} else {
				line = line[:pos] + string(r) + line[pos:]
				pos += len(string(r))
			}
		}
		if pos < 0 || pos > len(line) {
			t.Errorf("%q: %d of %q", typed, pos, line)
		}
	})
}

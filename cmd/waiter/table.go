package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
)

// colors says whether w is a terminal whose user has not asked for plain text.
func colors(w *os.File, env func(string) string) bool {
	return term.IsTerminal(int(w.Fd())) && env("NO_COLOR") == "" && env("TERM") != "dumb"
}

// sizeOf tells the size of the terminal w, as it is when it is asked; nil for what is no terminal.
func sizeOf(w *os.File) func() (places, lines int) {
	if !term.IsTerminal(int(w.Fd())) {
		return nil
	}
	return func() (places, lines int) {
		places, lines, err := term.GetSize(int(w.Fd()))
		if err != nil {
			return 0, 0
		}
		return places, lines
	}
}

// Colours by what they mean.
const (
	quiet  = "\x1b[2m"
	good   = "\x1b[32m"
	warn   = "\x1b[33m"
	bad    = "\x1b[31m"
	strong = "\x1b[1m"
	plain  = "\x1b[0m"
)

// paint colours s where the output shows colours.
func (c *console) paint(color, s string) string {
	if !c.color || s == "" {
		return s
	}
	return color + s + plain
}

// cell is one field of a table: its text and its colour.
type cell struct{ text, color string }

// table aligns columns by their width on a terminal, where Han characters take two places.
type table struct {
	head  []string
	right map[int]bool // columns of numbers
	// less are the columns that a narrow terminal can do without, the first one first.
	less []int
	rows [][]cell
}

func (t *table) add(cells ...any) {
	row := make([]cell, len(cells))
	for i, v := range cells {
		switch v := v.(type) {
		case cell:
			row[i] = v
		default:
			row[i] = cell{text: fmt.Sprint(v)}
		}
	}
	t.rows = append(t.rows, row)
}

const (
	gap = 2 // places between two columns
	// minLast is how much of the last column a terminal should show, before other columns are left out for it.
	minLast = 24
)

// fit leaves columns out until the table fits a terminal of so many places, and tells how wide each one is; those left
// out are -1. The last one gets what remains, but no less than the width of its head.
func (t *table) fit(places int) []int {
	width := make([]int, len(t.head))
	for i, h := range t.head {
		width[i] = columns(h)
	}
	for _, r := range t.rows {
		for i, f := range r {
			width[i] = max(width[i], columns(f.text))
		}
	}
	if places <= 0 {
		return width
	}
	last := len(width) - 1
	before := func() (n int) {
		for _, w := range width[:last] {
			if w >= 0 {
				n += w + gap
			}
		}
		return n
	}
	for _, i := range t.less {
		if before()+min(width[last], minLast) <= places {
			break
		}
		width[i] = -1
	}
	width[last] = min(width[last], max(places-before(), columns(t.head[last])))
	return width
}

// write draws the table; the last column is not padded, and cut where the terminal ends.
func (t *table) write(c *console) {
	places, _ := c.screen()
	width := t.fit(places)
	line := func(row []cell) {
		var b strings.Builder
		for i, f := range row {
			if width[i] < 0 {
				continue
			}
			if i == len(row)-1 && columns(f.text) > width[i] {
				f.text = short(f.text, width[i])
			}
			pad := strings.Repeat(" ", width[i]-columns(f.text))
			text := c.paint(f.color, f.text)
			switch {
			case t.right[i]:
				b.WriteString(pad + text)
			case i == len(row)-1:
				b.WriteString(text)
			default:
				b.WriteString(text + pad)
			}
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", gap))
			}
		}
		_, _ = io.WriteString(c.out, strings.TrimRight(b.String(), " ")+"\n")
	}
	head := make([]cell, len(t.head))
	for i, h := range t.head {
		head[i] = cell{h, quiet}
	}
	line(head)
	for _, r := range t.rows {
		line(r)
	}
}

// columns is how many places a text takes on a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide says whether a character takes two places: Han, Kana, Hangul, full-width forms and emoji.
func wide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
		(r >= 0x3000 && r <= 0x303e) || (r >= 0xff01 && r <= 0xff60) || (r >= 0x1f300 && r <= 0x1faff)
}

// short cuts a text to at most n places, on one line.
func short(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if columns(s) <= n {
		return s
	}
	var b strings.Builder
	used := 0
	for _, r := range s {
		w := columns(string(r))
		if used+w > n-1 {
			break
		}
		used += w
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// clean makes foreign text harmless on a terminal: control characters but tab and newline are shown by a sign.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return '·'
		}
		return r
	}, s)
}

// ago says how long ago something was.
func ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return span(time.Since(t))
}

// span writes a duration with its two largest units.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// amount writes a size in bytes.
func amount(n int64) string {
	const step = 1024
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= step && i < len(units)-1 {
		v /= step
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

// count writes a number short enough for a table.
func count(n uint64) string {
	switch {
	case n < 100_000:
		return fmt.Sprint(n)
	case n < 100_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

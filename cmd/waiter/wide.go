package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The line editor of a terminal counts every character as one place, but Han characters take two. So the line that it has
// holds a filler behind each of them, and one before those for which the end of a row has no room; fillers are taken out
// of all that leaves it. Keys that go over one character come to it as characters of private use, for wideLine to do.
const (
	filler    = '\ue000' // the second place of the character before it
	keyBack   = '\ue001'
	keyLeft   = '\ue002'
	keyRight  = '\ue003'
	keyDelete = '\ue004'
	gapAtEnd  = '\ue005' // a place at the end of a row that has no room for the character behind it
)

const (
	ctrlA = 1
	ctrlC = 3
	ctrlE = 5
	// ctrlT swaps two characters, which would part one from its filler.
	ctrlT = 20
)

// pressed are the bytes of keys that go over one character, and those of Home and End that the editor does not know.
var pressed = []struct {
	bytes string
	key   rune
}{
	{"\x7f", keyBack},
	{"\b", keyBack},
	{"\x1b[D", keyLeft},
	{"\x02", keyLeft},
	{"\x1b[C", keyRight},
	{"\x06", keyRight},
	{"\x1b[3~", keyDelete},
	{"\x1b[1~", ctrlA},
	{"\x1bOH", ctrlA},
	{"\x1b[4~", ctrlE},
	{"\x1bOF", ctrlE},
}

// keys makes what a raw terminal sends fit for the line editor. It takes Ctrl-C out, which is a character there and no
// signal.
type keys struct {
	r       io.Reader
	presses chan<- os.Signal
	part    []byte // of a character whose rest was not read yet
	ready   []byte
}

func (k *keys) Read(p []byte) (int, error) {
	var raw [512]byte
	for len(k.ready) == 0 {
		n, err := k.r.Read(raw[:])
		k.take(append(k.part, raw[:n]...))
		if len(k.ready) == 0 && (err != nil || n == 0) {
			return 0, err
		}
	}
	n := copy(p, k.ready)
	k.ready = k.ready[n:]
	return n, nil // an error comes again with the next read
}

// take turns over all whole keys of b.
func (k *keys) take(b []byte) {
next:
	for len(b) > 0 {
		switch b[0] {
		case ctrlC:
			select {
			case k.presses <- os.Interrupt:
			default: // several presses waiting say no more than one
			}
			fallthrough
		case ctrlT:
			b = b[1:]
			continue
		}
		for _, p := range pressed {
			if rest, ok := bytes.CutPrefix(b, []byte(p.bytes)); ok {
				k.ready, b = utf8.AppendRune(k.ready, p.key), rest
				continue next
			}
		}
		if !utf8.FullRune(b) {
			break
		}
		r, n := utf8.DecodeRune(b)
		switch {
		case filler <= r && r <= gapAtEnd: // it would be taken for a key
		default:
			k.ready = append(k.ready, b[:n]...)
		}
		b = b[n:]
	}
	k.part = bytes.Clone(b)
}

// wideLine is the part of the line editor that knows of fillers.
type wideLine struct {
	// prompt is how many places are taken before the line, width how many a row has.
	prompt, width int
}

// key is what a key does to a line; pos is where the cursor stands, in bytes. It is false for keys that the editor does
// well by itself.
func (w wideLine) key(line string, pos int, key rune) (text string, at int, ok bool) {
	text, at = unfilled(line), len(unfilled(line[:pos]))
	_, last := utf8.DecodeLastRuneInString(text[:at])
	_, first := utf8.DecodeRuneInString(text[at:])
	switch {
	case key == keyBack:
		text, at = text[:at-last]+text[at:], at-last
	case key == keyLeft:
		at -= last
	case key == keyRight:
		at += first
	case key == keyDelete:
		text = text[:at] + text[at+first:]
	case !unicode.IsPrint(key), !wide(key) && len(text) == len(line):
		return "", 0, false
	default:
		text, at = text[:at]+string(key)+text[at:], at+utf8.RuneLen(key)
	}
	return w.filled(text), len(w.filled(text[:at])), true
}

// filled is a line with its fillers.
func (w wideLine) filled(text string) string {
	var b strings.Builder
	place := w.prompt
	for _, r := range text {
		if !wide(r) {
			b.WriteRune(r)
			place++
			continue
		}
		if w.width > 0 && place%w.width == w.width-1 { // the terminal begins a new row for it
			b.WriteRune(gapAtEnd)
			place++
		}
		b.WriteRune(r)
		b.WriteRune(filler)
		place += 2
	}
	return b.String()
}

// unfilled is a line without its fillers.
func unfilled(line string) string { return without.Replace(line) }

var (
	without = strings.NewReplacer(string(filler), "", string(gapAtEnd), "")
	drawn   = strings.NewReplacer(string(filler), "", string(gapAtEnd), " ")
)

// shown writes what the editor draws, without the fillers. The editor writes whole characters.
type shown struct{ w io.Writer }

func (s shown) Write(b []byte) (int, error) {
	if _, err := drawn.WriteString(s.w, string(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

package turn

import (
	"unicode"
	"unicode/utf8"

	"homeagent/messages"
)

// Estimates are in tokens of no particular vendor. They follow how vendors cut text before they look pieces up: words with
// the space before them, up to three digits, runs of signs, white space. What a piece is worth was fitted to two common
// vocabularies; tokens_test.go measures the error and bounds it. They err on the high side, more so for newer
// vocabularies.

const (
	messageOverhead = 4
	payloadTokens   = 800
)

// Kinds of characters. A piece of text is a run of one kind.
const (
	kindNone = iota
	kindLower
	kindUpper
	kindDigit
	kindSign
	kindSpace
	kindBreak
	kindWide
	kindHangul
	kindSymbol
	kindOther
)

// asciiKinds is the kind of each ASCII character.
var asciiKinds = func() (t [128]byte) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z':
			t[c] = kindLower
		case 'A' <= c && c <= 'Z':
			t[c] = kindUpper
		case '0' <= c && c <= '9':
			t[c] = kindDigit
		case c == '\n' || c == '\r':
			t[c] = kindBreak
		case c <= ' ':
			t[c] = kindSpace
		default:
			t[c] = kindSign
		}
	}
	return t
}()

func kindOfRune(r rune) byte {
	switch {
	case r >= 0x4e00 && r < 0xa000:
		return kindWide
	case r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return kindWide
	case r >= 0x1100 && unicode.Is(unicode.Hangul, r):
		return kindHangul
	case r >= 0x3000 && r < 0x3040, r >= 0xff00 && r < 0xfff0: // signs of those scripts
		return kindWide
	case r == utf8.RuneError || unicode.IsLetter(r) || unicode.IsMark(r):
		return kindOther
	case unicode.IsSpace(r):
		return kindSpace
	default:
		return kindSymbol
	}
}

// textTokens estimates a text: never more than it has bytes. Hundredths are summed, so that short pieces do not round up
// each.
func textTokens(s string) int {
	if s == "" {
		return 0
	}
	sum := 0
	before, kind := byte(kindNone), firstKind(s)
	for len(s) > 0 {
		n, end := run(s, kind)
		after := firstKind(s[end:])
		sum += runTokens(kind, before, after, n, s[:end])
		before, kind, s = kind, after, s[end:]
	}
	return (sum + 99) / 100
}

func firstKind(s string) byte {
	switch {
	case s == "":
		return kindNone
	case s[0] < utf8.RuneSelf:
		return asciiKinds[s[0]]
	}
	r, _ := utf8.DecodeRuneInString(s)
	return kindOfRune(r)
}

// run measures the characters of one kind that a text begins with, and where they end.
func run(s string, kind byte) (n, end int) {
	for end < len(s) {
		if c := s[end]; c < utf8.RuneSelf {
			if asciiKinds[c] != kind {
				break
			}
			end++
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[end:])
		if kindOfRune(r) != kind {
			break
		}
		end += size
		n++
	}
	return n, end
}

// runTokens is what a run is worth in hundredths of a token, by the kinds of its neighbours.
func runTokens(kind, before, after byte, n int, s string) int {
	switch kind {
	case kindLower:
		switch {
		case before == kindUpper:
			return 60 + 100*max(n-5, 0)/6 // the capital in front has been counted
		case before == kindDigit || after == kindDigit:
			return 50 + 40*n
		default:
			return 100 + 100*max(n-7, 0)/6
		}
	case kindUpper:
		if n == 1 && after == kindLower {
			return 70
		}
		return 60 + 40*n
	case kindDigit:
		return 100 * ((n + 2) / 3)
	case kindSign:
		if n > 3 && s[0] == s[n-1] && s[0] == s[n/2] { // a line drawn with signs
			return 100 + 100*n/16
		}
		return 45 + 35*n
	case kindSpace:
		if n == 1 {
			return 0 // part of the word behind it
		}
		return 100
	case kindBreak:
		return 70
	case kindWide:
		return 115 * n
	case kindHangul:
		return 145 * n
	case kindSymbol:
		return 150 * n
	case kindOther:
		return 50*n + 20
	}
	return 0
}

func messageTokens(msg *messages.ChatMessage) int {
	n := messageOverhead + textTokens(msg.GetReasoning()) + len(msg.GetReplay())/3
	for _, p := range msg.GetParts() {
		if p.GetPayload() != nil {
			n += payloadTokens
			continue
		}
		n += textTokens(p.GetText())
	}
	for _, c := range msg.GetCalls() {
		n += messageOverhead + textTokens(c.GetName()) + textTokens(string(c.GetArgumentsJson()))
	}
	return n
}

// mostTokens is a bound of messageTokens that takes no reading.
func mostTokens(msgs ...*messages.ChatMessage) int {
	n := 0
	for _, msg := range msgs {
		n += messageOverhead + len(msg.GetReasoning()) + len(msg.GetReplay())/3
		for _, p := range msg.GetParts() {
			n += len(p.GetText())
			if p.GetPayload() != nil {
				n += payloadTokens
			}
		}
		for _, c := range msg.GetCalls() {
			n += messageOverhead + len(c.GetName()) + len(c.GetArgumentsJson())
		}
	}
	return n
}

func toolTokens(d *messages.ToolDef) int {
	return messageOverhead + textTokens(d.GetName()) + textTokens(d.GetDescription()) + textTokens(string(d.GetParametersJson()))
}

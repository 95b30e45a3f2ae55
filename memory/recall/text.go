package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"homeagent/memory/lexical"
)

const (
	// maxText is the longest text of an item in bytes; a longer one is cut to
	// the passage with most matches.
	maxText = 4 << 10
	cutMark = "[…]"
)

// plain reduces a text to what makes it the same text as another.
func plain(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(norm.NFKC.String(text)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}), " ")
}

// asksMemory reports whether a text does nothing but ask what was said before.
func asksMemory(text string) bool {
	t := strings.ToLower(strings.TrimSpace(text))
	opens := false
	for _, w := range []string{"what did i", "did i ", "do you remember", "do you know", "when did i", "where did i", "who did i", "which "} {
		opens = opens || strings.HasPrefix(t, w)
	}
	return (lexical.OnlyAsks(text) || opens && !strings.ContainsAny(t, ".!。！\n")) && lexical.Asking(text)
}

// passage returns the text, or of a long one the part with most of the matched
// terms. It never breaks a character.
func passage(text string, matched []string) string {
	if len(text) <= maxText {
		return text
	}
	const step = maxText / 4
	best, at := -1, 0
	for from := 0; from < len(text); from += step {
		end := min(from+maxText, len(text))
		found := map[string]bool{}
		for _, t := range lexical.Terms(strings.ToValidUTF8(text[from:end], "")) {
			found[t] = true
		}
		n := 0
		for _, m := range matched {
			if found[m] {
				n++
			}
		}
		if n > best {
			best, at = n, from
		}
	}
	from, end := runeStart(text, at), runeStart(text, min(at+maxText, len(text)))
	out := text[from:end]
	if from > 0 {
		out = cutMark + out
	}
	if end < len(text) {
		out += cutMark
	}
	return out
}

// runeStart returns the start of the character at byte i.
func runeStart(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

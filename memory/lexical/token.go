package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTerm is the longest term in bytes; longer tokens are cut there.
const maxTerm = 64

// Terms returns the terms under which a text is found, in order, repeated as
// often as they occur. Words of alphabets are folded (NFKC, lower case, English
// endings) without stop words; tokens with digits or inner marks (192.168.1.10,
// max_tokens, a@b.c) are kept whole, and their parts beside them; runs of Han,
// kana and Thai give each character that is not grammar and each pair of
// neighbours. The result never depends on whether a dictionary is loaded.
func Terms(text string) []string {
	var out []string
	scan(text, func(run []rune, kind runKind) {
		switch kind {
		case runHan:
			out = hanTerms(out, run)
		case runWord:
			out = wordTerms(out, string(run))
		}
	})
	return out
}

type runKind int

const (
	runWord runKind = iota + 1
	runHan
)

// scan cuts text into runs of one kind; anything else separates.
func scan(text string, emit func(run []rune, kind runKind)) {
	text = strings.ToLower(norm.NFKC.String(text))
	runes := []rune(text)
	for i := 0; i < len(runes); {
		kind := kindOf(runes[i])
		if kind == 0 {
			i++
			continue
		}
		j := i + 1
		for j < len(runes) && (kindOf(runes[j]) == kind || kind == runWord && joins(runes, j)) {
			j++
		}
		emit(runes[i:j], kind)
		i = j
	}
}

func kindOf(r rune) runKind {
	switch {
	case unspaced(r):
		return runHan
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_':
		return runWord
	}
	return 0
}

// unspaced reports scripts that are written without spaces between words.
func unspaced(r rune) bool {
	if r < 0x0e00 {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// joins reports whether the mark at i holds two parts of one token together.
func joins(runes []rune, i int) bool {
	switch runes[i] {
	case '.', '-', '@', '/', ':', '\'', '’', '+', '#', '&', '~', '\\':
	default:
		return false
	}
	return i+1 < len(runes) && kindOf(runes[i+1]) == runWord
}

// wordTerms appends the terms of one run of letters, digits and inner marks.
func wordTerms(out []string, run string) []string {
	run = strings.ReplaceAll(run, "’", "'")
	if letters(run) {
		return appendWord(out, run)
	}
	parts := strings.FieldsFunc(run, func(r rune) bool { return kindOf(r) != runWord || r == '_' })
	apostrophe := strings.Contains(run, "'")
	if apostrophe && strings.IndexFunc(run, unicode.IsDigit) < 0 && strings.IndexFunc(strings.ReplaceAll(run, "'", ""), func(r rune) bool { return !unicode.IsLetter(r) }) < 0 {
		// don't, sister's, o'brien: the whole may be a stop word; a tail of one
		// or two letters is grammar.
		if englishStop[run] {
			return out
		}
		for i, p := range parts {
			if i > 0 && len(p) <= 2 {
				continue
			}
			out = appendWord(out, p)
		}
		return out
	}
	if len(parts) != 1 || parts[0] != run {
		out = append(out, cut(run))
	}
	for _, p := range parts {
		out = appendWord(out, p)
		if n := ordinal(p); n != "" {
			out = append(out, n)
		}
	}
	return out
}

// ordinal returns the number of "3rd", "4th"; empty for anything else.
func ordinal(w string) string {
	n := strings.TrimLeft(w, "0123456789")
	if len(n) == len(w) {
		return ""
	}
	switch n {
	case "st", "nd", "rd", "th":
		return cut(strings.TrimSuffix(w, n))
	}
	return ""
}

func appendWord(out []string, w string) []string {
	if w == "" || englishStop[w] {
		return out
	}
	return append(out, cut(stem(w)))
}

func letters(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) < 0
}

// cut bounds a term without breaking a character.
func cut(s string) string {
	if len(s) <= maxTerm {
		return s
	}
	n := maxTerm
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func hanTerms(out []string, run []rune) []string {
	for i, r := range run {
		grammar := hanHard[r] || hanSoft[r]
		if !grammar {
			out = append(out, string(r))
		}
		if i+1 < len(run) {
			next := run[i+1]
			if !(hanHard[r] && hanHard[next]) {
				out = append(out, string(run[i:i+2]))
			}
		}
	}
	return out
}

package graphmem

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"homeagent/memory/store"
)

const (
	// maxNameUnits bounds the names that are looked for inside a text, in units:
	// a word of an alphabet or one Han character.
	maxNameUnits = 8
	// maxTextUnits bounds how much of a text is searched for names.
	maxTextUnits = 256
	// nameVersion begins each value of the name index.
	nameVersion = 1
)

// Key returns the key of a name: names that differ in case, in width, in
// spacing or in punctuation between words have the same key. A name without any
// letter or digit is its own key in lower case. Whole punctuation marks that
// tell names apart (C, C++, C#) stay.
func Key(name string) string {
	u := units(name)
	if len(u) == 0 {
		return bound(strings.ReplaceAll(strings.TrimSpace(strings.ToLower(norm.NFKC.String(name))), "\x00", ""))
	}
	return bound(joinUnits(u))
}

// maxKey is the longest key of a name in bytes; what is longer is no name but a
// text, and is told apart by its digest.
const maxKey = 200

func bound(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return strings.ToValidUTF8(key[:maxKey-40], "") + "~" + hex.EncodeToString(sum[:16])
}

func joinUnits(u []string) string {
	var b strings.Builder
	for i, s := range u {
		if i > 0 && !isHan(u[i-1]) && !isHan(s) {
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	return b.String()
}

func isHan(s string) bool {
	for _, r := range s {
		return hanLike(r)
	}
	return false
}

// hanLike reports scripts that are written without spaces between words.
func hanLike(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// units cuts a text into lower-case words and single Han characters, without
// punctuation and without the possessive 's.
func units(text string) []string {
	text = strings.ToLower(norm.NFKC.String(text))
	var out []string
	var word []rune
	flush := func() {
		if len(word) == 0 {
			return
		}
		w := string(word)
		word = word[:0]
		w = strings.TrimSuffix(w, "'s")
		if w = strings.Trim(w, "'+#_"); w == "" {
			return
		}
		out = append(out, w)
	}
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case hanLike(r):
			flush()
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_':
			word = append(word, r)
		case (r == '\'' || r == '’') && len(word) > 0:
			word = append(word, '\'')
		case (r == '+' || r == '#') && len(word) > 0:
			word = append(word, r)
			// Signs at the end belong to the word only when the word ends there.
			if i+1 == len(runes) || !(unicode.IsLetter(runes[i+1]) || unicode.IsDigit(runes[i+1]) || runes[i+1] == '+' || runes[i+1] == '#') {
				out = append(out, strings.TrimPrefix(string(word), "'"))
				word = word[:0]
			}
		default:
			flush()
		}
	}
	flush()
	return out
}

// Entity is a name the graph knows.
type Entity struct {
	// Key is the normalised name.
	Key string
	// Name is the name as it was first given.
	Name string
}

// putName adds the name to the index of txn unless its key is known.
func putName(txn store.Txn, name string) error {
	key := nameKey(Key(name))
	if known, err := txn.Has(key); err != nil || known {
		return err
	}
	return txn.Put(key, append([]byte{nameVersion}, name...))
}

// named returns the entities whose names occur in text, the longest name at
// each place, in order of occurrence, at most limit of them.
func (v *view) named(text string, limit int) ([]Entity, error) {
	u := units(text)
	if len(u) > maxTextUnits {
		u = u[:maxTextUnits]
	}
	var out []Entity
	seen := map[string]bool{}
	for i := 0; i < len(u) && len(out) < limit; i++ {
		for n := min(maxNameUnits, len(u)-i); n > 0; n-- {
			key := bound(joinUnits(u[i : i+n]))
			name, ok, err := v.name(key)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			if !seen[key] {
				seen[key] = true
				out = append(out, Entity{Key: key, Name: name})
			}
			i += n - 1
			break
		}
	}
	return out, nil
}

// name returns the name stored under key.
func (v *view) name(key string) (string, bool, error) {
	b, err := v.txn.Get(nameKey(key))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", false, nil
	case err != nil:
		return "", false, err
	case len(b) == 0 || b[0] != nameVersion:
		return "", false, fmt.Errorf("%w: name %q", ErrCorrupt, key)
	}
	return string(b[1:]), true, nil
}

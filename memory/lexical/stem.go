package lexical

// stem folds the plural and verb endings of an English word so that "parties"
// meets "party" and "running" meets "run". It is Porter's algorithm (An algorithm
// for suffix stripping, 1980). The word is in lower case; words with anything but
// the letters a to z, and words of one or two letters, come back as they are.
func stem(word string) string {
	if len(word) <= 2 {
		return word
	}
	for i := 0; i < len(word); i++ {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	s := &stemmer{b: []byte(word)}
	s.plural()
	s.past()
	s.finalY()
	s.replace(doubleSuffixes)
	s.replace(icSuffixes)
	s.strip()
	s.finalE()
	s.finalL()
	return string(s.b)
}

type stemmer struct{ b []byte }

func (s *stemmer) consonant(i int) bool {
	switch s.b[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !s.consonant(i-1)
	}
	return true
}

// measure counts the vowel-consonant sequences in the first n letters.
func (s *stemmer) measure(n int) int {
	m, i := 0, 0
	for i < n && s.consonant(i) {
		i++
	}
	for i < n {
		for i < n && !s.consonant(i) {
			i++
		}
		if i >= n {
			break
		}
		m++
		for i < n && s.consonant(i) {
			i++
		}
	}
	return m
}

func (s *stemmer) hasVowel(n int) bool {
	for i := range n {
		if !s.consonant(i) {
			return true
		}
	}
	return false
}

func (s *stemmer) double() bool {
	n := len(s.b)
	return n >= 2 && s.b[n-1] == s.b[n-2] && s.consonant(n-1)
}

// cvc reports consonant, vowel, consonant at the end of the first n letters,
// where the last is not w, x or y.
func (s *stemmer) cvc(n int) bool {
	if n < 3 || !s.consonant(n-1) || s.consonant(n-2) || !s.consonant(n-3) {
		return false
	}
	c := s.b[n-1]
	return c != 'w' && c != 'x' && c != 'y'
}

func (s *stemmer) ends(suffix string) bool {
	return len(s.b) >= len(suffix) && string(s.b[len(s.b)-len(suffix):]) == suffix
}

// cut removes the last n letters and adds tail.
func (s *stemmer) cut(n int, tail string) {
	s.b = append(s.b[:len(s.b)-n], tail...)
}

func (s *stemmer) plural() {
	switch {
	case s.ends("sses"), s.ends("ies"):
		s.cut(2, "")
	case s.ends("ss"):
	case s.ends("s"):
		s.cut(1, "")
	}
}

func (s *stemmer) past() {
	switch {
	case s.ends("eed"):
		if s.measure(len(s.b)-3) > 0 {
			s.cut(1, "")
		}
		return
	case s.ends("ed") && s.hasVowel(len(s.b)-2):
		s.cut(2, "")
	case s.ends("ing") && s.hasVowel(len(s.b)-3):
		s.cut(3, "")
	default:
		return
	}
	switch {
	case s.ends("at"), s.ends("bl"), s.ends("iz"):
		s.cut(0, "e")
	case s.double() && !s.ends("l") && !s.ends("s") && !s.ends("z"):
		s.cut(1, "")
	case s.measure(len(s.b)) == 1 && s.cvc(len(s.b)):
		s.cut(0, "e")
	}
}

func (s *stemmer) finalY() {
	if s.ends("y") && s.hasVowel(len(s.b)-1) {
		s.cut(1, "i")
	}
}

type suffix struct{ old, new string }

// Longer endings come before those they contain.
var doubleSuffixes = []suffix{
	{"ational", "ate"},
	{"ization", "ize"},
	{"iveness", "ive"},
	{"fulness", "ful"},
	{"ousness", "ous"},
	{"tional", "tion"},
	{"biliti", "ble"},
	{"entli", "ent"},
	{"ousli", "ous"},
	{"ation", "ate"},
	{"alism", "al"},
	{"aliti", "al"},
	{"iviti", "ive"},
	{"enci", "ence"},
	{"anci", "ance"},
	{"izer", "ize"},
	{"abli", "able"},
	{"alli", "al"},
	{"ator", "ate"},
	{"eli", "e"},
}

var icSuffixes = []suffix{
	{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ness", ""}, {"ful", ""},
}

var stripSuffixes = []string{
	"ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive", "ize",
	"al", "er", "ic", "ou",
}

func (s *stemmer) replace(list []suffix) {
	for _, x := range list {
		if s.ends(x.old) {
			if s.measure(len(s.b)-len(x.old)) > 0 {
				s.cut(len(x.old), x.new)
			}
			return
		}
	}
}

func (s *stemmer) strip() {
	for _, x := range stripSuffixes {
		if !s.ends(x) {
			continue
		}
		n := len(s.b) - len(x)
		if s.measure(n) > 1 && (x != "ion" || n > 0 && (s.b[n-1] == 's' || s.b[n-1] == 't')) {
			s.cut(len(x), "")
		}
		return
	}
}

func (s *stemmer) finalE() {
	n := len(s.b) - 1
	if !s.ends("e") {
		return
	}
	if m := s.measure(n); m > 1 || m == 1 && !s.cvc(n) {
		s.cut(1, "")
	}
}

func (s *stemmer) finalL() {
	if s.double() && s.ends("l") && s.measure(len(s.b)-1) > 1 {
		s.cut(1, "")
	}
}

package lexical

import "strings"

// Query is a text prepared for search.
type Query struct {
	// Text is what was asked, for the second field.
	Text string
	// Terms to look for, without repeats.
	Terms []QueryTerm
	// When says that it asks for a time, Count that it asks for a number, and Asks that it asks at all.
	When, Count, Asks bool

	dates []date
}

// QueryTerm is one term of a query.
type QueryTerm struct {
	// Text is the term as the index holds it.
	Text string
	// Weight scales its part of the score.
	Weight float64
	// Evidence says that a text with this term bears on the query. Words that
	// ask ("what", "tell", 告诉), grammar, and single Han characters out of a
	// longer word are not evidence: they only order what evidence found.
	Evidence bool
	// Name says that the word names something: it is written in capitals, or has digits or marks in it. Memory that does
	// not know it rarely knows the answer.
	Name bool
	// Exact says that it is a symbol such as 192.168.1.10, max_tokens or E4711, which means what it says.
	Exact bool
	// Date says that it is part of a date, which counts as a whole.
	Date bool
}

// Weights of terms that are no evidence, measured on the labelled conversations.
const (
	weightUnigram = 0.5 // a character of a longer Han run
	weightGrammar = 0.2 // a pair with grammar in it
	weightAsking  = 0.3 // a word that asks
	weightDate    = 0.5 // a part of a date
)

// Empty reports that the text gives nothing to search for.
func (q Query) Empty() bool {
	for _, t := range q.Terms {
		if t.Evidence {
			return false
		}
	}
	return true
}

// ParseQuery prepares a question or a list of keywords.
func ParseQuery(text string) Query {
	b := builder{at: map[string]int{}}
	names := capitalised(text)
	scan(text, func(run []rune, kind runKind) {
		switch kind {
		case runHan:
			b.han(run)
		case runWord:
			word := string(run)
			exact := symbol(word)
			for i, t := range wordTerms(nil, word) {
				if asking[t] {
					b.add(t, weightAsking, false)
					continue
				}
				b.add(t, 1, true)
				b.mark(t, exact || names[word], exact && i == 0)
			}
		}
	})
	var spelt map[string]bool
	b.q.dates, spelt = datesIn(text)
	for i := range b.q.Terms {
		if t := &b.q.Terms[i]; spelt[t.Text] {
			t.Date, t.Name, t.Exact = true, false, false
			t.Weight *= weightDate
		}
	}
	b.q.Text = text
	b.q.When, b.q.Count, b.q.Asks = asksWhen(text), asksCount(text), asksAtAll(text)
	return b.q
}

// asking holds the stems of questionNoise.
var asking = func() map[string]bool {
	m := map[string]bool{}
	for w := range questionNoise {
		m[stem(w)] = true
	}
	return m
}()

// hanAsking holds the words of hanNoise.
var hanAsking = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range hanNoise {
		m[w] = true
	}
	return m
}()

// Asking reports whether a text has words that ask about what was said before:
// "do you remember", "did I tell you", 告诉过, 记得.
func Asking(text string) bool {
	found := false
	scan(text, func(run []rune, kind runKind) {
		switch kind {
		case runHan:
			// 听说 is about what the other has heard of, not about what was said before.
			text := strings.ReplaceAll(string(run), "听说", " ")
			for _, w := range hanMemory {
				found = found || strings.Contains(text, w)
			}
		case runWord:
			found = found || memoryWords[string(run)]
		}
	})
	return found
}

type builder struct {
	q  Query
	at map[string]int
}

func (b *builder) add(term string, weight float64, evidence bool) {
	if i, ok := b.at[term]; ok {
		t := &b.q.Terms[i]
		t.Weight = max(t.Weight, weight)
		t.Evidence = t.Evidence || evidence
		return
	}
	b.at[term] = len(b.q.Terms)
	b.q.Terms = append(b.q.Terms, QueryTerm{Text: term, Weight: weight, Evidence: evidence})
}

func (b *builder) mark(term string, name, exact bool) {
	t := &b.q.Terms[b.at[term]]
	t.Name, t.Exact = t.Name || name, t.Exact || exact
}

// han takes the asking words out of a run and adds what is left.
func (b *builder) han(run []rune) {
	text := string(run)
	for _, w := range hanNoise {
		text = strings.ReplaceAll(text, w, " ")
	}
	for _, part := range strings.Fields(text) {
		b.hanPart([]rune(part))
	}
}

func (b *builder) hanPart(run []rune) {
	content := func(i int) bool { return i >= 0 && i < len(run) && !hanHard[run[i]] }
	for i, r := range run {
		if !hanHard[r] && !hanSoft[r] {
			alone := !content(i-1) && !content(i+1)
			weight := weightUnigram
			if alone {
				weight = 1
			}
			b.add(string(r), weight, alone)
		}
		if i+1 >= len(run) {
			continue
		}
		switch pair, next := string(run[i:i+2]), run[i+1]; {
		case hanHard[r] && hanHard[next]:
		case hanHard[r] || hanHard[next]:
			b.add(pair, weightGrammar, false)
		case hanSoft[r] && hanSoft[next]:
			b.add(pair, weightGrammar, false)
		default:
			b.add(pair, 1, true)
		}
	}
}

package lexical

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	// k1 and b are those of BM25, measured on the labelled conversations.
	k1 = 0.9
	b  = 0.4

	weightWords = 0.3 // second field

	// candidates is how many of the best texts by BM25 are looked at with what is around them.
	candidates = 64
	// maxTerms is how many terms of a query count, the weightiest; a bit of a word stands for each.
	maxTerms = 64
	// maxParsed is how many terms of a query are looked up to find those.
	maxParsed = 512
)

// Search options.
type Search struct {
	// Agent whose texts are searched.
	Agent string
	// Limit is the most hits; zero means 10.
	Limit int
	// Skip leaves a text out by event id; nil leaves out none. A text left out
	// still supports its neighbours.
	Skip func(event string) bool
	// Now is the time of the search, for the dictionary's idle time.
	Now time.Time
	// Weights of the signs; nil means DefaultWeights.
	Weights *Weights
	// Near are texts whose vectors are near that of the query, by number, with their cosine; nil without vectors. They are
	// looked at beside the best by BM25.
	Near map[uint64]float64
}

// Hit is one text that was found.
type Hit struct {
	// Number and Event name the text.
	Number uint64
	Event  string
	// Conversation it stands in, and the event before it there; empty for none.
	Conversation, Before string
	// AtUs is when it was said, Unix microseconds.
	AtUs int64
	// Kind of the event.
	Kind messages.EventKind
	// Score is the weighted sum of Signs; BM25 is that of its own words, not scaled.
	Score, BM25 float64
	// Signs are what speaks for it.
	Signs Signs
	// Relevance is how far it bears on the query, 0 to 1: the share of what is asked for that it holds, half of it that of
	// its window, by how telling the words are. It can be compared between queries, which Score cannot.
	Relevance float64
	// Exact: it holds a symbol of the query.
	Exact bool
	// Telling are those of Matched that are names, symbols or rare.
	Telling []string
	// Asks: it does nothing but ask.
	Asks bool
	// Matched lists the evidence terms it holds; empty for a text found by its
	// neighbours alone.
	Matched []string
}

// Search returns the texts that bear on q, best first. With no hit, none is
// known; see Query.Empty for a query that says nothing.
func (x *Index) Search(txn store.Txn, q Query, s Search) ([]Hit, error) {
	if s.Limit <= 0 {
		s.Limit = 10
	}
	if q.Empty() {
		return nil, nil
	}
	run := &run{txn: txn, s: s, q: &q, zone: x.zone(), shelf: &x.shelf, texts: map[uint64]*structure{}, shelved: map[uint64]bool{}}
	run.acc = accumulators.Get().(*accumulator)
	defer func() {
		run.acc.reset()
		accumulators.Put(run.acc)
	}()
	if err := run.score(&q); err != nil {
		return nil, err
	}
	if err := run.scoreWords(x.Words, q); err != nil {
		return nil, err
	}
	return run.rank()
}

type run struct {
	txn     store.Txn
	s       Search
	q       *Query
	figures figures
	acc     *accumulator
	// terms that count, at the places of their bits in the masks of acc.
	terms []term
	// evidenceMask has the bits of the terms that are evidence, exactMask those of symbols, tellingMask those of terms that
	// say much.
	evidenceMask, exactMask, tellingMask uint64
	// asked is the worth of all evidence, whether known or not.
	asked, dated float64 // dated is that of a date in it
	zone         *time.Location
	shelf        *structures
	texts        map[uint64]*structure
	shelved      map[uint64]bool // those of texts that came from the shelf
}

// term is a term of the query that the index knows; its weight is by how rare it is.
type term struct {
	QueryTerm
	weight float64 // for the score
	worth  float64 // for relevance
}

const (
	// A name that memory does not know counts double for what is asked, another unknown word less than a known one: it may
	// be said otherwise.
	worthNoName  = 2
	worthUnknown = 0.7
	// worthName is the least that a known name is worth, of the most telling term.
	worthName = 0.5
	// askedMost is how many of the most telling terms a text has to hold to bear on the query fully, however long that is.
	askedMost = 5
	// worthAcross is what a pair of Han characters is worth with one in it that is often grammar.
	worthAcross = 0.5
	// telling is from what share of the most telling term on a term says much.
	telling = 0.6
)

// score adds BM25 of every term to the accumulator.
func (r *run) score(q *Query) error {
	fb, err := get(r.txn, figuresKey(r.s.Agent))
	if err != nil || fb == nil {
		return err
	}
	if r.figures, err = decodeFigures(fb); err != nil {
		return err
	}
	most := 0.0
	var all []term
	for _, t := range q.Terms[:min(len(q.Terms), maxParsed)] {
		df, err := getUvarint(r.txn, dfKey(r.s.Agent, t.Text))
		if err != nil {
			return err
		}
		rarity := t.Weight * idf(r.figures.texts, df)
		if t.Evidence {
			most = max(most, rarity)
		}
		all = append(all, term{QueryTerm: t, weight: rarity, worth: rarity})
		if df == 0 {
			all[len(all)-1].weight = 0
		}
	}
	r.value(all, most)
	return r.addTerms()
}

// value sets what the terms are worth, and keeps those that are known.
func (r *run) value(all []term, most float64) {
	for _, t := range all {
		t.worth *= hanWorth(t.Text)
		switch known := t.weight > 0; {
		case t.Date:
			t.worth = 0
		case !known && t.Name:
			t.worth *= worthNoName
		case !known:
			t.worth *= worthUnknown
		case t.Name:
			t.worth = max(t.worth, worthName*most)
		}
		if t.Evidence {
			r.asked += t.worth
		}
		if t.weight > 0 {
			r.terms = append(r.terms, t)
		}
	}
	if len(r.q.dates) > 0 {
		most = max(most, 1)
		r.dated = 0.7 * most
		r.asked += r.dated
	}
	r.asked = min(r.asked, askedMost*most)
	if len(r.terms) > maxTerms {
		slices.SortStableFunc(r.terms, func(x, y term) int {
			if x.Evidence != y.Evidence {
				if x.Evidence {
					return -1
				}
				return 1
			}
			return cmp.Compare(y.weight, x.weight)
		})
		r.terms = r.terms[:maxTerms]
	}
	for i, t := range r.terms {
		if !t.Evidence {
			continue
		}
		r.evidenceMask |= 1 << i
		if t.Exact {
			r.exactMask |= 1 << i
		}
		if t.Name || t.worth >= telling*hanWorth(t.Text)*most {
			r.tellingMask |= 1 << i
		}
	}
}

// hanWorth is what a term is worth of itself: a pair of Han characters with one that is often grammar mostly lies across
// words.
func hanWorth(term string) float64 {
	first, size := utf8.DecodeRuneInString(term)
	if !unspaced(first) || size == len(term) {
		return 1
	}
	if second, _ := utf8.DecodeRuneInString(term[size:]); hanSoft[first] || hanSoft[second] {
		return worthAcross
	}
	return 1
}

// addTerms scores the texts that hold the terms.
func (r *run) addTerms() error {
	for i, t := range r.terms {
		if err := r.addTerm(subTerms, t.Text, t.weight, 1<<i); err != nil {
			return err
		}
	}
	return nil
}

func idf(texts, df uint64) float64 {
	n, d := float64(texts), float64(df)
	return math.Log(1 + (n-d+0.5)/(d+0.5))
}

// scoreWords adds the second field: words of the query that the dictionary
// knows. They never make a hit by themselves.
func (r *run) scoreWords(d *Dictionary, q Query) error {
	if d == nil || q.Text == "" || !d.Loaded() {
		return nil
	}
	words := d.Words(r.s.Now, q.Text)
	slices.Sort(words)
	for _, w := range slices.Compact(words) {
		if hanAsking[w] {
			continue
		}
		var df uint64
		if err := r.each(subWords, w, func(uint32, posting) { df++ }); err != nil {
			return err
		}
		if df == 0 {
			continue
		}
		if err := r.addTerm(subWords, w, weightWords*idf(r.figures.texts, df), 0); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) addTerm(field byte, term string, weight float64, bit uint64) error {
	avg := max(1, float64(r.figures.length)/max(1, float64(r.figures.texts)))
	var cur *block
	at := uint32(0)
	return r.each(field, term, func(n uint32, p posting) {
		if cur == nil || n != at {
			cur, at = r.acc.block(n), n
		}
		tf := float64(p.count)
		cur.score[p.low] += float32(weight * tf * (k1 + 1) / (tf + k1*(1-b+b*float64(p.length)/avg)))
		cur.matched[p.low] |= bit
	})
}

func (r *run) each(field byte, term string, fn func(n uint32, p posting)) error {
	prefix := termPrefix(field, r.s.Agent, term)
	for item, err := range r.txn.Scan(store.Range{Space: store.Lexical, Prefix: prefix[1:]}) {
		if err != nil {
			return err
		}
		key := item.FullKey()
		if len(key) != len(prefix)+4 {
			return fmt.Errorf("%w: posting key %q", ErrCorrupt, key)
		}
		n := uint32(key[len(prefix)])<<24 | uint32(key[len(prefix)+1])<<16 | uint32(key[len(prefix)+2])<<8 | uint32(key[len(prefix)+3])
		value, err := item.Value()
		if err != nil {
			return err
		}
		if err := eachPosting(value, func(p posting) { fn(n, p) }); err != nil {
			return err
		}
	}
	return nil
}

// accumulator holds the scores of one search, in blocks by number.
type accumulator struct {
	blocks map[uint32]*block
	free   []*block
}

type block struct {
	score   [blockSize]float32
	matched [blockSize]uint64
}

var accumulators = sync.Pool{New: func() any { return &accumulator{blocks: map[uint32]*block{}} }}

func (a *accumulator) reset() {
	for n, b := range a.blocks {
		*b = block{}
		a.free = append(a.free, b)
		delete(a.blocks, n)
	}
	// An unusual search must not hold its memory for ever.
	a.free = a.free[:min(len(a.free), 512)]
}

func (a *accumulator) block(n uint32) *block {
	b, ok := a.blocks[n]
	if ok {
		return b
	}
	if k := len(a.free); k > 0 {
		b, a.free = a.free[k-1], a.free[:k-1]
	} else {
		b = &block{}
	}
	a.blocks[n] = b
	return b
}

func (a *accumulator) get(n uint64) float64 {
	if b, ok := a.blocks[uint32(n/blockSize)]; ok {
		return float64(b.score[n%blockSize])
	}
	return 0
}

func (a *accumulator) matched(n uint64) uint64 {
	if b, ok := a.blocks[uint32(n/blockSize)]; ok {
		return b.matched[n%blockSize]
	}
	return 0
}

// scored is a text that holds evidence.
type scored struct {
	n       uint64
	matched uint64
	score   float32
}

// better orders by score; of equal ones the later text is first.
func better(x, y scored) int {
	return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(y.n, x.n))
}

// top returns the numbers of the k best texts that hold evidence, best first,
// and behind them the best text of each evidence term that those do not hold. A
// common word matches most of what was ever said, so not all of it is sorted.
func (a *accumulator) top(k int, evidence uint64) []uint64 {
	var best []scored      // the k best so far, and more that came since they were cut
	var floor *scored      // the last of the k best when they were cut
	var holders [64]scored // the best text of each term
	for n, b := range a.blocks {
		for i, matched := range b.matched {
			if matched &= evidence; matched == 0 {
				continue
			}
			s := scored{uint64(n)*blockSize + uint64(i), matched, b.score[i]}
			for rest := matched; rest != 0; rest &= rest - 1 {
				if h := &holders[bits.TrailingZeros64(rest)]; h.matched == 0 || better(s, *h) < 0 {
					*h = s
				}
			}
			if floor != nil && better(s, *floor) > 0 {
				continue
			}
			if best = append(best, s); len(best) >= 8*k {
				slices.SortFunc(best, better)
				best = best[:k]
				last := best[k-1]
				floor = &last
			}
		}
	}
	slices.SortFunc(best, better)
	best = best[:min(k, len(best))]
	out := make([]uint64, 0, len(best))
	var have uint64
	for _, s := range best {
		out = append(out, s.n)
		have |= s.matched
	}
	missing := slices.DeleteFunc(holders[:], func(s scored) bool { return s.matched&^have == 0 })
	slices.SortFunc(missing, better)
	for _, s := range missing {
		if s.matched&^have != 0 {
			out = append(out, s.n)
			have |= s.matched
		}
	}
	return out
}

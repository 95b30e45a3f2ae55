package lexical

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

// BM25 and structure weights, measured on the labelled conversations.
const (
	k1 = 0.9
	b  = 0.4

	weightWords   = 0.3 // second field
	weightPrev    = 0.4 // the turn before
	weightNext    = 0.2 // the turn after
	weightSecond  = 0.3 // of weightPrev and weightNext, for the turn after that
	weightSession = 0.3 // mean of the best three of the session

	// candidates is how many of the best texts by BM25 the structure is looked
	// at for; 40 find as much as 200 on the labelled conversations.
	candidates = 64
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
	// Score is the sum of all channels; BM25 is the part of its own words.
	Score, BM25 float64
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
	run := &run{txn: txn, s: s, shelf: &x.shelf, texts: map[uint64]*text{}, shelved: map[uint64]bool{}}
	run.acc = accumulators.Get().(*accumulator)
	defer func() {
		run.acc.reset()
		accumulators.Put(run.acc)
	}()
	if err := run.score(q); err != nil {
		return nil, err
	}
	if err := run.scoreWords(x.Words, q); err != nil {
		return nil, err
	}
	return run.rank()
}

type run struct {
	txn      store.Txn
	s        Search
	figures  figures
	acc      *accumulator
	evidence []string // bit of acc.matched to term
	shelf    *shelf
	texts    map[uint64]*text
	shelved  map[uint64]bool // those of texts that came from the shelf
}

// score adds BM25 of every term to the accumulator.
func (r *run) score(q Query) error {
	fb, err := get(r.txn, figuresKey(r.s.Agent))
	if err != nil || fb == nil {
		return err
	}
	if r.figures, err = decodeFigures(fb); err != nil {
		return err
	}
	for _, t := range q.Terms {
		df, err := getUvarint(r.txn, dfKey(r.s.Agent, t.Text))
		if err != nil {
			return err
		}
		if df == 0 {
			continue
		}
		var bit uint64
		if t.Evidence && len(r.evidence) < 64 {
			bit = 1 << len(r.evidence)
			r.evidence = append(r.evidence, t.Text)
		}
		if err := r.addTerm(subTerms, t.Text, t.Weight*idf(r.figures.texts, df), bit); err != nil {
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

// rated is a text with its score.
type rated struct {
	n          uint64
	t          *text
	score, own float64
}

// rank takes the best texts, adds what their surroundings say, and cuts.
func (r *run) rank() ([]Hit, error) {
	top := r.acc.top(candidates)
	pool := make(map[uint64]bool, 4*len(top))
	best := make(map[uint64][]float64) // session to its scores
	for _, n := range top {
		t, err := r.text(n)
		if err != nil {
			return nil, err
		}
		pool[n] = true
		if list := best[t.session]; len(list) < 3 {
			best[t.session] = append(list, r.acc.get(n))
		}
		if err := r.around(n, t, func(m uint64, _ float64) { pool[m] = true }); err != nil {
			return nil, err
		}
	}
	list := make([]rated, 0, len(pool))
	for n := range pool {
		c, err := r.rate(n, best)
		if err != nil {
			return nil, err
		}
		if c.score > 0 && (r.s.Skip == nil || !r.s.Skip(c.t.event)) {
			list = append(list, c)
		}
	}
	// Equal scores: the later text first.
	slices.SortFunc(list, func(a, b rated) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.n, a.n))
	})
	list = list[:min(len(list), r.s.Limit)]
	hits := make([]Hit, len(list))
	for i, c := range list {
		var err error
		if hits[i], err = r.hit(c); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// rate adds up what the text n, its neighbours and its session say.
func (r *run) rate(n uint64, best map[uint64][]float64) (rated, error) {
	t, err := r.text(n)
	if err != nil {
		return rated{}, err
	}
	c := rated{n: n, t: t, own: r.acc.get(n)}
	c.score = c.own
	if err := r.around(n, t, func(m uint64, w float64) { c.score += w * r.acc.get(m) }); err != nil {
		return rated{}, err
	}
	if list := best[t.session]; len(list) > 0 {
		sum := 0.0
		for _, v := range list {
			sum += v
		}
		c.score += weightSession * sum / 3
	}
	return c, nil
}

func (r *run) hit(c rated) (Hit, error) {
	t := c.t
	h := Hit{
		Number: c.n, Event: t.event, Conversation: t.conversation, AtUs: t.at, Kind: messages.EventKind(t.role),
		Score: c.score, BM25: c.own,
	}
	if t.prev != 0 {
		before, err := r.text(t.prev)
		if err != nil {
			return Hit{}, err
		}
		h.Before = before.event
	}
	matched := r.acc.matched(c.n)
	if n := bits.OnesCount64(matched); n > 0 {
		h.Matched = make([]string, 0, n)
	}
	for i, term := range r.evidence {
		if matched&(1<<i) != 0 {
			h.Matched = append(h.Matched, term)
		}
	}
	return h, nil
}

// around calls fn for the two turns before and after the text n, which is t, in the same session, with the weight
// each lends to it.
func (r *run) around(n uint64, t *text, fn func(m uint64, weight float64)) error {
	for _, forth := range [...]bool{false, true} {
		weight := weightPrev
		if forth {
			weight = weightNext
		}
		at, from := n, t
		for range 2 {
			m, next, err := r.beside(at, from, forth)
			if err != nil {
				return err
			}
			if next == nil || next.session != t.session {
				break
			}
			fn(m, weight)
			weight, at, from = weight*weightSecond, m, next
		}
	}
	return nil
}

// beside returns the text before or after the text n, which is t; nil when there is none. What stands on the shelf may
// be newer than the snapshot of this search: a neighbour that is not there is then looked for again from the record itself.
func (r *run) beside(n uint64, t *text, forth bool) (uint64, *text, error) {
	for {
		m := t.prev
		if forth {
			m = t.next
		}
		if m == 0 {
			return 0, nil, nil
		}
		next, err := r.text(m)
		if !errors.Is(err, errMissing) || !r.shelved[n] {
			return m, next, err
		}
		if err := r.read(n); err != nil {
			return 0, nil, err
		}
		t = r.texts[n]
	}
}

// text is the text n, from the shelf or from the store.
func (r *run) text(n uint64) (*text, error) {
	if t, ok := r.texts[n]; ok {
		return t, nil
	}
	if t := r.shelf.get(n); t != nil {
		r.texts[n], r.shelved[n] = t, true
		return t, nil
	}
	if err := r.read(n); err != nil {
		return nil, err
	}
	t := r.texts[n]
	if t.next != 0 {
		r.shelf.put(n, t)
	}
	return t, nil
}

// errMissing: a text that another one names is not in the store.
var errMissing = fmt.Errorf("%w: a text is missing", ErrCorrupt)

// read reads the text n as of the snapshot.
func (r *run) read(n uint64) error {
	key := textKey(n)
	b, err := r.txn.Get(key)
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w: %d", errMissing, n)
		}
		return err
	}
	t, err := decodeText(key, b)
	if err != nil {
		return err
	}
	r.texts[n] = &t
	delete(r.shelved, n)
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
func (a *accumulator) top(k int) []uint64 {
	var best []scored      // the k best so far, and more that came since they were cut
	var floor *scored      // the last of the k best when they were cut
	var holders [64]scored // the best text of each term
	for n, b := range a.blocks {
		for i, matched := range b.matched {
			if matched == 0 {
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

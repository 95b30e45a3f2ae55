package lexical

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

// Weights say how much each sign counts that a text bears on a query. Each sign but Length is 0..1 of the best there is.
type Weights struct {
	// Own is the BM25 score of the text itself.
	Own float64
	// Window is what the text and the two turns on each side say together: each word counts once more and more slowly.
	Window float64
	// Session is the mean of the best three of its session.
	Session float64
	// Named counts for what the one speaker said whom the query names.
	Named float64
	// Answers is the score of the turn before, when that asks.
	Answers float64
	// Asks is taken off a text that only asks.
	Asks float64
	// Length counts for longer texts, which tell more; logarithmic, 1 from 54 words on.
	Length float64
	// When counts for a text that tells a time, when the query asks for one; Count for a number.
	When, Count float64
	// Agent is taken off what the agent said.
	Agent float64
	// Exact counts for a text that holds a symbol of the query.
	Exact float64
	// Date counts for what was said on a date that the query names.
	Date float64
	// Vector counts for a text whose vector is near that of the query.
	Vector float64
}

// DefaultWeights were picked coarsely on three of the labelled conversations and hold on the others.
func DefaultWeights() Weights {
	return Weights{
		Own: 0.3, Window: 1, Session: 0.4, Named: 0.2, Answers: 0.75, Asks: 0.4, Length: 0.3, When: 0.2, Count: 0.2, Agent: 0.1, Exact: 1, Date: 0.4, Vector: 0.4,
	}
}

// Signs are what speaks for a text, before weights.
type Signs struct {
	Own, Window, Session, Named, Answers, Asks, Length, When, Count, Agent, Exact, Date, Vector float64
}

// parts lists names, weights and signs, those that count against a text with a negative factor.
func parts(w *Weights, s *Signs) [13]part {
	return [...]part{
		{"words", &w.Own, s.Own},
		{"window", &w.Window, s.Window},
		{"session", &w.Session, s.Session},
		{"speaker", &w.Named, s.Named},
		{"answer", &w.Answers, s.Answers},
		{"question", &w.Asks, -s.Asks},
		{"length", &w.Length, s.Length},
		{"time", &w.When, s.When},
		{"number", &w.Count, s.Count},
		{"agent", &w.Agent, -s.Agent},
		{"exact", &w.Exact, s.Exact},
		{"date", &w.Date, s.Date},
		{"vector", &w.Vector, s.Vector},
	}
}

type part struct {
	name   string
	weight *float64
	sign   float64
}

// SignNames lists the names of the signs.
func SignNames() []string {
	var out []string
	for _, p := range parts(&Weights{}, &Signs{}) {
		out = append(out, p.name)
	}
	return out
}

// Sign returns the weight of a sign by its name, to be read or set; nil for an unknown name.
func (w *Weights) Sign(name string) *float64 {
	for _, p := range parts(w, &Signs{}) {
		if p.name == name {
			return p.weight
		}
	}
	return nil
}

// Each calls fn with what each sign adds to the score; nil weights are the default ones.
func (s *Signs) Each(w *Weights, fn func(name string, value float64)) {
	if w == nil {
		d := DefaultWeights()
		w = &d
	}
	for _, p := range parts(w, s) {
		fn(p.name, *p.weight*p.sign)
	}
}

func (w *Weights) score(s *Signs) float64 {
	sum := 0.0
	for _, p := range parts(w, s) {
		sum += *p.weight * p.sign
	}
	return sum
}

const (
	// reach is how many turns on each side belong to the window of a text.
	reach = 2
	// kWindow is k1 of the window.
	kWindow = 1.2
	// longText is the length in terms from which on more is not better.
	longText = 54
)

// windowWeights are how much of a word said at each place of the window counts: two turns before ... two turns after.
var windowWeights = [2*reach + 1]float64{0.4, 0.7, 1, 0.6, 0.3}

// rated is a text with what speaks for it.
type rated struct {
	n     uint64
	t     *structure
	own   float64 // BM25
	score float64
	signs Signs
	near  uint64 // terms in its window
}

// rank takes the best texts and those around them, weighs what speaks for each, and cuts.
func (r *run) rank() ([]Hit, error) {
	list, err := r.gather()
	if err != nil {
		return nil, err
	}
	w := r.s.Weights
	if w == nil {
		d := DefaultWeights()
		w = &d
	}
	r.weigh(list, w)
	// Equal scores: the later text first.
	slices.SortFunc(list, func(a, b rated) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.n, a.n))
	})
	list = list[:min(len(list), r.s.Limit)]
	hits := make([]Hit, len(list))
	for i := range list {
		if hits[i], err = r.hit(&list[i]); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// gather rates the best texts by BM25 and those in whose window they stand.
func (r *run) gather() ([]rated, error) {
	top := r.acc.top(candidates, r.evidenceMask)
	pool := make(map[uint64]bool, 4*len(top))
	best := make(map[uint64][]float64) // session to its scores
	maxOwn := 0.0
	for _, n := range top {
		t, err := r.text(n)
		if err != nil {
			return nil, err
		}
		pool[n] = true
		own := r.acc.get(n)
		maxOwn = max(maxOwn, own)
		if list := best[t.session]; len(list) < 3 {
			best[t.session] = append(list, own)
		}
		if err := r.around(n, t, func(_ int, m uint64, _ *structure) { pool[m] = true }); err != nil {
			return nil, err
		}
	}
	for n := range r.s.Near {
		switch _, err := r.text(n); {
		case errors.Is(err, errMissing):
			continue // forgotten, or not in this snapshot yet
		case err != nil:
			return nil, err
		}
		pool[n] = true
	}
	list := make([]rated, 0, len(pool))
	for n := range pool {
		c, err := r.rate(n, max(maxOwn, 1e-9), best)
		if err != nil {
			return nil, err
		}
		if c.near&r.evidenceMask == 0 && c.signs.Vector == 0 {
			continue
		}
		skip, err := r.skips(n)
		if err != nil {
			return nil, err
		}
		if !skip {
			list = append(list, c)
		}
	}
	return list, nil
}

// skips reports a text that the search leaves out.
func (r *run) skips(n uint64) (bool, error) {
	if r.s.Skip == nil {
		return false, nil
	}
	t, err := r.read(n)
	return err == nil && r.s.Skip(t.event), err
}

// rate finds the signs of the text n; those of Window and Named are not whole yet.
func (r *run) rate(n uint64, maxOwn float64, best map[uint64][]float64) (rated, error) {
	t, err := r.text(n)
	if err != nil {
		return rated{}, err
	}
	c := rated{n: n, t: t, own: r.acc.get(n)}
	s := &c.signs
	s.Own = min(1, c.own/maxOwn)
	var masks [2*reach + 1]uint64
	masks[reach] = r.acc.matched(n)
	err = r.around(n, t, func(d int, m uint64, u *structure) {
		masks[reach+d] = r.acc.matched(m)
		if d == -1 {
			s.Answers = u.traits.asking() * min(1, r.acc.get(m)/maxOwn)
		}
	})
	if err != nil {
		return rated{}, err
	}
	s.Window, c.near = r.window(&masks)
	if list := best[t.session]; len(list) > 0 {
		sum := 0.0
		for _, v := range list {
			sum += v
		}
		s.Session = sum / 3 / maxOwn
	}
	if r.acc.matched(n)&r.exactMask != 0 {
		s.Exact = 1
	}
	s.Vector = max(0, r.s.Near[n])
	for _, d := range r.q.dates {
		if d.holds(time.UnixMicro(t.at).In(r.zone)) {
			s.Date = 1
		}
	}
	s.Asks = t.traits.asking()
	s.Length = min(1, math.Log1p(float64(t.length))/math.Log1p(longText))
	if r.q.When && t.traits&traitTime != 0 {
		s.When = 1
	}
	if r.q.Count && t.traits&traitNumber != 0 {
		s.Count = 1
	}
	if messages.EventKind(t.role) == messages.EventKind_EVENT_KIND_RESPONSE {
		s.Agent = 1
	}
	return c, nil
}

// window rates which terms stand at the places of a window, and tells which do.
func (r *run) window(masks *[2*reach + 1]uint64) (score float64, all uint64) {
	for _, m := range masks {
		all |= m
	}
	for rest := all; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		c := 0.0
		for d, m := range masks {
			if m&(1<<i) != 0 {
				c += windowWeights[d]
			}
		}
		score += r.terms[i].weight * c * (1 + kWindow) / (c + kWindow)
	}
	return score, all
}

// weigh completes the signs and adds them up.
func (r *run) weigh(list []rated, w *Weights) {
	most, nearest := 1e-9, 1e-9
	for i := range list {
		most, nearest = max(most, list[i].signs.Window), max(nearest, list[i].signs.Vector)
	}
	named := r.named(list)
	for i := range list {
		c := &list[i]
		c.signs.Window /= most
		c.signs.Vector /= nearest
		if named != "" && c.t.speaker == named {
			c.signs.Named = 1
		}
		c.score = w.score(&c.signs)
	}
}

// named returns the speaker that the query names; empty when it names none or several.
func (r *run) named(list []rated) string {
	out := ""
	seen := map[string]bool{"": true}
	for i := range list {
		name := list[i].t.speaker
		if seen[name] {
			continue
		}
		seen[name] = true
		terms := Terms(name)
		all := len(terms) > 0
		for _, t := range terms {
			all = all && slices.ContainsFunc(r.q.Terms, func(q QueryTerm) bool { return q.Text == t })
		}
		switch {
		case !all:
		case out != "":
			return ""
		default:
			out = name
		}
	}
	return out
}

func (r *run) hit(c *rated) (Hit, error) {
	t, err := r.read(c.n)
	if err != nil {
		return Hit{}, err
	}
	h := Hit{
		Number: c.n, Event: t.event, Conversation: t.conversation, AtUs: t.at, Kind: messages.EventKind(t.role),
		Score: c.score, BM25: c.own, Signs: c.signs, Asks: t.traits&traitAsks != 0,
	}
	if t.prev != 0 {
		before, err := r.read(t.prev)
		if err != nil {
			return Hit{}, err
		}
		h.Before = before.event
	}
	own := r.acc.matched(c.n)
	h.Matched, h.Telling = r.names(own), r.names(own&r.tellingMask)
	h.Relevance = min(1, (r.covered(own)+r.covered(c.near))/2+c.signs.Date*r.dated/max(r.asked, 1e-9))
	h.Exact = own&r.exactMask != 0
	return h, nil
}

// names lists the evidence among the terms of a mask.
func (r *run) names(mask uint64) []string {
	mask &= r.evidenceMask
	n := bits.OnesCount64(mask)
	if n == 0 {
		return nil
	}
	out := make([]string, 0, n)
	for rest := mask; rest != 0; rest &= rest - 1 {
		out = append(out, r.terms[bits.TrailingZeros64(rest)].Text)
	}
	return out
}

// covered is the share of what the query asks for that the terms of a mask hold, by what they are worth.
func (r *run) covered(mask uint64) float64 {
	sum := 0.0
	for rest := mask & r.evidenceMask; rest != 0; rest &= rest - 1 {
		sum += r.terms[bits.TrailingZeros64(rest)].worth
	}
	return sum / max(r.asked, 1e-9)
}

// around calls fn for the turns before and after the text n, which is t, in the same session; d is how far each is away,
// negative for those before.
func (r *run) around(n uint64, t *structure, fn func(d int, m uint64, u *structure)) error {
	for _, step := range [...]int{-1, 1} {
		at, from := n, t
		for d := step; d >= -reach && d <= reach; d += step {
			m, next, err := r.beside(at, from, step > 0)
			if err != nil {
				return err
			}
			if next == nil || next.session != t.session {
				break
			}
			fn(d, m, next)
			at, from = m, next
		}
	}
	return nil
}

// beside returns the text before or after the text n, which is t; nil when there is none. What stands on the shelf may
// be newer than the snapshot of this search: a neighbour that is not there is then looked for again from the record itself.
func (r *run) beside(n uint64, t *structure, forth bool) (uint64, *structure, error) {
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
		whole, err := r.read(n)
		if err != nil {
			return 0, nil, err
		}
		t = &whole.structure
	}
}

// text is the structure of the text n, from the shelf or from the store.
func (r *run) text(n uint64) (*structure, error) {
	if t, ok := r.texts[n]; ok {
		return t, nil
	}
	if t, ok := r.shelf.get(n); ok {
		r.texts[n], r.shelved[n] = &t, true
		return &t, nil
	}
	if err := r.warm(n); err != nil {
		return nil, err
	}
	if t, ok := r.shelf.get(n); ok {
		r.texts[n], r.shelved[n] = &t, true
		return &t, nil
	}
	t, err := r.read(n)
	if err != nil {
		return nil, err
	}
	return &t.structure, nil
}

// warmed is how many texts are put on the shelf at a time: those around one that is looked at are looked at next, and one
// scan of them costs about as much as a few reads.
const warmed = 32

// warm puts the texts around n on the shelf.
func (r *run) warm(n uint64) error {
	from := n - n%warmed
	first := binary.BigEndian.AppendUint64([]byte{subText}, from)
	last := binary.BigEndian.AppendUint64([]byte{subText}, from+warmed)
	for item, err := range r.txn.Scan(store.Range{Space: store.Lexical, From: first, To: last}) {
		if err != nil {
			return err
		}
		value, err := item.Value()
		if err != nil {
			return err
		}
		key := item.FullKey()
		t, err := decodeText(key, value)
		if err != nil {
			return err
		}
		if t.next != 0 {
			r.shelf.put(binary.BigEndian.Uint64(key[2:]), t.structure)
		}
	}
	return nil
}

// errMissing: a text that another one names is not in the store.
var errMissing = fmt.Errorf("%w: a text is missing", ErrCorrupt)

// read reads the text n as of the snapshot.
func (r *run) read(n uint64) (*text, error) {
	key := textKey(n)
	b, err := r.txn.Get(key)
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("%w: %d", errMissing, n)
		}
		return nil, err
	}
	t, err := decodeText(key, b)
	if err != nil {
		return nil, err
	}
	r.texts[n] = &t.structure
	delete(r.shelved, n)
	return &t, nil
}

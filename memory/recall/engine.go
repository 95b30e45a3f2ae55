package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"homeagent/memory/contextmem"
	"homeagent/memory/graphmem"
	"homeagent/memory/lexical"
	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	// DefaultLimit is how many items are returned when the question does not say.
	DefaultLimit = 10
	// MaxLimit is the most items returned.
	MaxLimit = 200
	// mainAgent is whose memory every resident sees beside its own.
	mainAgent = "main"
	// pool is how many hits are looked at for each agent.
	pool = 40
	// maxKnown is how many excluded events are named.
	maxKnown = 3
)

// Engine recalls. Make it with New.
type Engine struct {
	db    *store.DB
	index *lexical.Index
	graph *graphmem.Graph
	gists gists
	// meaning is nil while no model of word vectors is loaded.
	meaning atomic.Pointer[Meaning]
}

// New returns an engine over the parts of memory. graph may be nil: then only
// events are searched.
func New(db *store.DB, index *lexical.Index, graph *graphmem.Graph) *Engine {
	return &Engine{db: db, index: index, graph: graph}
}

// SetMeaning has texts found by their vectors too; nil ends that. It may be called at any time.
func (e *Engine) SetMeaning(m *Meaning) { e.meaning.Store(m) }

// Question is what is to be recalled.
type Question struct {
	// Text to recall for: a question, a message, or keywords.
	Text string
	// Agent that asks; empty means "main".
	Agent string
	// Limit is the most items; zero means DefaultLimit.
	Limit int
	// Exclude names events that the asker has before it already: they take no
	// place among the items, see Answer.Known.
	Exclude []string
	// Now is the time for which facts must hold; required.
	Now time.Time
	// Floor is the least relevance of the best text, 0 to 1; nil means that of the node.
	Floor *float64
	// All lists what bears on the text too little as well.
	All bool
	// Weights of what speaks for a text; nil means those of the node.
	Weights *lexical.Weights
}

// Answer is what was recalled.
type Answer struct {
	// Items, best first; the receiver owns them.
	Items []*messages.RecalledItem
	// Known holds the best of the excluded events that bear on the text, at most
	// maxKnown of them: memory holds them, though the asker needs no repetition.
	Known []*messages.RecalledItem
	// None is true when memory was searched and holds nothing on the text, not
	// even among the excluded events; false without items means that the text
	// gave nothing to search for.
	None bool
}

// candidate is an item on its way, with what the rules need to know of it.
type candidate struct {
	item    *messages.RecalledItem
	plain   string // of the item's text, for events
	kind    messages.EventKind
	matched []string
	telling []string // of matched; see lexical.Hit
	exact   bool     // it holds a symbol of the question
	asks    bool
	known   bool // excluded
	echo    bool // asks memory, or answers such a question: nothing new is in it
}

// Recall answers a question. ctx bounds it; what was found until it ends is not
// returned. Errors are those of the store.
func (e *Engine) Recall(ctx context.Context, q Question) (Answer, error) {
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	if q.Agent == "" {
		q.Agent = mainAgent
	}
	query := lexical.ParseQuery(q.Text)
	// Neither needs the other, and a person waits for both.
	aside := beside(func() (f factual, err error) {
		f.list, f.searched, err = e.facts(ctx, q, query)
		return f, err
	})
	events, err := e.events(ctx, q, query)
	f, ferr := aside()
	if err != nil {
		return Answer{}, fmt.Errorf("recall events: %w", err)
	}
	if ferr != nil {
		return Answer{}, fmt.Errorf("recall facts: %w", ferr)
	}
	fresh, known := split(events)
	a := Answer{Items: choose(fresh, f.list, q.Limit), Known: known}
	a.None = len(a.Items)+len(a.Known) == 0 && (f.searched || !query.Empty())
	return a, nil
}

// factual is what the graph says: searched is false when the text names nothing that it knows.
type factual struct {
	list     []candidate
	searched bool
}

// beside runs fn in a goroutine and returns a function that waits for it, which must be called. A panic of fn is one of
// that call.
func beside[T any](fn func() (T, error)) (wait func() (T, error)) {
	var (
		out    T
		err    error
		reason any
		done   = make(chan struct{})
	)
	go func() {
		defer close(done)
		defer func() { reason = recover() }()
		out, err = fn()
	}()
	return func() (T, error) {
		<-done
		if reason != nil {
			panic(reason)
		}
		return out, err
	}
}

// split parts the excluded events that hold evidence, and tell rather than ask,
// from those that are new to the asker.
func split(events []candidate) (fresh []candidate, known []*messages.RecalledItem) {
	for _, c := range events {
		switch {
		case !c.known:
			fresh = append(fresh, c)
		case len(known) < maxKnown && len(c.matched) > 0 && !c.asks:
			known = append(known, c.item)
		}
	}
	return fresh, known
}

// agents lists whose memory q.Agent sees.
func agents(agent string) []string {
	if agent == mainAgent {
		return []string{mainAgent}
	}
	return []string{agent, mainAgent}
}

// events finds texts by their words, scores scaled to 0..1.
func (e *Engine) events(ctx context.Context, q Question, query lexical.Query) ([]candidate, error) {
	if query.Empty() {
		return nil, nil
	}
	skip := make(map[string]bool, len(q.Exclude))
	for _, id := range q.Exclude {
		skip[id] = true
	}
	asked := plain(q.Text)
	near := map[string]map[uint64]float64{}
	if m := e.meaning.Load(); m != nil {
		for _, agent := range agents(q.Agent) {
			var err error
			if near[agent], err = m.near(ctx, agent, q.Text); err != nil {
				return nil, err
			}
		}
	}
	var out []candidate
	err := e.db.View(func(txn store.Txn) error {
		for _, agent := range agents(q.Agent) {
			if err := ctx.Err(); err != nil {
				return err
			}
			hits, err := e.index.Search(txn, query, lexical.Search{
				Agent: agent, Limit: max(pool, q.Limit+len(skip)), Now: q.Now, Weights: q.Weights, Near: near[agent],
			})
			if err != nil {
				return err
			}
			for _, i := range wanted(hits, q.Limit, skip) {
				c, err := e.load(txn, agent, &hits[i], q.Weights)
				if errors.Is(err, contextmem.ErrNotFound) {
					continue // forgotten since it was indexed
				}
				if err != nil {
					return err
				}
				c.known = skip[c.item.GetId()]
				if !c.echo && c.plain != asked {
					out = append(out, c)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out = settle(out)
	if q.All {
		return out, nil
	}
	return strong(out, floor(&q, &query)), nil
}

// wanted picks the hits worth loading: the best few times limit, and of each
// evidence term the best that holds it; excluded ones are counted apart.
func wanted(hits []lexical.Hit, limit int, skip map[string]bool) []int {
	var out []int
	var taken, known int
	have := map[string]bool{}
	for i := range hits {
		if skip[hits[i].Event] {
			if known < 4*maxKnown {
				known++
				out = append(out, i)
			}
			continue
		}
		fresh := taken < 2*limit+10
		for _, t := range hits[i].Matched {
			fresh = fresh || !have[t]
			have[t] = true
		}
		if fresh {
			taken++
			out = append(out, i)
		}
	}
	return out
}

// load makes a candidate of a hit.
func (e *Engine) load(txn store.Txn, agent string, h *lexical.Hit, weights *lexical.Weights) (candidate, error) {
	g, err := e.gists.get(txn, agent, h.Event)
	if err != nil {
		return candidate{}, err
	}
	echo, err := e.gists.echoes(txn, agent, g, h.Before)
	if err != nil {
		return candidate{}, err
	}
	c := candidate{
		echo: echo,
		item: &messages.RecalledItem{
			Id: h.Event, Text: passage(g.text, h.Matched), AtUs: h.AtUs, Via: "lexical", Score: h.Score,
			Speaker: g.speaker, Conversation: h.Conversation, Taint: g.taint,
			Relevance: h.Relevance, Matched: h.Matched, Source: g.task, Channels: channels(h, weights),
		},
		plain: g.plain, kind: h.Kind, matched: h.Matched, telling: h.Telling, exact: h.Exact, asks: g.asks,
	}
	if len(c.item.GetText()) != len(g.text) {
		c.plain = plain(c.item.GetText())
	}
	return c, nil
}

func speaker(e *messages.Event) string {
	switch e.GetKind() {
	case messages.EventKind_EVENT_KIND_RESPONSE:
		return "agent"
	case messages.EventKind_EVENT_KIND_INPUT:
		p := e.GetPrincipal()
		if p.GetName() != "" && p.GetKind() != messages.PrincipalKind_PRINCIPAL_KIND_OWNER {
			return p.GetName()
		}
		return "user"
	case messages.EventKind_EVENT_KIND_NOTE:
		return "node"
	case messages.EventKind_EVENT_KIND_TOOL:
		return "tool"
	case messages.EventKind_EVENT_KIND_UNSPECIFIED:
	}
	return "unknown"
}

// settle lets repeats stand back, scales scores to 0..1 and sorts.
func settle(list []candidate) []candidate {
	seen := map[string]int{}
	said := spoken(list)
	out := make([]candidate, 0, len(list))
	for _, c := range list {
		key := c.plain
		if i, ok := seen[key]; ok {
			// The later of two equal texts stays, with the better score.
			score, known := max(out[i].item.GetScore(), c.item.GetScore()), out[i].known || c.known
			if c.item.GetAtUs() > out[i].item.GetAtUs() {
				out[i] = c
			}
			out[i].item.Score = score
			// What the asker has before it once, it has.
			out[i].known = out[i].known || known
			continue
		}
		seen[key] = len(out)
		out = append(out, c)
	}
	// An answer that holds the whole of what a person said brings nothing.
	out = slices.DeleteFunc(out, func(c candidate) bool {
		return c.kind == messages.EventKind_EVENT_KIND_RESPONSE && quotes(c.plain, said)
	})
	top := 0.0
	for i := range out {
		top = max(top, out[i].item.GetScore())
	}
	for i := range out {
		out[i].item.Score = max(0, out[i].item.GetScore()/max(top, 1e-9))
	}
	slices.SortStableFunc(out, byScore)
	return out
}

// spoken returns what persons said that bears on the question, in plain form.
func spoken(list []candidate) []string {
	var out []string
	for _, c := range list {
		if c.kind == messages.EventKind_EVENT_KIND_INPUT && len(c.matched) > 0 && len(c.plain) >= 8 {
			out = append(out, c.plain)
		}
	}
	return out
}

// quotes reports whether an answer, in plain form, holds the whole of something said.
func quotes(answer string, said []string) bool {
	return slices.ContainsFunc(said, func(s string) bool { return strings.Contains(answer, s) })
}

func byScore(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(b.item.GetScore(), a.item.GetScore()),
		cmp.Compare(b.item.GetAtUs(), a.item.GetAtUs()),
		cmp.Compare(b.item.GetId(), a.item.GetId()))
}

// choose merges both ways into limit items: sorted by score, but with the best
// text of each telling word among them.
func choose(events, facts []candidate, limit int) []*messages.RecalledItem {
	all := append(slices.Clone(facts), events...)
	slices.SortStableFunc(all, byScore)
	if len(all) > limit {
		all = guarantee(all, limit)
	}
	out := make([]*messages.RecalledItem, 0, len(all))
	for _, c := range all {
		out = append(out, c.item)
	}
	return out
}

// guarantee cuts all to limit. The best event of each telling word that the
// first limit items lack takes the place of the last one that is not the only
// holder of a word.
func guarantee(all []candidate, limit int) []candidate {
	kept := slices.Clone(all[:limit])
	count := map[string]int{}
	for _, c := range kept {
		for _, t := range c.matched {
			count[t]++
		}
	}
	for _, late := range all[limit:] {
		if !slices.ContainsFunc(late.telling, func(t string) bool { return count[t] == 0 }) {
			continue
		}
		for j := len(kept) - 1; j > 0; j-- {
			if slices.ContainsFunc(kept[j].matched, func(m string) bool { return count[m] == 1 }) {
				continue
			}
			for _, m := range kept[j].matched {
				count[m]--
			}
			kept[j] = late
			for _, m := range late.matched {
				count[m]++
			}
			break
		}
	}
	slices.SortStableFunc(kept, byScore)
	return kept
}

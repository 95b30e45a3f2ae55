package recall

import (
	"context"
	"slices"
	"strings"

	"homeagent/memory/graphmem"
	"homeagent/memory/lexical"
	"homeagent/messages"
)

const (
	// maxEntities is how many entities named in a text are looked up.
	maxEntities = 8
	// factBase is the score of a fact about a named entity that shares no other
	// word with the question; a fact that holds all its words scores 1.
	factBase = 0.3
)

// selfNames are the names under which facts about the person who talks are kept.
var selfNames = []string{"user", "I", "me", "用户", "我"}

// facts finds facts about what the text names. searched is false when it names
// nothing the graph knows and says nothing about the person.
func (e *Engine) facts(ctx context.Context, q Question, query lexical.Query) (out []candidate, searched bool, err error) {
	if e.graph == nil {
		return nil, false, nil
	}
	named, err := e.graph.Named(q.Text, maxEntities)
	if err != nil {
		return nil, false, err
	}
	var keys []string
	self := map[string]bool{}
	for _, n := range selfNames {
		self[graphmem.Key(n)] = true
	}
	for _, n := range named {
		if !self[n.Key] && informative(n.Key) {
			keys = append(keys, n.Key)
		}
	}
	found, _, err := e.graph.About(ctx, keys, graphmem.Query{At: q.Now})
	if err != nil {
		return nil, false, err
	}
	if query.Empty() && len(keys) == 0 {
		return nil, false, ctx.Err()
	}
	for i := range found {
		c := scoreFact(&found[i].Fact, query, factBase)
		c.item.Path = found[i].Path
		out = append(out, c)
	}
	seen := map[string]bool{}
	for i := range found {
		seen[found[i].ID] = true
	}
	if mentionsSelf(q.Text) {
		var names []string
		for _, n := range selfNames {
			names = append(names, graphmem.Key(n))
		}
		own, _, err := e.graph.About(ctx, names, graphmem.Query{At: q.Now})
		if err != nil {
			return nil, false, err
		}
		for i := range own {
			// Nearly everything is about the person: only what shares a word counts.
			c := scoreFact(&own[i].Fact, query, 0)
			c.item.Path = own[i].Path
			if !seen[own[i].ID] && len(c.matched) > 0 {
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, byScore)
	return out, true, ctx.Err()
}

// informative refuses names that are nothing but asking words and grammar.
func informative(key string) bool { return !lexical.ParseQuery(key).Empty() }

// scoreFact rates a fact by the share of the question's words that it holds.
func scoreFact(f *graphmem.Fact, query lexical.Query, base float64) candidate {
	terms := map[string]bool{}
	for _, t := range lexical.Terms(f.Subject + " " + strings.ReplaceAll(f.Predicate, "_", " ") + " " + f.Object) {
		terms[t] = true
	}
	all := 0
	c := candidate{}
	for _, t := range query.Terms {
		if !t.Evidence {
			continue
		}
		all++
		if terms[t.Text] {
			c.matched = append(c.matched, t.Text)
		}
	}
	score := base
	if all > 0 {
		score += (1 - base) * float64(len(c.matched)) / float64(all)
	}
	c.item = &messages.RecalledItem{
		Id: f.ID, Text: f.Subject + " " + f.Predicate + " " + f.Object, AtUs: f.LearnedAt.UnixMicro(), Via: "graph",
		Score: score * f.Confidence, Speaker: f.Principal, Taint: messages.Taint_TAINT_RECALLED,
		Relevance: score * f.Confidence, Matched: c.matched, Source: f.Source,
		Channels: []*messages.ChannelScore{{Channel: "graph", Score: score * f.Confidence}},
	}
	if f.Taint == "foreign" {
		c.item.Taint = messages.Taint_TAINT_FOREIGN
	}
	if c.item.Speaker == "" {
		c.item.Speaker = f.Source
	}
	return c
}

// mentionsSelf reports whether the person speaks of himself or herself.
func mentionsSelf(text string) bool {
	if strings.ContainsAny(text, "我俺咱") {
		return true
	}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r == '\'') }) {
		switch w {
		case "i", "me", "my", "mine", "myself", "i'm", "i've", "i'd", "i'll":
			return true
		}
	}
	return false
}

package recall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"homeagent/memory/contextmem"
	"homeagent/memory/graphmem"
	"homeagent/memory/lexical"
	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	browseLimit    = 20
	browseMaxLimit = 200
)

// Browse answers a person's look into memory: what bears on a text, all facts of
// an entity, ended ones included, or else the latest events; with the figures.
func (e *Engine) Browse(ctx context.Context, m *messages.MemoryQuery, now time.Time) (*messages.MemoryAnswer, error) {
	limit := int(m.GetLimit())
	if limit <= 0 {
		limit = browseLimit
	}
	limit = min(limit, browseMaxLimit)
	agent := m.GetAgent()
	if agent == "" {
		agent = mainAgent
	}
	out := &messages.MemoryAnswer{}
	if m.GetText() != "" {
		a, err := e.Recall(ctx, Question{Text: m.GetText(), Agent: agent, Limit: limit, Now: now})
		if err != nil {
			return nil, err
		}
		out.Items = a.Items
		if m.GetWhy() {
			if err := e.explain(ctx, m.GetText(), agent, limit, now, a, out); err != nil {
				return nil, err
			}
		}
	}
	if m.GetEntity() != "" && e.graph != nil {
		found, _, err := e.graph.About(ctx, []string{graphmem.Key(m.GetEntity())}, graphmem.Query{History: true, Limit: limit})
		if err != nil {
			return nil, fmt.Errorf("facts of an entity: %w", err)
		}
		for i := range found {
			out.Facts = append(out.Facts, Message(&found[i].Fact))
		}
	}
	reader := contextmem.New(e.db, nil)
	if m.GetText() == "" && m.GetEntity() == "" {
		list, err := reader.Last(contextmem.Window{Agent: agent, Events: limit})
		if err != nil {
			return nil, fmt.Errorf("latest events: %w", err)
		}
		for _, r := range list {
			out.Events = append(out.Events, r.GetEvent())
		}
	}
	var err error
	out.Figures, err = e.figures(reader, agent)
	return out, err
}

// explain adds why an answer is what it is.
func (e *Engine) explain(ctx context.Context, text, agent string, limit int, now time.Time, a Answer, out *messages.MemoryAnswer) error {
	q, query := Question{Text: text, Agent: agent, Limit: limit, Now: now}, lexical.ParseQuery(text)
	out.None, out.Floor = a.None, floor(&q, &query)
	listed := map[string]bool{}
	for _, i := range a.Items {
		listed[i.GetId()] = true
	}
	q.All = true
	all, err := e.Recall(ctx, q)
	if err != nil {
		return err
	}
	for _, i := range all.Items {
		if !listed[i.GetId()] {
			out.LeftOut = append(out.LeftOut, i)
		}
	}
	return e.named(agent, strings.TrimSpace(text), out)
}

// named adds the event or fact whose id a text is.
func (e *Engine) named(agent, id string, out *messages.MemoryAnswer) error {
	if strings.ContainsFunc(id, unicode.IsSpace) || strings.ContainsRune(id, 0) {
		return nil
	}
	r, err := contextmem.New(e.db, nil).Event(agent, id)
	switch {
	case err == nil:
		out.Events, out.None = append(out.Events, r.GetEvent()), false
	case !errors.Is(err, contextmem.ErrNotFound):
		return fmt.Errorf("an event by its id: %w", err)
	}
	if e.graph == nil {
		return nil
	}
	f, err := e.graph.Fact(id)
	switch {
	case err == nil:
		out.Facts, out.None = append(out.Facts, Message(&f)), false
	case !errors.Is(err, graphmem.ErrNotFound):
		return fmt.Errorf("a fact by its id: %w", err)
	}
	return nil
}

func (e *Engine) figures(reader *contextmem.Context, agent string) (*messages.MemoryFigures, error) {
	n, err := reader.Count()
	if err != nil {
		return nil, fmt.Errorf("count events: %w", err)
	}
	out := &messages.MemoryFigures{Events: int64(n), Dictionary: e.index.Words != nil && e.index.Words.Loaded()}
	if m := e.meaning.Load(); m != nil {
		out.VectorSpace, out.Vectors = m.Space().Fingerprint, int64(m.Len())
	}
	if e.graph != nil {
		if out.Facts, err = e.graph.Facts(); err != nil {
			return nil, fmt.Errorf("count facts: %w", err)
		}
	}
	var f lexical.Figures
	err = e.db.View(func(txn store.Txn) error {
		f, err = e.index.Figures(txn, agent)
		return err
	})
	out.Terms = int64(f.Terms)
	return out, err
}

// Message makes the wire form of a fact.
func Message(f *graphmem.Fact) *messages.Fact {
	us := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMicro()
	}
	return &messages.Fact{
		FactId: f.ID, Subject: f.Subject, Predicate: f.Predicate, Object: f.Object, Confidence: f.Confidence,
		SubjectType: f.SubjectType, ObjectType: f.ObjectType, Source: f.Source, Functional: f.Functional,
		ValidFromUs: us(f.ValidFrom), ValidToUs: us(f.ValidTo), LearnedUs: us(f.LearnedAt),
	}
}

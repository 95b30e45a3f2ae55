package recall

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"homeagent/memory/contextmem"
	"homeagent/memory/embed"
	"homeagent/memory/lexical"
	"homeagent/memory/store"
	"homeagent/memory/vector"
)

const (
	// meaningStep is how many texts one read embeds, meaningFresh the most that a question waits for.
	meaningStep, meaningFresh = 256, 64
	// nearest is how many texts are taken by their vectors.
	nearest = 50
)

// Meaning finds texts by vectors. It holds them in memory, made from the texts in the store: a step at a time by Learn, and
// the latest few when a question comes. Until it has learnt all, it finds less; no question fails or waits for it. Safe for
// concurrent use.
type Meaning struct {
	db       *store.DB
	embedder embed.Embedder

	learning sync.Mutex
	mu       sync.RWMutex
	spaces   map[string]*vector.Index // by agent
	last     uint64                   // number of the last text that was looked at
}

// NewMeaning returns a Meaning that has learnt nothing yet.
func NewMeaning(db *store.DB, embedder embed.Embedder) *Meaning {
	return &Meaning{db: db, embedder: embedder, spaces: map[string]*vector.Index{}}
}

// Len is how many texts have a vector.
func (m *Meaning) Len() (n int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, x := range m.spaces {
		n += x.Len()
	}
	return n
}

// Space is the space of the vectors.
func (m *Meaning) Space() embed.Space { return m.embedder.Space() }

// Learn embeds all texts that are not embedded yet, until ctx ends. It may be called again.
func (m *Meaning) Learn(ctx context.Context) error {
	for {
		n, err := m.step(ctx, meaningStep)
		if err != nil || n < meaningStep {
			return err
		}
	}
}

// step embeds up to limit texts, and reports how many it looked at.
func (m *Meaning) step(ctx context.Context, limit int) (n int, err error) {
	m.learning.Lock()
	defer m.learning.Unlock()
	err = m.db.View(func(txn store.Txn) error {
		places, err := lexical.Since(txn, m.last, limit)
		if err != nil {
			return err
		}
		for _, p := range places {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := m.learn(txn, p); err != nil {
				return err
			}
			m.last = p.Number
			n++
		}
		return nil
	})
	if err != nil {
		return n, fmt.Errorf("embed texts: %w", err)
	}
	return n, nil
}

func (m *Meaning) learn(txn store.Txn, p lexical.Place) error {
	r, err := contextmem.Get(txn, p.Agent, p.Event)
	if errors.Is(err, contextmem.ErrNotFound) {
		return nil // forgotten
	}
	if err != nil {
		return err
	}
	v := m.embedder.Embed(lexical.EventText(r.GetEvent()))
	if v == nil {
		return nil
	}
	return m.space(p.Agent).Add(p.Number, m.embedder.Space().Fingerprint, v)
}

// space returns the index of an agent, made when it is first asked for.
func (m *Meaning) space(agent string) *vector.Index {
	m.mu.RLock()
	x := m.spaces[agent]
	m.mu.RUnlock()
	if x != nil {
		return x
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spaces[agent] == nil {
		m.spaces[agent] = vector.New(m.embedder.Space().Fingerprint, m.embedder.Space().Dim)
	}
	return m.spaces[agent]
}

// near returns the texts of an agent that are nearest to a text, by number, with their cosines.
func (m *Meaning) near(ctx context.Context, agent, text string) (map[uint64]float64, error) {
	v := m.embedder.Embed(text)
	if v == nil {
		return nil, nil
	}
	// What was said a moment ago; while all of it is being learnt, that is not waited for.
	if m.learning.TryLock() {
		m.learning.Unlock()
		if _, err := m.step(ctx, meaningFresh); err != nil {
			return nil, err
		}
	}
	found, err := m.space(agent).Search(m.embedder.Space().Fingerprint, v, nearest)
	if err != nil {
		return nil, err
	}
	out := make(map[uint64]float64, len(found))
	for _, f := range found {
		out[f.Number] = f.Cosine
	}
	return out, nil
}

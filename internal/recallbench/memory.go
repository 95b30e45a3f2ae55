package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"homeagent/memory/contextmem"
	"homeagent/memory/graphmem"
	"homeagent/memory/ledger"
	"homeagent/memory/lexical"
	"homeagent/memory/recall"
	"homeagent/memory/store"
	"homeagent/messages"
)

// memory is what a node remembers with, over a store of its own.
type memory struct {
	db     *store.DB
	graph  *graphmem.Graph
	engine *recall.Engine
	labels map[string]string
	// now is a day after the last event.
	now time.Time
}

// remember makes a memory of a conversation in dir, the way a node does: the ledger stores the events, the index follows.
func remember(dir string, c *corpus) (m *memory, err error) {
	m = &memory{labels: c.labels}
	if m.db, err = store.Open(dir, store.Options{Reserve: -1}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	index := &lexical.Index{Words: &lexical.Dictionary{}}
	options := ledger.Options{Indexer: contextmem.New(m.db, nil), Late: index}
	l, err := ledger.Open(m.db, options)
	if err != nil {
		return nil, err
	}
	// An event is appended with its answer, as a turn commits them.
	for chunk := range slices.Chunk(c.events, 2) {
		m.now = time.UnixMicro(chunk[len(chunk)-1].GetAtUs()).Add(24 * time.Hour)
		done := l.Execute(m.now, []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{
			{Op: &messages.LedgerOp_Events{Events: &messages.AppendEvents{Events: chunk}}},
		}}})
		if e := done[0].GetError(); e != nil {
			return nil, fmt.Errorf("append events: %s", e.GetMessage())
		}
	}
	// The index of the last events comes with the next start at the latest.
	if _, err = ledger.Open(m.db, options); err != nil {
		return nil, err
	}
	if m.graph, err = graphmem.Open(m.db); err != nil {
		return nil, err
	}
	m.engine = recall.New(m.db, index, m.graph)
	return m, nil
}

func (m *memory) close() error {
	var err error
	if m.graph != nil {
		err = m.graph.Close()
	}
	return errors.Join(err, m.db.Close())
}

// ask has the node recall, and returns its items.
func (m *memory) ask(text string, limit int, weights *lexical.Weights) (recall.Answer, time.Duration, error) {
	start := time.Now()
	a, err := m.engine.Recall(context.Background(), recall.Question{Text: text, Limit: limit, Now: m.now, Weights: weights})
	return a, time.Since(start), err
}

// floored is ask with the limit of a turn and another floor; nil is the node's own.
func (m *memory) floored(text string, floor *float64) (recall.Answer, error) {
	return m.engine.Recall(context.Background(), recall.Question{Text: text, Limit: 20, Now: m.now, Floor: floor})
}

// found lists the labels of what was recalled, each once.
func (m *memory) found(a *recall.Answer) []string {
	var out []string
	for _, i := range a.Items {
		if l := m.labels[i.GetId()]; l != "" && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

package graphmem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cayleygraph/cayley/graph"
	"github.com/cayleygraph/quad"

	"homeagent/memory/store"
)

// Outcome tells what became of one fact given to Commit.
type Outcome struct {
	// ID is the id of the fact that now states it: its own, or the id of the
	// fact that already did.
	ID string
	// Known reports that nothing was written because the same statement, or a
	// fact of the same id, was there.
	Known bool
	// Closed lists the facts this one ended.
	Closed []string
}

// Join writes further keys into the transaction of a batch, before its commit.
// It may be called for several batches, and its error undoes the batch.
type Join func(txn store.Txn) error

// Commit stores facts. It is cut into batches of at most MaxBatch quads, each
// one transaction; a fact and the closing of what it replaces are never parted.
// The outcomes are those of the facts that were stored: on an error they are
// fewer than the facts, and calling again with the same ids stores the rest.
// joins run in the transaction of the last batch, so that what they write
// implies that every fact is stored.
//
// Errors: ErrInvalid (nothing written), ErrClosed, ErrCorrupt, the context's
// error between batches, those of the store (retryable).
func (g *Graph) Commit(ctx context.Context, facts []Fact, joins ...Join) ([]Outcome, error) {
	if g.closed.Load() {
		return nil, ErrClosed
	}
	facts = append([]Fact(nil), facts...)
	for i := range facts {
		if err := facts[i].normalise(); err != nil {
			return nil, err
		}
	}
	var out []Outcome
	for first := true; len(facts) > 0 || first; first = false {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		b, n, err := g.plan(facts)
		if err != nil {
			return out, err
		}
		facts = facts[n:]
		if len(facts) == 0 {
			b.joins = joins
		}
		if err := g.apply(b); err != nil {
			return out, err
		}
		out = append(out, b.outcomes...)
	}
	return out, nil
}

// batch is what one transaction writes.
type batch struct {
	quads    []quad.Quad
	names    []string
	sets     [][]byte // open keys of facts without an end
	deletes  [][]byte // open keys of facts that end; made after sets
	joins    []Join
	outcomes []Outcome

	facts  map[string]Fact       // by id
	opened map[string][]openFact // by openPrefix
	ends   map[string]bool       // by id
}

func newBatch() *batch {
	return &batch{facts: map[string]Fact{}, opened: map[string][]openFact{}, ends: map[string]bool{}}
}

// plan takes facts from the front until the batch is full and decides for each
// whether it is known, and what it closes. It returns how many it took.
func (g *Graph) plan(facts []Fact) (*batch, int, error) {
	b := newBatch()
	err := g.view(func(v *view) error {
		for i := range facts {
			s, err := b.decide(v, facts[i])
			if err != nil {
				return err
			}
			if len(b.quads) > 0 && len(b.quads)+len(s.quads) > MaxBatch {
				return nil
			}
			b.add(s)
		}
		return nil
	})
	return b, len(b.outcomes), err
}

// step is what storing one fact takes.
type step struct {
	fact    Fact
	quads   []quad.Quad
	ended   []Fact
	outcome Outcome
}

// decide finds out what storing f takes after the batch so far.
func (b *batch) decide(v *view, f Fact) (*step, error) {
	id, err := v.node(factNode(f.ID))
	if err != nil {
		return nil, err
	}
	if _, ok := b.facts[f.ID]; ok || id != 0 {
		return &step{outcome: Outcome{ID: f.ID, Known: true}}, nil
	}
	open, err := v.open(&f)
	if err != nil {
		return nil, err
	}
	// What this batch opened and ended counts as if it were stored.
	open = append(open, b.opened[string(openPrefix(&f))]...)
	open = slices.DeleteFunc(open, func(o openFact) bool { return b.ends[o.id] })
	object := Key(f.Object)
	for _, o := range open {
		if o.object == object && f.ValidTo.IsZero() {
			return &step{outcome: Outcome{ID: o.id, Known: true}}, nil
		}
	}
	s := &step{outcome: Outcome{ID: f.ID}}
	for _, o := range open {
		if !f.Functional {
			break
		}
		old, err := b.fact(v, o.id)
		if err != nil {
			return nil, fmt.Errorf("open fact %s: %w", o.id, err)
		}
		s.replace(&f, &old)
	}
	s.fact = f
	qs, err := f.quads()
	s.quads = append(s.quads, qs...)
	return s, err
}

// fact returns a fact of this batch or of the store.
func (b *batch) fact(v *view, id string) (Fact, error) {
	if f, ok := b.facts[id]; ok {
		return f, nil
	}
	return v.fact(id)
}

// replace orders f and the open fact old of the same functional predicate in
// time: the earlier one ends where the later begins.
func (s *step) replace(f, old *Fact) {
	if f.ValidFrom.Before(old.ValidFrom) {
		if f.ValidTo.IsZero() || f.ValidTo.After(old.ValidFrom) {
			f.ValidTo = old.ValidFrom
		}
		return
	}
	if !f.ValidTo.IsZero() {
		return // history about a time within the open fact does not end it
	}
	s.quads = append(s.quads, quad.Quad{
		Subject: factNode(old.ID), Predicate: predTo, Object: quad.Time(f.ValidFrom.UTC()), Label: f.label(),
	})
	s.ended = append(s.ended, *old)
	s.outcome.Closed = append(s.outcome.Closed, old.ID)
}

func (b *batch) add(s *step) {
	b.outcomes = append(b.outcomes, s.outcome)
	if s.outcome.Known {
		return
	}
	f := s.fact
	b.facts[f.ID] = f
	b.quads = append(b.quads, s.quads...)
	b.names = append(b.names, f.Subject, f.Object)
	for i := range s.ended {
		b.end(&s.ended[i])
	}
	if f.ValidTo.IsZero() {
		b.sets = append(b.sets, openKey(&f))
		prefix := string(openPrefix(&f))
		b.opened[prefix] = append(b.opened[prefix], openFact{Key(f.Object), f.ID})
	}
}

func (b *batch) end(f *Fact) {
	b.ends[f.ID] = true
	b.deletes = append(b.deletes, openKey(f))
}

// Retract withdraws facts: they are never returned again, not even as history.
// Facts that are retracted already are left alone. ErrNotFound names an unknown
// id; then nothing is written. Durable in one transaction per MaxBatch ids.
func (g *Graph) Retract(ctx context.Context, at time.Time, ids []string, joins ...Join) error {
	if g.closed.Load() {
		return ErrClosed
	}
	b := newBatch()
	err := g.view(func(v *view) error {
		for _, id := range ids {
			f, err := v.fact(id)
			if err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			if !f.Retracted.IsZero() {
				continue
			}
			b.quads = append(b.quads, quad.Quad{
				Subject: factNode(id), Predicate: predRetracted, Object: quad.Time(at.UTC()), Label: factNode(id),
			})
			b.end(&f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(b.quads), MaxBatch)
		part := &batch{quads: b.quads[:n], deletes: b.deletes[:n]}
		b.quads, b.deletes = b.quads[n:], b.deletes[n:]
		last := len(b.quads) == 0
		if last {
			part.joins = joins
		}
		if err := g.apply(part); err != nil || last {
			return err
		}
	}
}

// apply writes one batch as one transaction. Any error, of cayley, of a join or
// of the commit, leaves a QuadStore behind that must not be used again.
func (g *Graph) apply(b *batch) error {
	if len(b.quads) == 0 && len(b.joins) == 0 {
		return nil
	}
	err := g.applyTxn(b)
	if err == nil {
		return nil
	}
	g.rebuilds.Add(1)
	if again := g.rebuild(); again != nil {
		return errors.Join(fmt.Errorf("graphmem: write: %w", err), fmt.Errorf("graphmem: rebuild: %w", again))
	}
	return fmt.Errorf("graphmem: write: %w", err)
}

func (g *Graph) applyTxn(b *batch) error {
	txn, err := g.db.Begin(true)
	if err != nil {
		return err
	}
	defer txn.Discard()
	if len(b.quads) > 0 {
		deltas := make([]graph.Delta, len(b.quads))
		for i, q := range b.quads {
			deltas[i] = graph.Delta{Quad: q, Action: graph.Add}
		}
		// The options are a second line: the plan has looked already.
		opts := graph.IgnoreOpts{IgnoreDup: true, IgnoreMissing: true}
		if err := g.flat.join(txn.Txn, func() error { return g.qs.ApplyDeltas(deltas, opts) }); err != nil {
			return err
		}
	}
	for _, name := range b.names {
		if err := putName(txn.Txn, name); err != nil {
			return err
		}
	}
	if n := len(b.facts); n > 0 {
		count, err := countFacts(txn.Txn)
		if err != nil {
			return err
		}
		if err := txn.Put(countKey, binary.BigEndian.AppendUint64(nil, count+uint64(n))); err != nil {
			return err
		}
	}
	for _, key := range b.sets {
		if err := txn.Put(key, nil); err != nil {
			return err
		}
	}
	for _, key := range b.deletes {
		if err := txn.Delete(key); err != nil {
			return err
		}
	}
	for _, join := range b.joins {
		if err := join(txn.Txn); err != nil {
			return err
		}
	}
	return txn.Commit()
}

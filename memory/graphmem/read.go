package graphmem

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cayleygraph/cayley/graph/proto"
	"github.com/cayleygraph/quad"
	"github.com/cayleygraph/quad/pquads"
	"github.com/dgraph-io/badger/v4"
	protobuf "google.golang.org/protobuf/proto"

	"homeagent/memory/store"
)

// Budget of one read.
const (
	// MaxFanOut is the most facts taken of one entity in one direction.
	MaxFanOut = 32
	// MaxNodes is the most fact nodes one read loads.
	MaxNodes = 512
	// scanFactor is how many candidates are looked at for each fact taken, so
	// that ended facts do not hide the ones that hold.
	scanFactor = 4
)

// Query narrows a read of facts.
type Query struct {
	// At is the time for which facts must hold; required unless History.
	At time.Time
	// History returns ended facts too. Retracted ones are never returned.
	History bool
	// Hops is how many entities away from the start facts are taken: 0 and 1
	// mean facts about the entity itself, 2 also those about its neighbours.
	Hops int
	// Limit is the most facts returned; 0 means MaxNodes.
	Limit int
}

// Found is a fact and the way to it.
type Found struct {
	Fact
	// Path holds the names of the entities from the start to the fact.
	Path []string
}

// view is one read transaction.
type view struct {
	txn    store.Txn
	prefix []byte
	ids    map[quad.IRI]uint64
	values map[uint64]quad.Value
	it     *badger.Iterator
	loaded int
}

// view runs fn over a consistent snapshot.
func (g *Graph) view(fn func(v *view) error) error {
	if g.closed.Load() {
		return ErrClosed
	}
	return g.db.View(func(txn store.Txn) error {
		v := &view{
			txn: txn, prefix: g.flat.prefix,
			ids: map[quad.IRI]uint64{}, values: map[uint64]quad.Value{},
		}
		defer v.close()
		return fn(v)
	})
}

func (v *view) close() {
	if v.it != nil {
		v.it.Close()
	}
}

// Named returns the entities whose names occur in text, at most limit.
func (g *Graph) Named(text string, limit int) (out []Entity, err error) {
	err = g.view(func(v *view) error {
		out, err = v.named(text, limit)
		return err
	})
	return out, err
}

// Fact returns the fact of that id, ended or not; ErrNotFound when there is
// none. A retracted fact is returned with its Retracted time.
func (g *Graph) Fact(id string) (f Fact, err error) {
	err = g.view(func(v *view) error {
		f, err = v.fact(id)
		return err
	})
	return f, err
}

// About returns the facts in which any of the entities (by key, see Key) is
// subject or object, the most recently stored first within each entity and
// direction. A context that ends cuts the answer short without an error, and
// complete is false; so does an entity with more facts than the budget.
func (g *Graph) About(ctx context.Context, keys []string, q Query) (out []Found, complete bool, err error) {
	if q.Limit <= 0 || q.Limit > MaxNodes {
		q.Limit = MaxNodes
	}
	err = g.view(func(v *view) error {
		w := &walk{ctx: ctx, v: v, q: q, seen: map[uint64]bool{}, visited: map[string]bool{}, complete: true}
		if err := w.run(keys); err != nil {
			return err
		}
		out, complete = w.out, w.complete
		return nil
	})
	return out, complete, err
}

// walk is one breadth-first expansion.
type walk struct {
	ctx      context.Context
	v        *view
	q        Query
	seen     map[uint64]bool // fact nodes
	visited  map[string]bool // entity keys
	out      []Found
	complete bool
}

type stop struct {
	key  string
	path []string
}

func (w *walk) run(keys []string) error {
	var front []stop
	for _, k := range keys {
		front = append(front, stop{key: k})
	}
	for hop := 0; hop < max(1, w.q.Hops) && len(front) > 0; hop++ {
		var next []stop
		for _, s := range front {
			if w.visited[s.key] {
				continue
			}
			w.visited[s.key] = true
			found, err := w.expand(s)
			if err != nil {
				return err
			}
			for i := range found {
				f := &found[i]
				next = append(next, stop{Key(f.Subject), f.Path}, stop{Key(f.Object), f.Path})
			}
		}
		front = next
	}
	return nil
}

func (w *walk) expand(s stop) ([]Found, error) {
	id, err := w.v.node(entityNode(s.key))
	if err != nil || id == 0 {
		return nil, err
	}
	name, ok, err := w.v.name(s.key)
	if err != nil {
		return nil, err
	}
	if !ok {
		name = s.key
	}
	path := append(append([]string(nil), s.path...), name)
	from := len(w.out)
	for _, role := range []quad.IRI{predSubject, predObject} {
		p, err := w.v.node(role)
		if err != nil {
			return nil, err
		}
		list, err := w.v.list("op", id, p)
		if err != nil {
			return nil, err
		}
		if err := w.take(list, path); err != nil {
			return nil, err
		}
	}
	return w.out[from:len(w.out):len(w.out)], nil
}

// take loads the facts behind the quads of list, newest first.
func (w *walk) take(list []uint64, path []string) error {
	taken := 0
	for i := len(list) - 1; i >= 0; i-- {
		if taken >= MaxFanOut || len(list)-i > MaxFanOut*scanFactor || w.spent() {
			w.complete = false
			return nil
		}
		link, err := w.v.link(list[i])
		if err != nil {
			return err
		}
		if w.seen[link.Subject] {
			continue
		}
		w.seen[link.Subject] = true
		f, err := w.v.load(link.Subject)
		if err != nil {
			return err
		}
		if !f.Retracted.IsZero() || !w.q.History && !f.ValidAt(w.q.At) {
			continue
		}
		w.out = append(w.out, Found{Fact: f, Path: path})
		taken++
	}
	return nil
}

// spent reports that the budget of the whole walk is used up.
func (w *walk) spent() bool {
	return w.v.loaded >= MaxNodes || len(w.out) >= w.q.Limit || w.ctx.Err() != nil
}

// openFact is an entry of the index of open facts.
type openFact struct{ object, id string }

// open returns the open facts with f's subject and predicate.
func (v *view) open(f *Fact) ([]openFact, error) {
	prefix := openPrefix(f)
	var out []openFact
	for item, err := range v.txn.Scan(store.Range{Space: store.Graph, Prefix: prefix[1:]}) {
		if err != nil {
			return nil, err
		}
		object, id, err := splitOpen(item.FullKey()[len(prefix):])
		if err != nil {
			return nil, err
		}
		out = append(out, openFact{object, id})
	}
	return out, nil
}

func (v *view) fact(id string) (Fact, error) {
	n, err := v.node(factNode(id))
	if err != nil {
		return Fact{}, err
	}
	if n == 0 {
		return Fact{}, ErrNotFound
	}
	return v.load(n)
}

// load reads the fact at node by its {S,P,O} keys.
func (v *view) load(node uint64) (Fact, error) {
	v.loaded++
	iri, err := v.iri(node)
	if err != nil {
		return Fact{}, err
	}
	if !strings.HasPrefix(string(iri), "f/") {
		return Fact{}, fmt.Errorf("%w: %s is no fact", ErrCorrupt, iri)
	}
	f := Fact{ID: string(iri[len("f/"):])}
	links, err := v.outgoing(node)
	if err != nil {
		return Fact{}, err
	}
	for _, l := range links {
		p, err := v.iri(l[1])
		if err != nil {
			return Fact{}, err
		}
		if p == predSubject || p == predPredicate || p == predObject {
			continue // the exact words are in detail
		}
		o, err := v.value(l[2])
		if err != nil {
			return Fact{}, err
		}
		if err := f.set(p, o); err != nil {
			return Fact{}, fmt.Errorf("fact %s: %w", f.ID, err)
		}
	}
	return f, nil
}

// outgoing returns {S,P,O} of every quad that leaves node.
func (v *view) outgoing(node uint64) ([][]uint64, error) {
	if v.it == nil {
		opt := badger.DefaultIteratorOptions
		opt.PrefetchValues = false
		opt.Prefix = append(append([]byte(nil), v.prefix...), "spo/"...)
		v.it = v.txn.Raw().NewIterator(opt)
	}
	prefix := append(append([]byte(nil), v.prefix...), indexKey("spo", node)...)
	var out [][]uint64
	for v.it.Seek(prefix); v.it.ValidForPrefix(prefix); v.it.Next() {
		ids, err := indexIDs(v.it.Item().Key()[len(v.prefix):], 3)
		if err != nil {
			return nil, err
		}
		out = append(out, ids)
	}
	return out, nil
}

// get returns the value at one of cayley's keys; nil when there is none.
func (v *view) get(key []byte) ([]byte, error) {
	b, err := v.txn.Get(append(append([]byte(nil), v.prefix...), key...))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return b, err
}

// node returns the id of a node; 0 when the graph does not know it.
func (v *view) node(iri quad.IRI) (uint64, error) {
	if id, ok := v.ids[iri]; ok {
		return id, nil
	}
	b, err := v.get(valueKey(iri))
	if err != nil {
		return 0, err
	}
	var id uint64
	if b != nil {
		list, err := decodeList(b)
		if err != nil || len(list) == 0 {
			return 0, fmt.Errorf("%w: id of %s", ErrCorrupt, iri)
		}
		id = list[0]
	}
	v.ids[iri] = id
	return id, nil
}

func (v *view) list(dirs string, ids ...uint64) ([]uint64, error) {
	b, err := v.get(indexKey(dirs, ids...))
	if err != nil {
		return nil, err
	}
	return decodeList(b)
}

// link returns the quad of that id from cayley's log.
func (v *view) link(id uint64) (*proto.Primitive, error) {
	b, err := v.get(logKey(id))
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, fmt.Errorf("%w: log entry %d is missing", ErrCorrupt, id)
	}
	p := &proto.Primitive{}
	if err := protobuf.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("%w: log entry %d: %w", ErrCorrupt, id, err)
	}
	return p, nil
}

func (v *view) value(id uint64) (quad.Value, error) {
	if val, ok := v.values[id]; ok {
		return val, nil
	}
	p, err := v.link(id)
	if err != nil {
		return nil, err
	}
	val, err := pquads.UnmarshalValue(p.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: value %d: %w", ErrCorrupt, id, err)
	}
	v.values[id] = val
	return val, nil
}

func (v *view) iri(id uint64) (quad.IRI, error) {
	val, err := v.value(id)
	if err != nil {
		return "", err
	}
	iri, ok := val.(quad.IRI)
	if !ok {
		return "", fmt.Errorf("%w: node %d is %T", ErrCorrupt, id, val)
	}
	return iri, nil
}

package graphmem

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cayleygraph/cayley/graph"
	cayleykv "github.com/cayleygraph/cayley/graph/kv"
	"github.com/cayleygraph/quad"
	"github.com/hidal-go/hidalgo/kv"
	"github.com/hidal-go/hidalgo/kv/flat"

	"homeagent/memory/store"
)

// MaxBatch is the largest number of quads written in one transaction. Badger
// refuses a transaction larger than a part of its memtable; the smallest
// memtable in use (8 MB) takes between 1,000 and 2,000 new quads.
const MaxBatch = 500

// quadIndexes are the indexes of the graph. The order matters: cayley's planner
// takes the first one whose leading directions match, and fails to use it when
// it has more directions than the query binds, so the short ones come first.
var quadIndexes = []cayleykv.QuadIndex{
	{Dirs: []quad.Direction{quad.Subject, quad.Predicate}},
	{Dirs: []quad.Direction{quad.Object, quad.Predicate}},
	{Dirs: []quad.Direction{quad.Subject, quad.Predicate, quad.Object}},
	{Dirs: []quad.Direction{quad.Object, quad.Predicate, quad.Subject}},
	{Dirs: []quad.Direction{quad.Label}},
}

// setIndexes hands the indexes to cayley, which takes them from a package
// variable only. They are stored at Init and read back at each later open.
var setIndexes = sync.OnceFunc(func() {
	cayleykv.DefaultQuadIndexes = slices.Clone(quadIndexes)
})

// storeOptions are those of every QuadStore: cayley's bloom filters take 318 MB on an empty
// store and scan the whole log at each open.
func storeOptions() graph.Options { return graph.Options{cayleykv.OptNoBloom: true} }

// Graph is the fact graph over an open store, which it does not own.
// Write methods are for one goroutine; read methods are safe for all.
type Graph struct {
	db     *store.DB
	flat   *flatDB
	tree   kv.KV
	closed atomic.Bool

	// qs is used by the writer alone.
	qs graph.QuadStore
	// rebuilds counts how often qs was thrown away after an error.
	rebuilds atomic.Uint64
}

// Open opens the graph in db, laying it out when it is new. db stays open after
// Close. Not safe to call twice for one database.
func Open(db *store.DB) (*Graph, error) {
	setIndexes()
	f := newFlatDB(db, quadPrefix(generation))
	g := &Graph{db: db, flat: f, tree: flat.Upgrade(f)}
	if err := g.layOut(); err != nil {
		return nil, fmt.Errorf("graphmem: lay out: %w", err)
	}
	if err := g.rebuild(); err != nil {
		return nil, fmt.Errorf("graphmem: open: %w", err)
	}
	return g, nil
}

// layOut initialises cayley in one transaction. Cayley does it in three, and a
// kill between the last two would leave a graph with other indexes for ever.
func (g *Graph) layOut() error {
	txn, err := g.db.Begin(true)
	if err != nil {
		return err
	}
	defer txn.Discard()
	err = g.flat.join(txn.Txn, func() error { return cayleykv.Init(g.tree, storeOptions()) })
	if errors.Is(err, graph.ErrDatabaseExists) {
		return nil
	}
	if err != nil {
		return err
	}
	return txn.Commit()
}

// rebuild makes a new QuadStore over the same open database.
func (g *Graph) rebuild() error {
	qs, err := cayleykv.New(g.tree, storeOptions())
	if err != nil {
		return err
	}
	g.qs = qs
	return nil
}

// Rebuilds returns how often the QuadStore was made anew after an error.
func (g *Graph) Rebuilds() uint64 { return g.rebuilds.Load() }

// Close refuses further use. The database stays open.
func (g *Graph) Close() error {
	g.closed.Store(true)
	return nil
}

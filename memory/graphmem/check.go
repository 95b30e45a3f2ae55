package graphmem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/cayleygraph/cayley/graph/proto"
	"github.com/cayleygraph/quad"
	"github.com/dgraph-io/badger/v4"
	protobuf "google.golang.org/protobuf/proto"

	"homeagent/memory/store"
)

// Counts are what Check counted. In a sound graph Log, Size and each index are
// equal and Mismatched is zero.
type Counts struct {
	// Log counts the quads of cayley's log that are not deleted.
	Log int64
	// Size is cayley's own counter.
	Size int64
	// Index counts the entries of each index, by its name ("sp", "op", ...).
	Index map[string]int64
	// Mismatched counts index entries that stand under a key other than that of
	// the quad they name: facts attached to the wrong entity.
	Mismatched int64
	// Facts counts fact nodes, ended and retracted ones included; Counter is what
	// the graph's own counter says.
	Facts, Counter int64
}

// Sound reports whether the counts agree.
func (c *Counts) Sound() bool {
	if c.Log != c.Size || c.Mismatched != 0 || c.Facts != c.Counter {
		return false
	}
	for _, n := range c.Index {
		if n != c.Log {
			return false
		}
	}
	return true
}

// Size returns the number of quads.
func (g *Graph) Size() (n int64, err error) {
	err = g.view(func(v *view) error {
		n, err = v.size()
		return err
	})
	return n, err
}

// Facts returns how many facts were ever stored, ended and retracted ones included.
func (g *Graph) Facts() (n int64, err error) {
	err = g.view(func(v *view) error {
		c, err := countFacts(v.txn)
		n = int64(c)
		return err
	})
	return n, err
}

func countFacts(txn store.Txn) (uint64, error) {
	b, err := txn.Get(countKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(b) != 8:
		return 0, fmt.Errorf("%w: count of facts", ErrCorrupt)
	}
	return binary.BigEndian.Uint64(b), nil
}

// Check walks the whole graph and counts it against itself: O(quads), for
// doctor and tests. ctx ends it early with its error.
func (g *Graph) Check(ctx context.Context) (c Counts, err error) {
	c.Index = map[string]int64{}
	err = g.view(func(v *view) error {
		if c.Size, err = v.size(); err != nil {
			return err
		}
		if c.Facts, err = v.facts(); err != nil {
			return err
		}
		counter, err := countFacts(v.txn)
		if err != nil {
			return err
		}
		c.Counter = int64(counter)
		links, err := v.links(ctx)
		if err != nil {
			return err
		}
		c.Log = int64(len(links))
		for _, ix := range quadIndexes {
			if err := v.checkIndex(ctx, ix.Dirs, links, &c); err != nil {
				return err
			}
		}
		return nil
	})
	return c, err
}

func (v *view) size() (int64, error) {
	b, err := v.get([]byte("meta/size"))
	if err != nil || b == nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: size", ErrCorrupt)
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

// facts counts the fact nodes by their details: each has one.
func (v *view) facts() (int64, error) {
	role, err := v.node(predDetail)
	if err != nil || role == 0 {
		return 0, err
	}
	var n int64
	err = v.scan(context.Background(), "sp/", func(key, _ []byte) error {
		ids, err := indexIDs(key, 2)
		if err == nil && ids[1] == role {
			n++
		}
		return err
	})
	return n, err
}

// links returns the quads of the log that are not deleted.
func (v *view) links(ctx context.Context) (map[uint64]*proto.Primitive, error) {
	out := map[uint64]*proto.Primitive{}
	err := v.scan(ctx, "log/", func(_, value []byte) error {
		p := &proto.Primitive{}
		if err := protobuf.Unmarshal(value, p); err != nil {
			return fmt.Errorf("%w: log: %w", ErrCorrupt, err)
		}
		if !p.IsNode() && !p.Deleted {
			out[p.ID] = p
		}
		return nil
	})
	return out, err
}

func (v *view) checkIndex(ctx context.Context, dirs []quad.Direction, links map[uint64]*proto.Primitive, c *Counts) error {
	var name strings.Builder
	for _, d := range dirs {
		name.WriteByte(d.Prefix())
	}
	c.Index[name.String()] = 0
	return v.scan(ctx, name.String()+"/", func(key, value []byte) error {
		ids, err := indexIDs(key, len(dirs))
		if err != nil {
			return err
		}
		list, err := decodeList(value)
		if err != nil {
			return err
		}
		for _, id := range list {
			link, ok := links[id]
			if !ok {
				c.Mismatched++
				continue
			}
			c.Index[name.String()]++
			for i, d := range dirs {
				if link.GetDirection(d) != ids[i] {
					c.Mismatched++
					break
				}
			}
		}
		return nil
	})
}

// scan walks cayley's keys that begin with prefix; the slices are valid during
// the call.
func (v *view) scan(ctx context.Context, prefix string, fn func(key, value []byte) error) error {
	opt := badger.DefaultIteratorOptions
	opt.Prefix = append(append([]byte(nil), v.prefix...), prefix...)
	it := v.txn.Raw().NewIterator(opt)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		item := it.Item()
		if len(item.Key()) == len(opt.Prefix) {
			continue // the mark of the bucket
		}
		if err := item.Value(func(b []byte) error { return fn(item.Key()[len(v.prefix):], b) }); err != nil {
			return err
		}
	}
	return nil
}

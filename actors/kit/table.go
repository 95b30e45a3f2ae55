package kit

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// table finds actors by path. Looking up takes no lock, because every message does it: each bucket is a chain that is
// read as it stands, while writers, one at a time, link a cell in at its head or unlink it. An unlinked cell keeps its
// own link, so whoever stands on it walks on.
type table struct {
	seed    maphash.Seed
	n       atomic.Int64
	mu      sync.Mutex
	buckets [4096]atomic.Pointer[cell]
}

func (t *table) bucket(path string) *atomic.Pointer[cell] {
	return &t.buckets[maphash.String(t.seed, path)%uint64(len(t.buckets))]
}

func (t *table) get(path string) *cell {
	for c := t.bucket(path).Load(); c != nil; c = c.next.Load() {
		if c.self.Path == path {
			return c
		}
	}
	return nil
}

func (t *table) put(c *cell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	head := t.bucket(c.path())
	c.next.Store(head.Load())
	head.Store(c)
	t.n.Add(1)
}

func (t *table) remove(c *cell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for link := t.bucket(c.path()); link.Load() != nil; link = &link.Load().next {
		if link.Load() == c {
			link.Store(c.next.Load())
			t.n.Add(-1)
			return
		}
	}
}

// all returns the cells in no order.
func (t *table) all() []*cell {
	list := make([]*cell, 0, t.n.Load())
	for i := range t.buckets {
		for c := t.buckets[i].Load(); c != nil; c = c.next.Load() {
			list = append(list, c)
		}
	}
	return list
}

package scheduler

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"homeagent/messages"
)

// chunkSize is the most tasks of one chunk: what an insertion moves.
const chunkSize = 256

// queue holds the waiting tasks of one level in the order in which they run: by rank, then by inbox sequence. What it
// orders by must not change while a task is in it. Finding, inserting, removing and ranking take time in the number of
// chunks and the logarithm of their size.
type queue struct {
	chunks [][]*task
	n      int
	// special counts those that may preempt where others of the level may not, aged those of them that were preempted.
	special, aged int
}

// special tells whether a task may preempt where others of its level may not: an interrupt by name, one that a person
// waits for, one that was preempted before.
func special(t *task) bool {
	return t.input.GetMode() == messages.Mode_MODE_INTERRUPT || t.input.GetPersonWaits() || t.preempted > 0
}

// count keeps the counts when a task comes or goes.
func (q *queue) count(t *task, by int) {
	q.n += by
	if special(t) {
		q.special += by
	}
	if t.preempted > 0 {
		q.aged += by
	}
}

// order compares two tasks by their place in a queue.
func order(a, b *task) int {
	if c := cmp.Compare(a.rank, b.rank); c != 0 {
		return c
	}
	if c := cmp.Compare(a.sequence, b.sequence); c != 0 {
		return c
	}
	return cmp.Compare(a.id(), b.id())
}

// find tells where t is, or where it would be inserted.
func (q *queue) find(t *task) (chunk, at int, found bool) {
	chunk = sort.Search(len(q.chunks), func(i int) bool {
		c := q.chunks[i]
		return order(c[len(c)-1], t) >= 0
	})
	if chunk == len(q.chunks) {
		return chunk, 0, false
	}
	at, found = slices.BinarySearchFunc(q.chunks[chunk], t, order)
	return chunk, at, found
}

// insert puts t in its place; it must not be in the queue.
func (q *queue) insert(t *task) {
	c, at, found := q.find(t)
	if found {
		panic("scheduler: a task is queued twice: " + t.id())
	}
	q.count(t, 1)
	if c == len(q.chunks) {
		if c == 0 || len(q.chunks[c-1]) >= chunkSize {
			q.chunks = append(q.chunks, []*task{t})
			return
		}
		c--
		at = len(q.chunks[c])
	}
	grown := slices.Insert(q.chunks[c], at, t)
	q.chunks[c] = grown
	if len(grown) > chunkSize {
		half := len(grown) / 2
		q.chunks[c] = slices.Clone(grown[:half])
		q.chunks = slices.Insert(q.chunks, c+1, slices.Clone(grown[half:]))
	}
}

// remove takes t out; it reports whether it was there.
func (q *queue) remove(t *task) bool {
	c, at, found := q.find(t)
	if !found {
		return false
	}
	q.count(t, -1)
	left := slices.Delete(q.chunks[c], at, at+1)
	if len(left) == 0 {
		q.chunks = slices.Delete(q.chunks, c, c+1)
		return true
	}
	q.chunks[c] = left
	return true
}

// head is the task that runs first; nil when there is none.
func (q *queue) head() *task {
	if q.n == 0 {
		return nil
	}
	return q.chunks[0][0]
}

// index is how many tasks stand before t.
func (q *queue) index(t *task) int {
	c, at, _ := q.find(t)
	for _, before := range q.chunks[:c] {
		at += len(before)
	}
	return at
}

// all goes through the tasks in order. The queue must not change meanwhile.
func (q *queue) all() iter.Seq[*task] {
	return func(yield func(*task) bool) {
		for _, c := range q.chunks {
			for _, t := range c {
				if !yield(t) {
					return
				}
			}
		}
	}
}

package events

import (
	"sort"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// entry is one kept event with its size in bytes as encoded.
type entry struct {
	event *messages.AgentEvent
	size  int
}

// ring keeps the last events in order of their sequence, bounded by count and by bytes; the newest is always kept.
type ring struct {
	entries  []entry // a circle once it has grown to its limit
	first    int     // index of the oldest
	count    int
	bytes    int
	limit    int
	maxBytes int
	// gone is the highest sequence that was let go; a place below it can not be replayed from.
	gone uint64
}

func newRing(limit, maxBytes int) *ring { return &ring{limit: limit, maxBytes: maxBytes} }

func (r *ring) at(i int) entry { return r.entries[(r.first+i)%len(r.entries)] }

func (r *ring) add(e *messages.AgentEvent) {
	size := proto.Size(e)
	for r.count > 0 && (r.count == r.limit || r.bytes+size > r.maxBytes) {
		r.drop()
	}
	if r.count == len(r.entries) {
		r.grow()
	}
	r.entries[(r.first+r.count)%len(r.entries)] = entry{event: e, size: size}
	r.count++
	r.bytes += size
}

// drop lets the oldest go.
func (r *ring) drop() {
	old := r.entries[r.first]
	r.entries[r.first] = entry{}
	r.first = (r.first + 1) % len(r.entries)
	r.count--
	r.bytes -= old.size
	r.gone = old.event.GetSequence()
}

// grow doubles the circle up to the limit, so that a quiet node does not pay for a full ring.
func (r *ring) grow() {
	bigger := make([]entry, min(max(2*len(r.entries), 64), r.limit))
	for i := range r.count {
		bigger[i] = r.at(i)
	}
	r.entries, r.first = bigger, 0
}

// after returns the kept events above sequence that pass keep, oldest first.
func (r *ring) after(sequence uint64, keep func(*messages.AgentEvent) bool) []*messages.AgentEvent {
	from := sort.Search(r.count, func(i int) bool { return r.at(i).event.GetSequence() > sequence })
	var out []*messages.AgentEvent
	for i := from; i < r.count; i++ {
		if e := r.at(i).event; keep(e) {
			out = append(out, e)
		}
	}
	return out
}

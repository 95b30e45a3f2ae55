package events

import (
	"fmt"
	"slices"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// Params bound the stream. A zero field means its default.
type Params struct {
	// Ring is how many events are kept for replay, 1 or more; zero means 2000.
	Ring int
	// RingBytes is how many bytes the kept events may have as encoded; zero means 16 MiB.
	RingBytes int
	// Gap is how long an event that nobody waits for may be held back after a batch, to go out with others; zero means
	// 5 ms.
	Gap time.Duration
	// Batch is how many events may wait for the gap to end; zero means 256.
	Batch int
	// Subscriptions is how many there may be; zero means 1024.
	Subscriptions int
}

func (p Params) filled() Params {
	fill := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	fill(&p.Ring, 2000)
	fill(&p.RingBytes, 16<<20)
	fill(&p.Batch, 256)
	fill(&p.Subscriptions, 1024)
	if p.Gap <= 0 {
		p.Gap = 5 * time.Millisecond
	}
	return p
}

// flushKey is the timer that ends a gap; flush is its message.
const flushKey = "flush"

type flush struct{}

type machine struct {
	params  Params
	epoch   uint64
	last    uint64
	ring    *ring
	subs    []*subscription
	pending []*messages.AgentEvent
	flushed time.Time
	armed   bool
	// unknown counts events without a type we know, by type.
	unknown map[messages.EventType]uint64
}

// New makes the machine of one incarnation.
func New(p Params) kit.Machine {
	p = p.filled()
	return &machine{
		params: p, ring: newRing(p.Ring, p.RingBytes), unknown: make(map[messages.EventType]uint64),
	}
}

// Step decides; see the package comment for the contract.
func (m *machine) Step(now time.Time, e kit.Event) []kit.Effect {
	switch v := e.Msg.(type) {
	case *messages.AgentEvent:
		return m.publish(now, v)
	case flush:
		m.armed = false
		return m.flush(now)
	case *messages.Subscribe:
		return m.subscribe(now, e, v)
	case *messages.Unsubscribe:
		return m.unsubscribe(e, v)
	case kit.Started:
		m.epoch = v.Self.GetEpoch() + uint64(max(v.Restarts, 0))
		return []kit.Effect{kit.Ready{}, m.shown("running")}
	case kit.Ended:
		return m.ended(v.Who)
	case kit.Fault:
		return m.fault(v)
	case kit.Stopping:
		return m.flush(now)
	default:
		return nil // kit counts and logs what a machine does not know
	}
}

// publish numbers one event and sends it on, now or when the gap is over.
func (m *machine) publish(now time.Time, e *messages.AgentEvent) []kit.Effect {
	if !known(e.GetType()) {
		m.unknown[e.GetType()]++
		if m.unknown[e.GetType()] > 1 {
			return nil
		}
		return []kit.Effect{kit.Log{
			Level: kit.Warn, Text: "event of unknown type dropped", Attrs: []any{"type", int(e.GetType())},
		}}
	}
	m.last++
	n := numbered(e, m.last, now)
	if kept(n.GetType()) {
		m.ring.add(n)
	}
	if len(m.subs) == 0 {
		return nil
	}
	m.pending = append(m.pending, n)
	wait := m.params.Gap - now.Sub(m.flushed)
	if wait <= 0 || awaited(n.GetType()) || len(m.pending) >= m.params.Batch {
		return m.flush(now)
	}
	if m.armed {
		return nil
	}
	m.armed = true
	return []kit.Effect{kit.After{Key: flushKey, D: wait, Msg: flush{}}}
}

// flush sends what waits to each subscription that wants some of it.
func (m *machine) flush(now time.Time) []kit.Effect {
	var out []kit.Effect
	if m.armed {
		m.armed = false
		out = append(out, kit.CancelAfter{Key: flushKey})
	}
	if len(m.pending) == 0 {
		return out
	}
	m.flushed = now
	for _, s := range m.subs {
		events := s.wanted(m.pending)
		if len(events) == 0 {
			continue
		}
		out = append(out, kit.Send{To: s.who, Msg: m.batch(s, events)})
	}
	m.pending = nil
	return out
}

// batch makes the next batch of a subscription and settles a gap that it was owed.
func (m *machine) batch(s *subscription, events []*messages.AgentEvent) *messages.EventBatch {
	b := &messages.EventBatch{Subscription: s.name, Epoch: m.epoch, Events: events, SyncRequired: s.missed}
	s.missed = false
	return b
}

func (m *machine) subscribe(now time.Time, e kit.Event, v *messages.Subscribe) []kit.Effect {
	who := v.GetSubscriber()
	if who == nil {
		who = e.From
	}
	mask, err := maskOf(v.GetTypes())
	if err == nil && (who == nil || v.GetSubscription() == "") {
		err = &messages.Error{
			Code: "bad_subscription", Message: "A subscription needs a name and a subscriber.",
			Hint: "Set subscription, and subscriber unless the sender is the one.",
		}
	}
	old := m.find(who, v.GetSubscription())
	if err == nil && old < 0 && len(m.subs) >= m.params.Subscriptions {
		err = &messages.Error{
			Code: "too_many_subscriptions", Message: fmt.Sprintf("There are %d subscriptions already.", len(m.subs)),
			Hint: "End one that is no longer needed.",
		}
	}
	if err != nil {
		return []kit.Effect{e.Reply(err)}
	}
	out := m.flush(now) // what waits goes to the subscriptions that were there when it happened
	s := &subscription{name: v.GetSubscription(), who: who, mask: mask, task: v.GetTaskId()}
	if old >= 0 {
		s.missed = m.subs[old].missed // a gap that was not told yet stays one
		m.subs[old] = s
	} else {
		if !m.has(who) {
			out = append(out, kit.Watch{Who: who})
		}
		m.subs = append(m.subs, s)
		out = append(out, m.shown(""))
	}
	return append(out, m.answer(e, s, m.replay(s, v))...)
}

// replay is the first batch of a subscription.
func (m *machine) replay(s *subscription, v *messages.Subscribe) *messages.EventBatch {
	switch at := v.GetAfterSequence(); {
	case v.GetAfterEpoch() == 0:
	case v.GetAfterEpoch() != m.epoch, at < m.ring.gone, at > m.last:
		s.missed = true
	default:
		return m.batch(s, m.ring.after(at, s.wants))
	}
	return m.batch(s, nil)
}

func (m *machine) answer(e kit.Event, s *subscription, first *messages.EventBatch) []kit.Effect {
	if e.From != nil && same(e.From, s.who) {
		return []kit.Effect{e.Reply(first)}
	}
	return []kit.Effect{kit.Send{To: s.who, Msg: first}, e.Reply(&messages.Ok{})}
}

func (m *machine) unsubscribe(e kit.Event, v *messages.Unsubscribe) []kit.Effect {
	who := v.GetSubscriber()
	if who == nil {
		who = e.From
	}
	out := []kit.Effect{e.Reply(&messages.Ok{})}
	at := m.find(who, v.GetSubscription())
	if at < 0 {
		return out
	}
	m.subs = slices.Delete(m.subs, at, at+1) // clears the tail, so that nothing is held by it
	if !m.has(who) {
		out = append(out, kit.Unwatch{Who: who})
	}
	return append(out, m.shown(""))
}

func (m *machine) ended(who *messages.Address) []kit.Effect {
	if !m.has(who) {
		return nil
	}
	m.subs = slices.DeleteFunc(m.subs, func(s *subscription) bool { return same(s.who, who) })
	return []kit.Effect{m.shown("")}
}

// fault notes that a batch did not arrive. One that is gone comes as Ended; a full one is owed a word about the gap.
func (m *machine) fault(f kit.Fault) []kit.Effect {
	send, ok := f.Effect.(kit.Send)
	if !ok {
		return nil
	}
	b, ok := send.Msg.(*messages.EventBatch)
	if !ok {
		return nil
	}
	at := m.find(send.To, b.GetSubscription())
	if at < 0 {
		return nil
	}
	m.subs[at].missed = true
	return []kit.Effect{kit.Log{
		Level: kit.Warn, Text: "events not delivered",
		Attrs: []any{"subscriber", send.To.GetPath(), "code", f.Err.GetCode(), "events", len(b.GetEvents())},
	}}
}

func (m *machine) shown(word string) kit.State {
	return kit.State{Word: word, Summary: fmt.Sprintf("%d subscriptions", len(m.subs))}
}

// view is what Show tells.
type view struct {
	Epoch         uint64            `json:"epoch"`
	Last          uint64            `json:"last"`
	Kept          int               `json:"kept"`
	KeptBytes     int               `json:"kept_bytes"`
	Gone          uint64            `json:"gone"`
	Waiting       int               `json:"waiting"`
	Subscriptions []subscriptionRow `json:"subscriptions"`
	Unknown       uint64            `json:"unknown"`
}

// subscriptionRow shows one subscription.
type subscriptionRow struct {
	Name       string `json:"name"`
	Subscriber string `json:"subscriber"`
	Types      string `json:"types"`
	Task       string `json:"task,omitempty"`
}

// Show returns the figures of the stream.
func (m *machine) Show() any {
	v := view{
		Epoch: m.epoch, Last: m.last, Kept: m.ring.count, KeptBytes: m.ring.bytes, Gone: m.ring.gone,
		Waiting: len(m.pending), Subscriptions: make([]subscriptionRow, 0, len(m.subs)),
	}
	for _, n := range m.unknown {
		v.Unknown += n
	}
	for _, s := range m.subs {
		v.Subscriptions = append(v.Subscriptions, subscriptionRow{
			Name: s.name, Subscriber: s.who.GetPath(), Types: typesOf(s.mask), Task: s.task,
		})
	}
	return v
}

package admin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// Params of the machine. A zero field means its default.
type Params struct {
	// Renew is how often subscriptions and channels are asked for again; zero means 15 s.
	Renew time.Duration
	// Retry is the pause before a refused channel is registered again; zero means 1 s.
	Retry time.Duration
}

func (p Params) filled() Params {
	if p.Renew <= 0 {
		p.Renew = 15 * time.Second
	}
	if p.Retry <= 0 {
		p.Retry = time.Second
	}
	return p
}

// phase of the actor.
type phase string

const (
	starting phase = "starting"
	ready    phase = "running"
	draining phase = "draining"
)

const (
	// ownSubscription feeds the usage figures; names of connections hold a slash.
	ownSubscription = "usage"
	// corrChannel and corrSubscription begin the correlation ids of this actor's requests.
	corrChannel      = "channel/"
	corrSubscription = "subscription/"
	corrEnd          = "end/"
)

// channel is one of the channels whose ways in are HTTP routes and whose way out is the event stream.
type channel struct {
	name       string
	kind       messages.ChannelKind
	registered bool
}

// connection is a subscription of an HTTP handler.
type connection struct {
	types []messages.EventType
	task  string
	// epoch of the stream it is on; zero before the first batch.
	epoch uint64
}

type machine struct {
	params   Params
	phase    phase
	channels []*channel
	// announced says that the announcement is under way or done.
	announced bool
	conns     map[string]*connection
	own       connection
	usage     *usage
}

// New makes the machine of one incarnation.
func New(p Params) kit.Machine {
	return &machine{
		params: p.filled(), phase: starting,
		channels: []*channel{
			{name: "api", kind: messages.ChannelKind_CHANNEL_KIND_ASYNC},
			{name: "cli", kind: messages.ChannelKind_CHANNEL_KIND_INTERACTIVE},
			{name: "web", kind: messages.ChannelKind_CHANNEL_KIND_INTERACTIVE},
		},
		conns: make(map[string]*connection),
		own: connection{types: []messages.EventType{
			messages.EventType_EVENT_TYPE_AGENT_LLM_CHAIN, messages.EventType_EVENT_TYPE_TASK,
		}},
	}
}

// Step decides; see the package comment for the contract.
func (m *machine) Step(now time.Time, e kit.Event) []kit.Effect {
	switch v := e.Msg.(type) {
	case *messages.EventBatch:
		return m.batch(v)
	case opened:
		return m.opened(v)
	case closed:
		return m.closed(v)
	case announced:
		return m.becomeReady()
	case *messages.Ok:
		return m.registered(e.Corr)
	case *messages.Error:
		return m.refused(e.Corr, v)
	case *messages.Busy:
		return m.refused(e.Corr, &messages.Error{Code: "busy", Message: "The actor asked has too much to do."})
	case kit.Fault:
		return m.fault(v)
	case renew:
		return m.renewed()
	case retry:
		return m.register(v.Channel)
	case *messages.Drain:
		return append(m.becomeDraining(), e.Reply(&messages.Ok{}))
	case kit.Started:
		return m.started(now, v)
	case kit.Stopping:
		return m.becomeDraining()
	case failed:
		panic(fmt.Sprintf("admin: %v", v.Err))
	default:
		return nil // kit counts and logs what a machine does not know
	}
}

func (m *machine) started(now time.Time, v kit.Started) []kit.Effect {
	m.usage = newUsage(now)
	out := []kit.Effect{
		kit.State{Word: string(m.phase)},
		serve{Epoch: v.Self.GetEpoch()},
		tally{Tokens: m.usage.show()},
	}
	for _, c := range m.channels {
		out = append(out, m.register(c.name)...)
	}
	return append(out, m.ask(ownSubscription, &m.own, 0, 0), kit.After{Key: "renew", D: m.params.Renew, Msg: renew{}})
}

// becomeReady comes after run/homed.json is there: who waits for the facility can find the node.
func (m *machine) becomeReady() []kit.Effect {
	if m.phase != starting {
		return nil
	}
	m.phase = ready
	return []kit.Effect{kit.Ready{}, m.shown()}
}

func (m *machine) becomeDraining() []kit.Effect {
	if m.phase == draining {
		return nil
	}
	m.phase = draining
	return []kit.Effect{drain{}, m.shown()}
}

func (m *machine) find(name string) *channel {
	at := slices.IndexFunc(m.channels, func(c *channel) bool { return c.name == name })
	if at < 0 {
		return nil
	}
	return m.channels[at]
}

func (m *machine) register(name string) []kit.Effect {
	c := m.find(name)
	if c == nil || m.phase == draining {
		return nil
	}
	return []kit.Effect{kit.Send{
		To: kit.Path("channels"), Corr: corrChannel + name,
		Msg: &messages.RegisterChannel{Name: c.name, Kind: c.kind},
	}}
}

// registered notes that a channel stands; the last one lets the actor announce itself.
func (m *machine) registered(corr string) []kit.Effect {
	name, ok := strings.CutPrefix(corr, corrChannel)
	if c := m.find(name); ok && c != nil {
		c.registered = true
	}
	if slices.ContainsFunc(m.channels, func(c *channel) bool { return !c.registered }) {
		return nil
	}
	if m.announced {
		return nil
	}
	m.announced = true
	return []kit.Effect{announce{}}
}

// refused handles a request of this actor that was not done.
func (m *machine) refused(corr string, err *messages.Error) []kit.Effect {
	if name, ok := strings.CutPrefix(corr, corrChannel); ok {
		return []kit.Effect{
			kit.Log{Level: kit.Warn, Text: "channel not registered", Attrs: []any{"channel", name, "code", err.GetCode()}},
			kit.After{Key: corr, D: m.params.Retry, Msg: retry{Channel: name}},
		}
	}
	name, ok := strings.CutPrefix(corr, corrSubscription)
	if !ok {
		return nil
	}
	if c, ok := m.conns[name]; ok {
		if c.epoch != 0 {
			return nil // a renewal: the subscription stands, and the next renewal will tell
		}
		delete(m.conns, name)
		return []kit.Effect{refuse{Name: name, Err: err}, m.shown()}
	}
	if name == ownSubscription { // tried again by renew
		return []kit.Effect{kit.Log{Level: kit.Warn, Text: "usage not counted", Attrs: []any{"code", err.GetCode()}}}
	}
	return nil
}

func (m *machine) fault(f kit.Fault) []kit.Effect {
	if s, ok := f.Effect.(kit.Send); ok {
		return m.refused(s.Corr, f.Err)
	}
	return nil
}

// ask makes the Subscribe of a connection. A renewal asks for new events only: a subscription that still stands goes on
// without a gap, and one that does not is recognised by the epoch of its answer.
func (m *machine) ask(name string, c *connection, epoch, sequence uint64) kit.Effect {
	return kit.Send{To: kit.Path("events"), Corr: corrSubscription + name, Msg: &messages.Subscribe{
		Subscription: name, Types: c.types, TaskId: c.task, AfterEpoch: epoch, AfterSequence: sequence,
	}}
}

func (m *machine) opened(v opened) []kit.Effect {
	c := &connection{types: v.Types, task: v.Task}
	m.conns[v.Name] = c
	return []kit.Effect{m.ask(v.Name, c, v.AfterEpoch, v.AfterSequence), m.shown()}
}

func (m *machine) closed(v closed) []kit.Effect {
	if _, ok := m.conns[v.Name]; !ok {
		return nil
	}
	delete(m.conns, v.Name)
	return []kit.Effect{
		kit.Send{
			To: kit.Path("events"), Corr: corrEnd + v.Name,
			Msg: &messages.Unsubscribe{Subscription: v.Name},
		},
		m.shown(),
	}
}

// batch hands events on. One for a connection that was closed meanwhile is dropped.
func (m *machine) batch(b *messages.EventBatch) []kit.Effect {
	if b.GetSubscription() == ownSubscription {
		m.own.epoch = b.GetEpoch()
		if m.usage.add(b.GetEvents()) {
			return []kit.Effect{tally{Tokens: m.usage.show()}}
		}
		return nil
	}
	c, ok := m.conns[b.GetSubscription()]
	if !ok {
		return nil
	}
	first, other := c.epoch == 0, c.epoch != b.GetEpoch()
	c.epoch = b.GetEpoch()
	if !first && !other && len(b.GetEvents()) == 0 && !b.GetSyncRequired() {
		return nil // a renewal that found all well
	}
	return []kit.Effect{deliver{
		Name: b.GetSubscription(), Batch: b, Sync: b.GetSyncRequired() || (other && !first),
	}}
}

func (m *machine) renewed() []kit.Effect {
	if m.phase == draining {
		return nil
	}
	out := []kit.Effect{m.ask(ownSubscription, &m.own, 0, 0)}
	for _, name := range slices.Sorted(maps.Keys(m.conns)) {
		out = append(out, m.ask(name, m.conns[name], 0, 0))
	}
	for _, c := range m.channels {
		out = append(out, m.register(c.name)...)
	}
	return append(out, kit.After{Key: "renew", D: m.params.Renew, Msg: renew{}})
}

func (m *machine) shown() kit.State {
	return kit.State{Word: string(m.phase), Summary: fmt.Sprintf("%d subscriptions", len(m.conns))}
}

// Show returns what the actor holds.
func (m *machine) Show() any {
	type row struct {
		Name string `json:"name"`
		Task string `json:"task,omitempty"`
	}
	v := struct {
		Phase    string          `json:"phase"`
		Channels map[string]bool `json:"channels"`
		Conns    []row           `json:"connections"`
	}{Phase: string(m.phase), Channels: make(map[string]bool), Conns: []row{}}
	for _, c := range m.channels {
		v.Channels[c.name] = c.registered
	}
	for _, name := range slices.Sorted(maps.Keys(m.conns)) {
		v.Conns = append(v.Conns, row{Name: name, Task: m.conns[name].task})
	}
	return v
}

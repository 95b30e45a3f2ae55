package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/memory/usage"
	"homeagent/messages"
	models "homeagent/providers"
)

// maxRequests is how many requests may be under way.
const maxRequests = 1024

// Params of the machine of providers.
type Params struct {
	// Config keeps the settings.
	Config *messages.Address
	// Ledger stores usage and what is known of failures; nil means that nothing is stored.
	Ledger *messages.Address
	// Tools takes the tools of this actor; nil means that none are offered.
	Tools *messages.Address
}

// machine is the machine of providers.
type machine struct {
	p        Params
	self     *messages.Address
	router   *models.Router
	sources  []known
	running  map[string]*messages.SourceSpec // sources whose actor stands
	leaving  map[string]bool                 // of them, those that end with their last call
	figures  map[string]*figures
	requests map[string]*request
	early    cancelled
	saves    map[string]saving
	saved    int
	settled  []settled
	loading  bool
	stale    bool
	loads    int
	ready    bool
	held     []kit.Event // requests that came before the first reading of the sources
	account  account
	chosen   choices
	helpers  helpers
	now      time.Time
	out      []kit.Effect
}

// figures of one source since the start of providers.
type figures struct {
	active        int
	calls, failed uint64
}

// settled is an answer that waits for the reading numbered at.
type settled struct {
	ask ask
	msg proto.Message
	at  int
}

// New makes the machine of providers.
func New(p Params) kit.Machine {
	return &machine{
		p: p, router: models.NewRouter(), running: make(map[string]*messages.SourceSpec), leaving: make(map[string]bool),
		figures: make(map[string]*figures), requests: make(map[string]*request), saves: make(map[string]saving),
		account: account{zone: time.UTC}, chosen: make(choices),
	}
}

// Step decides; see the package comment for the contract.
func (m *machine) Step(now time.Time, e kit.Event) []kit.Effect {
	m.now = now
	m.handle(e)
	m.store()
	out := m.out
	m.out = nil
	return out
}

func (m *machine) handle(e kit.Event) {
	if c, ok := e.Msg.(*messages.Complete); ok {
		m.opened(c)
	}
	if !m.ready && asks(e.Msg) && len(m.held) < maxRequests {
		m.held = append(m.held, e)
		return
	}
	m.dispatch(e)
}

func (m *machine) dispatch(e kit.Event) {
	switch v := e.Msg.(type) {
	case *messages.Complete:
		m.complete(e, v)
	case *messages.CompletionDone:
		if m.fromCurrent(e, v) {
			m.completed(v)
		}
	case *messages.CancelCompletion:
		m.cancel(v)
	case again:
		m.again(v)
	case late:
		m.late(v)
	case kit.Started:
		m.start(v)
	case *messages.ConfigChanged:
		m.load()
	case loaded:
		m.loaded(v)
	case kit.Ended:
		m.gone(v.Name, v.Failure, true)
	case kit.Restarted:
		m.gone(v.Name, v.Failure, false)
		m.register(v.Name)
	case kit.Fault:
		m.fault(v)
	case orphaned:
		m.orphaned(v)
	default:
		m.administer(e)
	}
}

// asks tells that a message needs the sources to be known.
func asks(m any) bool {
	switch m.(type) {
	case *messages.Complete, *messages.ListSources, *messages.AddSource, *messages.TestSource, *messages.RemoveSource,
		*messages.ResetSource, *messages.UseSource, *messages.QueryUsage, *messages.CallTool:
		return true
	}
	return false
}

func (m *machine) add(e ...kit.Effect) { m.out = append(m.out, e...) }

func (m *machine) start(s kit.Started) {
	m.self = s.Self
	m.add(kit.State{Word: "starting"}, kit.Send{To: m.p.Config, Corr: "config", Msg: &messages.ConfigSubscribe{Prefixes: subscribed}})
	if s.Restarts > 0 {
		m.add(recoverOpen{})
	}
	m.register("")
	if m.p.Ledger == nil {
		m.account.known = true
	}
	m.load()
}

// load reads the sources; a change during a reading makes another one. The first
// one of an incarnation also reads what is stored, once ledger has written all
// that an earlier one gave it.
func (m *machine) load() {
	if m.loading {
		m.stale = true
		return
	}
	m.loading = true
	m.loads++
	if m.account.known {
		m.add(load{})
		return
	}
	m.add(kit.Send{To: m.p.Ledger, Corr: corrWritten, Msg: &messages.LedgerStats{}})
}

// settle answers when the settings as they are now have been read.
func (m *machine) settle(a ask, msg proto.Message) {
	m.load()
	at := m.loads
	if m.stale {
		at++
	}
	m.settled = append(m.settled, settled{a, msg, at})
}

// answerSettled answers what waited for the reading that has just ended.
func (m *machine) answerSettled(at int) {
	m.settled = slices.DeleteFunc(m.settled, func(s settled) bool {
		if s.at <= at {
			m.add(s.ask.reply(s.msg))
		}
		return s.at <= at
	})
}

func (m *machine) loaded(l loaded) {
	if l.Err != nil {
		m.add(kit.Log{Level: kit.Error, Text: "usage cannot be read", Attrs: []any{"error", l.Err.Error()}},
			kit.After{Key: "written", D: askAgain, Msg: reload{}})
		return
	}
	m.loading = false
	read := m.loads
	if m.stale {
		m.stale = false
		m.load()
	}
	m.sources = l.Sources
	m.router.SetPolicy(l.Policy)
	routes := make([]models.Route, len(l.Sources))
	wanted := make(map[string]*messages.SourceSpec)
	for i, s := range l.Sources {
		routes[i] = s.Route
		if !s.Route.Disabled {
			wanted[s.Spec.GetName()] = s.Spec
		}
	}
	m.router.Set(routes)
	m.settings(l)
	m.help(l)
	m.placeActors(wanted)
	if !m.ready {
		m.ready = true
		m.add(kit.Ready{})
		held := m.held
		m.held = nil
		for _, e := range held {
			m.dispatch(e)
		}
	}
	m.answerSettled(read)
	m.show()
}

// placeActors makes the actors of sources those that are wanted. One that is not
// wanted any more ends with its last call.
func (m *machine) placeActors(wanted map[string]*messages.SourceSpec) {
	for _, name := range slices.Sorted(maps.Keys(m.running)) {
		if wanted[name] == nil && !m.leaving[name] {
			m.leaving[name] = true
			m.leave(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		delete(m.leaving, name)
		m.stand(name, wanted[name])
	}
}

// leave ends the actor of a source that is to go and has no call.
func (m *machine) leave(name string) {
	if m.leaving[name] && m.figure(name).active <= 0 {
		delete(m.leaving, name)
		m.add(kit.Stop{Who: m.address(name)})
	}
}

// stand makes sure that a source's actor stands and knows its settings.
func (m *machine) stand(name string, spec *messages.SourceSpec) {
	old, ok := m.running[name]
	m.running[name] = spec
	switch {
	case !ok:
		m.add(kit.Spawn{Kind: SourceKind, Name: sourcePrefix + name, Params: spec, Watch: true})
	case !proto.Equal(old, spec):
		m.add(kit.Send{To: m.address(name), Msg: spec})
	}
}

const sourcePrefix = "source/"

func (m *machine) address(name string) *messages.Address {
	return &messages.Address{Node: m.self.GetNode(), Path: m.self.GetPath() + "/" + sourcePrefix + name, Epoch: m.self.GetEpoch()}
}

func (m *machine) show() {
	var names []string
	for _, s := range m.router.Standings(m.now) {
		if s.State != "ready" {
			s.Name += " (" + s.State + ")"
		}
		names = append(names, s.Name)
	}
	m.add(kit.State{Word: "ready", Summary: fmt.Sprintf("%d under way; %s", len(m.requests), strings.Join(names, ", "))})
}

func (m *machine) figure(name string) *figures {
	f := m.figures[name]
	if f == nil {
		f = &figures{}
		m.figures[name] = f
	}
	return f
}

// notice tells the world what became of a source or of a budget.
func (m *machine) notice(code, path, text string) {
	m.add(kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_SYSTEM, Text: text,
		Detail: &messages.AgentEvent_System{System: &messages.SystemNotice{Code: code, Path: path}},
	}})
}

// sourceNotice tells what became of a source: source_cooling, source_broken,
// source_ready, source_waiting.
func (m *machine) sourceNotice(state, source, why string) {
	text := "model source " + source + ": " + state
	if why != "" {
		text += ": " + why
	}
	m.notice("source_"+state, m.address(source).GetPath(), text)
}

// day is the current one in the person's zone.
func (m *machine) day() string { return usage.Day(m.now, m.account.zone) }

package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// Params bound the actor. A zero field means its default.
type Params struct {
	// Waiting is how many sets may wait for the one being written; zero means 64.
	Waiting int
	// Subscriptions is how many subscribers there may be; zero means 1024.
	Subscriptions int
}

// repairAfter is when a subscription whose message was refused is read again.
const repairAfter = time.Second

type machine struct {
	params  Params
	version uint64 // the newest version that was told of
	keys    int
	trouble int // stored or given values that are not in force
	subs    []*subscription
	writing *set
	waiting []*set
	// unknown counts messages that are not in the contract, by type.
	unknown map[string]uint64
}

// set is a ConfigSet on its way.
type set struct {
	ask ask
	msg *messages.ConfigSet
}

// subscription is one subscriber. version is what it was last sent; zero means that its first reading is on the way,
// or that it must be read anew.
type subscription struct {
	who      *messages.Address
	prefixes []string
	version  uint64
	repair   bool
}

// repair is the timer after which a subscription is read again.
type repair struct{ Who *messages.Address }

// New makes the machine of one incarnation.
func New(p Params) kit.Machine {
	if p.Waiting <= 0 {
		p.Waiting = 64
	}
	if p.Subscriptions <= 0 {
		p.Subscriptions = 1024
	}
	return &machine{params: p, unknown: map[string]uint64{}}
}

// Step decides; see the package comment for the contract.
func (m *machine) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch v := e.Msg.(type) {
	case *messages.ConfigList:
		return []kit.Effect{read{Why: reason{Ask: asked(e)}, Prefixes: []string{v.GetPrefix()}}}
	case *messages.ConfigGet:
		return m.get(e, v)
	case *messages.ConfigSet:
		return m.set(e, v)
	case *messages.ConfigSubscribe:
		return m.subscribe(e, v)
	case values:
		return m.read(v)
	case written:
		return m.wrote(v)
	case surveyed:
		return m.surveyed(v)
	case repair:
		return m.repair(v)
	case kit.Started:
		return []kit.Effect{kit.State{Word: "starting"}, survey{}}
	case kit.Ended:
		m.drop(v.Who)
		return []kit.Effect{m.summary()}
	case kit.Fault:
		return m.fault(v)
	case kit.Stopping:
		return m.stopping()
	default:
		return m.unwelcome(v)
	}
}

// unwelcome counts a message that is not in the contract, and logs its type once.
func (m *machine) unwelcome(v any) []kit.Effect {
	name := fmt.Sprintf("%T", v)
	m.unknown[name]++
	if m.unknown[name] > 1 {
		return nil
	}
	return []kit.Effect{kit.Log{Level: kit.Warn, Text: "unknown message", Attrs: []any{"type", name}}}
}

func (m *machine) surveyed(v surveyed) []kit.Effect {
	m.version, m.keys, m.trouble = max(m.version, v.Version), v.Keys, len(v.Problems)
	var effects []kit.Effect
	for _, p := range v.Problems {
		effects = append(effects, kit.Log{
			Level: kit.Warn, Text: "setting not in force",
			Attrs: []any{"key", p.Key, "origin", p.Origin, "code", p.Err.GetCode(), "reason", p.Err.GetMessage(), "hint", p.Err.GetHint()},
		})
	}
	return append(effects, m.summary(), kit.Ready{})
}

func (m *machine) summary() kit.Effect {
	line := fmt.Sprintf("%d keys, version %d, %d subscribers", m.keys, m.version, len(m.subs))
	if m.trouble > 0 {
		line += fmt.Sprintf(", %d settings not in force", m.trouble)
	}
	word := "idle"
	if m.writing != nil {
		word = "writing"
		line += fmt.Sprintf(", %d sets wait", len(m.waiting))
	}
	return kit.State{Word: word, Summary: line}
}

func (m *machine) get(e kit.Event, v *messages.ConfigGet) []kit.Effect {
	if v.GetKey() == "" {
		return []kit.Effect{e.Reply(&messages.ConfigValues{Error: &messages.Error{
			Code: "unknown_key", Message: "no key was named", Hint: "`waiter config list` shows all keys",
		}})}
	}
	return []kit.Effect{read{Why: reason{Ask: asked(e)}, Key: v.GetKey()}}
}

func (m *machine) set(e kit.Event, v *messages.ConfigSet) []kit.Effect {
	switch {
	case len(v.GetEntries()) == 0:
		return refuse(e, &messages.Error{Code: "bad_value", Message: "no key was named", Hint: "name at least one key to set"})
	case len(m.waiting) >= m.params.Waiting:
		return refuse(e, &messages.Error{
			Code: "config_busy", Message: "too many changes of settings wait for the disk", Hint: "try again in a moment", RetryAfterMs: 500,
		})
	}
	m.waiting = append(m.waiting, &set{ask: asked(e), msg: v})
	if m.writing != nil {
		return []kit.Effect{m.summary()}
	}
	return m.next()
}

// Show implements kit.Shower.
func (m *machine) Show() any {
	paths := make([]string, len(m.subs))
	for i, s := range m.subs {
		paths[i] = s.who.GetPath()
	}
	return struct {
		Version     uint64   `json:"version"`
		Keys        int      `json:"keys"`
		NotInForce  int      `json:"not_in_force"`
		SetsWaiting int      `json:"sets_waiting"`
		Subscribers []string `json:"subscribers"`
	}{m.version, m.keys, m.trouble, len(m.waiting), paths}
}

func refuse(e kit.Event, err *messages.Error) []kit.Effect {
	return []kit.Effect{e.Reply(&messages.ConfigSetResult{Error: err})}
}

// next starts the write of the first set that waits, unless one is being written.
func (m *machine) next() []kit.Effect {
	if m.writing != nil || len(m.waiting) == 0 {
		return nil
	}
	m.writing = m.waiting[0]
	m.waiting = slices.Delete(m.waiting, 0, 1)
	return []kit.Effect{
		m.summary(), write{Entries: m.writing.msg.GetEntries(), By: m.writing.msg.GetPrincipal()},
	}
}

// wrote answers the set, tells the subscribers, and goes on with the next one.
func (m *machine) wrote(v written) []kit.Effect {
	done := m.writing
	m.writing = nil
	m.version, m.trouble = max(m.version, v.Version), v.Problems
	effects := m.tell(v)
	result := &messages.ConfigSetResult{Values: v.Shown, Restart: v.Restart, Error: v.Err}
	effects = append(effects, kit.Reply{To: done.ask.To, Corr: done.ask.Corr, Msg: result})
	if next := m.next(); next != nil {
		return append(effects, next...)
	}
	return append(effects, m.summary())
}

// tell sends what changed to those whose prefixes it fits, and publishes its names.
func (m *machine) tell(v written) []kit.Effect {
	if len(v.Changed) == 0 {
		return nil
	}
	var effects []kit.Effect
	for _, s := range m.subs {
		if s.version == 0 || s.version >= v.Version {
			continue // its reading is on the way, or was taken after the change
		}
		s.version = v.Version
		if fit := s.fitting(v.Changed); len(fit) > 0 {
			effects = append(effects, kit.Send{To: s.who, Msg: &messages.ConfigChanged{Values: fit, Version: v.Version}})
		}
	}
	names := make([]string, len(v.Changed))
	for i, value := range v.Changed {
		names[i] = value.GetKey()
	}
	return append(effects, kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_SYSTEM, Text: strings.Join(names, ", "),
		Detail: &messages.AgentEvent_System{System: &messages.SystemNotice{Code: "config_changed", Path: "config"}},
	}})
}

// read hands out what a worker read.
func (m *machine) read(v values) []kit.Effect {
	if !v.Why.Subscribe {
		return []kit.Effect{kit.Reply{
			To: v.Why.Ask.To, Corr: v.Why.Ask.Corr, Msg: &messages.ConfigValues{Values: v.List, Error: v.Err},
		}}
	}
	s := m.find(v.Why.Ask.To)
	if s == nil || !slices.Equal(s.prefixes, v.Prefixes) {
		return nil // it ended, or asked again meanwhile
	}
	if v.Version < m.version {
		// A change was told of while this was read: the subscriber would miss it.
		return []kit.Effect{read{Why: v.Why, Prefixes: s.prefixes}}
	}
	s.version = v.Version
	changed := &messages.ConfigChanged{Values: v.List, Version: v.Version}
	if v.Why.Again {
		return []kit.Effect{kit.Send{To: s.who, Msg: changed}}
	}
	return []kit.Effect{kit.Reply{To: v.Why.Ask.To, Corr: v.Why.Ask.Corr, Msg: changed}}
}

// stopping answers what will not be written. The one being written is finished by its worker; its asker is told that
// the actor is gone.
func (m *machine) stopping() []kit.Effect {
	var effects []kit.Effect
	for _, s := range m.waiting {
		effects = append(effects, kit.Reply{To: s.ask.To, Corr: s.ask.Corr, Msg: &messages.ConfigSetResult{Error: &messages.Error{
			Code: "stopping", Message: "the node stops; nothing was changed", Hint: "set it again when the node is up",
		}}})
	}
	m.waiting = nil
	return effects
}

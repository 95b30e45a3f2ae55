package main

import (
	"strconv"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// The actors around the machines under test. They speak the same messages as the real ones and lose the same when they
// restart; what they must not forget is in outside.

// settings answers for config.
type settings struct {
	values map[string]string // kept by the world
	asked  map[string]kit.Event
	subs   map[string][]string
}

// Step implements kit.Machine.
func (s *settings) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case kit.Started:
		return []kit.Effect{kit.Ready{}}
	case *messages.ConfigSubscribe:
		if e.From == nil {
			return nil
		}
		path := e.From.GetPath()
		s.asked[path], s.subs[path] = e, m.GetPrefixes()
		return []kit.Effect{e.Reply(s.changed(m.GetPrefixes()))}
	case kit.Restarted: // the world's word that a setting changed
		var out []kit.Effect
		for _, path := range sortedKeys(s.asked) {
			out = append(out, kit.Send{To: s.asked[path].From, Corr: s.asked[path].Corr, Msg: s.changed(s.subs[path])})
		}
		return out
	}
	return nil
}

func (s *settings) changed(prefixes []string) *messages.ConfigChanged {
	out := &messages.ConfigChanged{}
	for _, k := range sortedKeys(s.values) {
		for _, p := range prefixes {
			if strings.HasPrefix(k, p) {
				out.Values = append(out.Values, &messages.ConfigValue{Key: k, Value: s.values[k]})
			}
		}
	}
	return out
}

// recall answers for memory: it knows nothing.
type recall struct{}

// Step implements kit.Machine.
func (recall) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch e.Msg.(type) {
	case kit.Started:
		return []kit.Effect{kit.Ready{}}
	case *messages.Recall:
		return []kit.Effect{e.Reply(&messages.RecallResult{None: true})}
	}
	return nil
}

// vendor answers for providers, by the script of the task.
type vendor struct {
	o     *outside
	calls map[string]*speech
	early map[string]bool // cancels that overtook their request
}

// speech is one completion under way.
type speech struct {
	to    *messages.Address
	id    string
	task  string
	n     int // round
	round round
	tools bool
	texts []string // what people said in the request
	said  int
}

type speak struct{ id string }

func newVendor(o *outside) *vendor {
	return &vendor{o: o, calls: map[string]*speech{}, early: map[string]bool{}}
}

// Step implements kit.Machine.
func (v *vendor) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case kit.Started:
		return []kit.Effect{kit.Ready{}}
	case *messages.Complete:
		return v.complete(m)
	case *messages.CancelCompletion:
		if v.calls[m.GetCallId()] == nil {
			v.early[m.GetCallId()] = true
			return nil
		}
		delete(v.calls, m.GetCallId())
		return []kit.Effect{kit.CancelAfter{Key: m.GetCallId()}}
	case speak:
		return v.speak(m.id)
	}
	return nil
}

func (v *vendor) complete(m *messages.Complete) []kit.Effect {
	id, task := m.GetRequest().GetCallId(), m.GetRequest().GetTaskId()
	if v.early[id] {
		delete(v.early, id)
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(id, task+"/"), "/")
	n, _ := strconv.Atoi(parts[0])
	s := &speech{to: m.GetReplyTo(), id: id, task: task, n: n, round: scriptOf(v.o.seed, task).at(n), tools: len(m.GetRequest().GetTools()) > 0}
	for _, msg := range m.GetRequest().GetMessages() {
		if msg.GetRole() == messages.Role_ROLE_USER {
			s.texts = append(s.texts, textOf(msg.GetParts()))
		}
	}
	v.calls[id] = s
	if s.round.silent {
		return []kit.Effect{kit.Send{To: s.to, Msg: &messages.RequestSent{CallId: id, Source: "fake", Model: "fake-1", RequestHash: "h", Attempt: 1}}}
	}
	return []kit.Effect{kit.After{Key: id, D: s.round.first, Msg: speak{id}}}
}

// speak says the next piece.
func (v *vendor) speak(id string) []kit.Effect {
	s := v.calls[id]
	if s == nil {
		return nil
	}
	if s.said == 0 {
		s.said++
		return []kit.Effect{
			kit.Send{To: s.to, Msg: &messages.RequestSent{CallId: id, Source: "fake", Model: "fake-1", RequestHash: "h", Attempt: 1}},
			kit.After{Key: id, D: s.round.gap, Msg: speak{id}},
		}
	}
	if s.said <= s.round.deltas {
		s.said++
		return []kit.Effect{
			kit.Send{To: s.to, Msg: &messages.Delta{CallId: id, Text: "x"}},
			kit.After{Key: id, D: s.round.gap, Msg: speak{id}},
		}
	}
	delete(v.calls, id)
	result := s.round.result(s.task, s.n, s.tools)
	if key := roundKey(s.task, s.n); v.o.over[key] < s.round.over {
		v.o.over[key]++
		result = overflow()
	}
	if result.GetFailure() == nil {
		v.o.answered(s.task, s.texts)
	}
	return []kit.Effect{kit.Send{To: s.to, Msg: &messages.CompletionDone{
		CallId: id, Result: result, Attempts: []*messages.CompletionAttempt{{Source: "fake"}},
	}}}
}

// acts owns the tools that do something.
type acts struct {
	o     *outside
	self  *messages.Address
	tools *messages.Address
	calls map[string]*act // by call id
}

type act struct {
	ask   kit.Event
	call  *messages.ToolInvocation
	deed  deed
	acted bool
}

type (
	takeEffect struct{ id string }
	tell       struct{ id string }
	register   struct{}
)

// Step implements kit.Machine.
func (a *acts) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case kit.Started:
		a.self = m.Self
		return []kit.Effect{kit.Ready{}, a.register()}
	case kit.Restarted, register:
		return []kit.Effect{a.register()}
	case *messages.Error:
		if e.Corr == "tools" {
			return []kit.Effect{kit.After{Key: "tools", D: time.Second, Msg: register{}}}
		}
	case kit.Fault:
		if s, ok := m.Effect.(kit.Send); ok && s.Corr == "tools" {
			return []kit.Effect{kit.After{Key: "tools", D: time.Second, Msg: register{}}}
		}
	case *messages.CallTool:
		return a.call(e, m)
	case *messages.CancelTool:
		return a.cancel(m.GetCallId())
	case takeEffect:
		if c := a.calls[m.id]; c != nil && !c.acted {
			c.acted = true
			a.o.acted(c.call.GetCallId(), c.call.GetName())
		}
	case tell:
		return a.report(m.id)
	}
	return nil
}

func (a *acts) register() kit.Effect {
	return kit.Send{To: a.tools, Corr: "tools", Msg: &messages.RegisterTools{Owner: a.self, Tools: toolDefs()}}
}

func (a *acts) call(e kit.Event, m *messages.CallTool) []kit.Effect {
	id := m.GetCall().GetCallId()
	if a.calls[id] != nil {
		return []kit.Effect{e.Reply(failed(m.GetCall(), "failed"))}
	}
	c := &act{ask: e, call: m.GetCall(), deed: deedOf(a.o.seed, id)}
	a.calls[id] = c
	out := []kit.Effect{kit.After{Key: "act/" + id, D: c.deed.effect, Msg: takeEffect{id}}}
	if !c.deed.hangs {
		out = append(out, kit.After{Key: "end/" + id, D: c.deed.total, Msg: tell{id}})
	}
	return out
}

// cancel ends a call that has not taken effect yet, and says so.
func (a *acts) cancel(id string) []kit.Effect {
	c := a.calls[id]
	if c == nil || c.acted || c.deed.deaf {
		return nil
	}
	delete(a.calls, id)
	return []kit.Effect{kit.CancelAfter{Key: "act/" + id}, kit.CancelAfter{Key: "end/" + id}, c.ask.Reply(failed(c.call, "cancelled"))}
}

func (a *acts) report(id string) []kit.Effect {
	c := a.calls[id]
	if c == nil {
		return nil
	}
	delete(a.calls, id)
	if !c.acted {
		a.o.acted(id, c.call.GetName())
	}
	r := &messages.ToolResult{CallId: id, Name: c.call.GetName(), Content: "done " + id}
	if c.deed.fails {
		r = failed(c.call, "failed")
	}
	return []kit.Effect{kit.CancelAfter{Key: "act/" + id}, c.ask.Reply(r)}
}

func failed(call *messages.ToolInvocation, reason string) *messages.ToolResult {
	return &messages.ToolResult{CallId: call.GetCallId(), Name: call.GetName(), Error: &messages.ToolError{Reason: reason, Detail: "so it is"}}
}

// desk serves the channels and records what reaches people.
type desk struct {
	o        *outside
	self     *messages.Address
	channels *messages.Address
	waiting  map[string]*letter
}

type letter struct {
	ask kit.Event
	msg *messages.SendOutput
}

type deliver struct{ id string }

// Step implements kit.Machine.
func (d *desk) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case kit.Started:
		d.self = m.Self
		return append(d.register(), kit.Ready{})
	case kit.Restarted, register:
		return d.register()
	case kit.Fault:
		if s, ok := m.Effect.(kit.Send); ok && s.Corr == "channel" {
			return []kit.Effect{kit.After{Key: "register", D: time.Second, Msg: register{}}}
		}
	case *messages.Busy, *messages.Error:
		return []kit.Effect{kit.After{Key: "register", D: time.Second, Msg: register{}}}
	case *messages.SendOutput:
		id := m.GetOutput().GetOutputId()
		d.waiting[id] = &letter{e, m}
		rng := chance(d.o.seed, "letter", id, strconv.Itoa(len(d.o.sent[id])))
		wait := time.Duration(rng.IntN(30)) * time.Millisecond
		if rng.IntN(10) == 0 {
			wait = time.Duration(rng.IntN(5000)) * time.Millisecond
		}
		return []kit.Effect{kit.After{Key: id, D: wait, Msg: deliver{id}}}
	case deliver:
		return d.deliver(m.id)
	}
	return nil
}

// deliver hands an output to people, or says that it could not.
func (d *desk) deliver(id string) []kit.Effect {
	l := d.waiting[id]
	delete(d.waiting, id)
	o := l.msg.GetOutput()
	rng := chance(d.o.seed, "deliver", id, strconv.Itoa(len(d.o.sent[id])))
	kind := rng.IntN(25)
	sent := &messages.OutputSent{Receipt: &messages.OutputReceipt{OutputId: id, Receipt: "r"}}
	switch {
	case d.o.down[o.GetChannel()]:
		sent.Error = &messages.Error{Code: "channel_down", Message: "The channel takes nothing now."}
	case kind == 0 && len(d.o.sent[id]) == 0: // it arrived, and the word of it was lost
		d.o.reached(o, l.msg.GetMaybeRepeated())
		sent.Error = &messages.Error{Code: "no_receipt", Message: "It is not known whether it arrived."}
	default:
		d.o.reached(o, l.msg.GetMaybeRepeated())
	}
	return []kit.Effect{l.ask.Reply(sent)}
}

func (d *desk) register() []kit.Effect {
	channel := func(name string, kind messages.ChannelKind, owner *messages.Address) kit.Effect {
		return kit.Send{To: d.channels, Corr: "channel", Msg: &messages.RegisterChannel{
			Name: name, Kind: kind, Owner: owner, Idempotent: idempotent[name], Joint: name == "chat",
		}}
	}
	const asks, waits = messages.ChannelKind_CHANNEL_KIND_ASYNC, messages.ChannelKind_CHANNEL_KIND_INTERACTIVE
	return []kit.Effect{channel("cli", waits, nil), channel("web", waits, d.self), channel("chat", asks, d.self), channel("mail", asks, d.self)}
}

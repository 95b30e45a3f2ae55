package plugins

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
	"homeagent/pluginhost"
)

const (
	// maxCalls of one plugin at the same time.
	maxCalls = 64
	// registerAgain is how long tools is left alone after it did not take a registration.
	registerAgain = time.Second
	// tellAfter is how long changed figures may wait before people see them.
	tellAfter = 500 * time.Millisecond
)

// Params of a proxy.
type Params struct {
	// Info of its plugin.
	Info pluginhost.Info
	// Tools is the registry of tools.
	Tools *messages.Address
}

// call is one call under way.
type call struct {
	job  uint64
	ask  kit.Event
	msg  *messages.CallTool
	def  *messages.ToolDef
	from time.Time
}

type machine struct {
	p       Params
	self    *messages.Address
	values  map[string]string
	known   bool // settings have come
	working bool // a configure or halt is under way
	stale   bool // what is under way is not what is wanted any more
	up      bool // the plugin may hold something
	view    *messages.PluginView
	good    bool // the plugin serves what is offered
	tools   map[string]*messages.ToolDef
	offered []*messages.ToolDef
	calls   map[uint64]*call
	last    uint64
	telling bool
	now     time.Time
	out     []kit.Effect
}

// New makes the machine of one incarnation of a proxy.
func New(p Params) kit.Machine {
	return &machine{p: p, values: map[string]string{}, view: view(p.Info), calls: map[uint64]*call{}}
}

// Step implements kit.Machine.
func (m *machine) Step(now time.Time, e kit.Event) []kit.Effect {
	m.now, m.out = now, nil
	switch msg := e.Msg.(type) {
	case kit.Started:
		m.self = msg.Self
		m.become(messages.PluginState_PLUGIN_STATE_STARTING, nil)
		m.subscribe()
	case *messages.PluginSpec:
		m.subscribe()
		m.register()
	case *messages.ConfigChanged:
		m.onSettings(msg)
	case configured:
		m.onConfigured(msg)
	case halted:
		m.onHalted(msg)
	case *messages.Ok:
		m.onRegistered(e.Corr)
	case *messages.Error:
		m.onRefused(e.Corr, msg)
	case *messages.Busy:
		m.registerLater(e.Corr)
	case again:
		m.register()
	case *messages.CallTool:
		m.onCall(e, msg)
	case *messages.CancelTool:
		m.onCancel(msg)
	case *messages.ListPlugins:
		m.tell()
		m.add(e.Reply(&messages.PluginList{Plugins: []*messages.PluginView{m.view}}))
	case ran:
		m.onRan(msg)
	case tell:
		m.telling = false
		m.tell()
	case kit.Fault:
		if s, ok := msg.Effect.(kit.Send); ok {
			m.registerLater(s.Corr)
		}
	}
	return m.out
}

func (m *machine) add(e ...kit.Effect) { m.out = append(m.out, e...) }

func (m *machine) subscribe() {
	m.add(kit.Send{To: kit.Path(string(kit.FacilityConfig)), Corr: corrConfig, Msg: &messages.ConfigSubscribe{
		Prefixes: []string{configs.PluginPrefix(m.p.Info.Name)},
	}})
}

const (
	corrConfig   = "config"
	corrRegister = "register"
)

// enabled is the person's word; a plugin without the key is on.
func (m *machine) enabled() bool { return m.values[configs.PluginEnabled(m.p.Info.Name)] != "false" }

func (m *machine) onSettings(c *messages.ConfigChanged) {
	changed := !m.known
	m.known = true
	for _, v := range c.GetValues() {
		old, had := m.values[v.GetKey()]
		changed = changed || !had || old != v.GetValue() || v.GetSecret()
		m.values[v.GetKey()] = v.GetValue()
	}
	if changed {
		m.turn()
	}
}

// turn has the plugin brought to where the settings want it; one change at a time.
func (m *machine) turn() {
	switch {
	case !m.known:
	case m.working:
		m.stale = true
	case m.enabled():
		m.working, m.up = true, true
		m.become(messages.PluginState_PLUGIN_STATE_STARTING, nil)
		m.add(configure{Settings: maps.Clone(m.values)})
	case m.up:
		m.working = true
		m.withdraw()
		m.endAll("The plugin " + m.p.Info.Name + " was turned off.")
		m.add(halt{})
	default:
		m.withdraw()
		m.become(messages.PluginState_PLUGIN_STATE_DISABLED, nil)
	}
}

// done goes on when something under way has ended; true when it is not what is wanted any more.
func (m *machine) done() bool {
	m.working = false
	if !m.stale {
		return false
	}
	m.stale = false
	m.turn()
	return true
}

func (m *machine) onConfigured(c configured) {
	if m.done() {
		return
	}
	if c.Err != nil {
		m.withdraw()
		m.become(messages.PluginState_PLUGIN_STATE_BROKEN, errBroken(m.p.Info.Name, c.Err))
		m.add(kit.Log{Level: kit.Warn, Text: "plugin cannot come up", Attrs: []any{"error", c.Err.Error()}})
		return
	}
	m.offered, m.good = c.Tools, true
	m.tools = make(map[string]*messages.ToolDef, len(c.Tools))
	for _, d := range c.Tools {
		m.tools[d.GetName()] = d
	}
	m.register()
}

func (m *machine) onHalted(h halted) {
	m.up = false
	if h.Err != nil {
		m.add(kit.Log{Level: kit.Warn, Text: "plugin did not stop well", Attrs: []any{"error", h.Err.Error()}})
	}
	if !m.done() {
		m.become(messages.PluginState_PLUGIN_STATE_DISABLED, nil)
	}
}

// register offers what the plugin serves now; nothing, when it is down.
func (m *machine) register() {
	if m.p.Tools == nil || !m.known {
		return
	}
	m.add(kit.Send{To: m.p.Tools, Corr: corrRegister, Msg: &messages.RegisterTools{Owner: m.self, Tools: m.offered}})
}

// withdraw takes the tools back.
func (m *machine) withdraw() {
	m.good = false
	if len(m.offered) == 0 {
		return
	}
	m.offered, m.tools = nil, nil
	m.register()
}

func (m *machine) onRegistered(corr string) {
	if corr == corrRegister && m.good && !m.working {
		m.become(messages.PluginState_PLUGIN_STATE_RUNNING, nil)
	}
}

func (m *machine) onRefused(corr string, err *messages.Error) {
	switch corr {
	case corrRegister:
		if err.GetCode() == kit.CodeGone || err.GetCode() == kit.CodeStopping {
			m.registerLater(corr)
			return
		}
		m.offered, m.tools, m.good = nil, nil, false
		m.become(messages.PluginState_PLUGIN_STATE_BROKEN, err)
	case corrConfig:
		m.become(messages.PluginState_PLUGIN_STATE_BROKEN, err)
	}
}

func (m *machine) registerLater(corr string) {
	if corr == corrRegister {
		m.add(kit.After{Key: corrRegister, D: registerAgain, Msg: again{}})
	}
}

// become changes the phase and tells of it.
func (m *machine) become(s messages.PluginState, problem *messages.Error) {
	v := proto.CloneOf(m.view)
	if v.GetState() != s || v.GetSinceUs() == 0 {
		v.SinceUs = m.now.UnixMicro()
	}
	v.State, v.Problem, v.Tools = s, problem, slices.Sorted(maps.Keys(m.tools))
	m.view = v
	m.tell()
}

// tell shows people and the root how the plugin is.
func (m *machine) tell() {
	v := proto.CloneOf(m.view)
	v.Running = int32(len(m.calls))
	m.view = v
	text := fmt.Sprintf("%d tools, %d calls, %d failed, %d under way", len(v.GetTools()), v.GetCalls(), v.GetFailed(), v.GetRunning())
	if v.GetProblem() != nil {
		text = v.GetProblem().GetMessage()
	}
	m.add(
		kit.State{Word: stateWord(v.GetState()), Summary: text},
		kit.Send{To: &messages.Address{Node: m.self.GetNode(), Path: Kind, Epoch: m.self.GetEpoch()}, Msg: v},
	)
}

func (m *machine) tellSoon() {
	if !m.telling {
		m.telling = true
		m.add(kit.After{Key: "tell", D: tellAfter, Msg: tell{}})
	}
}

func (m *machine) onCall(e kit.Event, c *messages.CallTool) {
	k := &call{ask: e, msg: c, def: m.tools[c.GetCall().GetName()], from: m.now}
	switch {
	case k.def == nil:
		m.answer(k, pluginhost.Failed(pluginhost.ReasonFailed, "", "The plugin "+m.p.Info.Name+" is "+stateWord(m.view.GetState())+" and has no such tool now.", ""))
		return
	case len(m.calls) >= maxCalls:
		m.answer(k, pluginhost.Failed(pluginhost.ReasonFailed, "", "The plugin "+m.p.Info.Name+" has too much to do.", "Try again later."))
		return
	}
	var limit time.Duration
	if us := c.GetDeadlineUs(); us > 0 {
		if limit = time.UnixMicro(us).Sub(m.now); limit <= 0 {
			m.answer(k, pluginhost.Failed(pluginhost.ReasonTimeout, "", "The time of the call is over; it was not run.", ""))
			return
		}
	}
	m.last++
	k.job = m.last
	m.calls[k.job] = k
	m.tellSoon()
	m.add(run{Job: k.job, Call: c, Limit: limit})
}

func (m *machine) onRan(r ran) {
	k := m.calls[r.Job]
	if k == nil {
		return
	}
	delete(m.calls, r.Job)
	if r.Result == nil {
		r.Result = pluginhost.Failed(pluginhost.ReasonFailed, "", "The tool gave no result.", "")
	}
	m.answer(k, r.Result)
}

// answer gives a call its one result.
func (m *machine) answer(k *call, r *messages.ToolResult) {
	r.CallId, r.Name, r.TookMs = k.msg.GetCall().GetCallId(), k.msg.GetCall().GetName(), m.now.Sub(k.from).Milliseconds()
	v := proto.CloneOf(m.view)
	v.Calls++
	if r.GetError() != nil {
		v.Failed++
	}
	m.view = v
	m.tellSoon()
	m.add(k.ask.Reply(r))
}

// under lists calls in the order in which they came.
func (m *machine) under(which func(*call) bool) []*call {
	var out []*call
	for _, k := range m.calls {
		if which(k) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *call) int { return cmp.Compare(a.job, b.job) })
	return out
}

func (m *machine) onCancel(c *messages.CancelTool) {
	for _, k := range m.under(func(k *call) bool { return k.msg.GetCall().GetCallId() == c.GetCallId() }) {
		m.end(k, "The call was cancelled: "+c.GetReason()+".")
	}
}

// endAll ends the calls under way.
func (m *machine) endAll(why string) {
	for _, k := range m.under(func(*call) bool { return true }) {
		m.end(k, why)
	}
}

// end cuts a call. What it has done by then stands.
func (m *machine) end(k *call, why string) {
	delete(m.calls, k.job)
	m.add(kit.CancelWork{Key: workKey(k.job)})
	if e := k.def.GetEffect(); e == messages.ToolEffect_TOOL_EFFECT_PURE || e == messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT {
		m.answer(k, pluginhost.Failed(pluginhost.ReasonCancelled, "", why, ""))
		return
	}
	m.answer(k, pluginhost.Failed(pluginhost.ReasonUnknown, "", why+" It may have taken effect, or not.", "Find out whether it did before you call it again."))
}

// Show implements kit.Shower.
func (m *machine) Show() any {
	calls := []map[string]any{}
	for _, k := range m.under(func(*call) bool { return true }) {
		calls = append(calls, map[string]any{"call_id": k.msg.GetCall().GetCallId(), "tool": k.def.GetName(), "since": k.from.UTC().Format(time.RFC3339)})
	}
	out := map[string]any{
		"kind": m.p.Info.Kind, "description": m.p.Info.Description, "state": stateWord(m.view.GetState()), "tools": m.view.GetTools(),
		"calls": m.view.GetCalls(), "failed": m.view.GetFailed(), "running": calls,
	}
	if p := m.view.GetProblem(); p != nil {
		out["problem"] = p.GetMessage()
	}
	return out
}

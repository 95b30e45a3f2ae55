package tools

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// entry is one registered tool.
type entry struct {
	def    *messages.ToolDef
	owner  *messages.Address // nil: tools itself
	schema *jsonschema.Schema
	serve  serve // for tools itself
}

// machine is the state of the tools actor.
type machine struct {
	p        Params
	values   kit.Values
	now      time.Time
	out      []kit.Effect
	entries  map[string]*entry
	sorted   []*entry                     // by name
	owners   map[string]*messages.Address // by path
	calls    map[string]*call             // by correlation with the owner
	last     uint64
	detached map[string]*detached // by handle
	figures  map[string]*figures
	unknown  map[string]bool
	absent   map[string]bool // owners that have not registered since the start
	early    []early         // who asked for the list before they have
}

// figures count the calls of one tool since the process started.
type figures struct {
	Calls  uint64 `json:"calls"`
	Failed uint64 `json:"failed"`
}

// New makes the machine of one incarnation.
func New(p Params) kit.Machine {
	m := &machine{
		p: p.withDefaults(), entries: map[string]*entry{}, owners: map[string]*messages.Address{},
		calls: map[string]*call{}, detached: map[string]*detached{}, figures: map[string]*figures{}, unknown: map[string]bool{},
	}
	for _, e := range coreTools() {
		m.entries[e.def.GetName()] = e
	}
	m.sort()
	return m
}

// Step implements kit.Machine.
func (m *machine) Step(now time.Time, e kit.Event) []kit.Effect {
	m.now, m.out = now, nil
	switch msg := e.Msg.(type) {
	case kit.Started:
		m.add(m.state(), kit.Ready{}, m.subscribe())
		m.expect()
	case kit.Restarted:
		m.add(m.subscribe())
	case kit.Stopping:
		m.onStopping()
	case *messages.ConfigChanged:
		m.values.Take(msg)
	case kit.Ended:
		m.onEnded(msg)
	case kit.Fault:
		m.onFault(msg)
	case *messages.RegisterTools:
		m.onRegister(e, msg)
	case *messages.ListTools:
		m.onList(e, msg)
	case *messages.CallTool:
		m.onCall(e, msg)
	case settled:
		m.onSettled()
	case *messages.CancelTool:
		m.onCancel(msg)
	case *messages.DetachCall:
		m.onDetach(msg)
	case *messages.ToolResult:
		m.onResult(e.Corr, msg)
	case *messages.SubmitResult:
		m.onRefused(e.Corr, msg.GetError())
	case *messages.Error:
		m.onRefused(e.Corr, msg)
	case *messages.Busy:
		m.onRefused(e.Corr, &messages.Error{Code: kit.CodeBusy, Message: "The tool's owner is too busy.", Hint: "Try again later.", RetryAfterMs: noticeAgain.Milliseconds()})
	case enough:
		m.onEnough(msg.call)
	case notice:
		m.sendNotice(msg.handle)
	case late:
		m.onLate(msg)
	default:
		m.onUnknown(e.Msg)
	}
	return m.out
}

// settled ends the time in which owners are waited for.
type settled struct{}

// early is a question for the list that came before the owners were there.
type early struct {
	ask   kit.Event
	agent string
}

// expect begins to wait for the owners whose tools a node always has.
func (m *machine) expect() {
	if len(m.p.Owners) == 0 {
		return
	}
	m.absent = map[string]bool{}
	for _, path := range m.p.Owners {
		m.absent[path] = true
	}
	m.add(kit.After{Key: "owners", D: ownersWait, Msg: settled{}})
}

// onList tells what an agent may use, once the owners are there.
func (m *machine) onList(e kit.Event, msg *messages.ListTools) {
	if len(m.absent) > 0 && len(m.early) < maxEarly {
		m.early = append(m.early, early{e, msg.GetAgent()})
		return
	}
	m.add(e.Reply(m.list(msg.GetAgent())))
}

// came notes that an owner has registered.
func (m *machine) came(path string) {
	if !m.absent[path] {
		return
	}
	if delete(m.absent, path); len(m.absent) == 0 {
		m.add(kit.CancelAfter{Key: "owners"})
		m.onSettled()
	}
}

// onSettled answers what was asked before the owners were there, in order.
func (m *machine) onSettled() {
	if len(m.absent) > 0 {
		m.add(kit.Log{Level: kit.Warn, Text: "owners of tools have not registered", Attrs: []any{"owners", slices.Sorted(maps.Keys(m.absent))}})
	}
	for _, q := range m.early {
		m.add(q.ask.Reply(m.list(q.agent)))
	}
	m.absent, m.early = nil, nil
}

// toolTimeouts begins the keys with a person's word for the time of one tool.
var toolTimeouts, _, _ = strings.Cut(configs.KeyToolsTimeout, "<")

func (m *machine) subscribe() kit.Send {
	return m.values.Subscribe(configs.KeyAgentToolTimeout, toolTimeouts, configs.KeyToolsDenied)
}

// limit is the time of a call: a person's word for this tool, else the tool's own, else the node's.
func (m *machine) limit(t *messages.ToolDef) time.Duration {
	limit := m.values.Duration(configs.KeyAgentToolTimeout, m.p.Timeout)
	if ms := t.GetTimeoutMs(); ms > 0 {
		limit = time.Duration(ms) * time.Millisecond
	}
	return m.values.Duration(toolTimeouts+t.GetName(), limit)
}

func (m *machine) add(e ...kit.Effect) { m.out = append(m.out, e...) }

func (m *machine) state() kit.State {
	return kit.State{Word: "ready", Summary: fmt.Sprintf("%d tools of %d owners", len(m.entries), len(m.owners)+1)}
}

func (m *machine) onUnknown(msg any) {
	name := fmt.Sprintf("%T", msg)
	if m.unknown[name] {
		return
	}
	m.unknown[name] = true
	m.add(kit.Log{Level: kit.Warn, Text: "unknown message", Attrs: []any{"type", name}})
}

// onRegister replaces the list of an owner, or leaves all as it was.
func (m *machine) onRegister(e kit.Event, r *messages.RegisterTools) {
	owner := r.GetOwner()
	if owner.GetPath() == "" {
		owner = e.From
	}
	fresh, err := m.admit(owner, r.GetTools())
	if err != nil {
		m.add(kit.Log{Level: kit.Warn, Text: "tools refused", Attrs: []any{
			"owner", owner.GetPath(), "code", err.GetCode(), "error", err.GetMessage(),
		}}, e.Reply(err))
		return
	}
	m.remove(owner.GetPath())
	old := m.owners[owner.GetPath()]
	delete(m.owners, owner.GetPath())
	if len(fresh) > 0 {
		m.owners[owner.GetPath()] = owner
		if old.GetEpoch() != owner.GetEpoch() || old == nil {
			m.add(kit.Watch{Who: owner})
		}
	} else if old != nil {
		m.add(kit.Unwatch{Who: old})
	}
	maps.Copy(m.entries, fresh)
	m.sort()
	m.add(m.state(), e.Reply(&messages.Ok{}))
	m.came(owner.GetPath())
}

// toolName is what every vendor takes as the name of a tool.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// admit checks the list of an owner.
func (m *machine) admit(owner *messages.Address, defs []*messages.ToolDef) (map[string]*entry, *messages.Error) {
	if owner.GetPath() == "" {
		return nil, errBadTool("", errors.New("it has no owner"))
	}
	fresh := make(map[string]*entry, len(defs))
	for _, d := range defs {
		name := d.GetName()
		if !toolName.MatchString(name) {
			return nil, errBadTool(name, errors.New("a name has 1 to 64 letters, digits, underscores and hyphens"))
		}
		if old := m.entries[name]; old != nil && old.owner.GetPath() != owner.GetPath() {
			return nil, errToolExists(name, ownerName(old), owner.GetPath())
		}
		if fresh[name] != nil {
			return nil, errToolExists(name, owner.GetPath(), owner.GetPath())
		}
		s, err := compile(d.GetParametersJson())
		if err != nil {
			return nil, errBadTool(name, err)
		}
		fresh[name] = &entry{def: d, owner: owner, schema: s}
	}
	return fresh, nil
}

func ownerName(e *entry) string {
	if e.owner == nil {
		return "the node itself"
	}
	return e.owner.GetPath()
}

// remove takes an owner's tools away; its running calls go on.
func (m *machine) remove(path string) {
	maps.DeleteFunc(m.entries, func(_ string, e *entry) bool { return e.owner != nil && e.owner.GetPath() == path })
}

func (m *machine) sort() {
	m.sorted = slices.SortedFunc(maps.Values(m.entries), func(a, b *entry) int {
		return strings.Compare(a.def.GetName(), b.def.GetName())
	})
}

// list is what an agent may use.
func (m *machine) list(agent string) *messages.ToolList {
	l := &messages.ToolList{}
	denied := m.values.List(configs.KeyToolsDenied)
	for _, e := range m.sorted {
		if visible(e.def, agent) && !configs.Covers(denied, e.def.GetName()) {
			l.Tools = append(l.Tools, m.timed(e.def))
		}
	}
	return l
}

// timed is the definition with the time that a call has here.
func (m *machine) timed(d *messages.ToolDef) *messages.ToolDef {
	ms := m.limit(d).Milliseconds()
	if ms == d.GetTimeoutMs() {
		return d
	}
	d = proto.CloneOf(d)
	d.TimeoutMs = ms
	return d
}

// visible is the one rule about who may use a tool, for the list and for calls alike.
func visible(d *messages.ToolDef, agent string) bool {
	resident := strings.Contains(agent, "/")
	switch {
	case d.GetAgent() != "" && d.GetAgent() != agent:
		return false
	case d.GetMainOnly():
		return !resident
	case d.GetResidentOnly():
		return resident
	default:
		return true
	}
}

// onEnded takes the tools of an owner that is gone away and ends its calls.
func (m *machine) onEnded(e kit.Ended) {
	path := e.Who.GetPath()
	old := m.owners[path]
	if old == nil || old.GetEpoch() != e.Who.GetEpoch() && old.GetEpoch() != 0 && e.Who.GetEpoch() != 0 {
		return // of an earlier boot
	}
	delete(m.owners, path)
	m.remove(path)
	m.sort()
	for _, c := range m.running(func(c *call) bool { return c.owner.GetPath() == path }) {
		m.onGone(c)
	}
	m.add(m.state())
}

// Show implements kit.Shower.
func (m *machine) Show() any {
	type shown struct {
		Name     string `json:"name"`
		Owner    string `json:"owner"`
		Provider string `json:"provider,omitempty"`
		*figures
	}
	tools := []shown{}
	for _, e := range m.sorted {
		f := m.figures[e.def.GetName()]
		if f == nil {
			f = &figures{}
		}
		tools = append(tools, shown{e.def.GetName(), ownerName(e), e.def.GetProvider(), f})
	}
	return map[string]any{"tools": tools, "running": len(m.calls), "detached": len(m.detached)}
}

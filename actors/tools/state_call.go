package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// call is one call that is with its owner.
type call struct {
	ask       kit.Event // who waits
	number    uint64
	corr      string // with the owner
	id        string
	name      string
	effect    messages.ToolEffect
	owner     *messages.Address
	from      time.Time
	limit     time.Duration
	full      time.Duration // its own time, whatever the turn's deadline
	msg       *messages.CallTool
	cancelled bool
	detached  bool // goes on under a handle; who asked was answered
}

type late struct{ corr string }

// onCall checks a call and hands it on, or answers it.
func (m *machine) onCall(e kit.Event, c *messages.CallTool) {
	inv := c.GetCall()
	t := m.entries[inv.GetName()]
	switch {
	case t == nil || !visible(t.def, c.GetAgent()):
		m.refuse(e, inv, m.notFound(inv.GetName(), c.GetAgent()))
		return
	case inv.GetDenied() != "":
		m.refuse(e, inv, &messages.ToolError{Reason: reasonDenied, Detail: inv.GetDenied()})
		return
	case configs.Covers(m.values.List(configs.KeyToolsDenied), inv.GetName()):
		m.refuse(e, inv, &messages.ToolError{Reason: reasonDenied, Detail: "The tool " + inv.GetName() + " is denied on this node (core.tools.denied)."})
		return
	case inv.GetInvalid() != "":
		m.refuse(e, inv, &messages.ToolError{
			Reason: reasonType, Detail: "The arguments are not usable: " + inv.GetInvalid() + ".",
			Hint: "Send the whole arguments as one JSON object.",
		})
		return
	}
	args, fault := check(t.schema, inv.GetArgumentsJson())
	if fault != nil {
		m.refuse(e, inv, fault)
		return
	}
	if t.serve != nil {
		t.serve(m, e, c, args)
		return
	}
	m.handOn(e, t, c, args)
}

// handOn sends a call to its owner, with the time it has.
func (m *machine) handOn(e kit.Event, t *entry, c *messages.CallTool, args []byte) {
	full := m.limit(t.def)
	limit := full
	if us := c.GetDeadlineUs(); us > 0 {
		limit = min(limit, time.UnixMicro(us).Sub(m.now))
	}
	if limit <= 0 {
		m.refuse(e, c.GetCall(), &messages.ToolError{Reason: reasonTimeout, Detail: "The time of the turn is over; the call was not run."})
		return
	}
	m.last++
	k := &call{
		ask: kit.Event{From: e.From, Corr: e.Corr}, number: m.last, corr: "call/" + strconv.FormatUint(m.last, 10),
		id: c.GetCall().GetCallId(), name: c.GetCall().GetName(), effect: t.def.GetEffect(), owner: t.owner,
		from: m.now, limit: limit, full: full, msg: c,
	}
	m.calls[k.corr] = k
	c = proto.CloneOf(c)
	c.Call.ArgumentsJson = args
	c.DeadlineUs = m.now.Add(limit).UnixMicro()
	if t.def.GetOnPreempt() == messages.OnPreempt_ON_PREEMPT_DETACH {
		c.DeadlineUs = m.now.Add(full).UnixMicro() // it may outlive the turn, who does not want it is cancelled
	}
	m.add(kit.Send{To: k.owner, Corr: k.corr, Msg: c}, kit.After{Key: k.corr, D: limit, Msg: late{k.corr}})
}

// notFound says what is near to a name that the agent has no tool for.
func (m *machine) notFound(name, agent string) *messages.ToolError {
	var names []string
	for _, d := range m.list(agent).GetTools() {
		names = append(names, d.GetName())
	}
	hint := "The tools that came with this request are all there are."
	if near := configs.Nearest(name, names, 3); len(near) > 0 {
		hint = "Nearest: " + strings.Join(near, ", ") + ". " + hint
	}
	return &messages.ToolError{Reason: reasonNotFound, Detail: fmt.Sprintf("There is no tool %q.", name), Hint: hint}
}

// refuse answers a call that does not run.
func (m *machine) refuse(e kit.Event, inv *messages.ToolInvocation, err *messages.ToolError) {
	m.answer(e, inv.GetName(), &messages.ToolResult{
		CallId: inv.GetCallId(), Name: inv.GetName(), Error: err, Taint: messages.Taint_TAINT_TRUSTED,
	})
}

func (m *machine) answer(e kit.Event, name string, r *messages.ToolResult) {
	m.count(name, r)
	m.add(e.Reply(r))
}

func (m *machine) count(name string, r *messages.ToolResult) {
	if m.entries[name] != nil { // names that models make up are not counted
		f := m.figures[name]
		if f == nil {
			f = &figures{}
			m.figures[name] = f
		}
		f.Calls++
		if r.GetError() != nil {
			f.Failed++
		}
	}
}

// running lists calls in the order in which they came.
func (m *machine) running(which func(*call) bool) []*call {
	var out []*call
	for _, c := range m.calls {
		if which(c) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *call) int { return cmp.Compare(a.number, b.number) })
	return out
}

// end gives a call its one result.
func (m *machine) end(c *call, r *messages.ToolResult) {
	delete(m.calls, c.corr)
	m.add(kit.CancelAfter{Key: c.corr})
	r.CallId, r.Name = c.id, c.name
	if r.GetTookMs() == 0 {
		r.TookMs = m.now.Sub(c.from).Milliseconds()
	}
	if c.detached {
		m.keep(c, r)
		return
	}
	m.answer(c.ask, c.name, r)
}

func (m *machine) fail(c *call, reason, detail, hint string) {
	m.end(c, &messages.ToolResult{
		Error: &messages.ToolError{Reason: reason, Detail: detail, Hint: hint}, Taint: messages.Taint_TAINT_TRUSTED,
	})
}

// onResult is the owner's word.
func (m *machine) onResult(corr string, r *messages.ToolResult) {
	c := m.calls[corr]
	if c == nil {
		return
	}
	m.end(c, normal(r, m.p.ResultCap))
}

// onRefused is an owner that could not take a call, or what channels said to a notice.
func (m *machine) onRefused(corr string, err *messages.Error) {
	if handle, ok := strings.CutPrefix(corr, corrNotice); ok {
		m.onNotice(handle, err, false)
		return
	}
	if c := m.calls[corr]; c != nil {
		m.fail(c, reasonFailed, err.GetMessage(), err.GetHint())
	}
}

// onFault is a call that could not be handed on: its owner is gone or full.
func (m *machine) onFault(f kit.Fault) {
	if s, ok := f.Effect.(kit.Send); ok && m.calls[s.Corr] != nil {
		m.onRefused(s.Corr, f.Err)
		return
	}
	if s, ok := f.Effect.(kit.Send); ok {
		if handle, ok := strings.CutPrefix(s.Corr, corrNotice); ok {
			m.onNotice(handle, f.Err, true)
			return
		}
	}
	m.add(kit.Log{Level: kit.Warn, Text: "effect failed", Attrs: []any{"code", f.Err.GetCode(), "error", f.Err.GetMessage()}})
}

// repeatable tells whether running a call twice does no harm.
func (c *call) repeatable() bool {
	return c.effect == messages.ToolEffect_TOOL_EFFECT_PURE || c.effect == messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT
}

// onGone is a call whose owner has ended.
func (m *machine) onGone(c *call) {
	if c.repeatable() {
		m.fail(c, reasonFailed, "The tool's owner ended while the call ran.", "Call it again later; running it twice does no harm.")
		return
	}
	m.fail(c, reasonUnknown, "The tool's owner ended while the call ran; it may have taken effect, or not.",
		"Find out whether it did before you call it again.")
}

// onCancel hands a cancel on. The owner answers the call; if it does not, the call is ended a little later.
func (m *machine) onCancel(x *messages.CancelTool) {
	for _, c := range m.running(func(c *call) bool { return c.id == x.GetCallId() && !c.cancelled }) {
		c.cancelled = true
		m.add(kit.Send{To: c.owner, Msg: x}, kit.After{Key: c.corr, D: cancelGrace, Msg: late{c.corr}})
	}
	m.cancelWait(x.GetCallId())
}

// onLate ends a call whose time is over.
func (m *machine) onLate(l late) {
	c := m.calls[l.corr]
	if c == nil {
		return
	}
	if c.cancelled {
		reason := reasonCancelled
		if !c.repeatable() {
			reason = reasonUnknown // a turn makes a cancelled call again
		}
		m.fail(c, reason, "The call was cancelled and its owner did not confirm it; it may have taken effect.", "")
		return
	}
	m.add(kit.Send{To: c.owner, Msg: &messages.CancelTool{CallId: c.id, Reason: reasonTimeout}})
	m.fail(c, reasonTimeout, fmt.Sprintf("No result within %v; it may have taken effect.", c.limit),
		"Find out whether it did, or ask for less at once.")
}

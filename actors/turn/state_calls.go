package turn

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// callGrace is how much longer than its own time a call is waited for: tools ends it at its time and says so.
const callGrace = 10 * time.Second

type callLate struct{ corr string }

// maxLimit is the longest time of a call; none may be configured to take longer.
const maxLimit = 24 * time.Hour

// callTime is the time that a call has by its definition.
func (m *machine) callTime(c *call) time.Duration {
	switch ms := c.def.GetTimeoutMs(); {
	case ms <= 0:
		return m.set.Call
	case ms >= maxLimit.Milliseconds():
		return maxLimit
	default:
		return time.Duration(ms) * time.Millisecond
	}
}

func (m *machine) callLimit(c *call) time.Duration { return m.callTime(c) + callGrace }

// onCallLate gives up a call that tools has not ended in time.
func (m *machine) onCallLate(l callLate) {
	c := m.batch.running(l.corr)
	if c == nil {
		return
	}
	m.add(kit.Send{To: m.deps.Tools, Msg: &messages.CancelTool{CallId: c.inv.GetCallId(), Reason: "timeout"}})
	m.onToolResult(l.corr, failedCall(c.inv, "timeout", &messages.Error{
		Message: fmt.Sprintf("No answer within %v. It may have taken effect, or not.", m.callLimit(c)),
	}))
}

// onToolResult takes the result of the run under way; any other is late. It is kept while the turn is suspended.
func (m *machine) onToolResult(corr string, r *messages.ToolResult) {
	c := m.batch.running(corr)
	if c == nil {
		return
	}
	m.add(kit.CancelAfter{Key: "call/" + corr})
	switch {
	case c.cut && r.GetError().GetReason() == "cancelled":
		m.onCut(c, r)
	case c.detached && r.GetContent() == handleOf(c):
		m.settleDetached(c, ownResult(c.inv, r))
	default:
		m.settle(c, ownResult(c.inv, r))
	}
	if !m.suspended && m.preempt == nil && m.question.corr == "" {
		m.pump()
	}
}

// onCut makes a call that a preemption has cancelled again when the turn goes on, unless it may not run twice and may have
// taken effect.
func (m *machine) onCut(c *call, r *messages.ToolResult) {
	if c.effect() != messages.ToolEffect_TOOL_EFFECT_ONCE || r.GetError().GetNoEffect() {
		c.state = ready
		return
	}
	m.settle(c, failedCall(c.inv, "unknown_outcome", &messages.Error{
		Message: "The call was cancelled while it ran, because something more urgent came. It may have taken effect, or not.",
		Hint:    "Find out whether it did before you call it again.",
	}))
}

// handleOf is what tools answers for a call that goes on under a handle, its id.
func handleOf(c *call) string {
	text, err := json.Marshal(struct {
		Handle string `json:"handle"`
		State  string `json:"state"`
	}{c.inv.GetCallId(), "running"})
	if err != nil {
		panic(err) // strings always encode
	}
	return string(text)
}

// settleDetached gives a call that goes on by itself the handle as its result.
func (m *machine) settleDetached(c *call, r *messages.ToolResult) {
	m.finishCall(c, r,
		&messages.JournalEntry{
			Kind: messages.JournalKind_JOURNAL_KIND_DETACHED, Attempt: 1, Round: int32(m.round), Call: c.inv,
		}, m.resultEntry(r))
}

// ownResult makes sure that a result bears the ids of its call.
func ownResult(inv *messages.ToolInvocation, r *messages.ToolResult) *messages.ToolResult {
	if r.GetCallId() == inv.GetCallId() && r.GetName() == inv.GetName() {
		return r
	}
	r = proto.CloneOf(r)
	r.CallId, r.Name = inv.GetCallId(), inv.GetName()
	return r
}

// settle gives a call its result, in the journal and to people.
func (m *machine) settle(c *call, r *messages.ToolResult) { m.finishCall(c, r, m.resultEntry(r)) }

func (m *machine) finishCall(c *call, r *messages.ToolResult, entries ...*messages.JournalEntry) {
	c.state, c.result = done, r
	m.read(r.GetTaint())
	m.journal(entries...)
	m.publishCall(c)
}

func (m *machine) resultEntry(r *messages.ToolResult) *messages.JournalEntry {
	return &messages.JournalEntry{
		Kind: messages.JournalKind_JOURNAL_KIND_TOOL_RESULT, Attempt: 1, Round: int32(m.round), Result: r,
	}
}

func (m *machine) publishCall(c *call) {
	m.publish(&messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_TOOL_CALL, Text: c.inv.GetName(),
		Detail: &messages.AgentEvent_Tool{Tool: &messages.ToolChange{
			Call: c.inv, Result: c.result, Parallel: m.batch.parallel,
		}},
	})
}

// cutCalls does with the running calls what a preemption does by their definition: it cancels them, lets them go on under
// a handle, or leaves them to finish.
func (m *machine) cutCalls() {
	for _, c := range m.batch.calls {
		if c.state != running || c.cut || c.detached {
			continue
		}
		switch c.def.GetOnPreempt() {
		case messages.OnPreempt_ON_PREEMPT_CANCEL:
			c.cut = true
			m.add(kit.Send{To: m.deps.Tools, Msg: &messages.CancelTool{CallId: c.inv.GetCallId(), Reason: "preempt"}})
		case messages.OnPreempt_ON_PREEMPT_DETACH:
			c.detached = true
			m.add(kit.Send{To: m.deps.Tools, Msg: &messages.DetachCall{CallId: c.inv.GetCallId()}})
		case messages.OnPreempt_ON_PREEMPT_UNSPECIFIED, messages.OnPreempt_ON_PREEMPT_FINISH:
		}
	}
}

// cutWork ends everything that works for the turn: the completion and the running calls, but for those that were let go
// before.
func (m *machine) cutWork(reason string) {
	m.cutModel(reason)
	for _, c := range m.batch.calls {
		if c.state == running && !c.detached {
			m.add(kit.Send{To: m.deps.Tools, Msg: &messages.CancelTool{CallId: c.inv.GetCallId(), Reason: reason}})
		}
	}
}

// cutModel cancels the completion under way; what it still sends is late.
func (m *machine) cutModel(reason string) {
	if m.model.id == "" {
		return
	}
	m.add(kit.Send{To: m.deps.Providers, Msg: &messages.CancelCompletion{CallId: m.model.id, Reason: reason}})
	m.add(kit.CancelAfter{Key: "silence"})
	m.model = stream{}
}

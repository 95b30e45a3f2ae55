package turn

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// callGrace is how much longer than its own time a call is waited for: tools ends it at its time and says so.
const callGrace = 10 * time.Second

type callLate struct{ corr string }

func (m *machine) callLimit(c *call) time.Duration {
	if ms := c.def.GetTimeoutMs(); ms > 0 {
		return time.Duration(ms)*time.Millisecond + callGrace
	}
	return m.set.Call + callGrace
}

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
	if c.cut && r.GetError().GetReason() == "cancelled" {
		c.state = ready // made again when the turn goes on
	} else {
		m.settle(c, ownResult(c.inv, r))
	}
	if !m.suspended && m.preempt == nil && m.question.corr == "" {
		m.pump()
	}
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
func (m *machine) settle(c *call, r *messages.ToolResult) {
	c.state, c.result = done, r
	m.read(r.GetTaint())
	m.journal(&messages.JournalEntry{
		Kind: messages.JournalKind_JOURNAL_KIND_TOOL_RESULT, Attempt: 1, Round: int32(m.round), Result: r,
	})
	m.publishCall(c)
}

func (m *machine) publishCall(c *call) {
	m.publish(&messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_TOOL_CALL, Text: c.inv.GetName(),
		Detail: &messages.AgentEvent_Tool{Tool: &messages.ToolChange{
			Call: c.inv, Result: c.result, Parallel: m.batch.parallel,
		}},
	})
}

// cutCalls cancels the running calls that a preemption may cancel; they are made again on resume.
func (m *machine) cutCalls() {
	for _, c := range m.batch.calls {
		if c.state == running && c.def.GetOnPreempt() == messages.OnPreempt_ON_PREEMPT_CANCEL {
			c.cut = true
			m.add(kit.Send{To: m.deps.Tools, Msg: &messages.CancelTool{CallId: c.inv.GetCallId(), Reason: "preempt"}})
		}
	}
}

// cutWork ends everything that works for the turn: the completion and the running calls, but for those that go on by
// themselves.
func (m *machine) cutWork(reason string) {
	m.cutModel(reason)
	for _, c := range m.batch.calls {
		if c.state == running && c.def.GetOnPreempt() != messages.OnPreempt_ON_PREEMPT_DETACH {
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

package guard

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// onAsk serves a request, or keeps it until the changes that it depends on are on disk; then it is served anew, and finds
// what it has changed itself.
func (m *machine) onAsk(e kit.Event) {
	switch {
	case m.ready && m.serve(e):
	case len(m.later) >= maxLater:
		m.add(e.Reply(&messages.Busy{Depth: maxLater}))
	default:
		m.later = append(m.later, e)
	}
}

func (m *machine) serve(e kit.Event) (served bool) {
	switch msg := e.Msg.(type) {
	case *messages.CheckCalls:
		return m.check(e, msg)
	case *messages.DecideApproval:
		return m.decide(e, msg)
	case *messages.ReleaseApprovals:
		return m.release(e, msg)
	case *messages.AddToken:
		return m.addToken(e, msg.GetToken())
	case *messages.RemoveToken:
		return m.removeToken(e, msg.GetName())
	case *messages.ListTokens:
		m.add(e.Reply(m.listTokens()))
		return true
	}
	panic(fmt.Sprintf("guard: %T is no request", e.Msg))
}

// rerun serves what has waited, in order.
func (m *machine) rerun() {
	later := m.later
	m.later = nil
	for _, e := range later {
		m.onAsk(e)
	}
}

// check answers when it can be answered about every call.
func (m *machine) check(e kit.Event, c *messages.CheckCalls) bool {
	answer := &messages.CallVerdicts{}
	for i, call := range c.GetCalls() {
		def := &messages.ToolDef{}
		if i < len(c.GetDefs()) {
			def = c.GetDefs()[i]
		}
		if v := m.verdict(c, call, def); v != nil {
			v.CallId = call.GetCallId()
			answer.Verdicts = append(answer.Verdicts, v)
		}
	}
	if len(answer.GetVerdicts()) < len(c.GetCalls()) {
		return false
	}
	m.add(e.Reply(answer))
	return true
}

func denied(reason string) *messages.CallVerdict {
	return &messages.CallVerdict{Verdict: messages.Verdict_VERDICT_DENY, Reason: reason}
}

// verdict is the answer about one call; nil while it waits for the disk.
func (m *machine) verdict(c *messages.CheckCalls, call *messages.ToolInvocation, def *messages.ToolDef) *messages.CallVerdict {
	r := rule(&m.values, c, call, def)
	q := question(c, call, def, r.reason, m.now, m.values.Duration(configs.KeyGuardExpiry, defaultExpiry))
	keep := ""
	if r.verdict == messages.Verdict_VERDICT_ASK {
		keep = q.GetApprovalId()
	}
	if m.supersede(call.GetCallId(), keep) {
		return nil
	}
	if r.verdict == messages.Verdict_VERDICT_DENY {
		return denied(r.reason)
	}
	x := m.entries[q.GetApprovalId()]
	switch {
	case x != nil && (x.a.GetHash() != q.GetHash() || x.a.GetCall().GetCallId() != call.GetCallId()):
		return denied("The call is not the one that was asked about.")
	case x != nil && x.busy:
		return nil
	case x != nil:
		if v := m.standing(x); v != nil || x.busy {
			return v
		}
	}
	if r.verdict == messages.Verdict_VERDICT_ALLOW {
		return &messages.CallVerdict{Verdict: r.verdict}
	}
	return m.put(q)
}

// standing is the answer that an approval gives; nil when the call is to be asked about anew, or its expiry has just
// begun to be written.
func (m *machine) standing(x *entry) *messages.CallVerdict {
	switch x.a.GetState() {
	case messages.ApprovalState_APPROVAL_STATE_PENDING:
		if m.expire(x) {
			return nil
		}
		return &messages.CallVerdict{
			Verdict: messages.Verdict_VERDICT_ASK, Reason: x.a.GetReason(), ApprovalId: x.a.GetApprovalId(),
		}
	case messages.ApprovalState_APPROVAL_STATE_ALLOWED:
		return &messages.CallVerdict{Verdict: messages.Verdict_VERDICT_ALLOW}
	case messages.ApprovalState_APPROVAL_STATE_DENIED:
		return denied("A person has denied this call." + said(x.a.GetNote()))
	case messages.ApprovalState_APPROVAL_STATE_EXPIRED:
		return denied("Nobody has decided about this call in time.")
	case messages.ApprovalState_APPROVAL_STATE_RELEASED:
		if x.a.GetReleasedFor() != releasedEnded {
			return nil
		}
		return denied(taskEnded)
	default:
		return denied("What was asked about this call is not known any more.")
	}
}

const taskEnded = "The task has ended; its calls do not run any more."

func said(note string) string {
	if note == "" {
		return ""
	}
	return fmt.Sprintf(" They say: %q", note)
}

// supersede releases what still waits for other contents of a call, and reports whether that is under way.
func (m *machine) supersede(call, keep string) (waits bool) {
	why := releasedChanged
	if keep == "" {
		why = releasedPolicy
	}
	for _, id := range m.calls[call] {
		x := m.entries[id]
		if id == keep || !pending(x.a) {
			continue
		}
		if !x.busy {
			m.releaseOne(x, why)
		}
		waits = true
	}
	return waits
}

// put asks a person about a call, unless too many wait already.
func (m *machine) put(q *messages.Approval) *messages.CallVerdict {
	limit := m.values.Int(configs.KeyGuardLimit, defaultLimit)
	waiting := int64(0)
	for _, x := range m.waiting {
		if x.a.GetAgent() == q.GetAgent() {
			waiting++
		}
	}
	switch {
	case slices.Contains(m.released, q.GetTaskId()):
		return denied(taskEnded)
	case proto.Size(q) > maxCall:
		return denied(fmt.Sprintf("The call needs a person's word and is too large to be shown to one: more than %d KiB. Do it in smaller pieces.", maxCall>>10))
	case waiting >= limit:
		return denied(fmt.Sprintf("The call needs a person's word, and as many of this agent as may (%s) wait for one already.", configs.KeyGuardLimit))
	}
	if m.entries[q.GetApprovalId()] == nil {
		m.keep(q)
	}
	m.change(q.GetApprovalId(), q)
	return nil
}

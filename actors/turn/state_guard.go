package turn

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// Whom the turn works for and what it has read decide together with the definitions what its calls may do. Guard is asked
// about each group of calls before any of it starts; what it does not answer does not run.

// askedGuard names the question to guard.
const askedGuard = "guard"

// askGuard asks about the calls of a group that before_toolcall has let pass; false when there is none.
func (m *machine) askGuard(g []*call) bool {
	c := m.checkCalls()
	for _, k := range g {
		if k.state != cleared {
			continue
		}
		if k.def == nil { // it does not run: tools says what there is instead
			k.state = allowed
			k.inv = notThere(k.inv)
			continue
		}
		c.Calls = append(c.Calls, k.inv)
		c.Defs = append(c.Defs, k.def)
	}
	if len(c.GetCalls()) == 0 {
		return false
	}
	m.ask(askedGuard, m.deps.Guard, c, m.set.Ask)
	return true
}

// notThere makes sure that a call of a tool that was not there when guard was asked does not run, though it may be there
// by now.
func notThere(inv *messages.ToolInvocation) *messages.ToolInvocation {
	inv = proto.CloneOf(inv)
	inv.Denied = "There was no tool of this name when the call was looked at. Ask for it again if it is there now."
	return inv
}

func (m *machine) checkCalls() *messages.CheckCalls {
	return &messages.CheckCalls{
		TaskId: m.task(), Agent: m.agent(), Principals: m.principals(), Channel: m.input.GetChannel(),
		Conversation: m.input.GetConversation(), Taint: m.taint,
	}
}

// onVerdicts takes guard's word about the calls of the group under way.
func (m *machine) onVerdicts(v *messages.CallVerdicts) {
	verdicts := make(map[string]*messages.CallVerdict, len(v.GetVerdicts()))
	for _, one := range v.GetVerdicts() {
		verdicts[one.GetCallId()] = one
	}
	for _, c := range m.group() {
		if c.state == cleared {
			m.judge(c, verdicts[c.inv.GetCallId()])
		}
	}
	m.batch.step = stepRun
	m.become(inTools)
}

// judge lets a call run, wait for a person, or not run. Whatever is not said to be allowed is denied.
func (m *machine) judge(c *call, v *messages.CallVerdict) {
	switch {
	case v.GetVerdict() == messages.Verdict_VERDICT_ALLOW:
		c.state = allowed
	case v.GetVerdict() == messages.Verdict_VERDICT_ASK && v.GetApprovalId() != "":
		c.state, c.approval = waiting, v.GetApprovalId()
		m.batch.asked = true
	case v == nil:
		m.refuse(c, "Whether this call may run was not answered.")
	default:
		m.refuse(c, v.GetReason())
	}
}

// onGuardFailed denies what could not be checked.
func (m *machine) onGuardFailed(err *messages.Error) {
	m.publishError(err)
	for _, c := range m.group() {
		if c.state == cleared {
			m.refuse(c, "Whether this call may run could not be checked: "+err.GetMessage())
		}
	}
	m.batch.step = stepRun
	m.become(inTools)
}

// refuse settles a call that may not run. One that had been started before may have taken effect.
func (m *machine) refuse(c *call, reason string) {
	if c.begun {
		m.settle(c, failedCall(c.inv, "unknown_outcome", &messages.Error{
			Message: "The call was interrupted and may not be made again: " + reason + " It may have taken effect, or not.",
			Hint:    "Find out whether it did.",
		}))
		return
	}
	m.settle(c, failedCall(c.inv, "denied", &messages.Error{
		Message: reason, Hint: "Do not call it again in this turn; say what you could not do.",
	}))
}

// withdraw tells guard that nobody waits any more for what it asked about these calls.
func (m *machine) withdraw(calls []*call) {
	c := m.checkCalls()
	for _, k := range calls {
		if k.def == nil {
			continue
		}
		inv := proto.CloneOf(k.inv)
		inv.Denied = skipped
		c.Calls = append(c.Calls, inv)
		c.Defs = append(c.Defs, k.def)
	}
	if len(c.GetCalls()) > 0 {
		m.add(kit.Send{To: m.deps.Guard, Corr: "withdraw", Msg: c})
	}
}

// recheck has what has not started, or is to be made again, looked at anew: people may have decided meanwhile.
func (m *machine) recheck() {
	m.defs = nil // tools may have come and gone too
	b := &m.batch
	if b.groups == nil || b.at >= len(b.groups) || b.step != stepRun {
		return
	}
	for _, c := range b.groups[b.at] {
		if c.state == waiting || c.state == allowed || c.state == ready {
			c.state = cleared
			b.step = stepCheck
		}
	}
}

// park journals that the turn waits for people. When that is on disk the turn leaves.
func (m *machine) park() {
	e := &messages.JournalEntry{Kind: messages.JournalKind_JOURNAL_KIND_PARKED, Attempt: int32(m.attempt), Round: int32(m.round)}
	for _, c := range m.group() {
		if c.state == waiting {
			e.Approvals = append(e.Approvals, c.approval)
		}
	}
	m.batch.parking = e.GetApprovals()
	m.write(e)
}

// onParkWritten ends the actor: a new turn goes on from the journal. What joined in the last moment is answered first.
func (m *machine) onParkWritten() {
	approvals, until := m.batch.parking, m.until
	m.batch.parking, m.until = nil, 0
	if m.steerWaits() {
		if m.phase == completing {
			m.become(prompting)
			return
		}
		m.become(inTools)
		return
	}
	m.phase, m.suspended, m.preempt = ended, false, nil
	m.add(kit.State{Word: "parked", Summary: m.summary()})
	m.toScheduler(&messages.Parked{TaskId: m.task(), Generation: m.start.GetGeneration(), Approvals: approvals, UntilUs: until})
	m.add(kit.Stop{Who: m.self})
}

// release tells guard that a turn that ends has no more use for what it asked.
func (m *machine) release() {
	if slices.ContainsFunc(m.batch.calls, func(c *call) bool { return c.state == waiting }) {
		m.add(kit.Send{To: m.deps.Guard, Msg: &messages.ReleaseApprovals{TaskIds: []string{m.task()}}})
	}
}

// principals is everybody whose words the turn works on, the one of its input first: it has only the rights that all of
// them have.
func (m *machine) principals() []*messages.Principal {
	var out []*messages.Principal
	add := func(p *messages.Principal) {
		same := func(q *messages.Principal) bool { return q.GetId() == p.GetId() && q.GetKind() == p.GetKind() }
		if p == nil {
			p = &messages.Principal{} // nobody is a stranger
		}
		if !slices.ContainsFunc(out, same) {
			out = append(out, p)
		}
	}
	of := func(in *messages.Input) {
		add(in.GetPrincipal())
		for _, p := range in.GetOnBehalf() {
			add(p)
		}
	}
	of(m.input)
	for _, s := range m.steers {
		if s.joined {
			of(s.input)
		}
	}
	if p := m.start.GetAgent().GetPrincipal(); p != nil && strings.Contains(m.agent(), "/") {
		add(p)
	}
	return out
}

// read notes the taint of something that the turn has read.
func (m *machine) read(t messages.Taint) { m.taint = worse(m.taint, t) }

// readPrefix notes what the prefix of the prompt is made of.
func (m *machine) readPrefix() {
	for _, e := range m.window {
		m.read(e.GetTaint())
		for _, b := range e.GetBlocks() {
			m.read(b.GetTaint())
		}
	}
	for _, it := range m.recalled.GetItems() {
		m.read(it.GetTaint())
	}
}

// worse is the taint of a text made of two. What is not said counts as foreign.
func worse(a, b messages.Taint) messages.Taint {
	rank := func(t messages.Taint) int {
		switch t {
		case messages.Taint_TAINT_TRUSTED:
			return 0
		case messages.Taint_TAINT_MODEL:
			return 1
		case messages.Taint_TAINT_RECALLED:
			return 2
		case messages.Taint_TAINT_UNSPECIFIED, messages.Taint_TAINT_FOREIGN:
		}
		return 3
	}
	if rank(b) > rank(a) {
		a = b
	}
	if rank(a) == 3 {
		return messages.Taint_TAINT_FOREIGN
	}
	return a
}

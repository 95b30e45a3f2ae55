package turn

import (
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// A batch is the calls of one round, cut into groups that run one after the other: a single group when all calls may
// run at the same time, else one group for each call. Each group goes through before_toolcall, guard, its run and
// after_toolcall before the next one begins.

type step int

const (
	stepBefore step = iota
	stepCheck
	stepRun
	stepAfter
)

type callState int

const (
	fresh    callState = iota // nothing is decided
	cleared                   // before_toolcall has let it pass; guard is to be asked
	waiting                   // a person is to be asked
	allowed                   // may start
	starting                  // its start is being journaled
	ready                     // may be sent
	running                   // sent
	done                      // has its result
	lost                      // started by an earlier process, without a result
)

// call is one call of a batch.
type call struct {
	inv   *messages.ToolInvocation
	def   *messages.ToolDef // nil: no such tool
	state callState
	corr  string // of the run under way
	runs  int
	cut   bool // cancelled by a preemption

	detached bool // a preemption let it go on by itself; its handle is to come

	begun  bool // its start is in the journal
	result *messages.ToolResult

	approval string // what it waits for
}

type batch struct {
	calls    []*call
	groups   [][]*call // nil: the definitions are not known yet
	at       int
	step     step
	parallel bool
	asked    bool     // guard may have asked people about its calls
	decided  bool     // people have decided about some of its calls
	parking  []string // the approvals of a parking under way
}

func newBatch(invs []*messages.ToolInvocation) batch {
	b := batch{calls: make([]*call, len(invs))}
	for i, inv := range invs {
		b.calls[i] = &call{inv: inv}
	}
	return b
}

// running is the call whose run has this correlation, or nil.
func (b *batch) running(corr string) *call {
	for _, c := range b.calls {
		if c.state == running && c.corr == corr {
			return c
		}
	}
	return nil
}

// stateWords are the states of a call for people, in their order.
var stateWords = [...]string{"fresh", "cleared", "waiting", "allowed", "starting", "ready", "running", "done", "lost"}

func (m *machine) showCalls() []map[string]any {
	out := []map[string]any{}
	for _, c := range m.batch.calls {
		shown := map[string]any{"tool": c.inv.GetName(), "call_id": c.inv.GetCallId(), "state": stateWords[c.state]}
		if c.state == running {
			shown["limit_s"] = m.callTime(c).Seconds()
		}
		if c.state == waiting {
			shown["approval"] = c.approval
		}
		out = append(out, shown)
	}
	return out
}

func (c *call) effect() messages.ToolEffect {
	if c.def == nil {
		return messages.ToolEffect_TOOL_EFFECT_PURE // tools refuses it
	}
	if c.def.GetEffect() == messages.ToolEffect_TOOL_EFFECT_UNSPECIFIED {
		return messages.ToolEffect_TOOL_EFFECT_ONCE
	}
	return c.def.GetEffect()
}

// becomeTools goes on with the batch from where it is.
func (m *machine) becomeTools() {
	if m.defs == nil {
		m.askTools()
		return
	}
	for _, c := range m.batch.calls {
		c.def = m.defs[c.inv.GetName()]
	}
	if m.batch.groups == nil {
		m.split()
	}
	m.pump()
}

// group is the calls that are under way.
func (m *machine) group() []*call { return m.batch.groups[m.batch.at] }

// split cuts the batch into groups and finds the place that an earlier process had reached.
func (m *machine) split() {
	b := &m.batch
	b.parallel = mayRunTogether(b.calls)
	if b.parallel {
		b.groups = [][]*call{b.calls}
	} else {
		b.groups = oneByOne(b.calls)
	}
	for i, g := range b.groups {
		if slices.ContainsFunc(g, func(c *call) bool { return c.state != fresh }) {
			b.at, b.step = i, stepCheck
			if slices.ContainsFunc(g, func(c *call) bool { return c.state == fresh }) {
				b.step = stepBefore
			}
		}
	}
	for _, c := range b.calls {
		if c.state == lost {
			m.settleLost(c)
		}
	}
}

func oneByOne(calls []*call) [][]*call {
	out := make([][]*call, len(calls))
	for i, c := range calls {
		out[i] = []*call{c}
	}
	return out
}

// mayRunTogether tells whether all calls of a batch may run at the same time: each of them is declared so, and no two
// send to one channel.
func mayRunTogether(calls []*call) bool {
	channels := map[string]bool{}
	for _, c := range calls {
		if !c.def.GetParallelSafe() {
			return false
		}
		if ch, sends := c.sendsTo(); sends {
			if channels[ch] || channels[""] || ch == "" && len(channels) > 0 {
				return false
			}
			channels[ch] = true
		}
	}
	return len(calls) > 1
}

// sendsTo is the channel that a call sends to; an empty one may be any.
func (c *call) sendsTo() (string, bool) {
	if ch := c.def.GetSendsTo(); ch != "" {
		return ch, true
	}
	name := c.def.GetChannelArgument()
	if name == "" {
		return "", false
	}
	var args map[string]json.RawMessage
	var ch string
	if json.Unmarshal(c.inv.GetArgumentsJson(), &args) == nil {
		_ = json.Unmarshal(args[name], &ch) // anything else than a text names no channel
	}
	return ch, true
}

// settleLost decides about a call that an earlier process started and whose result nobody knows.
func (m *machine) settleLost(c *call) {
	if c.def != nil && c.effect() != messages.ToolEffect_TOOL_EFFECT_ONCE {
		c.state = cleared
		return
	}
	m.settle(c, failedCall(c.inv, "unknown_outcome", &messages.Error{
		Message: "The node was restarted while this call ran. It may have taken effect, or not.",
		Hint:    "Find out whether it did before you call it again.",
	}))
}

// pump does what can be done with the batch now.
func (m *machine) pump() {
	b := &m.batch
	for b.at < len(b.groups) {
		if m.steerWaits() {
			m.skipRest()
		}
		g := m.group()
		switch b.step {
		case stepBefore:
			if m.askBefore(g) {
				return
			}
			b.step = stepCheck
		case stepCheck:
			if m.askGuard(g) {
				return
			}
			b.step = stepRun
		case stepRun:
			if m.startCalls(g) || anyIs(g, running) {
				return
			}
			if anyIs(g, waiting) {
				m.park()
				return
			}
			b.step = stepAfter
		case stepAfter:
			m.askAfter(g)
			return
		}
	}
	m.batchDone()
}

func anyIs(g []*call, s callState) bool {
	return slices.ContainsFunc(g, func(c *call) bool { return c.state == s })
}

// askBefore settles the calls that must not run and asks before_toolcall about the rest; false when there is none.
func (m *machine) askBefore(g []*call) bool {
	var invs []*messages.ToolInvocation
	for _, c := range g {
		if c.state != fresh {
			continue
		}
		if c.inv.GetInvalid() != "" {
			m.settle(c, invalidCall(c.inv))
			continue
		}
		invs = append(invs, c.inv)
	}
	if len(invs) == 0 {
		return false
	}
	m.runStage(messages.Stage_STAGE_BEFORE_TOOLCALL, &messages.StageContext{
		ModelText: m.response.GetText(), Calls: invs, Results: m.results(),
	})
	return true
}

// skipped is what the model and guard are told of a call that new input came before.
const skipped = "Not run: new input came before this call had started."

// skipRest settles the calls that have not started because new input has come.
func (m *machine) skipRest() {
	var left []*call
	for _, c := range m.batch.calls {
		switch c.state {
		case fresh, cleared, waiting, allowed:
			if c.begun && c.state != waiting {
				continue // it goes on where it was
			}
			left = append(left, c)
			if c.begun { // parking for it would leave the new input without an answer
				m.refuse(c, "New input came before a person had allowed it again.")
				continue
			}
			m.settle(c, failedCall(c.inv, "cancelled", &messages.Error{
				Message: skipped, Hint: "Call it again if it is still wanted.",
			}))
		case starting, ready, running, done, lost:
		}
	}
	if m.batch.asked {
		m.withdraw(left)
	}
}

func invalidCall(inv *messages.ToolInvocation) *messages.ToolResult {
	detail := "The arguments are not a JSON object; the call was not run."
	if inv.GetInvalid() == "truncated" {
		detail = "The arguments were cut off; the call was not run."
	}
	return failedCall(inv, "type", &messages.Error{
		Message: detail, Hint: "Send the whole arguments as one JSON object.",
	})
}

func (m *machine) results() []*messages.ToolResult {
	var out []*messages.ToolResult
	for _, c := range m.batch.calls {
		if c.result != nil {
			out = append(out, c.result)
		}
	}
	return out
}

func (m *machine) askAfter(g []*call) {
	c := &messages.StageContext{ModelText: m.response.GetText()}
	for _, k := range g {
		c.Calls = append(c.Calls, k.inv)
		c.Results = append(c.Results, k.result)
	}
	m.runStage(messages.Stage_STAGE_AFTER_TOOLCALL, c)
}

func (m *machine) onToolStage(s messages.Stage, c *messages.StageContext) {
	b := &m.batch
	g := m.group()
	if s == messages.Stage_STAGE_BEFORE_TOOLCALL {
		for _, k := range g {
			m.clear(k, c.GetCalls())
		}
		b.step = stepCheck
		if b.parallel && !mayRunTogether(g) { // a handler has redirected one
			b.parallel, b.groups = false, oneByOne(g)
		}
	} else {
		for _, k := range g {
			m.amend(k, c.GetResults())
		}
		b.at, b.step = b.at+1, stepBefore
	}
	m.become(inTools)
}

// clear takes what before_toolcall made of a call.
func (m *machine) clear(k *call, calls []*messages.ToolInvocation) {
	if k.state != fresh {
		return
	}
	for _, inv := range calls {
		if inv.GetCallId() == k.inv.GetCallId() {
			k.inv = inv
		}
	}
	if k.inv.GetDenied() != "" {
		m.settle(k, failedCall(k.inv, "denied", &messages.Error{
			Message: k.inv.GetDenied(), Hint: "Do not call it again in this turn; say what you could not do.",
		}))
		return
	}
	k.state = cleared
}

// amend takes what after_toolcall made of a result.
func (m *machine) amend(k *call, results []*messages.ToolResult) {
	for _, r := range results {
		if r.GetCallId() == k.inv.GetCallId() && !proto.Equal(r, k.result) {
			k.result = r
			m.read(r.GetTaint())
			m.journal(&messages.JournalEntry{
				Kind: messages.JournalKind_JOURNAL_KIND_TOOL_RESULT, Attempt: 2, Round: int32(m.round), Result: r,
			})
		}
	}
}

// startCalls journals the starts of a group, and sends what may be sent. It reports whether it waits for the journal:
// a call that may not run twice leaves only when its start is on disk.
func (m *machine) startCalls(g []*call) bool {
	var entries []*messages.JournalEntry
	sync := false
	for _, c := range g {
		if c.state != allowed {
			continue
		}
		if c.begun { // made again
			c.state = ready
			continue
		}
		sync = sync || c.effect() != messages.ToolEffect_TOOL_EFFECT_PURE
		c.state, c.begun = starting, true
		entries = append(entries, &messages.JournalEntry{
			Kind: messages.JournalKind_JOURNAL_KIND_TOOL_STARTED, Attempt: 1, Round: int32(m.round), Call: c.inv,
		})
	}
	if sync {
		m.write(entries...)
		return true
	}
	for _, e := range entries {
		m.journal(e)
	}
	m.onStartsWritten()
	for _, c := range g {
		if c.state == ready {
			m.sendCall(c)
		}
	}
	return false
}

// onStartsWritten lets the calls go whose start is in the journal.
func (m *machine) onStartsWritten() {
	for _, c := range m.batch.calls {
		if c.state == starting {
			c.state = ready
		}
	}
}

// batchDone puts the round into the tail and makes the next one.
func (m *machine) batchDone() {
	m.tail = append(m.tail, assistantMessage(m.response))
	for _, c := range m.batch.calls {
		m.tail = append(m.tail, resultMessage(c.inv, c.result))
	}
	if m.batch.deadEnd() {
		m.becomeToolless("tools_denied")
	}
	m.nextRound()
}

// deadEnd tells whether nothing of a batch was let run. What a person has denied is no dead end: they may have said what to
// do instead.
func (b *batch) deadEnd() bool {
	for _, c := range b.calls {
		if c.begun || c.result.GetError().GetReason() != "denied" {
			return false
		}
	}
	return len(b.calls) > 0 && !b.decided
}

// sendCall sends one run of a call.
func (m *machine) sendCall(c *call) {
	c.runs++
	c.state, c.cut, c.detached = running, false, false
	c.corr = fmt.Sprintf("%s#%d", c.inv.GetCallId(), c.runs)
	m.noteUsed(c.inv.GetName())
	m.publishCall(c)
	m.add(kit.Send{To: m.deps.Tools, Corr: c.corr, Msg: &messages.CallTool{
		Call: c.inv, TaskId: m.task(), Agent: m.agent(), Principal: m.input.GetPrincipal(),
		Channel: m.input.GetChannel(), Conversation: m.input.GetConversation(),
		DeadlineUs: m.start.GetDeadlineUs(), PersonWaits: m.input.GetPersonWaits(),
		Principals: m.principals(), Taint: m.taint,
	}})
	m.add(kit.After{Key: "call/" + c.corr, D: m.callLimit(c), Msg: callLate{c.corr}})
}

func (m *machine) noteUsed(name string) {
	if !slices.Contains(m.used, name) {
		m.used = append(m.used, name)
	}
}

package turn

import (
	"homeagent/messages"
)

// past is what the journal of an earlier process holds.
type past struct {
	input     *messages.Input // as on_input left it; nil: the turn had not begun
	rounds    []*pastRound
	steers    []steer
	committed *messages.JournalEntry
	sent      bool
	suspended bool
}

// pastRound is one model round of the journal.
type pastRound struct {
	n         int
	attempts  int
	response  *messages.CompletionResult // as post_action left it; nil: none came
	responses int
	taint     messages.Taint // of what the model had read
	parked    bool
	started   map[string]*messages.ToolInvocation
	results   map[string]*messages.ToolResult
}

// replay reads a journal in order. Entries of a kind it does not know are from a newer process and change nothing.
func replay(entries []*messages.JournalEntry) past {
	var p past
	for _, e := range entries {
		switch e.GetKind() {
		case messages.JournalKind_JOURNAL_KIND_STARTED:
			p.input = e.GetInput()
		case messages.JournalKind_JOURNAL_KIND_REQUEST:
			r := p.round(int(e.GetRound()))
			r.attempts = max(r.attempts, int(e.GetAttempt()))
		case messages.JournalKind_JOURNAL_KIND_RESPONSE:
			r := p.round(int(e.GetRound()))
			r.attempts = max(r.attempts, int(e.GetAttempt()))
			r.response = e.GetResponse()
			r.taint = e.GetTaint()
			r.responses++
		case messages.JournalKind_JOURNAL_KIND_TOOL_STARTED:
			p.round(int(e.GetRound())).started[e.GetCall().GetCallId()] = e.GetCall()
		case messages.JournalKind_JOURNAL_KIND_TOOL_RESULT:
			p.round(int(e.GetRound())).results[e.GetResult().GetCallId()] = e.GetResult()
		case messages.JournalKind_JOURNAL_KIND_STEERED:
			p.steers = append(p.steers, steer{input: e.GetInput(), round: int(e.GetRound())})
		case messages.JournalKind_JOURNAL_KIND_COMMITTED:
			if e.GetAttempt() > 1 {
				p.sent = true
			} else {
				p.committed = e
			}
		case messages.JournalKind_JOURNAL_KIND_SENT:
			p.sent = true
		case messages.JournalKind_JOURNAL_KIND_SUSPENDED:
			p.suspended = true
		case messages.JournalKind_JOURNAL_KIND_PARKED:
			p.round(int(e.GetRound())).parked = true
			p.suspended = false
		case messages.JournalKind_JOURNAL_KIND_RESUMED:
			p.suspended = false
			p.rejoin()
		default: // detached says what its result says; no entry is written without a kind
		}
	}
	return p
}

// rejoin lets waiting inputs join the round that is made again after a resume.
func (p *past) rejoin() {
	n := len(p.rounds)
	if n == 0 || p.rounds[n-1].response != nil {
		return
	}
	for i := range p.steers {
		if p.steers[i].round == p.rounds[n-1].n+1 {
			p.steers[i].round--
		}
	}
}

func (p *past) round(n int) *pastRound {
	if k := len(p.rounds); k > 0 && p.rounds[k-1].n == n {
		return p.rounds[k-1]
	}
	r := &pastRound{
		n: n, started: map[string]*messages.ToolInvocation{}, results: map[string]*messages.ToolResult{},
	}
	p.rounds = append(p.rounds, r)
	return r
}

// recover goes on from the journal, or begins when there is none.
func (m *machine) recover() {
	p := replay(m.start.GetTask().GetJournal())
	if p.input != nil {
		m.input = p.input
	}
	m.read(m.input.GetTaint())
	m.steers = p.steers
	for i, r := range p.rounds {
		m.restoreRound(r, i == len(p.rounds)-1)
	}
	if p.suspended && p.committed == nil {
		m.noteResumed()
	}
	switch {
	case p.committed != nil:
		m.restoreCommit(&p)
	case p.input == nil:
		m.become(onInput)
	case m.response == nil:
		m.become(recalling)
	case len(m.batch.calls) > 0:
		m.become(inTools)
	default:
		m.become(postAction)
	}
}

// restoreRound takes a round of the journal as done, or, for the last one, as the one to go on with.
func (m *machine) restoreRound(r *pastRound, last bool) {
	m.round, m.attempt = r.n, r.attempts
	m.capRounds()
	if r.response == nil {
		return
	}
	m.joinUntil(r.n)
	m.sawSteers()
	m.read(r.taint)
	m.count(r.response.GetUsage())
	m.response = r.response
	calls := r.response.GetCalls()
	if m.toolless {
		calls = nil
	}
	b := newBatch(calls)
	b.asked, b.decided = true, r.parked // whether guard was asked before it had answered is not known
	for _, c := range b.calls {
		m.restoreCall(c, r)
	}
	if last {
		if len(r.started)+len(r.results) > 0 || r.parked {
			m.batch = b
		}
		return
	}
	m.closeRound(b)
}

func (m *machine) restoreCall(c *call, r *pastRound) {
	id := c.inv.GetCallId()
	if inv := r.started[id]; inv != nil {
		c.inv, c.begun, c.state = inv, true, lost
		m.noteUsed(inv.GetName())
	}
	if res := r.results[id]; res != nil {
		c.result, c.state = res, done
		m.read(res.GetTaint())
	}
}

// closeRound puts a finished round of the journal into the tail.
func (m *machine) closeRound(b batch) {
	m.tail = append(m.tail, assistantMessage(m.response))
	for _, c := range b.calls {
		if c.result == nil {
			c.result = failedCall(c.inv, "unknown_outcome", &messages.Error{Message: "The result of this call is not known."})
		}
		m.tail = append(m.tail, resultMessage(c.inv, c.result))
	}
	switch {
	case b.deadEnd():
		m.becomeToolless("tools_denied")
	case len(b.calls) > 0:
	case m.response.GetFinish() == messages.Finish_FINISH_PAUSE:
		m.said += answerText(m.response)
	default:
		m.said = joinSaid(m.said, answerText(m.response))
	}
	m.response = nil
}

// joinUntil puts the inputs that had joined by a round into the tail.
func (m *machine) joinUntil(round int) {
	for i := range m.steers {
		if s := &m.steers[i]; !s.joined && s.round <= round {
			s.joined = true
			m.read(s.input.GetTaint())
			m.tail = append(m.tail, steerMessage(s.input))
		}
	}
}

// restoreCommit goes on with an answer that is on disk. An output that is not known as sent may have been sent.
func (m *machine) restoreCommit(p *past) {
	m.text = p.committed.GetText()
	m.output = m.intent(p.committed.GetAtUs())
	m.repeated = true
	if m.toolless {
		m.reason = m.limit
	}
	if m.output == nil || p.sent {
		m.become(afterOutput)
		return
	}
	m.become(sending)
}

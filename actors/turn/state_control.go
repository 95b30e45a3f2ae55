package turn

import (
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// steer is an input that joined the turn.
type steer struct {
	input  *messages.Input
	round  int  // the first round whose request holds it
	joined bool // it is in the tail
	seen   bool // the model answered a request that held it
}

// onPreempt suspends the turn at once where that loses nothing that cannot be made again, else at the next phase.
func (m *machine) onPreempt(p *messages.Preempt) {
	if p.GetGeneration() != m.start.GetGeneration() || m.preempt != nil {
		return
	}
	if m.suspended {
		m.toScheduler(m.suspendedMessage())
		return
	}
	m.preempt = p
	switch m.phase {
	case recalling, prompting:
		m.forget()
		m.suspend()
	case completing:
		if m.until != 0 {
			return // it is about to leave by itself
		}
		m.cutModel("preempt")
		m.suspend()
	case inTools:
		if m.question.corr == "" {
			m.cutCalls()
			m.suspend()
		}
	default: // a stage or a write is waited for
	}
}

func (m *machine) suspend() {
	m.suspended, m.preempt = true, nil
	m.journal(&messages.JournalEntry{
		Kind: messages.JournalKind_JOURNAL_KIND_SUSPENDED, Attempt: int32(m.attempt), Round: int32(m.round),
	})
	m.add(kit.State{Word: "suspended", Summary: m.summary()})
	m.toScheduler(m.suspendedMessage())
}

func (m *machine) suspendedMessage() *messages.Suspended {
	return &messages.Suspended{TaskId: m.task(), Generation: m.start.GetGeneration(), Phase: m.phase}
}

// onResume goes on. What was said meanwhile is in the context now, so a prefix is built anew.
func (m *machine) onResume(r *messages.Resume) {
	if r.GetGeneration() != m.start.GetGeneration() || !m.suspended {
		return
	}
	m.suspended = false
	m.noteResumed()
	m.toScheduler(&messages.Resumed{TaskId: m.task(), Generation: m.start.GetGeneration()})
	if m.phase < committing && m.overdue() {
		m.cutWork("deadline")
		m.fail(errDeadline)
		return
	}
	m.armDeadline()
	m.prefix = nil
	if m.phase == inTools {
		m.recheck()
	}
	if m.phase >= recalling && m.phase <= completing {
		m.phase = recalling
	}
	m.enter()
}

// noteResumed journals it; inputs that wait join the attempt that is made now.
func (m *machine) noteResumed() {
	m.journal(&messages.JournalEntry{
		Kind: messages.JournalKind_JOURNAL_KIND_RESUMED, Attempt: int32(m.attempt), Round: int32(m.round),
	})
	if m.response == nil {
		advance(m.steers, m.round)
	}
}

func (m *machine) overdue() bool {
	us := m.start.GetDeadlineUs()
	return us != 0 && !m.now.Before(time.UnixMicro(us))
}

// onCancel ends the turn, unless its answer is being committed already.
func (m *machine) onCancel(c *messages.Cancel) {
	if c.GetGeneration() != m.start.GetGeneration() {
		return
	}
	switch {
	case m.phase == afterOutput:
		m.finishAnswered()
	case m.phase >= committing:
		m.cancel = c
	default:
		m.cutWork(c.GetReason())
		m.end(c.GetEnd(), c.GetReason(), endText(c))
	}
}

func endText(c *messages.Cancel) string {
	if c.GetEnd() == messages.End_END_STOPPED {
		return "Stopped."
	}
	return ""
}

// onSteer takes an input into the turn, or leaves it when the answer is final.
func (m *machine) onSteer(e kit.Event, s *messages.Steer) {
	if s.GetGeneration() != m.start.GetGeneration() {
		return
	}
	// A turn that was started again may be asked about an input that it has from its journal.
	known := m.hasSteer(s.GetInput().GetId())
	taken := known || m.takesSteer()
	if taken && !known {
		round := max(m.round, 1)
		if m.phase >= completing && !(m.suspended && m.phase == completing) {
			round++
		}
		m.steers = append(m.steers, steer{input: s.GetInput(), round: round})
		m.journal(&messages.JournalEntry{
			Kind: messages.JournalKind_JOURNAL_KIND_STEERED, Round: int32(round), Input: s.GetInput(),
		})
	}
	answer := &messages.SteerTaken{InputId: s.GetInput().GetId(), Generation: s.GetGeneration(), Taken: taken}
	if e.Corr != "" {
		m.add(e.Reply(answer))
		return
	}
	m.toScheduler(answer)
}

// takesSteer tells whether a request is still to be made that can hold new input.
func (m *machine) takesSteer() bool {
	if m.phase >= beforeOutput {
		return false
	}
	return !m.toolless || m.phase < completing
}

func (m *machine) hasSteer(id string) bool {
	for _, s := range m.steers {
		if s.input.GetId() == id {
			return true
		}
	}
	return false
}

// steerWaits tells whether an input has joined that no request held yet.
func (m *machine) steerWaits() bool {
	for _, s := range m.steers {
		if !s.joined {
			return true
		}
	}
	return false
}

// joinSteers puts the inputs that wait into the tail of the request about to be made.
func (m *machine) joinSteers() {
	for i := range m.steers {
		if s := &m.steers[i]; !s.joined {
			s.joined = true
			m.read(s.input.GetTaint())
			m.tail = append(m.tail, steerMessage(s.input))
		}
	}
}

func steerMessage(in *messages.Input) *messages.ChatMessage {
	return &messages.ChatMessage{Role: messages.Role_ROLE_USER, Parts: in.GetParts()}
}

// sawSteers notes that the model has answered a request with all that had joined.
func (m *machine) sawSteers() {
	for i := range m.steers {
		m.steers[i].seen = m.steers[i].seen || m.steers[i].joined
	}
}

// advance lets waiting inputs join an earlier round than they were put down for.
func advance(steers []steer, round int) {
	for i := range steers {
		if !steers[i].joined {
			steers[i].round = min(steers[i].round, max(round, 1))
		}
	}
}

func (m *machine) toScheduler(msg proto.Message) {
	m.add(kit.Send{To: m.start.GetScheduler(), Msg: msg})
}

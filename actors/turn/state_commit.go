package turn

import (
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// journal hands steps to the ledger without waiting, all or none; the ledger's mailbox keeps the order, and says if it fails.
func (m *machine) journal(entries ...*messages.JournalEntry) {
	m.add(kit.Send{To: m.deps.Ledger, Msg: &messages.LedgerExecute{Silent: true, Ops: m.ops(entries)}})
}

// write hands steps to the ledger and waits until they are on disk.
func (m *machine) write(entries ...*messages.JournalEntry) { m.execute(m.ops(entries)) }

func (m *machine) ops(entries []*messages.JournalEntry) []*messages.LedgerOp {
	ops := make([]*messages.LedgerOp, len(entries))
	for i, e := range entries {
		ops[i] = m.entry(e)
	}
	return ops
}

func (m *machine) execute(ops []*messages.LedgerOp) {
	m.ask("ledger", m.deps.Ledger, &messages.LedgerExecute{Ops: ops, Sync: true}, roomAsk)
}

// roomAsk is how long the ledger may take: on a full disk it answers when a person has made room. A ledger that is gone is
// told by the runtime.
const roomAsk = 30 * 24 * time.Hour

func (m *machine) entry(e *messages.JournalEntry) *messages.LedgerOp {
	e.TaskId = m.task()
	e.AtUs = m.now.UnixMicro()
	return &messages.LedgerOp{Op: &messages.LedgerOp_Journal{Journal: e}}
}

func (m *machine) onLedgerDone(corr string, d *messages.LedgerDone) {
	if corr == "" {
		if d.GetError() != nil {
			m.onWriteFailed(d.GetError())
		}
		return
	}
	if !m.answered(corr) {
		return
	}
	if d.GetError() != nil {
		m.onUnanswered("ledger", d.GetError())
		return
	}
	switch m.phase {
	case inTools:
		if m.batch.parking != nil {
			m.onParkWritten()
			return
		}
		m.onStartsWritten()
		m.become(inTools)
	case completing:
		m.onParkWritten()
	case committing:
		m.onCommitted()
	case sending:
		m.become(afterOutput)
	default:
		panic("turn: the ledger answered in phase " + word(m.phase))
	}
}

// onWriteFailed ends a turn whose journal has a hole: a restart could not go on from it. What is committed stands.
func (m *machine) onWriteFailed(err *messages.Error) {
	if m.phase >= committing {
		m.log("journal entry lost after the commit", err)
		return
	}
	m.cutWork("failed")
	m.fail(err)
}

func (m *machine) becomeBeforeOutput() {
	m.runStage(messages.Stage_STAGE_BEFORE_OUTPUT, &messages.StageContext{FinalText: m.text})
}

// becomeCommitting writes the answer, what it answers and the intent to send it as one transaction.
func (m *machine) becomeCommitting() {
	now := m.now.UnixMicro()
	ops := []*messages.LedgerOp{{Op: &messages.LedgerOp_Events{Events: &messages.AppendEvents{Events: m.events(now)}}}}
	m.output = m.intent(now)
	if m.output != nil {
		ops = append(ops, &messages.LedgerOp{Op: &messages.LedgerOp_Output{Output: m.output}})
	}
	ops = append(ops, m.entry(&messages.JournalEntry{
		Kind: messages.JournalKind_JOURNAL_KIND_COMMITTED, Attempt: 1, Round: int32(m.round), Text: m.text,
	}))
	m.execute(ops)
}

// onCommitFailed fails the turn: nothing was written, so nothing is sent.
func (m *machine) onCommitFailed(err *messages.Error) { m.fail(err) }

func (m *machine) onCommitted() {
	if m.output == nil {
		m.become(afterOutput)
		return
	}
	m.become(sending)
}

// intent is the output of this turn; nil when there is nothing to send or nowhere to send it to.
func (m *machine) intent(now int64) *messages.OutputIntent {
	ch := m.input.GetChannel()
	if m.text == "" || ch == "" {
		return nil
	}
	if !m.mayAnswer(ch) {
		m.add(kit.Log{Level: kit.Warn, Text: "channel is not allowed for this agent", Attrs: []any{"channel", ch}})
		return nil
	}
	return &messages.OutputIntent{
		OutputId: m.task() + "/o1", TaskId: m.task(), Channel: ch, Conversation: m.input.GetConversation(),
		Parts: []*messages.Part{{Content: &messages.Part_Text{Text: m.text}}},
		Agent: m.agent(), CreatedUs: now,
	}
}

// mayAnswer tells whether the agent may send to a channel. It may always report to the agent that gave it the task.
func (m *machine) mayAnswer(channel string) bool {
	allowed := m.start.GetAgent().GetAllowedOutputs()
	return len(allowed) == 0 || slices.Contains(allowed, channel) ||
		m.input.GetSource() == messages.InputSource_INPUT_SOURCE_PARENT ||
		m.input.GetPrincipal().GetKind() == messages.PrincipalKind_PRINCIPAL_KIND_AGENT
}

// events are what the context keeps of this turn: what was said to the agent and what it answered. Their ids sort in
// this order.
func (m *machine) events(now int64) []*messages.Event {
	out := []*messages.Event{m.inputEvent(m.task()+"/in", m.input, now)}
	for _, s := range m.steers {
		if s.seen {
			out = append(out, m.inputEvent(m.task()+"/in/"+s.input.GetId(), s.input, now))
		}
	}
	if m.text == "" {
		return out
	}
	self := &messages.Principal{Id: "agent:" + m.agent(), Kind: messages.PrincipalKind_PRINCIPAL_KIND_AGENT}
	e := &messages.Event{
		EventId: m.task() + "/out", Kind: messages.EventKind_EVENT_KIND_RESPONSE, Principal: self, AtUs: now,
		Taint: m.taintOfAnswer(), Tools: slices.Clone(m.used), Interrupt: m.isInterrupt(),
	}
	parts := []*messages.Part{{Content: &messages.Part_Text{Text: m.text}}}
	return append(out, m.completeEvent(e, parts, "response", now))
}

// taintOfAnswer is foreign when anything was that the model had read: its words may be those of a page.
func (m *machine) taintOfAnswer() messages.Taint {
	if m.taint == messages.Taint_TAINT_FOREIGN {
		return m.taint
	}
	return messages.Taint_TAINT_MODEL
}

func (m *machine) isInterrupt() bool {
	return m.input.GetMode() == messages.Mode_MODE_INTERRUPT || m.start.GetLevel() >= 3
}

func (m *machine) inputEvent(id string, in *messages.Input, now int64) *messages.Event {
	at := in.GetCreatedUs()
	if at == 0 {
		at = now
	}
	e := &messages.Event{
		EventId: id, Kind: messages.EventKind_EVENT_KIND_INPUT, Principal: in.GetPrincipal(), AtUs: at, Taint: in.GetTaint(),
	}
	return m.completeEvent(e, in.GetParts(), "input", now)
}

// completeEvent adds the place and the blocks of an event.
func (m *machine) completeEvent(e *messages.Event, parts []*messages.Part, source string, now int64) *messages.Event {
	e.TaskId, e.Agent = m.task(), m.agent()
	e.Channel, e.Conversation = m.input.GetChannel(), m.input.GetConversation()
	for i, p := range parts {
		e.Blocks = append(e.Blocks, &messages.Block{
			BlockId: e.GetEventId() + "/b" + strconv.Itoa(i), Content: p, PayloadId: p.GetPayload().GetId(),
			Principal: e.GetPrincipal(), Channel: e.GetChannel(), Conversation: e.GetConversation(), Agent: e.GetAgent(),
			Taint: e.GetTaint(), Source: source, CreatedUs: e.GetAtUs(), StoredUs: now, Modality: modality(p),
		})
	}
	return e
}

// modality of a part by its media type.
func modality(p *messages.Part) string {
	if p.GetPayload() == nil {
		return "text"
	}
	t := p.GetPayload().GetMediaType()
	for _, kind := range []string{"image", "audio", "video", "text"} {
		if len(t) > len(kind) && t[:len(kind)+1] == kind+"/" {
			return kind
		}
	}
	if t == "" {
		return "text"
	}
	return "file"
}

func (m *machine) becomeSending() {
	m.ask("channels", m.deps.Channels, &messages.SendOutput{Output: m.output, MaybeRepeated: m.repeated}, m.set.Ask)
}

func (m *machine) onOutputSent(s *messages.OutputSent) {
	if s.GetError() != nil {
		m.onSendFailed(s.GetError())
		return
	}
	r := proto.CloneOf(s.GetReceipt())
	if r == nil {
		r = &messages.OutputReceipt{}
	}
	r.OutputId = m.output.GetOutputId()
	if r.GetAtUs() == 0 {
		r.AtUs = m.now.UnixMicro()
	}
	ops := []*messages.LedgerOp{
		{Op: &messages.LedgerOp_Sent{Sent: r}},
		m.entry(&messages.JournalEntry{Kind: messages.JournalKind_JOURNAL_KIND_SENT, Attempt: 1, Round: int32(m.round)}),
	}
	if m.cancel == nil && !m.set.Idle[messages.Stage_STAGE_AFTER_OUTPUT] {
		m.execute(ops)
		return
	}
	// The end of the task comes right behind it and is synced: one sync is enough for both.
	m.add(kit.Send{To: m.deps.Ledger, Msg: &messages.LedgerExecute{Silent: true, Ops: ops}})
	m.become(afterOutput)
}

// onSendFailed says that the answer stands and is not sent, or not known as sent; its intent stays and is tried again.
func (m *machine) onSendFailed(err *messages.Error) {
	m.reason = "output_pending"
	m.publishError(err)
	m.become(afterOutput)
}

func (m *machine) becomeAfterOutput() {
	if m.cancel != nil {
		m.finishAnswered()
		return
	}
	m.runStage(messages.Stage_STAGE_AFTER_OUTPUT, &messages.StageContext{FinalText: m.text, Outcome: "answered"})
}

func (m *machine) finishAnswered() { m.finish(messages.End_END_ANSWERED, m.reason, m.text) }

// fail ends the turn and shows people why.
func (m *machine) fail(err *messages.Error) {
	m.publishError(err)
	m.end(messages.End_END_FAILED, err.GetCode(), err.GetMessage())
}

func (m *machine) publishError(err *messages.Error) {
	m.publish(&messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_AGENT_ERROR, Text: err.GetMessage(),
		Detail: &messages.AgentEvent_Error{Error: err},
	})
}

// end ends a turn that has no answer. The last stage is told and not waited for.
func (m *machine) end(end messages.End, reason, text string) {
	outcome := "failed"
	if end == messages.End_END_STOPPED {
		outcome = "stopped"
	}
	if !m.set.Idle[messages.Stage_STAGE_AFTER_OUTPUT] {
		c := &messages.StageContext{FinalText: text, Outcome: outcome}
		m.fillContext(c)
		m.add(kit.Send{
			To:  m.stageAddress(messages.Stage_STAGE_AFTER_OUTPUT),
			Msg: &messages.RunStage{Stage: messages.Stage_STAGE_AFTER_OUTPUT, Context: c},
		})
	}
	m.finish(end, reason, text)
}

// finish tells the scheduler, once, and ends the actor.
func (m *machine) finish(end messages.End, reason, text string) {
	f := &messages.Finished{
		TaskId: m.task(), Generation: m.start.GetGeneration(), End: end, Reason: reason, Text: text,
		Usage: proto.CloneOf(m.usage),
	}
	for _, s := range m.steers {
		if s.seen || end == messages.End_END_STOPPED {
			f.Steered = append(f.Steered, s.input.GetId())
		} else {
			f.Unanswered = append(f.Unanswered, s.input.GetId())
		}
	}
	m.release()
	m.phase, m.suspended, m.preempt = ended, false, nil
	m.add(kit.State{Word: "ended", Summary: reason})
	m.toScheduler(f)
	m.add(kit.Stop{Who: m.self})
}

func (m *machine) summary() string {
	s := "task " + m.task()
	if m.round > 0 {
		s += ", round " + strconv.Itoa(m.round)
	}
	if us := m.start.GetDeadlineUs(); us > 0 {
		s += ", until " + time.UnixMicro(us).In(m.set.Zone).Format("2006-01-02 15:04:05 MST")
	}
	return s
}

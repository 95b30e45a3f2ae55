package channels

import (
	"fmt"
	"strings"
	"unicode"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func (s *state) onSubmit(e kit.Event, m *messages.SubmitInput) {
	in := m.GetInput()
	ch := s.channels[in.GetChannel()]
	if err := s.check(in, ch); err != nil {
		s.refuse(e, in.GetId(), err)
		return
	}
	if s.subs[in.GetId()] != nil {
		s.refuse(e, in.GetId(), &messages.Error{Code: "id_in_use", Message: "An input with this id is on its way in."})
		return
	}
	if len(s.subs) >= maxUnderway {
		s.refuse(e, in.GetId(), &messages.Error{
			Code: "queue_full", Message: "Too many inputs are on their way in.", Hint: "Try again in a moment.", RetryAfterMs: 1000,
		})
		return
	}
	from := byOf(e.From, m)
	if err := checkSource(in, from); err != nil {
		s.refuse(e, in.GetId(), err)
		return
	}
	input, warning := classify(in, ch, from)
	s.subs[in.GetId()] = &submission{ask: e, input: input, warning: warning}
	s.add(kit.Send{To: s.p.Ledger, Corr: "in/" + in.GetId(), Msg: &messages.LedgerExecute{
		Sync: true,
		Ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{
			Input: input, Limit: s.p.Limit,
		}}}},
	}})
}

// checkSource refuses words that a plugin can not have heard: of a parent, a child, or the kernel.
func checkSource(in *messages.Input, from by) *messages.Error {
	switch in.GetSource() {
	case messages.InputSource_INPUT_SOURCE_CHILD, messages.InputSource_INPUT_SOURCE_PARENT, messages.InputSource_INPUT_SOURCE_KERNEL:
		if from.plugin {
			return &messages.Error{Code: "not_allowed", Message: "A plugin does not speak for an agent or the kernel."}
		}
	default: // anybody may bring what a person, a job or a terminal says
	}
	return nil
}

// check refuses what may not enter the node.
func (s *state) check(in *messages.Input, ch *messages.RegisterChannel) *messages.Error {
	bad := func(message, hint string) *messages.Error {
		return &messages.Error{Code: "bad_input", Message: message, Hint: hint}
	}
	size, content := 0, false
	for _, p := range in.GetParts() {
		size += len(p.GetText())
		content = content || strings.TrimSpace(p.GetText()) != "" || p.GetPayload().GetId() != ""
	}
	switch {
	case in.GetId() == "":
		return bad("The input has no id.", "")
	case in.GetSource() == messages.InputSource_INPUT_SOURCE_UNSPECIFIED:
		return bad("The input does not say by which call it came in.", "")
	case ch == nil:
		return s.unknownChannel(in.GetChannel())
	case !content:
		return bad("The input is empty.", "Send some text or a block.")
	case size > s.p.MaxText:
		return &messages.Error{
			Code: "too_large", Message: fmt.Sprintf("The text has %d bytes; at most %d are taken.", size, s.p.MaxText),
			Hint: "Send it in parts or as a file.",
		}
	case len(in.GetParts()) > s.p.MaxParts:
		return &messages.Error{
			Code: "too_large", Message: fmt.Sprintf("The input has %d blocks; at most %d are taken.", len(in.GetParts()), s.p.MaxParts),
			Hint: "Put texts together.",
		}
	case in.Level != nil && (in.GetLevel() < 0 || in.GetLevel() > 4):
		return bad(fmt.Sprintf("There is no level %d.", in.GetLevel()), "Levels are 0 (queued) to 4 (critical).")
	case in.GetDeadlineUs() != 0 && in.GetDeadlineUs() <= s.now.UnixMicro():
		return &messages.Error{Code: "bad_deadline", Message: "The deadline has passed already.", Hint: "Give a time to come, or none."}
	case len(in.GetIdempotencyKey()) > 256 || len(in.GetConversation()) > 256 || len(in.GetAgent()) > 256:
		return bad("Idempotency key, conversation and agent have at most 256 bytes each.", "")
	case strings.ContainsFunc(in.GetIdempotencyKey()+in.GetConversation()+in.GetAgent(), unicode.IsControl):
		return bad("Idempotency key, conversation and agent hold no control characters.", "")
	}
	return nil
}

func (s *state) refuse(e kit.Event, id string, err *messages.Error) {
	s.counts.Refused++
	s.add(e.Reply(&messages.SubmitResult{InputId: id, Error: err}))
}

func (s *state) onLedgerDone(e kit.Event, m *messages.LedgerDone) {
	if id, ok := strings.CutPrefix(e.Corr, "orphan/"); ok {
		s.onOrphanEnded(id, m.GetError())
		return
	}
	id, ok := strings.CutPrefix(e.Corr, "in/")
	sub := s.subs[id]
	if !ok || sub == nil {
		return
	}
	err := m.GetError()
	var acc *messages.Accepted
	if len(m.GetResults()) > 0 {
		acc = m.GetResults()[0].GetAccepted()
		if err == nil {
			err = m.GetResults()[0].GetError()
		}
	}
	switch {
	case err != nil:
		delete(s.subs, id)
		s.refuse(sub.ask, id, err)
	case acc.GetDuplicate():
		delete(s.subs, id)
		s.add(sub.ask.Reply(&messages.SubmitResult{
			InputId: acc.GetInputId(), Outcome: messages.Outcome_OUTCOME_DUPLICATE, Duplicate: true, Warning: sub.warning,
		}))
	default:
		s.counts.Accepted++
		sub.accepted = true
		s.add(
			kit.Send{
				To: kit.Path("agents/" + sub.input.GetAgent() + "/scheduler"), Corr: "offer/" + id,
				Msg: &messages.Offer{Input: sub.input, Sequence: acc.GetSequence(), Stopped: sub.stopped},
			},
			kit.After{Key: "offer/" + id, D: s.p.OfferTimeout, Msg: offerLate{id}},
		)
	}
}

func (s *state) onOutcome(e kit.Event, m *messages.InputOutcome) {
	id, _ := strings.CutPrefix(e.Corr, "offer/")
	sub := s.subs[id]
	if sub == nil {
		return
	}
	delete(s.subs, id)
	s.add(
		kit.CancelAfter{Key: "offer/" + id},
		sub.ask.Reply(&messages.SubmitResult{
			InputId: id, Outcome: m.GetOutcome(), Position: m.GetPosition(), Warning: sub.warning,
		}),
	)
}

// onOfferLate answers the asker when the scheduler is slow or away: the input is on disk and will run.
func (s *state) onOfferLate(id string) {
	if sub := s.subs[id]; sub != nil {
		delete(s.subs, id)
		s.add(sub.ask.Reply(&messages.SubmitResult{InputId: id, Outcome: messages.Outcome_OUTCOME_QUEUED, Warning: sub.warning}))
	}
}

// onRefused handles a request of this actor that was answered with an error or with Busy.
func (s *state) onRefused(e kit.Event) {
	err, _ := e.Msg.(*messages.Error)
	if err == nil {
		err = &messages.Error{Code: "busy", Message: "The node has too much to do.", Hint: "Try again in a moment.", RetryAfterMs: 1000}
	}
	s.failed(e.Corr, err)
}

func (s *state) onFault(f kit.Fault) {
	if send, ok := f.Effect.(kit.Send); ok {
		s.failed(send.Corr, f.Err)
	}
}

// failed ends what waits for an answer that will not come.
func (s *state) failed(corr string, err *messages.Error) {
	if s.toolFailed(corr, err) {
		return
	}
	if id, ok := strings.CutPrefix(corr, "in/"); ok {
		if sub := s.subs[id]; sub != nil {
			delete(s.subs, id)
			s.refuse(sub.ask, id, err)
		}
		return
	}
	if id, ok := strings.CutPrefix(corr, "offer/"); ok {
		s.offerFailed(id)
		return
	}
	if id, ok := strings.CutPrefix(corr, "orphan/"); ok {
		s.onOrphanEnded(id, err)
		return
	}
	if ask, ok := s.stops[corr]; ok {
		delete(s.stops, corr)
		s.add(ask.Reply(err))
		return
	}
	if strings.HasPrefix(corr, "out/") {
		s.onSent(corr, &messages.OutputSent{Error: err})
	}
}

// offerFailed handles an accepted input whose scheduler is away. The main agent's scheduler comes back and reads it from
// ledger; an agent that does not exist never will, so the input is refused, once its end is on disk: if the agent was
// destroyed meanwhile, it may have ended otherwise.
func (s *state) offerFailed(id string) {
	sub := s.subs[id]
	if sub == nil {
		return
	}
	s.add(kit.CancelAfter{Key: "offer/" + id})
	if sub.input.GetAgent() == mainAgent {
		s.onOfferLate(id)
		return
	}
	s.endOrphan(sub.input)
}

// offerAgain offers what waits once more: one that was offered already is known, and one that was accepted when this actor
// failed is known to nobody else.
func (s *state) offerAgain(m *messages.PendingTasks) {
	for _, t := range m.GetTasks() {
		if t.GetState() == messages.TaskState_TASK_STATE_QUEUED {
			s.add(kit.Send{To: kit.Path("agents/" + t.GetInput().GetAgent() + "/scheduler"), Msg: &messages.Offer{
				Input: t.GetInput(), Sequence: t.GetSequence(),
			}})
		}
	}
}

// orphans ends what was accepted for agents that are not there: an earlier process did not live to refuse it.
func (s *state) orphans(m *messages.PendingTasks) {
	known := map[string]bool{"": true, mainAgent: true}
	for _, a := range m.GetAgents() {
		known[a.GetAgent()] = true
	}
	for _, t := range m.GetTasks() {
		if in := t.GetInput(); !known[in.GetAgent()] && s.orphaned[in.GetId()] == nil {
			s.endOrphan(in)
		}
	}
}

func unknownAgent(name string) *messages.Error {
	return &messages.Error{
		Code: "unknown_agent", Message: fmt.Sprintf("There is no agent %q.", name),
		Hint: "List the agents and use one of their paths.",
	}
}

func (s *state) endOrphan(in *messages.Input) {
	err := unknownAgent(in.GetAgent())
	s.orphaned[in.GetId()] = in
	s.add(kit.Send{To: s.p.Ledger, Corr: "orphan/" + in.GetId(), Msg: &messages.LedgerExecute{Sync: true, Ops: []*messages.LedgerOp{{
		Op: &messages.LedgerOp_End{End: &messages.EndTask{
			TaskId: in.GetId(), End: messages.End_END_REFUSED, Reason: err.GetCode(), Text: err.GetMessage(), AtUs: s.now.UnixMicro(),
		}},
	}}}})
}

// onOrphanEnded tells people of the end, and whoever waits for the outcome that it was refused. Without the end it was
// not: the input is on disk, and whoever ended it otherwise has told so.
func (s *state) onOrphanEnded(id string, failed *messages.Error) {
	in, sub := s.orphaned[id], s.subs[id]
	delete(s.orphaned, id)
	if in == nil {
		return
	}
	if failed != nil {
		s.onOfferLate(id)
		return
	}
	err := unknownAgent(in.GetAgent())
	s.add(kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_TASK, AtUs: s.now.UnixMicro(), TaskId: id,
		Agent: in.GetAgent(), Channel: in.GetChannel(), Conversation: in.GetConversation(),
		Detail: &messages.AgentEvent_Task{Task: &messages.TaskChange{Change: "ended", Level: in.GetLevel(), Ended: &messages.TaskEnded{
			TaskId: id, End: messages.End_END_REFUSED, Reason: err.GetCode(), Text: err.GetMessage(),
		}}},
	}})
	if sub != nil {
		delete(s.subs, id)
		s.refuse(sub.ask, id, err)
	}
}

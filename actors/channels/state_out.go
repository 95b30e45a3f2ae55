package channels

import (
	"maps"
	"slices"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// channelWait is how long an output waits for a channel that is not there: after a start, turns go on before all owners
// have registered.
const channelWait = 10 * time.Second

// absent is an output whose channel is not there yet.
type absent struct {
	ask kit.Event
	msg *messages.SendOutput
}

func (s *state) onSend(e kit.Event, m *messages.SendOutput) {
	o := m.GetOutput()
	id := o.GetOutputId()
	s.unsent = slices.DeleteFunc(s.unsent, func(u *messages.OutputIntent) bool { return u.GetOutputId() == id })
	if ch := s.channels[o.GetChannel()]; ch != nil {
		s.deliver(e, m, ch)
		return
	}
	s.absent[id] = &absent{ask: e, msg: m}
	s.add(kit.After{Key: "wait/" + id, D: channelWait, Msg: absentLate{id}})
}

// onAbsentLate tells that the channel did not come; the output is sent when it does.
func (s *state) onAbsentLate(id string) {
	w := s.absent[id]
	if w == nil {
		return
	}
	delete(s.absent, id)
	o := w.msg.GetOutput()
	s.unsent = append(s.unsent, o)
	s.counts.Failed++
	s.add(w.ask.Reply(&messages.OutputSent{
		Receipt: &messages.OutputReceipt{OutputId: id}, Error: s.unknownChannel(o.GetChannel()),
	}))
}

// deliverAbsent sends what was waiting for a channel that is there now.
func (s *state) deliverAbsent(name string) {
	for _, id := range slices.Sorted(maps.Keys(s.absent)) {
		w := s.absent[id]
		if w.msg.GetOutput().GetChannel() != name {
			continue
		}
		delete(s.absent, id)
		s.add(kit.CancelAfter{Key: "wait/" + id})
		s.deliver(w.ask, w.msg, s.channels[name])
	}
}

func (s *state) deliver(e kit.Event, m *messages.SendOutput, ch *messages.RegisterChannel) {
	o := m.GetOutput()
	if ch.GetOwner() == nil {
		s.show(o)
		s.counts.Sent++
		s.add(e.Reply(&messages.OutputSent{Receipt: s.receipt(o)}))
		return
	}
	if s.said(o) {
		s.show(o) // a person has read it there: the answer alone is told
		s.add(e.Reply(&messages.OutputSent{Receipt: s.receipt(o)}))
		return
	}
	s.forward(&sending{ask: e, output: o}, ch, m.GetMaybeRepeated())
}

// forward hands an output to its channel's owner.
func (s *state) forward(w *sending, ch *messages.RegisterChannel, repeated bool) {
	id := w.output.GetOutputId()
	s.sends[id] = w
	s.add(
		kit.Send{To: ch.GetOwner(), Corr: "out/" + id, Msg: &messages.SendOutput{Output: w.output, MaybeRepeated: repeated}},
		kit.After{Key: "out/" + id, D: s.p.SendTimeout, Msg: sendLate{id}},
	)
}

// show puts an output on the event stream.
func (s *state) show(o *messages.OutputIntent) {
	var text strings.Builder
	for _, p := range o.GetParts() {
		text.WriteString(p.GetText())
	}
	s.add(kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_AGENT_OUTPUT, AtUs: s.now.UnixMicro(), TaskId: o.GetTaskId(), Agent: o.GetAgent(),
		Channel: o.GetChannel(), Conversation: o.GetConversation(), Text: text.String(),
		Detail: &messages.AgentEvent_Output{Output: o},
	}})
}

func (s *state) receipt(o *messages.OutputIntent) *messages.OutputReceipt {
	return &messages.OutputReceipt{OutputId: o.GetOutputId(), AtUs: s.now.UnixMicro()}
}

// onSent passes an owner's word on to who asked for the output.
func (s *state) onSent(corr string, m *messages.OutputSent) {
	id, _ := strings.CutPrefix(corr, "out/")
	w := s.sends[id]
	if w == nil {
		return
	}
	delete(s.sends, id)
	s.add(kit.CancelAfter{Key: "out/" + id})
	if m.GetError() == nil {
		s.counts.Sent++
		s.show(w.output)
	} else {
		s.counts.Failed++
	}
	if w.resend {
		s.resent(w.output, m)
		return
	}
	if w.call != nil {
		s.note(w.call, m)
		return
	}
	s.add(w.ask.Reply(m))
}

// onUnsent takes in outputs of ended tasks that an earlier process did not get sent.
func (s *state) onUnsent(m *messages.PendingTasks) {
	s.orphans(m)
	if s.again {
		s.offerAgain(m)
	}
	open := map[string]bool{}
	for _, t := range m.GetTasks() {
		open[t.GetInput().GetId()] = true
	}
	for _, o := range m.GetUnsent() {
		if !open[o.GetTaskId()] {
			s.unsent = append(s.unsent, o)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.channels)) {
		s.retryUnsent(name)
	}
}

// retryUnsent sends what is waiting for a channel that is there now.
func (s *state) retryUnsent(name string) {
	ch := s.channels[name]
	var kept []*messages.OutputIntent
	for _, o := range s.unsent {
		switch {
		case o.GetChannel() != name:
			kept = append(kept, o)
		case ch.GetOwner() == nil:
			s.show(o)
			s.resent(o, &messages.OutputSent{Receipt: s.receipt(o)})
		default:
			s.forward(&sending{output: o, resend: true}, ch, true)
		}
	}
	s.unsent = kept
}

// resent notes the receipt of an output sent again, or keeps it for the next time its channel registers.
func (s *state) resent(o *messages.OutputIntent, m *messages.OutputSent) {
	if m.GetError() != nil {
		s.unsent = append(s.unsent, o)
		return
	}
	s.add(kit.Send{To: s.p.Ledger, Msg: &messages.LedgerExecute{Sync: true, Silent: true, Ops: []*messages.LedgerOp{{
		Op: &messages.LedgerOp_Sent{Sent: s.receipt(o)},
	}}}})
}

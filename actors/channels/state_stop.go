package channels

import (
	"maps"
	"slices"
	"strconv"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// onStop marks what is on its way in as stopped, and passes the stop on to the scheduler of the agent. An input that the
// scheduler has been offered already is its own to stop.
func (s *state) onStop(e kit.Event, m *messages.StopAll) {
	to := m.GetAgent()
	if to == "" {
		to = mainAgent
	}
	var elsewhere int32
	for _, id := range slices.Sorted(maps.Keys(s.subs)) {
		sub := s.subs[id]
		in := sub.input
		if sub.accepted || sub.stopped || in.GetAgent() != to || m.GetConversation() != "" && in.GetConversation() != m.GetConversation() {
			continue
		}
		sub.stopped = true
		elsewhere++
	}
	s.seq++
	corr := "stop/" + strconv.FormatUint(s.seq, 10)
	s.stops[corr] = e
	s.add(kit.Send{To: kit.Path("agents/" + to + "/scheduler"), Corr: corr, Msg: &messages.StopAll{
		Conversation: m.GetConversation(), Principal: m.GetPrincipal(), WaitingElsewhere: elsewhere,
	}})
}

// onStopped passes the scheduler's answer on.
func (s *state) onStopped(corr string, m *messages.StopResult) {
	if ask, ok := s.stops[corr]; ok {
		delete(s.stops, corr)
		s.add(ask.Reply(m))
	}
}

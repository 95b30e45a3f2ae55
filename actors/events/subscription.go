package events

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// subscription is one way out of the stream.
type subscription struct {
	name string
	who  *messages.Address
	mask uint64 // bit of each type wanted
	task string // only events of this task; empty means all
	// missed says that the next batch must tell of a gap.
	missed bool
}

func (s *subscription) wants(e *messages.AgentEvent) bool {
	return s.mask&(1<<uint(e.GetType())) != 0 && (s.task == "" || s.task == e.GetTaskId())
}

// wanted returns those of events that s wants; the slice itself when it wants them all, since a batch is frozen.
func (s *subscription) wanted(events []*messages.AgentEvent) []*messages.AgentEvent {
	n := 0
	for _, e := range events {
		if s.wants(e) {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case len(events):
		return events
	}
	out := make([]*messages.AgentEvent, 0, n)
	for _, e := range events {
		if s.wants(e) {
			out = append(out, e)
		}
	}
	return out
}

// known says whether t is a type of the vocabulary.
func known(t messages.EventType) bool {
	_, ok := messages.EventType_name[int32(t)]
	return ok && t != messages.EventType_EVENT_TYPE_UNSPECIFIED
}

// kept says whether events of t are replayed; a delta means nothing without those before it.
func kept(t messages.EventType) bool {
	return t != messages.EventType_EVENT_TYPE_CONTENT_DELTA && t != messages.EventType_EVENT_TYPE_REASONING_DELTA
}

// awaited says whether somebody is likely to wait for an event of t: what a person hears, and what becomes of a task.
func awaited(t messages.EventType) bool {
	switch t {
	case messages.EventType_EVENT_TYPE_AGENT_OUTPUT, messages.EventType_EVENT_TYPE_AGENT_ERROR, messages.EventType_EVENT_TYPE_TASK:
		return true
	default:
		return false
	}
}

// maskOf turns a list of types into bits; no types means all.
func maskOf(types []messages.EventType) (uint64, *messages.Error) {
	if len(types) == 0 {
		return ^uint64(0), nil
	}
	var mask uint64
	for _, t := range types {
		if !known(t) {
			return 0, &messages.Error{
				Code: "bad_subscription", Message: fmt.Sprintf("Event type %d is not known.", int32(t)),
				Hint: "Name types of the event vocabulary, or none for all.",
			}
		}
		mask |= 1 << uint(t)
	}
	return mask, nil
}

// typesOf names the types of a mask in their order; "all" for every one.
func typesOf(mask uint64) string {
	if mask == ^uint64(0) {
		return "all"
	}
	var names []string
	for n := range messages.EventType_name {
		if mask&(1<<uint(n)) != 0 {
			name := messages.EventType(n).String()
			names = append(names, strings.ToLower(strings.TrimPrefix(name, "EVENT_TYPE_")))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// numbered is e with its number. The parts below are frozen and therefore shared.
func numbered(e *messages.AgentEvent, sequence uint64, now time.Time) *messages.AgentEvent {
	at := e.GetAtUs()
	if at == 0 {
		at = now.UnixMicro()
	}
	return &messages.AgentEvent{
		Sequence: sequence, Type: e.GetType(), AtUs: at,
		TaskId: e.GetTaskId(), Agent: e.GetAgent(), Channel: e.GetChannel(), Conversation: e.GetConversation(),
		Text: e.GetText(), Detail: e.GetDetail(),
	}
}

func same(a, b *messages.Address) bool {
	return a.GetPath() == b.GetPath() && a.GetNode() == b.GetNode() && a.GetEpoch() == b.GetEpoch()
}

func (m *machine) find(who *messages.Address, name string) int {
	return slices.IndexFunc(m.subs, func(s *subscription) bool { return s.name == name && same(s.who, who) })
}

func (m *machine) has(who *messages.Address) bool {
	return slices.ContainsFunc(m.subs, func(s *subscription) bool { return same(s.who, who) })
}

// Props makes the events actor. The kernel sets restart and limits.
func Props(p Params) kit.Props {
	return kit.Props{Kind: "events", New: func() kit.Machine { return New(p) }, System: true}
}

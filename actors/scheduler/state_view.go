package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func endName(e messages.End) string {
	return strings.ToLower(strings.TrimPrefix(e.String(), "END_"))
}

// event makes the task event of a change.
func (s *state) event(t *task, change string, more func(*messages.TaskChange)) *messages.AgentEvent {
	c := &messages.TaskChange{Change: change, Level: effective(t)}
	if more != nil {
		more(c)
	}
	return &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_TASK, AtUs: s.now.UnixMicro(), TaskId: t.input.GetId(),
		Agent: s.p.Agent.GetAgent(), Channel: t.input.GetChannel(), Conversation: t.input.GetConversation(),
		Detail: &messages.AgentEvent_Task{Task: c},
	}
}

func (s *state) publish(t *task, change string, more func(*messages.TaskChange)) {
	s.add(kit.Publish{Event: s.event(t, change, more)})
}

// publishInput shows an input as it came, and that it was accepted.
func (s *state) publishInput(t *task) {
	s.add(kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_RAW_INPUT, AtUs: s.now.UnixMicro(), TaskId: t.input.GetId(),
		Agent: s.p.Agent.GetAgent(), Channel: t.input.GetChannel(), Conversation: t.input.GetConversation(),
		Text: text(t.input),
	}})
	s.publish(t, "accepted", nil)
}

func (s *state) publishError(t *task, code, message, cause string) {
	s.add(kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_AGENT_ERROR, AtUs: s.now.UnixMicro(), TaskId: t.input.GetId(),
		Agent: s.p.Agent.GetAgent(), Channel: t.input.GetChannel(), Conversation: t.input.GetConversation(),
		Text: message, Detail: &messages.AgentEvent_Error{Error: &messages.Error{Code: code, Message: message}},
	}}, kit.Log{Level: kit.Error, Text: "turn failed", Attrs: []any{"task", t.input.GetId(), "cause", cause}})
}

func text(in *messages.Input) string {
	var b strings.Builder
	for _, p := range in.GetParts() {
		b.WriteString(p.GetText())
	}
	return b.String()
}

func clip(v string, n int) string {
	r := []rune(v)
	if len(r) <= n {
		return v
	}
	return string(r[:n-1]) + "…"
}

func taskView(t *task) *messages.TaskView {
	return &messages.TaskView{
		TaskId: t.input.GetId(), Level: t.input.GetLevel(), Effective: effective(t),
		Channel: t.input.GetChannel(), Conversation: t.input.GetConversation(), Text: clip(text(t.input), 80),
		SinceUs: t.since.UnixMicro(), Preempted: t.preempted, Phase: t.turnPhase,
	}
}

// view is the answer to SchedulerQuery.
func (s *state) view() *messages.SchedulerState {
	v := &messages.SchedulerState{Agent: s.p.Agent.GetAgent(), Counters: proto.CloneOf(s.counters)}
	if s.current != nil {
		v.Running = taskView(s.current)
	}
	for _, e := range s.ends {
		if e.ops[0].GetEnd().GetEnd() == messages.End_END_STOPPED {
			v.StopQuota++
		}
	}
	for i := len(s.stack) - 1; i >= 0; i-- {
		v.Stack = append(v.Stack, taskView(s.stack[i]))
	}
	if s.slot != nil {
		v.Queue = append(v.Queue, taskView(s.slot))
	}
	for l := 4; l >= 0; l-- {
		for _, t := range s.levels[l] {
			v.Queue = append(v.Queue, taskView(t))
		}
	}
	return v
}

// Show implements kit.Shower.
func (s *state) Show() any { return s.view() }

// show keeps the tree's line about this scheduler true.
func (s *state) show() {
	n := 0
	for _, q := range s.levels {
		n += len(q)
	}
	word := "idle"
	if s.current != nil {
		word = "working"
	}
	line := fmt.Sprintf("%d waiting, %d suspended", n, len(s.stack))
	if t := s.current; t != nil {
		line += fmt.Sprintf("; L%d %s since %s", effective(t), clip(text(t.input), 40), t.since.UTC().Format(time.TimeOnly))
	}
	s.add(kit.State{Word: word, Summary: line})
}

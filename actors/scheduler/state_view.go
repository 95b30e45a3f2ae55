package scheduler

import (
	"maps"
	"slices"
	"strconv"
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

func (s *state) errorEvent(t *task, code, message string) *messages.AgentEvent {
	return &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_AGENT_ERROR, AtUs: s.now.UnixMicro(), TaskId: t.id(),
		Agent: s.p.Agent.GetAgent(), Channel: t.input.GetChannel(), Conversation: t.input.GetConversation(),
		Text: message, Detail: &messages.AgentEvent_Error{Error: &messages.Error{Code: code, Message: message}},
	}
}

func (s *state) publishError(t *task, code, message, cause string) {
	s.add(kit.Publish{Event: s.errorEvent(t, code, message)},
		kit.Log{Level: kit.Error, Text: "turn failed", Attrs: []any{"task", t.id(), "cause", cause}})
}

func text(in *messages.Input) string {
	var b strings.Builder
	for _, p := range in.GetParts() {
		b.WriteString(p.GetText())
	}
	return b.String()
}

// shortText is how many characters of a task's text are shown; lineText in the line of the tree.
const (
	shortText = 80
	lineText  = 40
	// showMost is how many waiting tasks Show lists.
	showMost = 100
)

// clip cuts a text to n characters.
func clip(v string, n int) string {
	count, last := 0, 0
	for i := range v {
		if count == n-1 {
			last = i
		}
		if count == n {
			return v[:last] + "…"
		}
		count++
	}
	return v
}

func taskView(t *task) *messages.TaskView {
	return &messages.TaskView{
		TaskId: t.id(), Level: t.input.GetLevel(), Effective: effective(t),
		Channel: t.input.GetChannel(), Conversation: t.input.GetConversation(), Text: t.short,
		SinceUs: t.since.UnixMicro(), Preempted: t.preempted, Phase: t.turnPhase, Principal: t.input.GetPrincipal(),
		Approvals: t.approvals,
	}
}

// viewOf is taskView with the place of what waits.
func (s *state) viewOf(t *task) *messages.TaskView {
	v := taskView(t)
	if t.queued || t == s.slot {
		v.Position = s.position(t)
	}
	return v
}

// waitingCount is how many tasks wait for the running slot.
func (s *state) waitingCount() int {
	n := 0
	if s.slot != nil {
		n++
	}
	for l := range s.levels {
		n += s.levels[l].n
	}
	return n
}

// view is the answer to SchedulerQuery, with the first most of what waits: zero means all, less none.
func (s *state) view(most int) *messages.SchedulerState {
	v := &messages.SchedulerState{
		Agent: s.p.Agent.GetAgent(), Counters: proto.CloneOf(s.counters), Waiting: int32(s.waitingCount()),
	}
	if s.current != nil {
		v.Running = taskView(s.current)
	}
	for _, e := range s.ends {
		if e.op.GetEnd() == messages.End_END_STOPPED {
			v.StopQuota++
		}
	}
	for i := len(s.stack) - 1; i >= 0; i-- {
		v.Stack = append(v.Stack, taskView(s.stack[i]))
	}
	for _, id := range sortedKeys(s.parked) {
		v.Parked = append(v.Parked, taskView(s.parked[id]))
	}
	if most == 0 {
		most = int(v.GetWaiting())
	}
	s.listWaiting(v, most)
	return v
}

func (s *state) listWaiting(v *messages.SchedulerState, most int) {
	list := func(t *task) bool {
		if len(v.GetQueue()) >= most {
			return false
		}
		w := taskView(t)
		w.Position = int32(len(v.GetQueue()) + 1)
		v.Queue = append(v.Queue, w)
		return true
	}
	if s.slot != nil && !list(s.slot) {
		return
	}
	for l := topLevel; l >= 0; l-- {
		for t := range s.levels[l].all() {
			if !list(t) {
				return
			}
		}
	}
}

// Show implements kit.Shower.
func (s *state) Show() any { return s.view(showMost) }

// show keeps the tree's line about this scheduler true.
func (s *state) show() {
	word := "idle"
	if s.current != nil {
		word = "working"
	}
	line := strconv.Itoa(s.waitingCount()) + " waiting, " + strconv.Itoa(len(s.stack)) + " suspended"
	if n := len(s.parked); n > 0 {
		line += ", " + strconv.Itoa(n) + " parked"
	}
	if t := s.current; t != nil {
		line += "; L" + strconv.Itoa(int(effective(t))) + " " + clip(t.short, lineText) + " since " + t.since.UTC().Format(time.TimeOnly)
	}
	s.add(kit.State{Word: word, Summary: line})
}

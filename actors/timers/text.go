package timers

import (
	"strconv"
	"strings"
	"time"

	"homeagent/configs"
	"homeagent/messages"
)

// dateForm is how times are told, in the zone of the timer.
const dateForm = "Monday 2006-01-02 15:04:05"

// due is what a task is told about the slot it is for.
type due struct {
	slot   time.Time
	late   bool
	passed int
	// hand says that a person had it run now.
	hand bool
}

// label names a timer for people.
func label(t *messages.Timer) string {
	if t.GetName() != "" {
		return strconv.Quote(t.GetName())
	}
	return t.GetTimerId()
}

// input makes the input of a slot.
func (s *state) input(t *timer, key, id string, d due) *messages.Input {
	m := t.get()
	in := &messages.Input{
		Id: id, IdempotencyKey: key, Agent: m.GetAgent(), Level: m.Level, Channel: m.GetChannel(), Conversation: m.GetConversation(),
		Principal: &messages.Principal{
			Id: "timer:" + m.GetTimerId(), Name: m.GetName(), Kind: messages.PrincipalKind_PRINCIPAL_KIND_SYSTEM,
		},
		Mode: messages.Mode_MODE_QUEUE, Source: messages.InputSource_INPUT_SOURCE_JOB, Taint: m.GetTaint(),
		Parts: []*messages.Part{
			{Content: &messages.Part_Text{Text: s.head(t, d)}},
			{Content: &messages.Part_Text{Text: m.GetText()}},
		},
		CreatedUs: s.now.UnixMicro(), OnBehalf: m.GetOnBehalf(),
	}
	if m.GetReminder() {
		in.Source = messages.InputSource_INPUT_SOURCE_REMINDER
	}
	if in.GetTaint() == messages.Taint_TAINT_UNSPECIFIED {
		in.Taint = messages.Taint_TAINT_FOREIGN
	}
	if len(in.GetOnBehalf()) == 0 && m.GetPrincipal() != nil {
		in.OnBehalf = []*messages.Principal{m.GetPrincipal()}
	}
	if in.GetChannel() == "" {
		in.Channel, in.Conversation = Channel, m.GetTimerId()
	}
	return in
}

// head tells the model what it is before it reads the text.
func (s *state) head(t *timer, d due) string {
	var b strings.Builder
	m, zone := t.get(), s.zone(t)
	b.WriteString("The timer " + label(m) + " is due")
	switch {
	case d.hand:
		b.WriteString(", because it was run by hand.")
	default:
		b.WriteString(": " + d.slot.In(zone).Format(dateForm) + " (" + zone.String() + ").")
	}
	if d.late {
		b.WriteString(" It comes " + configs.FormatDuration(s.now.Sub(d.slot).Round(time.Second)) + " late, since the node was not running then.")
	}
	if d.passed > 0 {
		b.WriteString(" " + strconv.Itoa(d.passed) + " earlier times passed without a run.")
	}
	if m.GetReminder() {
		b.WriteString(" It is a reminder that was set earlier: tell the person now what it says.")
	} else {
		b.WriteString(" It is work that was set earlier: do now what it says.")
	}
	return b.String()
}

// slotText tells people what became of a slot.
func slotText(m *messages.Timer, slot *messages.TimerSlot, zone *time.Location) string {
	var b strings.Builder
	b.WriteString("The timer " + label(m) + " was due " + time.UnixMicro(slot.GetSlotUs()).In(zone).Format(dateForm) + " (" + zone.String() + ") and ")
	switch slot.GetOutcome() {
	case outcomeRan:
		b.WriteString("ran")
		if slot.GetReason() == reasonLate {
			b.WriteString(" late")
		}
	case outcomeMissed:
		b.WriteString("was skipped: the node was not running")
	case outcomeOverlap:
		b.WriteString("was skipped: the task of an earlier time has not ended")
	case outcomePaused:
		b.WriteString("was skipped: it was held")
	case outcomeRefused:
		b.WriteString("could not run (" + slot.GetReason() + ")")
	}
	if slot.GetPassed() > 0 {
		b.WriteString("; " + strconv.FormatUint(slot.GetPassed(), 10) + " earlier times were skipped with it")
	}
	b.WriteString(".")
	return b.String()
}

// stateWord is the lower-case word of a task's state.
func stateWord(st messages.TaskState) string {
	return strings.ToLower(strings.TrimPrefix(st.String(), "TASK_STATE_"))
}

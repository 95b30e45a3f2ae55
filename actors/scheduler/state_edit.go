package scheduler

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// maxText bounds an edited text in bytes, as channels bounds the text of an input.
const maxText = 384 << 10

// edit is a change of a waiting task that is being written. It is in force from when it was asked for: ledger writes it
// before it notes that the task runs.
type edit struct {
	ask  kit.Event
	task string
	old  *messages.Input // what the task was, should ledger not take the change
}

// onEdit changes one waiting task.
func (s *state) onEdit(e kit.Event, m *messages.EditQueue) {
	t := s.tasks[m.GetInputId()]
	if err := s.mayEdit(t, m); err != nil {
		s.add(e.Reply(err))
		return
	}
	switch m.GetEdit() {
	case messages.QueueEdit_QUEUE_EDIT_PROMOTE:
		s.promote(t)
		s.add(e.Reply(s.viewOf(t)))
	case messages.QueueEdit_QUEUE_EDIT_CANCEL:
		s.cancelWaiting(e, t)
	case messages.QueueEdit_QUEUE_EDIT_TEXT:
		s.changeText(e, t, m.GetText())
	case messages.QueueEdit_QUEUE_EDIT_LEVEL:
		s.changeLevel(e, t, m.GetLevel())
	default:
		s.add(e.Reply(&messages.Error{Code: "bad_input", Message: "It is not said what to change."}))
	}
}

// mayEdit refuses what can not be changed, or not by who asks: with another's words a task would still have the rights
// of its principal.
func (s *state) mayEdit(t *task, m *messages.EditQueue) *messages.Error {
	_, over := s.recent[m.GetInputId()]
	switch {
	case t == nil && !over:
		return &messages.Error{Code: "unknown_input", Message: "This agent has no such input.", Hint: "`waiter queue` shows what waits."}
	case t == nil || t.phase == ending:
		return notWaiting("The input has ended.")
	case !ownsTask(m.GetPrincipal(), t):
		return &messages.Error{Code: "not_allowed", Message: "Only who said it, or the owner, may change what waits."}
	case t.phase == parked && m.GetEdit() == messages.QueueEdit_QUEUE_EDIT_CANCEL:
		return nil
	case !t.queued && t != s.slot:
		return notWaiting("The input does not wait: its turn has begun, or another turn works on it.")
	}
	switch m.GetEdit() {
	case messages.QueueEdit_QUEUE_EDIT_TEXT:
		return checkText(t, m.GetText())
	case messages.QueueEdit_QUEUE_EDIT_LEVEL:
		if t == s.slot {
			return notWaiting("The running turn is making place for it already.")
		}
		return checkLevel(t, m.GetLevel())
	default:
		return nil
	}
}

func ownsTask(p *messages.Principal, t *task) bool {
	switch p.GetKind() {
	case messages.PrincipalKind_PRINCIPAL_KIND_OWNER, messages.PrincipalKind_PRINCIPAL_KIND_SYSTEM:
		return true
	default:
		return p.GetId() != "" && p.GetId() == t.input.GetPrincipal().GetId()
	}
}

func notWaiting(message string) *messages.Error {
	return &messages.Error{Code: "not_waiting", Message: message, Hint: "Stop it, or send another input."}
}

func checkText(t *task, text string) *messages.Error {
	switch {
	case t.begun:
		return notWaiting("Its turn has begun; its text stays.")
	case strings.TrimSpace(text) == "":
		return &messages.Error{Code: "bad_input", Message: "The text is empty.", Hint: "Cancel the input, or give a text."}
	case len(text) > maxText:
		return &messages.Error{Code: "too_large", Message: fmt.Sprintf("The text has %d bytes; at most %d are taken.", len(text), maxText)}
	}
	return nil
}

func checkLevel(t *task, level int32) *messages.Error {
	switch {
	case t.begun:
		return notWaiting("Its turn has begun; its level stays.")
	case level < 0 || level > 3:
		return &messages.Error{Code: "bad_input", Message: fmt.Sprintf("There is no level %d to choose.", level), Hint: "Levels are 0 to 3."}
	case t.input.GetLevel() == topLevel:
		return &messages.Error{Code: "not_allowed", Message: "What the kernel or a parent says keeps its level."}
	}
	return nil
}

// promote puts a task at the head of its level.
func (s *state) promote(t *task) {
	if t.queued {
		s.dequeue(t)
		s.enqueue(t, true)
	}
	if t.phase == ending {
		return
	}
	s.publishEdit(t, "promote")
	s.rearm()
}

// cancelWaiting ends a task that waits, or waits for people; the asker hears of it when that is on disk.
func (s *state) cancelWaiting(e kit.Event, t *task) {
	view := s.viewOf(t)
	s.finishNotRun(t, "cancelled")
	if w := s.ends[t.id()]; w != nil {
		w.asks = append(w.asks, func(ok bool) []kit.Effect {
			if !ok {
				return []kit.Effect{e.Reply(notWaiting("The input has ended."))}
			}
			return []kit.Effect{e.Reply(view)}
		})
	}
	s.dispatch()
}

// changeText replaces the texts of an input by one; its media stay.
func (s *state) changeText(e kit.Event, t *task, text string) {
	parts := []*messages.Part{{Content: &messages.Part_Text{Text: text}}}
	for _, p := range t.input.GetParts() {
		if p.GetPayload() != nil {
			parts = append(parts, p)
		}
	}
	in := proto.CloneOf(t.input)
	in.Parts = parts
	s.change(e, t, in, &messages.EditInput{TaskId: t.id(), Parts: parts})
	s.publishEdit(t, "text")
}

// changeLevel puts a task in another queue, in the order in which inputs were accepted; it may preempt from there.
func (s *state) changeLevel(e kit.Event, t *task, level int32) {
	in := proto.CloneOf(t.input)
	in.Level = proto.Int32(level)
	s.change(e, t, in, &messages.EditInput{TaskId: t.id(), Level: proto.Int32(level)})
	s.publishEdit(t, "level")
	s.rearm()
}

// change puts another input in the place of a task's and has it written.
func (s *state) change(e kit.Event, t *task, in *messages.Input, op *messages.EditInput) {
	corr := "edit/" + s.number()
	s.edits[corr] = &edit{ask: e, task: t.id(), old: t.input}
	s.become(t, in)
	s.add(s.ledger(corr, &messages.LedgerOp{Op: &messages.LedgerOp_Edit{Edit: op}}))
}

// become makes a waiting task one of another input.
func (s *state) become(t *task, in *messages.Input) {
	moves := t.queued && t.input.GetLevel() != in.GetLevel()
	if moves {
		s.dequeue(t)
		t.rank = 0
	}
	s.unsay(t)
	t.input, t.short = in, clip(text(in), shortText)
	if repeats(in) {
		s.duplicateOf(t)
	}
	if moves {
		s.enqueue(t, false)
	}
}

// edited answers who asked for a change that is on disk, or takes it back when it can not be written.
func (s *state) edited(corr string, err *messages.Error) {
	w := s.edits[corr]
	delete(s.edits, corr)
	t := s.tasks[w.task]
	waits := t != nil && (t.queued || t == s.slot)
	switch {
	case err != nil:
		if waits {
			s.become(t, w.old)
		}
		s.add(w.ask.Reply(err))
	case t != nil:
		s.add(w.ask.Reply(s.viewOf(t)))
	default:
		s.add(w.ask.Reply(notWaiting("The input has ended.")))
	}
}

func (s *state) publishEdit(t *task, what string) {
	s.publish(t, "edited", func(c *messages.TaskChange) {
		c.Reason = what
		if t.queued || t == s.slot {
			c.Position = s.position(t)
		}
	})
}

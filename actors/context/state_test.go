package context

import (
	"errors"
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

func TestWindows(t *testing.T) {
	s := kittest.New(t, "windows", New(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	ask := func(corr string, m *messages.ContextWindow) kit.Event {
		return kit.Event{From: kit.Path("agents/main/turn/x"), Corr: corr, Msg: m}
	}
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("memory/context")}})
	s.Step(0, ask("a", &messages.ContextWindow{Agent: "main/resident/cook", Conversation: "c", MaxEvents: 60, MaxTokens: 8000}))
	s.Note("defaults, and what is too much")
	s.Step(0, ask("b", &messages.ContextWindow{}))
	s.Step(0, ask("c", &messages.ContextWindow{MaxEvents: 1 << 30}))
	s.Step(0, ask("d", &messages.ContextWindow{}))
	s.Note("all readers are busy")
	s.Step(0, ask("e", &messages.ContextWindow{Conversation: "waits"}))
	s.Step(0, kit.Event{Msg: events{job: 2, list: []*messages.EventRecord{
		{Number: 1, Event: &messages.Event{EventId: "E1"}}, {Number: 2, Event: &messages.Event{EventId: "E2"}},
	}}})
	s.Step(0, kit.Event{Msg: events{job: 1, err: errors.New("disk")}})
	s.Show()
	s.Done()
}

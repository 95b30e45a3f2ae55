package kittest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

type write struct {
	kit.Private
	Keys  map[string]int
	Limit time.Duration
	Err   error
	Fn    func()
	Empty string
}

type ticked struct{ n int }

// toggler makes one effect of each form.
type toggler struct{ sent *messages.Preempt }

func (g *toggler) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case kit.Started:
		return []kit.Effect{kit.State{Word: "idle"}, kit.Ready{}}
	case *messages.Preempt:
		g.sent = &messages.Preempt{ByInput: "why"}
		return []kit.Effect{
			kit.Send{To: kit.Path("agents/main"), Msg: g.sent, Corr: "c2"},
			e.Reply(&messages.Ok{}),
			kit.After{Key: "tick", D: time.Second, Msg: ticked{n: 1}},
			write{Keys: map[string]int{"b": 2, "a": 1}, Limit: time.Minute, Err: errors.New("no"), Fn: func() {}},
		}
	case ticked:
		g.sent.ByInput = "changed"
		_ = m
	}
	return nil
}

func (g *toggler) Show() any { return map[string]any{"sent": g.sent != nil} }

// quiet is a testing.TB that notes failures instead of failing.
type quiet struct {
	testing.TB
	text string
}

func (q *quiet) Errorf(format string, args ...any) { q.text += format }
func (q *quiet) Helper()                           {}
func (q *quiet) Cleanup(func())                    {}

func start() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func drive(s *Script) {
	s.Step(0, kit.Event{Msg: kit.Started{Self: &messages.Address{Path: "x", Epoch: 7}}})
	s.Note("a preemption comes")
	s.Step(time.Second, kit.Event{From: kit.Path("asker"), Corr: "c1", Msg: &messages.Preempt{}})
	s.Show()
}

func TestTranscript(t *testing.T) {
	s := New(t, "toggle", &toggler{}, start())
	drive(s)
	if got := s.Now().Sub(start()); got != time.Second {
		t.Errorf("time moved %s", got)
	}
	s.Done()
}

func TestFrozenMessagesAreChecked(t *testing.T) {
	q := &quiet{TB: t}
	s := New(q, "toggle", &toggler{}, start())
	drive(s)
	s.Step(0, kit.Event{Msg: ticked{}})
	s.checkFrozen()
	if !strings.Contains(q.text, "frozen") {
		t.Fatal("a changed message was not noticed")
	}
}

func TestDifferenceIsNoticed(t *testing.T) {
	if *update {
		t.Skip("writing")
	}
	q := &quiet{TB: t}
	s := New(q, "toggle", &toggler{}, start())
	drive(s)
	s.Note("one line more")
	s.Done()
	if !strings.Contains(q.text, "differs") {
		t.Fatal("a transcript with one line more passed")
	}
}

func TestRenderIsStable(t *testing.T) {
	m := &messages.Error{Code: "x", Details: map[string]string{"b": "2", "a": "1", "c": "3"}}
	first := renderMessage(m)
	for range 50 {
		if got := renderMessage(proto.Clone(m)); got != first {
			t.Fatalf("%s\n%s", first, got)
		}
	}
	if want := `Error{"code":"x","details":{"a":"1","b":"2","c":"3"}}`; first != want {
		t.Fatalf("got %s", first)
	}
}

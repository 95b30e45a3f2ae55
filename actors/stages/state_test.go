package stages

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func TestTranscripts(t *testing.T) {
	turn := kit.Path("agents/main/turn/T1")
	ask := func(corr string, s messages.Stage) kit.Event {
		return kit.Event{From: turn, Corr: corr, Msg: &messages.RunStage{Stage: s, Context: &messages.StageContext{TaskId: "T1"}}}
	}
	t.Run("empty", func(t *testing.T) {
		s := kittest.New(t, "empty", newMachine(onInput, nil), start)
		s.Step(0, kit.Event{Msg: kit.Started{}})
		s.Step(time.Second, ask("c1", onInput))
		s.Step(time.Second, ask("c2", beforeOutput))
		s.Step(time.Second, kit.Event{Msg: &messages.Ok{}})
		s.Step(time.Second, kit.Event{Msg: &messages.Ok{}})
		s.Show()
		s.Done()
	})
	t.Run("several", func(t *testing.T) {
		s := kittest.New(t, "several", newMachine(onInput, []Handler{observer("look", nil), modifier("change", nil)}), start)
		s.Step(0, kit.Event{Msg: kit.Started{}})
		s.Step(time.Second, ask("c1", onInput))
		s.Step(time.Second, ask("c2", onInput))
		s.Note("the second run ends first")
		s.Step(time.Second, kit.Event{Msg: ran{ID: 2, Context: &messages.StageContext{TaskId: "T1", InputText: "x"}}})
		s.Step(time.Second, kit.Event{Msg: ran{
			ID: 1, Context: &messages.StageContext{TaskId: "T1"},
			Faults: []*messages.StageFault{{Handler: "change", Reason: ReasonPanic, Detail: "boom"}},
		}})
		s.Show()
		s.Done()
	})
}

// The whole actor under the runtime: several runs at once, and an order of stop that waits for a handler.
func TestActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, err := kit.NewRuntime(kit.Config{Node: "n", Epoch: 7, Seed: 1, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		p := Props(onInput, []Handler{
			{Name: "slow", Modifies: true, Run: func(_ context.Context, c *messages.StageContext) error {
				time.Sleep(time.Second)
				c.InputText += "!"
				return nil
			}},
		})
		a, err := rt.SpawnTop("on_input", p)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		done := make(chan string, 10)
		for range 10 {
			go func() {
				m, err := rt.Ask(t.Context(), a, &messages.RunStage{Stage: onInput, Context: &messages.StageContext{InputText: "hi"}})
				if err != nil {
					done <- err.Error()
					return
				}
				done <- m.(*messages.StageDone).GetContext().GetInputText()
			}()
		}
		for range 10 {
			if got := <-done; got != "hi!" {
				t.Errorf("answer %q", got)
			}
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("ten runs took %v, want that of one", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

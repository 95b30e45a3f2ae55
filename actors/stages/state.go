package stages

import (
	"fmt"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

type (
	// run starts a worker that runs the handlers.
	run struct {
		kit.Private
		ID      uint64
		Context *messages.StageContext
	}
	// ran is what the worker brings back.
	ran struct {
		ID      uint64
		Context *messages.StageContext
		Faults  []*messages.StageFault
	}
)

// machine is the state of one stage: the runs under way and who asked for them.
type machine struct {
	stage   messages.Stage
	names   []string
	last    uint64
	asks    map[uint64]kit.Event
	runs    uint64
	faults  map[string]uint64
	unknown map[string]bool
}

func newMachine(s messages.Stage, handlers []Handler) *machine {
	m := &machine{stage: s, asks: map[uint64]kit.Event{}, faults: map[string]uint64{}, unknown: map[string]bool{}}
	for _, h := range handlers {
		m.names = append(m.names, h.Name)
	}
	return m
}

// Step implements kit.Machine.
func (m *machine) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch msg := e.Msg.(type) {
	case kit.Started:
		return []kit.Effect{kit.State{Word: "ready", Summary: fmt.Sprintf("%d handlers", len(m.names))}, kit.Ready{}}
	case *messages.RunStage:
		return m.onRun(e, msg)
	case ran:
		return m.onRan(msg)
	case kit.Stopping, kit.Fault:
		return nil
	default:
		return m.onUnknown(e.Msg)
	}
}

func (m *machine) onRun(e kit.Event, r *messages.RunStage) []kit.Effect {
	if r.GetStage() != m.stage {
		return []kit.Effect{e.Reply(errWrongStage)}
	}
	m.runs++
	if len(m.names) == 0 {
		return []kit.Effect{e.Reply(&messages.StageDone{Stage: m.stage, Context: r.GetContext()})}
	}
	m.last++
	m.asks[m.last] = kit.Event{From: e.From, Corr: e.Corr}
	return []kit.Effect{run{ID: m.last, Context: r.GetContext()}}
}

func (m *machine) onRan(r ran) []kit.Effect {
	ask, ok := m.asks[r.ID]
	if !ok {
		return nil
	}
	delete(m.asks, r.ID)
	var out []kit.Effect
	for _, f := range r.Faults {
		m.faults[f.GetHandler()]++
		out = append(out, kit.Log{Level: kit.Warn, Text: "handler failed", Attrs: []any{
			"handler", f.GetHandler(), "reason", f.GetReason(), "detail", f.GetDetail(), "task", r.Context.GetTaskId(),
		}})
	}
	return append(out, ask.Reply(&messages.StageDone{Stage: m.stage, Context: r.Context, Faults: r.Faults}))
}

func (m *machine) onUnknown(msg any) []kit.Effect {
	name := fmt.Sprintf("%T", msg)
	if m.unknown[name] {
		return nil
	}
	m.unknown[name] = true
	return []kit.Effect{kit.Log{Level: kit.Warn, Text: "unknown message", Attrs: []any{"type", name}}}
}

// Show implements kit.Shower.
func (m *machine) Show() any {
	return map[string]any{
		"stage": Name(m.stage), "handlers": m.names, "runs": m.runs, "under_way": len(m.asks), "faults": m.faults,
	}
}

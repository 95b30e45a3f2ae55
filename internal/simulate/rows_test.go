package main

import (
	"slices"
	"testing"

	"homeagent/actors/agent"
	"homeagent/actors/kernel"
	"homeagent/actors/kit"
	"homeagent/actors/scheduler"
	"homeagent/actors/turn"
	"homeagent/messages"
)

// TestRowsAreThoseOfTheTable holds the rows of the simulation to the kernel's table. Jitter and the time to stop say
// nothing where time is virtual.
func TestRowsAreThoseOfTheTable(t *testing.T) {
	w := newWorld(makePlan(1), bug{}, nil)
	table := kernel.Table()
	compared := 0
	compare := func(kind string, p kit.Props, row kernel.Row) {
		t.Helper()
		compared++
		want := row.Restart
		want.Jitter, want.StopTimeout = 0, 0
		if p.Restart != want || p.Limits != row.Limits {
			t.Errorf("%s has %+v %+v here and %+v %+v in the table", kind, p.Restart, p.Limits, want, row.Limits)
		}
	}
	for _, r := range w.rows() {
		i := slices.IndexFunc(table, func(k kernel.Row) bool { return slices.Contains(k.Paths, r.path) })
		if i < 0 {
			continue // an actor of the simulation's own: whoever owns tools or a channel
		}
		compare(r.path, r.props(), table[i])
		if r.provides != "" && !slices.Contains(table[i].Provides, r.provides) {
			t.Errorf("%s provides %s here alone", r.path, r.provides)
		}
		for _, f := range r.requires {
			if !slices.Contains(table[i].Requires, f) {
				t.Errorf("%s requires %s here alone", r.path, f)
			}
		}
	}
	for kind, make := range w.kinds() {
		i := slices.IndexFunc(table, func(k kernel.Row) bool { return k.Kind == kind })
		if i < 0 {
			t.Errorf("the table has no kind %s", kind)
			continue
		}
		var p kit.Props
		var err error
		switch kind {
		case agent.Kind, scheduler.Kind:
			p, err = make(&messages.AgentSpec{Agent: "main"})
		case turn.Kind:
			p, err = make(&messages.StartTurn{Task: &messages.PendingTask{Input: &messages.Input{Id: "I"}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		compare(kind, p, table[i])
	}
	if compared < 15 {
		t.Errorf("%d rows compared", compared)
	}
}

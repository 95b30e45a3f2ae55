package graph

import (
	"context"
	"time"

	"homeagent/actors/kit"
	"homeagent/memory/graphmem"
	"homeagent/memory/store"
)

// Kind is the row of the graph's writer in the kernel's table.
const Kind = "memory/graph"

// Engine is what the actor needs of the engine; memory/graphmem has it. Commit is called by one worker at a time.
type Engine interface {
	Commit(ctx context.Context, facts []graphmem.Fact, joins ...graphmem.Join) ([]graphmem.Outcome, error)
}

// Syncer makes what was committed durable.
type Syncer interface {
	Sync() error
}

var (
	_ Engine = (*graphmem.Graph)(nil)
	_ Syncer = (*store.DB)(nil)
)

// Deps of the actor; all are owned by the caller.
type Deps struct {
	// Engine has this actor as its only writer.
	Engine Engine
	// Store is synced before a commit is answered.
	Store Syncer
}

// limit of one visit of the engine.
const limit = 30 * time.Second

// Props makes the actor.
func Props(d Deps) kit.Props {
	return kit.Props{Kind: Kind, New: New, Perform: func(sh kit.Shell, e kit.Effect) { perform(d, sh, e) }}
}

func perform(d Deps, sh kit.Shell, e kit.Effect) {
	switch e := e.(effect).(type) {
	case write:
		sh.Go("engine", limit, func(ctx context.Context, _ func(any)) any { return run(ctx, d, e.facts) })
	}
}

func run(ctx context.Context, d Deps, facts []graphmem.Fact) written {
	out, err := d.Engine.Commit(ctx, facts)
	if serr := d.Store.Sync(); err == nil {
		err = serr
	}
	return written{outcomes: out, err: err}
}

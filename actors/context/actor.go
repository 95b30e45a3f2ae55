package context

import (
	gocontext "context"
	"time"

	"homeagent/actors/kit"
	"homeagent/memory/contextmem"
	"homeagent/messages"
)

// Kind is the row of the context's reader in the kernel's table.
const Kind = "memory/context"

// Engine is what the actor needs of the engine; memory/contextmem has it. It is called by several workers at a time.
type Engine interface {
	Last(w contextmem.Window) ([]*messages.EventRecord, error)
}

var _ Engine = (*contextmem.Context)(nil)

// Deps of the actor.
type Deps struct {
	// Engine is owned by the caller.
	Engine Engine
}

// Props makes the actor.
func Props(d Deps) kit.Props {
	return kit.Props{Kind: Kind, New: New, Perform: func(sh kit.Shell, e kit.Effect) { perform(d, sh, e) }}
}

func perform(d Deps, sh kit.Shell, e kit.Effect) {
	switch e := e.(effect).(type) {
	case read:
		sh.Go("read", 10*time.Second, func(gocontext.Context, func(any)) any {
			list, err := d.Engine.Last(e.window)
			return events{job: e.job, list: list, err: err}
		})
	}
}

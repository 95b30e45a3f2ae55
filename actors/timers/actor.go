package timers

import (
	"context"

	"homeagent/actors/kit"
	engine "homeagent/memory/timers"
	"homeagent/messages"
)

// Kind is the row of timers in the kernel's table.
const Kind = "timers"

// Engine is what the actor needs of the engine; memory/timers has it.
type Engine interface {
	Load() (records []*messages.TimerRecord, damaged []string, err error)
}

var _ Engine = (*engine.Engine)(nil)

// Deps of the actor; the engine is owned by the caller.
type Deps struct {
	// Engine reads the timers that are stored.
	Engine Engine
	// Params of the machine as the settings are now: what was missed is decided before config answers.
	Params func() Params
}

// Props makes the actor.
func Props(d Deps) kit.Props {
	return kit.Props{
		Kind: Kind,
		New:  func() kit.Machine { return New(d.Params()) },
		Perform: func(sh kit.Shell, e kit.Effect) {
			if _, ok := e.(load); ok {
				sh.Go("load", 0, func(context.Context, func(any)) any {
					records, damaged, err := d.Engine.Load()
					return loaded{Records: records, Damaged: damaged, Err: err}
				})
			}
		},
	}
}

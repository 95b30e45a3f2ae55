package scheduler

import "homeagent/actors/kit"

// Kind is the scheduler's row in the kernel's table.
const Kind = "scheduler"

// Props makes schedulers of one agent. It has no private effects: all it does to the world is messages.
func Props(p Params) kit.Props {
	return kit.Props{Kind: Kind, New: func() kit.Machine { return New(p) }}
}

package channels

import "homeagent/actors/kit"

// Kind is the row of channels in the kernel's table.
const Kind = "channels"

// Props makes the actor. It has no private effects: all it does to the world is messages.
func Props(p Params) kit.Props {
	return kit.Props{Kind: Kind, New: func() kit.Machine { return New(p) }}
}

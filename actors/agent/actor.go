package agent

import "homeagent/actors/kit"

// Rows of this package in the kernel's table.
const (
	// RootKind is the root of the agents, at agents.
	RootKind = "agents"
	// Kind is one agent, at agents/main or below it.
	Kind = "agent"
)

// RootProps makes the root of the agents.
func RootProps(p RootParams) kit.Props {
	return kit.Props{Kind: RootKind, New: func() kit.Machine { return NewRoot(p) }}
}

// Props makes one agent.
func Props(p Params) kit.Props {
	return kit.Props{Kind: Kind, New: func() kit.Machine { return New(p) }}
}

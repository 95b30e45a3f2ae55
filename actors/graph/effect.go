package graph

import (
	"homeagent/actors/kit"
	"homeagent/memory/graphmem"
)

// effect is what only this actor does; the sum is sealed.
type effect interface {
	kit.Effect
	own()
}

// write takes facts to the engine in a worker; written comes back.
type write struct {
	kit.Private
	facts []graphmem.Fact
}

func (write) own() {}

// written is what the worker brings back.
type written struct {
	outcomes []graphmem.Outcome
	err      error
}

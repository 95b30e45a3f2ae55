package context

import (
	"homeagent/actors/kit"
	"homeagent/memory/contextmem"
	"homeagent/messages"
)

// effect is what only this actor does; the sum is sealed.
type effect interface {
	kit.Effect
	own()
}

// read takes a window to the engine in a worker; events comes back.
type read struct {
	kit.Private
	job    uint64
	window contextmem.Window
}

func (read) own() {}

// events is what the worker brings back.
type events struct {
	job  uint64
	list []*messages.EventRecord
	err  error
}

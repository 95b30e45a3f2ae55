package admin

import (
	"homeagent/actors/kit"
	"homeagent/messages"
	"homeagent/messages/api"
)

// The private effects of this actor.
type (
	// serve starts the HTTP servers in a worker; it ends with failed if they break.
	serve struct {
		kit.Private
		Epoch uint64
	}
	// announce writes run/homed.json in a worker; it ends with announced.
	announce struct{ kit.Private }
	// drain refuses new work from now on.
	drain struct{ kit.Private }
	// deliver hands a batch to a connection. Sync says that the stream is another one than before.
	deliver struct {
		kit.Private
		Name  string
		Batch *messages.EventBatch
		Sync  bool
	}
	// refuse ends a connection whose subscription was refused.
	refuse struct {
		kit.Private
		Name string
		Err  *messages.Error
	}
	// tally shows new usage figures; the value is never changed afterwards.
	tally struct {
		kit.Private
		Tokens *api.Tokens
	}
)

// The private events of this actor.
type (
	// opened asks for a subscription of a connection.
	opened struct {
		Name          string
		Types         []messages.EventType
		Task          string
		AfterEpoch    uint64
		AfterSequence uint64
	}
	// closed ends it.
	closed struct{ Name string }
	// announced tells that run/homed.json stands.
	announced struct{}
	// failed tells that a server broke, or that the node could not announce itself.
	failed struct{ Err error }
	// renew and retry are timers.
	renew struct{}
	retry struct{ Channel string }
)

package plugins

import (
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
	"homeagent/pluginhost"
)

// effect is what only a proxy does; the sum is sealed.
type effect interface {
	kit.Effect
	own()
}

// The fields are exported so that transcripts show them.
type (
	// configure brings the plugin up or hands it settings, in a worker; configured comes back.
	configure struct {
		kit.Private
		Settings pluginhost.Settings
	}
	// halt brings the plugin down in a worker; halted comes back.
	halt struct{ kit.Private }
	// run runs a call in a worker for at most Limit, zero means none; ran comes back.
	run struct {
		kit.Private
		Job   uint64
		Call  *messages.CallTool
		Limit time.Duration
	}
)

func (configure) own() {}
func (halt) own()      {}
func (run) own()       {}

type (
	// configured is the result of configure.
	configured struct {
		Tools []*messages.ToolDef
		Err   error
	}
	// halted is the result of halt.
	halted struct{ Err error }
	// ran is the result of run.
	ran struct {
		Job    uint64
		Result *messages.ToolResult
	}
	// again is a timer: tools did not take the registration.
	again struct{}
	// tell is a timer: figures have changed.
	tell struct{}
	// late is a timer of the root: a proxy has not said how its plugin is.
	late struct{}
)

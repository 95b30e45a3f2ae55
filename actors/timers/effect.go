package timers

import (
	"homeagent/actors/kit"
	"homeagent/messages"
)

// load reads all timers in a worker; loaded comes back. It is the only effect of this actor's own.
type load struct{ kit.Private }

type (
	// loaded is the result of load.
	loaded struct {
		Records []*messages.TimerRecord
		Damaged []string
		Err     error
	}
	// wake is a timer: the wall clock is to be looked at.
	wake struct{}
	// again is a timer: what was refused is to be asked again.
	again struct{ Corr string }
	// late is a timer: an answer has not come.
	late struct{ Corr string }
)

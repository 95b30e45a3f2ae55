package guard

import (
	"homeagent/actors/kit"
	"homeagent/messages"
)

// effect is what only this actor does; the sum is sealed.
type effect interface {
	kit.Effect
	own()
}

type (
	// load reads all approvals in a worker; loaded comes back.
	load struct{ kit.Private }
	// read looks approvals up in a worker; found comes back. One wants the one approval as the answer, not a list.
	read struct {
		kit.Private
		Ask   kit.Event
		Query *messages.ListApprovals
		One   bool
	}
)

func (load) own() {}
func (read) own() {}

// The private events of this actor.
type (
	// loaded is what the store held; decided approvals are slim. Spoilt counts tokens that do not decode.
	loaded struct {
		List    []*messages.Approval
		Damaged []string
		Tokens  []*messages.NamedToken
		Spoilt  int
		Err     error
	}
	// found answers a read.
	found struct {
		Ask  kit.Event
		ID   string
		One  bool
		List []*messages.Approval
		Err  error
	}
	// tick, again and tell are timers: expiry and retention, a write that was not taken, schedulers that were not reached.
	tick  struct{}
	again struct{}
	tell  struct{}
)

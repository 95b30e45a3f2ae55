package memory

import (
	"time"

	"homeagent/actors/kit"
	"homeagent/memory/recall"
	"homeagent/messages"
)

// effect is what only this actor does; the sum is sealed.
type effect interface {
	kit.Effect
	own()
}

type (
	// lookup asks the engine in a worker; found comes back.
	lookup struct {
		kit.Private
		job      uint64
		question recall.Question
	}
	// browse looks into memory for a person in a worker; browsed comes back.
	browse struct {
		kit.Private
		job   uint64
		query *messages.MemoryQuery
	}
	// loadWords loads the dictionary in a worker; wordsLoaded comes back.
	loadWords struct{ kit.Private }
	// dropWords drops the dictionary if it was not used since; wordsChecked comes back.
	dropWords struct {
		kit.Private
		since time.Time
	}
)

func (lookup) own()    {}
func (browse) own()    {}
func (loadWords) own() {}
func (dropWords) own() {}

type (
	// found is the result of lookup.
	found struct {
		job    uint64
		answer recall.Answer
		err    error
	}
	// browsed is the result of browse.
	browsed struct {
		job    uint64
		answer *messages.MemoryAnswer
		err    error
	}
	// wordsLoaded is the result of loadWords.
	wordsLoaded struct{ err error }
	// wordsChecked is the result of dropWords.
	wordsChecked struct{ dropped bool }
	// tick is a timer: the dictionary may be idle.
	tick struct{}
	// register is a timer: the tools are to be registered again.
	register struct{}
	// late is a timer: the graph has not answered a call.
	late struct{ job uint64 }
)

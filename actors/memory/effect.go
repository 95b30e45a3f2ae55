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

// The fields are exported so that transcripts show them as messages.
type (
	// lookup asks the engine in a worker; found comes back.
	lookup struct {
		kit.Private
		Job      uint64
		Question recall.Question
	}
	// browse looks into memory for a person in a worker; browsed comes back.
	browse struct {
		kit.Private
		Job   uint64
		Query *messages.MemoryQuery
	}
	// loadWords loads the dictionary in a worker; wordsLoaded comes back.
	loadWords struct{ kit.Private }
	// dropWords drops the dictionary if it was not used since; wordsChecked comes back.
	dropWords struct {
		kit.Private
		Since time.Time
	}
)

func (lookup) own()    {}
func (browse) own()    {}
func (loadWords) own() {}
func (dropWords) own() {}

type (
	// found is the result of lookup.
	found struct {
		Job    uint64
		Answer recall.Answer
		Err    error
	}
	// browsed is the result of browse.
	browsed struct {
		Job    uint64
		Answer *messages.MemoryAnswer
		Err    error
	}
	// wordsLoaded is the result of loadWords.
	wordsLoaded struct{ Err error }
	// wordsChecked is the result of dropWords.
	wordsChecked struct{ Dropped bool }
	// tick is a timer: the dictionary may be idle.
	tick struct{}
	// register is a timer: the tools are to be registered again.
	register struct{}
	// late is a timer: the graph has not answered a call.
	late struct{ Job uint64 }
)

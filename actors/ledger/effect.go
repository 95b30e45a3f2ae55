package ledger

import (
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
)

// effect is what only this actor does; the sum is sealed.
type effect interface {
	kit.Effect
	own()
}

// visit takes requests to the engine in a worker; answers comes back.
type visit struct {
	kit.Private
	Requests []proto.Message
}

// retain has the engine remove some of what is too old, in a worker; retained comes back.
type retain struct{ kit.Private }

// upkeep looks after the files in a worker of its own; kept comes back.
type upkeep struct{ kit.Private }

func (visit) own()  {}
func (retain) own() {}
func (upkeep) own() {}

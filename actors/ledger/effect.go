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

func (visit) own() {}

package tools

import (
	"time"

	"homeagent/actors/kit"
)

// Kind of tools in the kernel's table.
const Kind = "tools"

// Params are what tools is made with; a zero field means its default.
type Params struct {
	// Timeout of a tool that names none; default 60 s.
	Timeout time.Duration
	// ResultCap is the most bytes of a result; default 256 KiB.
	ResultCap int
	// Zone is the person's time zone, for time_now; default UTC.
	Zone *time.Location
	// Owners are the paths of those whose tools a node always has. The list is not given before they
	// have registered, or ownersWait is over: turns go on after a start before all actors have.
	Owners []string
}

const (
	defaultTimeout   = time.Minute
	defaultResultCap = 256 << 10
	cancelGrace      = 5 * time.Second
	// ownersWait is how long the first owners are waited for, and maxEarly how many questions wait with them.
	ownersWait = 10 * time.Second
	maxEarly   = 1024
)

func (p Params) withDefaults() Params {
	if p.Timeout <= 0 {
		p.Timeout = defaultTimeout
	}
	if p.ResultCap <= 0 {
		p.ResultCap = defaultResultCap
	}
	if p.Zone == nil {
		p.Zone = time.UTC
	}
	return p
}

// Props makes the tools actor. It has no private effects.
func Props(p Params) kit.Props {
	p = p.withDefaults()
	return kit.Props{Kind: Kind, New: func() kit.Machine { return New(p) }}
}

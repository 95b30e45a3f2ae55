package kernel

import (
	"fmt"
	"sync"

	"homeagent/actors/kit"
)

// LostError says that an actor which the node cannot do without was given up: it failed more often than its row allows,
// and so did everything above it. A node in that state would take inputs that nobody ends.
type LostError struct {
	// Path and Kind of the actor.
	Path, Kind string
	// Failure is the last one.
	Failure string
	// Once says that one failure was enough: trying again cannot help.
	Once bool
}

// Error says who was lost and why.
func (e *LostError) Error() string {
	if e.Once {
		return fmt.Sprintf("%s cannot go on: %s", e.Path, e.Failure)
	}
	return fmt.Sprintf("%s was given up after it had failed again and again: %s", e.Path, e.Failure)
}

// fate is how a node ends that nobody has told to end.
type fate struct {
	once sync.Once
	ch   chan error
}

// Lost gets one *LostError when an actor is given up whose row escalates; whoever runs the node then closes it and ends
// with an error, so that what supervises the process starts it anew. It is never closed.
func (n *Node) Lost() <-chan error { return n.fate.ch }

// lose ends the node; the first loss counts.
func (n *Node) lose(err *LostError) { n.fate.once.Do(func() { n.fate.ch <- err }) }

// givenUp hears that an actor was given up. Only those of the table whose row escalates end the node; the others are
// told to people by kit's notice, and what needed them goes on without.
func (n *Node) givenUp(f kit.Fact) {
	for _, layer := range n.layers {
		for _, r := range layer {
			for _, p := range r.Paths {
				if p == f.Path && r.Restart.Escalate {
					n.lose(&LostError{Path: f.Path, Kind: f.Kind, Failure: f.Failure})
				}
			}
		}
	}
}

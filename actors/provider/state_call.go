package provider

import (
	"strconv"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// call is the machine of one call.
type call struct {
	complete *messages.Complete
	self     *messages.Address
	source   *messages.Address
	done     bool
}

// NewCall makes the machine of one call.
func NewCall(c *messages.Complete) kit.Machine { return &call{complete: c} }

// callSegment divides the path of a source from the name of a call.
const callSegment = "/call/"

// callName names a call; the dot keeps ids that are paths in one segment.
func callName(id string, attempt int32) string {
	return "call/" + strings.ReplaceAll(id, "/", "-") + "." + strconv.Itoa(int(attempt))
}

// Step decides; see the package comment for the contract.
func (c *call) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch v := e.Msg.(type) {
	case kit.Started:
		return c.start(v)
	case sent:
		return c.tell(v.Msg)
	case *messages.Delta:
		return []kit.Effect{kit.Send{To: c.complete.GetReplyTo(), Msg: v}}
	case finished:
		return c.finish(v.Result)
	case *messages.CancelCompletion:
		return c.cancel()
	case kit.Fault:
		return c.fault(v)
	}
	return nil
}

func (c *call) start(s kit.Started) []kit.Effect {
	c.self = s.Self
	path, name, _ := strings.Cut(s.Self.GetPath(), callSegment)
	n, _ := strconv.Atoi(name[strings.LastIndexByte(name, '.')+1:])
	c.source = &messages.Address{Node: s.Self.GetNode(), Path: path, Epoch: s.Self.GetEpoch()}
	return []kit.Effect{
		kit.State{Word: "connecting"},
		run{Source: path[strings.LastIndexByte(path, '/')+1:], Attempt: int32(n), Complete: c.complete},
	}
}

func (c *call) tell(m *messages.RequestSent) []kit.Effect {
	return []kit.Effect{
		kit.Send{To: c.complete.GetReplyTo(), Msg: m},
		kit.State{Word: "streaming", Summary: m.GetModel()},
	}
}

func (c *call) finish(r *messages.CompletionResult) []kit.Effect {
	c.done = true
	return []kit.Effect{
		kit.Send{To: c.source, Msg: &messages.CompletionDone{CallId: c.complete.GetRequest().GetCallId(), Result: r}},
		kit.Stop{Who: c.self},
	}
}

// cancel closes the connection: the worker's context is the request's.
func (c *call) cancel() []kit.Effect {
	c.done = true
	return []kit.Effect{kit.CancelWork{Key: runWork}, kit.Stop{Who: c.self}}
}

// fault ends the call when its turn is gone. A turn that is only busy misses a
// piece for display; the result holds all of it.
func (c *call) fault(f kit.Fault) []kit.Effect {
	s, ok := f.Effect.(kit.Send)
	if !ok || c.done || s.To != c.complete.GetReplyTo() || f.Err.GetCode() != kit.CodeGone {
		return nil
	}
	out := []kit.Effect{kit.CancelWork{Key: runWork}}
	return append(out, c.finish(failure("", messages.ErrorKind_ERROR_KIND_CANCELLED, "the turn is gone", ""))...)
}

package provider

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
	models "homeagent/providers"
)

const (
	// maxQueue is how many calls may wait at one source.
	maxQueue = 256
	// maxCancelled is how many cancels that came before their Complete are
	// remembered.
	maxCancelled = 128
)

// source is the machine of one source.
type source struct {
	spec    *messages.SourceSpec
	self    *messages.Address
	parent  *messages.Address
	limit   int
	open    map[string]*opened // by call id
	names   map[string]string  // child name -> call id
	waiting []opened
	early   cancelled
	calls   uint64
	failed  uint64
}

// opened is a call that is open, or waits to be.
type opened struct {
	id       string
	attempt  int32
	name     string
	complete *messages.Complete
}

// NewSource makes the machine of one source.
func NewSource(spec *messages.SourceSpec) kit.Machine {
	return &source{spec: spec, limit: limitOf(spec), open: make(map[string]*opened), names: make(map[string]string)}
}

func limitOf(spec *messages.SourceSpec) int {
	if n := int(spec.GetMaxConcurrent()); n > 0 {
		return n
	}
	return models.DefaultMaxConcurrent
}

// Step decides; see the package comment for the contract.
func (s *source) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch v := e.Msg.(type) {
	case kit.Started:
		return s.start(v)
	case *messages.SourceSpec:
		s.spec, s.limit = v, limitOf(v)
		return append(s.fill(), s.shown())
	case *messages.Complete:
		return s.take(v, e.Corr)
	case *messages.CancelCompletion:
		return s.cancel(v)
	case *messages.CompletionDone:
		return s.completed(v)
	case kit.Ended:
		return s.ended(v)
	case kit.Fault:
		return s.fault(v)
	}
	return nil
}

func (s *source) start(v kit.Started) []kit.Effect {
	s.self = v.Self
	s.parent = &messages.Address{Node: v.Self.GetNode(), Path: Kind, Epoch: v.Self.GetEpoch()}
	return []kit.Effect{s.shown()}
}

func (s *source) shown() kit.Effect {
	word := "idle"
	if len(s.open) > 0 {
		word = "busy"
	}
	name := strings.TrimSpace(s.spec.GetAdapter() + " " + s.spec.GetModel()) // not every source names a model
	text := fmt.Sprintf("%s, %d of %d open", name, len(s.open), s.limit)
	if len(s.waiting) > 0 {
		text += fmt.Sprintf(", %d waiting", len(s.waiting))
	}
	return kit.State{Word: word, Summary: text}
}

// take opens a call or lets it wait. The correlation is the attempt.
func (s *source) take(c *messages.Complete, corr string) []kit.Effect {
	id := c.GetRequest().GetCallId()
	if s.early.take(id) {
		return nil
	}
	attempt, _ := strconv.ParseInt(corr, 10, 32)
	if len(s.waiting) >= maxQueue {
		return []kit.Effect{s.report(id, failure(s.spec.GetName(), messages.ErrorKind_ERROR_KIND_OVERLOADED,
			"too many calls wait for this source", "Raise max_concurrent of the source, or ask less at a time."))}
	}
	s.waiting = append(s.waiting, opened{id: id, attempt: int32(attempt), complete: c})
	return append(s.fill(), s.shown())
}

// fill opens waiting calls while there is room.
func (s *source) fill() []kit.Effect {
	var out []kit.Effect
	for len(s.waiting) > 0 && len(s.open) < s.limit {
		o := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		o.name = callName(o.id, o.attempt)
		s.open[o.id], s.names[o.name] = &o, o.id
		s.calls++
		out = append(out, kit.Spawn{Kind: CallKind, Name: o.name, Params: o.complete, Watch: true})
	}
	return out
}

func (s *source) report(id string, r *messages.CompletionResult) kit.Effect {
	if r.GetFailure() != nil {
		s.failed++
	}
	return kit.Send{To: s.parent, Msg: &messages.CompletionDone{CallId: id, Result: r}}
}

// free forgets an open call; nil when it is not open.
func (s *source) free(id string) *opened {
	o := s.open[id]
	if o != nil {
		delete(s.open, id)
		delete(s.names, o.name)
	}
	return o
}

func (s *source) cancel(c *messages.CancelCompletion) []kit.Effect {
	id := c.GetCallId()
	if o := s.free(id); o != nil {
		to := &messages.Address{Node: s.self.GetNode(), Path: s.self.GetPath() + "/" + o.name, Epoch: s.self.GetEpoch()}
		out := []kit.Effect{kit.Send{To: to, Msg: c}}
		return append(append(out, s.fill()...), s.shown())
	}
	if i := slices.IndexFunc(s.waiting, func(o opened) bool { return o.id == id }); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return []kit.Effect{s.shown()}
	}
	s.early.add(id)
	return nil
}

func (s *source) completed(d *messages.CompletionDone) []kit.Effect {
	if s.free(d.GetCallId()) == nil {
		return nil // cancelled meanwhile
	}
	out := []kit.Effect{s.report(d.GetCallId(), d.GetResult())}
	return append(append(out, s.fill()...), s.shown())
}

// ended reports a call that ended without a result.
func (s *source) ended(e kit.Ended) []kit.Effect {
	id, ok := s.names[e.Name]
	if !ok {
		return nil
	}
	return s.crashed(id, e.Failure, lost(s.spec.GetName(), "the call ended without a result"))
}

// crashed reports a call whose actor is gone; res says what is known of it.
func (s *source) crashed(id, why string, res *messages.CompletionResult) []kit.Effect {
	s.free(id)
	out := []kit.Effect{
		kit.Log{Level: kit.Error, Text: "call ended without a result", Attrs: []any{"call_id", id, "failure", why}},
		s.report(id, res),
	}
	return append(append(out, s.fill()...), s.shown())
}

func (s *source) fault(f kit.Fault) []kit.Effect {
	spawn, ok := f.Effect.(kit.Spawn)
	if !ok {
		return nil
	}
	if id, ok := s.names[spawn.Name]; ok {
		// It never began, so that another source may be asked.
		return s.crashed(id, f.Err.GetMessage(), failure(s.spec.GetName(), messages.ErrorKind_ERROR_KIND_SERVER,
			"the call could not be started", "Ask again; the log says more."))
	}
	return nil
}

// Show is what people see of a source.
func (s *source) Show() any {
	return map[string]any{
		"adapter": s.spec.GetAdapter(), "model": s.spec.GetModel(), "limit": s.limit,
		"open": len(s.open), "waiting": len(s.waiting), "calls": s.calls, "failed": s.failed,
	}
}

// cancelled remembers the ids of cancels that may have overtaken their Complete.
type cancelled struct{ ids []string }

func (c *cancelled) add(id string) {
	if len(c.ids) >= maxCancelled {
		c.ids = slices.Delete(c.ids, 0, 1)
	}
	c.ids = append(c.ids, id)
}

func (c *cancelled) take(id string) bool {
	i := slices.Index(c.ids, id)
	if i < 0 {
		return false
	}
	c.ids = slices.Delete(c.ids, i, i+1)
	return true
}

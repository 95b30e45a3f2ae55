package provider

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
	models "homeagent/providers"
)

// request is one Complete under way.
type request struct {
	complete *messages.Complete
	plan     *models.Plan
	// source and key have the attempt under way, or the one that is waited for.
	source, key string
	// asked is the source as it was when it was asked.
	asked    known
	waiting  bool
	attempt  int
	since    time.Time
	attempts []*messages.CompletionAttempt
}

// opened notes who waits for an answer, so that a restart can tell them.
func (m *machine) opened(c *messages.Complete) {
	id := c.GetRequest().GetCallId()
	if id != "" && c.GetReplyTo() != nil && m.requests[id] == nil {
		m.add(openCall{CallID: id, To: c.GetReplyTo()})
	}
}

// orphaned answers what an earlier incarnation was asked and can answer no more.
func (m *machine) orphaned(o orphaned) {
	for _, c := range o.Calls {
		if m.requests[c.CallID] != nil || slices.ContainsFunc(m.held, func(e kit.Event) bool {
			h, ok := e.Msg.(*messages.Complete)
			return ok && h.GetRequest().GetCallId() == c.CallID
		}) {
			m.add(c) // it came meanwhile, and goes on
			continue
		}
		res := failure("", messages.ErrorKind_ERROR_KIND_SERVER, "the part of the node that asks models was restarted", "Ask again; the log says more.")
		m.add(kit.Send{To: c.To, Msg: &messages.CompletionDone{CallId: c.CallID, Result: res}})
	}
}

// complete begins a request.
func (m *machine) complete(e kit.Event, c *messages.Complete) {
	id := c.GetRequest().GetCallId()
	switch {
	case id == "" || c.GetReplyTo() == nil:
		m.add(e.Reply(&messages.Error{Code: "bad_request", Message: "a completion needs a call id and somebody to answer to"}))
		return
	case m.requests[id] != nil:
		m.add(e.Reply(&messages.Error{Code: "duplicate_call", Message: "a completion of this call id is under way", Details: map[string]string{"call_id": id}}))
		return
	case m.early.take(id):
		m.add(closeCall{CallID: id})
		return
	}
	r := &request{complete: c}
	if len(m.requests) >= maxRequests {
		m.finish(id, r, failure("", messages.ErrorKind_ERROR_KIND_OVERLOADED, "too many requests are under way", "Wait for some of them to end."))
		return
	}
	m.requests[id] = r
	if at := c.GetDeadlineUs(); at != 0 {
		m.add(kit.After{Key: "late/" + id, D: time.UnixMicro(at).Sub(m.now), Msg: late{id}})
	}
	a := models.Ask{Key: id, Only: c.GetRequest().GetSource(), First: m.chosen.source(m.now, c), Free: c.GetBackground() && m.spent() != nil}
	var v models.Verdict
	r.plan, v = m.router.Begin(m.now, a)
	if a.Free && v.Source == "" {
		m.finish(id, r, m.overBudget())
		return
	}
	m.follow(id, r, v, nil)
}

// follow does what the router decided. res is the result of the attempt that
// failed, nil when there was none.
func (m *machine) follow(id string, r *request, v models.Verdict, res *messages.CompletionResult) {
	if v.Source == "" {
		if res == nil || models.FailureOf(res).Kind != v.Failure.Kind {
			res = &messages.CompletionResult{Source: v.Failure.Source, Finish: messages.Finish_FINISH_ERROR, Failure: v.Failure.Proto()}
		}
		m.finish(id, r, res)
		return
	}
	r.source, r.key = v.Source, v.Key
	if v.After > 0 {
		r.waiting = true
		m.add(kit.After{Key: "again/" + id, D: v.After, Msg: again{id}})
		if v.After >= longPause {
			m.sourceNotice("waiting", v.Source, "asked again in "+v.After.Round(time.Second).String())
		}
		return
	}
	m.ask(r)
}

// longPause is a pause that people are told of.
const longPause = 5 * time.Second

// ask makes an attempt at the request's source.
func (m *machine) ask(r *request) {
	r.waiting, r.since = false, m.now
	r.attempt++
	f := m.figure(r.source)
	f.active++
	f.calls++
	if k := m.known(r.source); k != nil {
		r.asked = *k
		if m.running[r.source] == nil {
			// Its actor had ended for good; it stands again for this request.
			m.stand(r.source, k.Spec)
		}
	}
	c := r.complete
	if r.key != "" {
		c = &messages.Complete{Request: c.GetRequest(), ReplyTo: c.GetReplyTo(), DeadlineUs: c.GetDeadlineUs(), Key: r.key}
	}
	m.add(kit.Send{To: m.address(r.source), Corr: strconv.Itoa(r.attempt), Msg: c})
	m.show()
}

func (m *machine) again(a again) {
	r := m.requests[a.CallID]
	if r == nil || !r.waiting {
		return
	}
	if k := m.known(r.source); k == nil || k.Route.Disabled {
		r.waiting = false
		f := &models.Failure{Kind: messages.ErrorKind_ERROR_KIND_NO_SOURCE, Source: r.source, Message: "the source was removed"}
		m.follow(a.CallID, r, m.router.Failed(m.now, r.plan, f), nil)
		return
	}
	m.ask(r)
}

// fromCurrent tells that a result comes from the source that was asked last: one
// that was given up may still have a result on its way.
func (m *machine) fromCurrent(e kit.Event, d *messages.CompletionDone) bool {
	r := m.requests[d.GetCallId()]
	return r != nil && (e.From == nil || e.From.GetPath() == m.address(r.source).GetPath())
}

// completed takes the result of an attempt.
func (m *machine) completed(d *messages.CompletionDone) {
	id := d.GetCallId()
	r := m.requests[id]
	if r == nil || r.waiting {
		return // cancelled or late
	}
	m.release(r)
	a := &messages.CompletionAttempt{Source: r.source, Failure: d.GetResult().GetFailure(), TookMs: m.now.Sub(r.since).Milliseconds()}
	r.attempts = append(r.attempts, a)
	fail := models.FailureOf(d.GetResult())
	m.count(r, d.GetResult(), fail != nil)
	if fail == nil {
		m.answered(r)
		m.finish(id, r, d.GetResult())
		return
	}
	m.figure(r.source).failed++
	fail.Source = cmp.Or(fail.Source, r.source)
	m.add(kit.Log{Level: kit.Warn, Text: "attempt failed", Attrs: []any{
		"source", r.source, "call_id", id, "kind", models.KindName(fail.Kind), "status", fail.Status, "message", fail.Message,
	}})
	source, before := r.source, m.state(r.source)
	v := m.router.Failed(m.now, r.plan, fail)
	if after := m.state(source); after != before {
		m.sourceNotice(after, source, fail.Message)
	}
	m.follow(id, r, v, d.GetResult())
}

// release frees the place of an attempt.
func (m *machine) release(r *request) {
	m.figure(r.source).active--
	m.leave(r.source)
}

// answered ends the cooldown of what answered.
func (m *machine) answered(r *request) {
	before, _ := m.router.Standing(m.now, r.source)
	m.router.Answered(r.plan)
	if after, _ := m.router.Standing(m.now, r.source); before.Last != nil && after.Last == nil {
		m.sourceNotice("ready", r.source, "")
	}
}

func (m *machine) state(source string) string {
	s, _ := m.router.Standing(m.now, source)
	return s.State
}

// finish answers the turn.
func (m *machine) finish(id string, r *request, res *messages.CompletionResult) {
	m.forget(id)
	m.add(kit.Send{To: r.complete.GetReplyTo(), Msg: &messages.CompletionDone{CallId: id, Result: res, Attempts: r.attempts}})
	m.show()
}

func (m *machine) forget(id string) {
	delete(m.requests, id)
	m.add(kit.CancelAfter{Key: "late/" + id}, kit.CancelAfter{Key: "again/" + id}, closeCall{CallID: id})
}

func (m *machine) cancel(c *messages.CancelCompletion) {
	r := m.requests[c.GetCallId()]
	if r == nil {
		m.early.add(c.GetCallId()) // its Complete may be held, or still on its way
		return
	}
	m.drop(r, c)
	m.forget(c.GetCallId())
	m.show()
}

// drop takes an attempt back from its source.
func (m *machine) drop(r *request, c *messages.CancelCompletion) {
	if r.waiting || r.source == "" {
		return
	}
	m.add(kit.Send{To: m.address(r.source), Msg: c})
	m.release(r)
	m.router.Dropped(r.plan)
	m.count(r, nil, false)
}

func (m *machine) late(l late) {
	r := m.requests[l.CallID]
	if r == nil {
		return
	}
	m.drop(r, &messages.CancelCompletion{CallId: l.CallID, Reason: "deadline"})
	m.finish(l.CallID, r, failure(r.source, messages.ErrorKind_ERROR_KIND_TIMEOUT, "the turn's deadline has passed", "Give the task more time, or use a faster model."))
}

// gone fails the attempts of a source whose actor ended or restarted. What they
// have shown by then is not known here, so that nobody else is asked.
func (m *machine) gone(child, why string, ended bool) {
	name, ok := strings.CutPrefix(child, sourcePrefix)
	if !ok {
		return
	}
	if ended {
		delete(m.running, name)
		delete(m.leaving, name)
	}
	for _, id := range slices.Sorted(maps.Keys(m.requests)) {
		if r := m.requests[id]; r.source == name && !r.waiting {
			m.completed(&messages.CompletionDone{CallId: id, Result: lost(name, "the source ended during the call")})
		}
	}
	if why != "" {
		m.add(kit.Log{Level: kit.Error, Text: "source failed", Attrs: []any{"source", name, "failure", why}})
	}
	m.show()
}

// lost is the result of an attempt whose actor is gone.
func lost(source, text string) *messages.CompletionResult {
	res := failure(source, messages.ErrorKind_ERROR_KIND_SERVER, text, "Ask again; the log says more.")
	res.Failure.Shown = true
	return res
}

// fault is an effect that could not be performed.
func (m *machine) fault(f kit.Fault) {
	switch e := f.Effect.(type) {
	case kit.Spawn:
		m.unspawned(e.Name, f.Err)
	case kit.Send:
		c, ok := e.Msg.(*messages.Complete)
		if !ok {
			m.configured(e.Corr, f.Err)
			return
		}
		id := c.GetRequest().GetCallId()
		if r := m.requests[id]; r != nil && !r.waiting && e.Corr == strconv.Itoa(r.attempt) {
			m.completed(&messages.CompletionDone{CallId: id, Result: failure(r.source, messages.ErrorKind_ERROR_KIND_SERVER,
				f.Err.GetMessage(), f.Err.GetHint())})
		}
	}
}

// unspawned fails what was asked of a source that could not be started: none of
// it was shown.
func (m *machine) unspawned(child string, err *messages.Error) {
	name, _ := strings.CutPrefix(child, sourcePrefix)
	delete(m.running, name)
	for _, id := range slices.Sorted(maps.Keys(m.requests)) {
		if r := m.requests[id]; r.source == name && !r.waiting {
			m.completed(&messages.CompletionDone{CallId: id, Result: failure(name, messages.ErrorKind_ERROR_KIND_SERVER, err.GetMessage(), err.GetHint())})
		}
	}
	m.add(kit.Log{Level: kit.Error, Text: "source cannot be started", Attrs: []any{"source", name, "error", err.GetMessage()}})
}

package provider

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
	models "homeagent/providers"
)

// maxRequests is how many requests may be under way.
const maxRequests = 1024

// machine is the machine of providers.
type machine struct {
	config   *messages.Address
	self     *messages.Address
	router   *models.Router
	sources  []known
	running  map[string]*messages.SourceSpec // sources whose actor stands
	figures  map[string]*figures
	requests map[string]*request
	early    cancelled
	saves    map[string]saving
	saved    int
	settled  []settled
	loading  bool
	stale    bool
	loads    int
	ready    bool
	held     []kit.Event // requests that came before the first reading of the sources
	now      time.Time
	out      []kit.Effect
}

// figures of one source since the start of providers.
type figures struct {
	active        int
	calls, failed uint64
}

// request is one Complete under way.
type request struct {
	complete *messages.Complete
	plan     *models.Plan
	// source has the attempt under way, or the one that is waited for.
	source   string
	waiting  bool
	attempt  int
	since    time.Time
	attempts []*messages.CompletionAttempt
}

// saving is a ConfigSet under way.
type saving struct {
	ask    ask
	tested *messages.SourceTested // nil for a removal
}

// settled is an answer that waits for the reading numbered at.
type settled struct {
	ask ask
	msg proto.Message
	at  int
}

// New makes the machine of providers; config keeps the settings.
func New(config *messages.Address) kit.Machine {
	return &machine{
		config: config, router: models.NewRouter(), running: make(map[string]*messages.SourceSpec),
		figures: make(map[string]*figures), requests: make(map[string]*request), saves: make(map[string]saving),
	}
}

// Step decides; see the package comment for the contract.
func (m *machine) Step(now time.Time, e kit.Event) []kit.Effect {
	m.now = now
	m.handle(e)
	out := m.out
	m.out = nil
	return out
}

func (m *machine) handle(e kit.Event) {
	if !m.ready && asks(e.Msg) && len(m.held) < maxRequests {
		m.held = append(m.held, e)
		return
	}
	switch v := e.Msg.(type) {
	case *messages.Complete:
		m.complete(e, v)
	case *messages.CompletionDone:
		if m.fromCurrent(e, v) {
			m.completed(v)
		}
	case *messages.CancelCompletion:
		m.cancel(v)
	case again:
		m.again(v)
	case late:
		m.late(v)
	case kit.Started:
		m.start(v)
	case *messages.ConfigChanged:
		m.load()
	case loaded:
		m.loaded(v)
	case kit.Ended:
		m.gone(v.Name, v.Failure, true)
	case kit.Restarted:
		m.gone(v.Name, v.Failure, false)
	case kit.Fault:
		m.fault(v)
	default:
		m.administer(e)
	}
}

// asks tells that a message needs the sources to be known.
func asks(m any) bool {
	switch m.(type) {
	case *messages.Complete, *messages.ListSources, *messages.AddSource, *messages.TestSource, *messages.RemoveSource, *messages.ResetSource:
		return true
	}
	return false
}

func (m *machine) add(e ...kit.Effect) { m.out = append(m.out, e...) }

func (m *machine) start(s kit.Started) {
	m.self = s.Self
	m.add(kit.State{Word: "starting"}, kit.Send{To: m.config, Corr: "config", Msg: &messages.ConfigSubscribe{Prefixes: []string{"core.llm."}}})
	m.load()
}

// load reads the sources; a change during a reading makes another one.
func (m *machine) load() {
	if m.loading {
		m.stale = true
		return
	}
	m.loading = true
	m.loads++
	m.add(load{})
}

// settle answers when the settings as they are now have been read.
func (m *machine) settle(a ask, msg proto.Message) {
	m.load()
	at := m.loads
	if m.stale {
		at++
	}
	m.settled = append(m.settled, settled{a, msg, at})
}

// answerSettled answers what waited for the reading that has just ended.
func (m *machine) answerSettled(at int) {
	m.settled = slices.DeleteFunc(m.settled, func(s settled) bool {
		if s.at <= at {
			m.add(s.ask.reply(s.msg))
		}
		return s.at <= at
	})
}

func (m *machine) loaded(l loaded) {
	m.loading = false
	read := m.loads
	if m.stale {
		m.stale = false
		m.load()
	}
	m.sources = l.Sources
	routes := make([]models.Route, len(l.Sources))
	wanted := make(map[string]*messages.SourceSpec)
	for i, s := range l.Sources {
		routes[i] = s.Route
		if !s.Route.Disabled {
			wanted[s.Spec.GetName()] = s.Spec
		}
	}
	m.router.Set(routes)
	for _, name := range slices.Sorted(maps.Keys(m.running)) {
		if wanted[name] == nil {
			m.add(kit.Stop{Who: m.address(name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		m.stand(name, wanted[name])
	}
	if !m.ready {
		m.ready = true
		m.add(kit.Ready{})
		held := m.held
		m.held = nil
		for _, e := range held {
			m.handle(e)
		}
	}
	m.answerSettled(read)
	m.show()
}

// stand makes sure that a source's actor stands and knows its settings.
func (m *machine) stand(name string, spec *messages.SourceSpec) {
	old, ok := m.running[name]
	m.running[name] = spec
	switch {
	case !ok:
		m.add(kit.Spawn{Kind: SourceKind, Name: sourcePrefix + name, Params: spec, Watch: true})
	case !proto.Equal(old, spec):
		m.add(kit.Send{To: m.address(name), Msg: spec})
	}
}

const sourcePrefix = "source/"

func (m *machine) address(name string) *messages.Address {
	return &messages.Address{Node: m.self.GetNode(), Path: m.self.GetPath() + "/" + sourcePrefix + name, Epoch: m.self.GetEpoch()}
}

func (m *machine) show() {
	var names []string
	for _, s := range m.router.Standings(m.now) {
		if s.State != "ready" {
			s.Name += " (" + s.State + ")"
		}
		names = append(names, s.Name)
	}
	m.add(kit.State{Word: "ready", Summary: fmt.Sprintf("%d under way; %s", len(m.requests), strings.Join(names, ", "))})
}

func (m *machine) figure(name string) *figures {
	f := m.figures[name]
	if f == nil {
		f = &figures{}
		m.figures[name] = f
	}
	return f
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
	var v models.Verdict
	r.plan, v = m.router.Begin(m.now, id, c.GetRequest().GetSource())
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
	r.source = v.Source
	if v.After > 0 {
		r.waiting = true
		m.add(kit.After{Key: "again/" + id, D: v.After, Msg: again{id}})
		return
	}
	m.ask(r)
}

// ask makes an attempt at the request's source.
func (m *machine) ask(r *request) {
	r.waiting, r.since = false, m.now
	r.attempt++
	f := m.figure(r.source)
	f.active++
	f.calls++
	if m.running[r.source] == nil {
		// Its actor had ended for good; it stands again for this request.
		if i := slices.IndexFunc(m.sources, func(k known) bool { return k.Spec.GetName() == r.source }); i >= 0 {
			m.stand(r.source, m.sources[i].Spec)
		}
	}
	m.add(kit.Send{To: m.address(r.source), Corr: strconv.Itoa(r.attempt), Msg: r.complete})
	m.show()
}

func (m *machine) again(a again) {
	if r := m.requests[a.CallID]; r != nil && r.waiting {
		m.ask(r)
	}
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
	f := m.figure(r.source)
	f.active--
	a := &messages.CompletionAttempt{Source: r.source, Failure: d.GetResult().GetFailure(), TookMs: m.now.Sub(r.since).Milliseconds()}
	r.attempts = append(r.attempts, a)
	fail := models.FailureOf(d.GetResult())
	if fail == nil {
		m.answered(r.source)
		m.finish(id, r, d.GetResult())
		return
	}
	f.failed++
	fail.Source = cmp.Or(fail.Source, r.source)
	m.add(kit.Log{Level: kit.Warn, Text: "attempt failed", Attrs: []any{
		"source", r.source, "call_id", id, "kind", models.KindName(fail.Kind), "status", fail.Status, "message", fail.Message,
	}})
	source, before := r.source, m.standing(r.source).State
	v := m.router.Failed(m.now, r.plan, r.source, fail)
	if after := m.standing(source); after.State != before {
		m.notice("source_"+after.State, source, fail.Message)
	}
	m.follow(id, r, v, d.GetResult())
}

// answered ends a source's cooldown.
func (m *machine) answered(source string) {
	before := m.standing(source)
	m.router.Answered(source)
	if before.Last != nil {
		m.notice("source_ready", source, "")
	}
}

func (m *machine) standing(source string) models.Standing {
	for _, s := range m.router.Standings(m.now) {
		if s.Name == source {
			return s
		}
	}
	return models.Standing{}
}

// notice tells the world what became of a source: source_cooling,
// source_broken, source_ready.
func (m *machine) notice(code, source, why string) {
	text := "model source " + source + ": " + strings.TrimPrefix(code, "source_")
	if why != "" {
		text += ": " + why
	}
	m.add(kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_SYSTEM, Text: text,
		Detail: &messages.AgentEvent_System{System: &messages.SystemNotice{Code: code, Path: m.address(source).GetPath()}},
	}})
}

// finish answers the turn.
func (m *machine) finish(id string, r *request, res *messages.CompletionResult) {
	m.forget(id)
	m.add(kit.Send{To: r.complete.GetReplyTo(), Msg: &messages.CompletionDone{CallId: id, Result: res, Attempts: r.attempts}})
	m.show()
}

func (m *machine) forget(id string) {
	delete(m.requests, id)
	m.add(kit.CancelAfter{Key: "late/" + id}, kit.CancelAfter{Key: "again/" + id})
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
	m.figure(r.source).active--
	m.router.Dropped(r.source)
	m.add(kit.Send{To: m.address(r.source), Msg: c})
}

func (m *machine) late(l late) {
	r := m.requests[l.CallID]
	if r == nil {
		return
	}
	m.drop(r, &messages.CancelCompletion{CallId: l.CallID, Reason: "deadline"})
	m.finish(l.CallID, r, failure(r.source, messages.ErrorKind_ERROR_KIND_TIMEOUT, "the turn's deadline has passed", "Give the task more time, or use a faster model."))
}

// gone fails the attempts of a source whose actor ended or restarted.
func (m *machine) gone(child, why string, ended bool) {
	name, ok := strings.CutPrefix(child, sourcePrefix)
	if !ok {
		return
	}
	if ended {
		delete(m.running, name)
	}
	for _, id := range slices.Sorted(maps.Keys(m.requests)) {
		if r := m.requests[id]; r.source == name && !r.waiting {
			m.completed(&messages.CompletionDone{CallId: id, Result: failure(name, messages.ErrorKind_ERROR_KIND_SERVER,
				"the source ended during the call", "Ask again; the log says more.")})
		}
	}
	if why != "" {
		m.add(kit.Log{Level: kit.Error, Text: "source failed", Attrs: []any{"source", name, "failure", why}})
	}
	m.show()
}

// fault is an effect that could not be performed.
func (m *machine) fault(f kit.Fault) {
	switch e := f.Effect.(type) {
	case kit.Spawn:
		m.gone(e.Name, f.Err.GetMessage(), true)
	case kit.Send:
		c, ok := e.Msg.(*messages.Complete)
		if !ok {
			return
		}
		id := c.GetRequest().GetCallId()
		if r := m.requests[id]; r != nil && !r.waiting && e.Corr == strconv.Itoa(r.attempt) {
			m.completed(&messages.CompletionDone{CallId: id, Result: failure(r.source, messages.ErrorKind_ERROR_KIND_SERVER,
				f.Err.GetMessage(), f.Err.GetHint())})
		}
	}
}

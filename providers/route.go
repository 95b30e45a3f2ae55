package providers

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"homeagent/messages"
)

// Route is what the router knows of a source.
type Route struct {
	// Name of the source.
	Name string
	// Priority: lower is asked first, equal ones by name.
	Priority int
	// Disabled sources are never asked.
	Disabled bool
	// Print changes with every setting that may cure a failure: address, model,
	// key, adapter. A source whose print changed starts without its past.
	Print string
}

// Router decides which source answers a request. It is a pure state machine:
// time is an argument and nothing else goes in. Not safe for concurrent use.
//
// A source that fails cools down: for as long as it asked, or for a time that
// doubles with each failure in a row. Bad credentials and broken adapters hold
// until the configuration changes. When a cooldown has passed, one call probes
// the source while others still prefer ready ones. Faults of a request, of a
// model's tool call or of the caller never cool a source. When all sources cool,
// the one that recovers first is asked: a late answer is better than none.
type Router struct {
	routes []Route
	cools  map[string]*cool
}

// cool is the past of a source.
type cool struct {
	until   time.Time
	latched bool
	strikes int
	probing bool
	last    *Failure
}

// NewRouter makes a router without sources.
func NewRouter() *Router { return &Router{cools: make(map[string]*cool)} }

// Set replaces the sources. The past of those with an unchanged print stays.
func (r *Router) Set(routes []Route) {
	old := make(map[string]string, len(r.routes))
	for _, q := range r.routes {
		old[q.Name] = q.Print
	}
	kept := make(map[string]*cool)
	r.routes = slices.Clone(routes)
	slices.SortFunc(r.routes, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name))
	})
	for _, q := range r.routes {
		if c := r.cools[q.Name]; c != nil && old[q.Name] == q.Print {
			kept[q.Name] = c
		}
	}
	r.cools = kept
}

// Reset ends a source's cooldown; false when there is no such source.
func (r *Router) Reset(name string) bool {
	delete(r.cools, name)
	return slices.ContainsFunc(r.routes, func(q Route) bool { return q.Name == name })
}

// Standing is a source's state for people.
type Standing struct {
	Name string
	// State is ready, cooling, disabled or broken (until the configuration
	// changes).
	State string
	// Until the source cools; zero when it does not, or without end.
	Until time.Time
	// Last failure since it last answered; may be nil.
	Last *Failure
}

// Standings gives all sources in the order in which they are asked.
func (r *Router) Standings(now time.Time) []Standing {
	out := make([]Standing, 0, len(r.routes))
	for _, q := range r.routes {
		s := Standing{Name: q.Name, State: "ready"}
		if c := r.cools[q.Name]; c != nil {
			s.Last = c.last
			switch {
			case c.latched:
				s.State = "broken"
			case now.Before(c.until):
				s.State, s.Until = "cooling", c.until
			}
		}
		if q.Disabled {
			s.State, s.Until = "disabled", time.Time{}
		}
		out = append(out, s)
	}
	return out
}

// Plan is the way of one request through the sources.
type Plan struct {
	// Only names the one source to use; empty means by routing.
	only  string
	key   string
	tried map[string]bool
	again map[string]bool
	waits int
	last  *Failure
}

// Verdict is what happens next with a request.
type Verdict struct {
	// Source to ask; empty means that the request has failed for good.
	Source string
	// After is how long to wait before it is asked.
	After time.Duration
	// Failure says why it has failed.
	Failure *Failure
}

// Begin starts a request. key, its call id, spreads waits; only names the one
// source to use, empty means by routing.
func (r *Router) Begin(now time.Time, key, only string) (*Plan, Verdict) {
	p := &Plan{only: only, key: key, tried: make(map[string]bool), again: make(map[string]bool)}
	return p, r.next(now, p)
}

// Answered notes that a source answered.
func (r *Router) Answered(name string) { delete(r.cools, name) }

// Dropped notes that a call ended without a verdict on its source, such as by a
// cancel.
func (r *Router) Dropped(name string) {
	if c := r.cools[name]; c != nil {
		c.probing = false
	}
}

// Failed notes a failure of the source that a verdict named and decides.
func (r *Router) Failed(now time.Time, p *Plan, name string, f *Failure) Verdict {
	r.note(now, name, f)
	p.last = f
	if f.Visible || stops(f.Kind) {
		return Verdict{Failure: f}
	}
	if speaks(f.Kind) && !p.again[name] {
		// The model's own slip: the same model once more.
		p.again[name] = true
		return Verdict{Source: name}
	}
	v := r.next(now, p)
	if v.Source != "" {
		return v
	}
	return r.wait(p, name, f)
}

const (
	maxWaits = 2
	maxWait  = 10 * time.Second
)

// wait asks the last source once more after a pause, where no other is left and
// a pause may help.
func (r *Router) wait(p *Plan, name string, f *Failure) Verdict {
	if p.waits >= maxWaits || !passes(f.Kind) {
		return Verdict{Failure: f}
	}
	after := time.Duration(float64(500*time.Millisecond<<p.waits) * spread(p.key, p.waits))
	after = max(after, f.RetryAfter)
	if after > maxWait {
		return Verdict{Failure: f}
	}
	p.waits++
	return Verdict{Source: name, After: after}
}

// spread gives 0.75 to 1.25 from a key, so that waiting calls do not come back
// together, and the same call waits the same time in every run.
func spread(key string, n int) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	_, _ = h.Write([]byte{byte(n)})
	return 0.75 + float64(h.Sum32()%1000)/2000
}

// next gives the best source that the plan has not tried.
func (r *Router) next(now time.Time, p *Plan) Verdict {
	var best *Route
	rank := func(q *Route) (int, time.Time) {
		c := r.cools[q.Name]
		switch {
		case c == nil:
			return 0, time.Time{}
		case c.latched:
			return 3, time.Time{}
		case now.Before(c.until):
			return 2, c.until
		case c.probing:
			return 1, time.Time{}
		}
		return 0, time.Time{}
	}
	var bestRank int
	var bestUntil time.Time
	for i := range r.routes {
		q := &r.routes[i]
		if q.Disabled || p.tried[q.Name] || p.only != "" && p.only != q.Name {
			continue
		}
		k, until := rank(q)
		if best == nil || k < bestRank || k == bestRank && until.Before(bestUntil) {
			best, bestRank, bestUntil = q, k, until
		}
	}
	if best == nil {
		return Verdict{Failure: r.none(p)}
	}
	p.tried[best.Name] = true
	if c := r.cools[best.Name]; c != nil {
		c.probing = true
	}
	return Verdict{Source: best.Name}
}

func (r *Router) none(p *Plan) *Failure {
	if p.last != nil {
		return p.last
	}
	f := &Failure{Kind: messages.ErrorKind_ERROR_KIND_NO_SOURCE, Source: p.only, Message: "no model source is configured"}
	switch {
	case p.only != "":
		f.Message = "there is no usable model source of that name"
		f.Hint = "Choose one that is configured and enabled."
	case len(r.routes) > 0:
		f.Message, f.Hint = "all model sources are switched off", "Enable one, or add another."
	default:
		f.Hint = Hint(f.Kind)
	}
	return f
}

// note sets the cooldown that a failure calls for.
func (r *Router) note(now time.Time, name string, f *Failure) {
	c := r.cools[name]
	rule, marks := cooldowns[f.Kind]
	if !marks {
		if c != nil {
			c.probing = false
		}
		return
	}
	if c == nil {
		c = &cool{}
		r.cools[name] = c
	}
	c.probing, c.last = false, f
	if rule.latch {
		c.latched = true
		return
	}
	d := rule.first
	for range c.strikes {
		if d *= 2; d >= rule.cap {
			d = rule.cap
			break
		}
	}
	c.strikes++
	if f.RetryAfter > 0 {
		d = max(f.RetryAfter, time.Second)
		if f.Kind == messages.ErrorKind_ERROR_KIND_QUOTA_EXHAUSTED {
			d = max(d, rule.first)
		}
	}
	if until := now.Add(d); until.After(c.until) {
		c.until = until
	}
}

// cooldown of a kind: first time, doubling up to cap; latch holds until the
// configuration changes.
type cooldown struct {
	first, cap time.Duration
	latch      bool
}

// cooldowns has no entry for kinds that never mark a source down.
var cooldowns = map[messages.ErrorKind]cooldown{
	messages.ErrorKind_ERROR_KIND_UNSPECIFIED:      {first: 5 * time.Second, cap: 2 * time.Minute},
	messages.ErrorKind_ERROR_KIND_AUTH:             {latch: true},
	messages.ErrorKind_ERROR_KIND_ADAPTER:          {latch: true},
	messages.ErrorKind_ERROR_KIND_QUOTA_EXHAUSTED:  {first: time.Hour, cap: 24 * time.Hour},
	messages.ErrorKind_ERROR_KIND_RATE_LIMIT:       {first: 10 * time.Second, cap: 5 * time.Minute},
	messages.ErrorKind_ERROR_KIND_OVERLOADED:       {first: 30 * time.Second, cap: 5 * time.Minute},
	messages.ErrorKind_ERROR_KIND_SERVER:           {first: 5 * time.Second, cap: 2 * time.Minute},
	messages.ErrorKind_ERROR_KIND_TIMEOUT:          {first: 15 * time.Second, cap: 5 * time.Minute},
	messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED: {first: 5 * time.Second, cap: 2 * time.Minute},
	messages.ErrorKind_ERROR_KIND_CONNECT:          {first: 5 * time.Second, cap: time.Minute},
}

// stops tells that no other source may be asked: the caller ended the call, the
// turn must shorten the prompt, or a filter spoke, which is not to be evaded.
func stops(k messages.ErrorKind) bool {
	switch k {
	case messages.ErrorKind_ERROR_KIND_CANCELLED, messages.ErrorKind_ERROR_KIND_CONTEXT_OVERFLOW, messages.ErrorKind_ERROR_KIND_CONTENT_BLOCKED:
		return true
	default:
		return false
	}
}

// speaks tells that the model spoke wrongly, which it may not do again.
func speaks(k messages.ErrorKind) bool {
	return k == messages.ErrorKind_ERROR_KIND_TOOL_USE_FAILED || k == messages.ErrorKind_ERROR_KIND_MALFORMED_TOOL_CALL
}

// passes tells that a short pause may cure a failure.
func passes(k messages.ErrorKind) bool {
	switch k {
	case messages.ErrorKind_ERROR_KIND_RATE_LIMIT, messages.ErrorKind_ERROR_KIND_OVERLOADED,
		messages.ErrorKind_ERROR_KIND_SERVER, messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED:
		return true
	default:
		return false
	}
}

package providers

import (
	"cmp"
	"maps"
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
	// Print changes with every setting but the keys that may cure a failure:
	// address, model, adapter. A source whose print changed starts without its past.
	Print string
	// Keys are the prints of the source's keys, which are used in turn; empty
	// means that it has none. A new key starts without a past.
	Keys []string
	// Free sources cost no money.
	Free bool
}

// Policy bounds retries.
type Policy struct {
	// Retries is how often one request is tried again after a pause.
	Retries int
	// MaxWait is the longest such pause.
	MaxWait time.Duration
}

// The policy of a new router.
const (
	DefaultRetries = 3
	DefaultMaxWait = 30 * time.Second
)

// Router decides which source answers a request. It is a pure state machine:
// time is an argument and nothing else goes in. Not safe for concurrent use.
//
// What fails cools down: for as long as it asked, or for a time that doubles with
// each failure in a row. A refused, limited or used up key cools alone, for its
// source and model, and the next key of the source is used; any other failure
// cools the source with its model. Bad credentials and broken adapters count as
// broken until the configuration changes or an answer comes. When a cooldown has
// passed, one call probes while others still prefer what is ready. Faults of a
// request, of a model's tool call or of the caller never cool anything. When all
// cool, what recovers first is asked: a late answer is better than none.
type Router struct {
	policy Policy
	routes []Route
	pasts  map[string]*past
	turns  uint64
	dirty  map[string]bool
}

// past is what is known of a source.
type past struct {
	whole *cool
	keys  map[string]*cool
	used  map[string]uint64 // when each key was used last, as a count
}

// cool is a cooldown.
type cool struct {
	until   time.Time
	latched bool
	strikes int
	probing bool
	last    *Failure
}

// lane is one key of one source.
type lane struct{ source, key string }

// NewRouter makes a router without sources.
func NewRouter() *Router {
	return &Router{
		policy: Policy{DefaultRetries, DefaultMaxWait}, pasts: make(map[string]*past), dirty: make(map[string]bool),
	}
}

// SetPolicy replaces the policy.
func (r *Router) SetPolicy(p Policy) { r.policy = p }

// Set replaces the sources. The past of those with an unchanged print stays, but
// for keys that are gone.
func (r *Router) Set(routes []Route) {
	old := make(map[string]Route, len(r.routes))
	for _, q := range r.routes {
		old[q.Name] = q
	}
	r.routes = slices.Clone(routes)
	slices.SortFunc(r.routes, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name))
	})
	pasts := r.pasts
	r.pasts = make(map[string]*past)
	for _, q := range r.routes {
		p := pasts[q.Name]
		if p == nil {
			continue
		}
		delete(pasts, q.Name)
		if old[q.Name].Print != q.Print {
			r.dirty[q.Name] = true
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(p.keys)) {
			if !slices.Contains(q.lanes(), key) {
				delete(p.keys, key)
				delete(p.used, key)
				r.dirty[q.Name] = true
			}
		}
		r.pasts[q.Name] = p
	}
	for name := range pasts {
		r.dirty[name] = true
	}
}

// lanes are the keys of a source; one without a name where it has none.
func (q *Route) lanes() []string {
	if len(q.Keys) == 0 {
		return []string{""}
	}
	return q.Keys
}

func (r *Router) route(name string) *Route {
	for i := range r.routes {
		if r.routes[i].Name == name {
			return &r.routes[i]
		}
	}
	return nil
}

func (r *Router) past(name string) *past {
	p := r.pasts[name]
	if p == nil {
		p = &past{keys: make(map[string]*cool), used: make(map[string]uint64)}
		r.pasts[name] = p
	}
	return p
}

// cools gives what holds for a lane: of the source and of the key; either may be
// nil.
func (r *Router) cools(l lane) [2]*cool {
	p := r.pasts[l.source]
	if p == nil {
		return [2]*cool{}
	}
	return [2]*cool{p.whole, p.keys[l.key]}
}

// Reset ends a source's cooldowns, as a person or a test that worked says so;
// false when there is no such source.
func (r *Router) Reset(name string) bool {
	if r.pasts[name] != nil {
		delete(r.pasts, name)
		r.dirty[name] = true
	}
	return r.route(name) != nil
}

// Standing is the state of a source or key for people.
type Standing struct {
	Name string
	// State is ready, cooling, disabled or broken (until the configuration changes
	// or it answers).
	State string
	// Until it cools; zero when it does not. A broken one is tried again then.
	Until time.Time
	// Last failure since it last answered; may be nil.
	Last *Failure
	// Keys stand in the order of the route, where it has several.
	Keys []Standing
}

// Standings gives all sources in the order in which they are asked.
func (r *Router) Standings(now time.Time) []Standing {
	out := make([]Standing, 0, len(r.routes))
	for i := range r.routes {
		out = append(out, r.standing(now, &r.routes[i]))
	}
	return out
}

// Standing gives one source; false when there is none of that name.
func (r *Router) Standing(now time.Time, name string) (Standing, bool) {
	q := r.route(name)
	if q == nil {
		return Standing{}, false
	}
	return r.standing(now, q), true
}

// standing is that of the best key: one that can be used makes the source ready.
func (r *Router) standing(now time.Time, q *Route) Standing {
	var keys []Standing
	for _, key := range q.lanes() {
		s := Standing{Name: key, State: "ready"}
		for _, c := range r.cools(lane{q.Name, key}) {
			s.take(now, c)
		}
		keys = append(keys, s)
	}
	best := slices.MinFunc(keys, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(severity[a.State], severity[b.State]), a.Until.Compare(b.Until))
	})
	best.Name = q.Name
	for _, k := range keys { // the reason stays visible while another key serves
		if best.Last == nil {
			best.Last = k.Last
		}
	}
	if len(keys) > 1 {
		best.Keys = keys
	}
	if q.Disabled {
		best.State, best.Until = "disabled", time.Time{}
	}
	return best
}

var severity = map[string]int{"ready": 0, "cooling": 1, "broken": 2}

// take makes a standing as bad as a cooldown is.
func (s *Standing) take(now time.Time, c *cool) {
	if c == nil {
		return
	}
	s.Last = cmp.Or(c.last, s.Last)
	state := "ready"
	switch {
	case c.latched:
		state = "broken"
	case now.Before(c.until):
		state = "cooling"
	}
	if severity[state] > severity[s.State] {
		s.State = state
	}
	if now.Before(c.until) && c.until.After(s.Until) {
		s.Until = c.until
	}
}

// Mark is what outlives a restart of a lane or, without a key, of a source.
type Mark struct {
	Key     string
	Until   time.Time
	Latched bool
	Strikes int
	Last    *Failure
}

// Dirty gives the sources whose marks changed since it was last asked, sorted.
func (r *Router) Dirty() []string {
	out := slices.Sorted(maps.Keys(r.dirty))
	clear(r.dirty)
	return out
}

// Marks gives those of a source with its print; none when it has no past or is
// unknown.
func (r *Router) Marks(name string) (print string, marks []Mark) {
	q, p := r.route(name), r.pasts[name]
	if q == nil || p == nil {
		return "", nil
	}
	add := func(key string, c *cool) {
		if c != nil {
			marks = append(marks, Mark{Key: key, Until: c.until, Latched: c.latched, Strikes: c.strikes, Last: c.last})
		}
	}
	add("", p.whole)
	for _, key := range slices.Sorted(maps.Keys(p.keys)) {
		add("key/"+key, p.keys[key])
	}
	return q.Print, marks
}

// Restore puts marks back; those of other settings or keys are dropped.
func (r *Router) Restore(name, print string, marks []Mark) {
	q := r.route(name)
	if q == nil || q.Print != print {
		r.dirty[name] = true
		return
	}
	p := r.past(name)
	for _, m := range marks {
		c := &cool{until: m.Until, latched: m.Latched, strikes: m.Strikes, last: m.Last}
		key, ofKey := cutKey(m.Key)
		switch {
		case !ofKey:
			p.whole = c
		case slices.Contains(q.lanes(), key):
			p.keys[key] = c
		default:
			r.dirty[name] = true
		}
	}
}

// note sets the cooldown that a failure calls for.
func (r *Router) note(now time.Time, l lane, f *Failure) {
	r.freed(l)
	rule, marks := cooldowns[f.Kind]
	if !marks || r.route(l.source) == nil {
		return
	}
	p := r.past(l.source)
	at := &p.whole
	if ofKey(f.Kind) {
		c := p.keys[l.key]
		at = &c
		defer func() { p.keys[l.key] = c }()
	}
	if *at == nil {
		*at = &cool{}
	}
	r.dirty[l.source] = true
	(*at).mark(now, rule, f)
}

// freed ends the probe of a lane.
func (r *Router) freed(l lane) {
	for _, c := range r.cools(l) {
		if c != nil {
			c.probing = false
		}
	}
}

func (c *cool) mark(now time.Time, rule cooldown, f *Failure) {
	c.last, c.latched = f, c.latched || rule.latch
	d := rule.first
	for range c.strikes {
		if d *= 2; d >= rule.cap {
			d = rule.cap
			break
		}
	}
	c.strikes++
	if f.RetryAfter > 0 && !rule.latch {
		d = max(f.RetryAfter, time.Second)
		if f.Kind == messages.ErrorKind_ERROR_KIND_QUOTA_EXHAUSTED {
			d = max(d, rule.first)
		}
	}
	if until := now.Add(d); until.After(c.until) {
		c.until = until
	}
}

package providers

import (
	"hash/fnv"
	"strings"
	"time"

	"homeagent/messages"
)

// Ask is how a request wants to be routed.
type Ask struct {
	// Key spreads waits; the call id does.
	Key string
	// Only names the one source to use; empty means by routing.
	Only string
	// First names the source to ask first, where it is ready; empty means none.
	First string
	// Free asks no source that costs money.
	Free bool
}

// Plan is the way of one request through the sources.
type Plan struct {
	ask   Ask
	at    lane
	tried map[lane]bool
	again map[string]bool
	// pauses are the lanes that a pause may cure, with what they asked for.
	pauses map[lane]time.Duration
	waits  int
	last   *Failure
}

// Verdict is what happens next with a request.
type Verdict struct {
	// Source to ask; empty means that the request has failed for good.
	Source string
	// Key is the print of the key to use; empty where the source has none.
	Key string
	// After is how long to wait before it is asked.
	After time.Duration
	// Failure says why it has failed.
	Failure *Failure
}

// Begin starts a request.
func (r *Router) Begin(now time.Time, a Ask) (*Plan, Verdict) {
	p := &Plan{ask: a, tried: make(map[lane]bool), again: make(map[string]bool), pauses: make(map[lane]time.Duration)}
	return p, r.next(now, p)
}

// Answered notes that the source of the last verdict answered.
func (r *Router) Answered(p *Plan) {
	past := r.pasts[p.at.source]
	if past == nil {
		return
	}
	if past.whole != nil || past.keys[p.at.key] != nil {
		r.dirty[p.at.source] = true
	}
	past.whole = nil
	delete(past.keys, p.at.key)
}

// Dropped notes that a call ended without a verdict on its source, such as by a
// cancel.
func (r *Router) Dropped(p *Plan) { r.freed(p.at) }

// Failed notes a failure of the source of the last verdict and decides.
func (r *Router) Failed(now time.Time, p *Plan, f *Failure) Verdict {
	r.note(now, p.at, f)
	p.last = f
	if f.Visible || stops(f.Kind) {
		return Verdict{Failure: f}
	}
	if speaks(f.Kind) && !p.again[p.at.source] {
		// The model's own slip: the same model once more.
		p.again[p.at.source] = true
		return Verdict{Source: p.at.source, Key: p.at.key}
	}
	if passes(f.Kind) {
		p.pauses[p.at] = f.RetryAfter
	} else {
		delete(p.pauses, p.at)
	}
	if q := r.route(p.at.source); q != nil && !ofKey(f.Kind) {
		for _, key := range q.lanes() {
			p.tried[lane{q.Name, key}] = true
		}
	}
	v := r.next(now, p)
	if v.Source != "" {
		return v
	}
	return r.wait(p, f)
}

// firstWait is the pause before the first retry; each further one doubles it.
const firstWait = 500 * time.Millisecond

// wait asks once more after a pause, where no other source is left and a pause
// may help: what recovers first. What a server asked for is the least.
func (r *Router) wait(p *Plan, f *Failure) Verdict {
	if p.waits >= r.policy.Retries {
		return Verdict{Failure: f}
	}
	var best lane
	var until time.Time
	for _, l := range r.allowed(p) {
		if _, ok := p.pauses[l]; !ok {
			continue
		}
		if _, at := r.rank(time.Time{}, l); best.source == "" || at.Before(until) {
			best, until = l, at
		}
	}
	if best.source == "" {
		return Verdict{Failure: f}
	}
	after := time.Duration(float64(firstWait<<min(p.waits, 10)) * spread(p.ask.Key, p.waits))
	after = min(after, r.policy.MaxWait)
	if after = max(after, p.pauses[best]); after > r.policy.MaxWait {
		return Verdict{Failure: f}
	}
	p.waits++
	p.at = best
	return Verdict{Source: best.source, Key: best.key, After: after}
}

// spread gives 0.75 to 1.25 from a key, so that waiting calls do not come back
// together, and the same call waits the same time in every run.
func spread(key string, n int) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	_, _ = h.Write([]byte{byte(n)})
	return 0.75 + float64(h.Sum32()%1000)/2000
}

// allowed are the lanes that a plan may use, in order.
func (r *Router) allowed(p *Plan) []lane {
	var out []lane
	for i := range r.routes {
		q := &r.routes[i]
		if q.Disabled || p.ask.Only != "" && p.ask.Only != q.Name || p.ask.Free && !q.Free {
			continue
		}
		for _, key := range q.lanes() {
			out = append(out, lane{q.Name, key})
		}
	}
	return out
}

// rank says how good a lane is, zero is best, and until when it cools.
func (r *Router) rank(now time.Time, l lane) (rank int, until time.Time) {
	for _, c := range r.cools(l) {
		if c == nil {
			continue
		}
		k := 0
		switch {
		case now.Before(c.until) && c.latched:
			k = 3
		case now.Before(c.until):
			k = 2
		case c.probing:
			k = 1
		}
		rank = max(rank, k)
		if now.Before(c.until) && c.until.After(until) {
			until = c.until
		}
	}
	return rank, until
}

// next gives the best lane that the plan has not tried. Among equals the order
// of the routes decides, and within a source the key that was used least lately.
func (r *Router) next(now time.Time, p *Plan) Verdict {
	var best lane
	var bestRank int
	var bestUntil time.Time
	for _, l := range r.allowed(p) {
		if p.tried[l] {
			continue
		}
		rank, until := r.rank(now, l)
		better := best.source == "" || rank < bestRank
		if rank == bestRank && !better {
			switch {
			case !until.Equal(bestUntil):
				better = until.Before(bestUntil)
			case l.source == best.source:
				better = r.used(l) < r.used(best)
			default:
				better = l.source == p.ask.First
			}
		}
		if better {
			best, bestRank, bestUntil = l, rank, until
		}
	}
	if best.source == "" {
		return Verdict{Failure: r.none(p)}
	}
	p.tried[best], p.at = true, best
	for _, c := range r.cools(best) {
		if c != nil {
			c.probing = true
		}
	}
	if best.key != "" {
		r.turns++
		r.past(best.source).used[best.key] = r.turns
	}
	return Verdict{Source: best.source, Key: best.key}
}

func (r *Router) used(l lane) uint64 {
	if p := r.pasts[l.source]; p != nil {
		return p.used[l.key]
	}
	return 0
}

func (r *Router) none(p *Plan) *Failure {
	if p.last != nil {
		return p.last
	}
	f := &Failure{Kind: messages.ErrorKind_ERROR_KIND_NO_SOURCE, Source: p.ask.Only, Message: "no model source is configured"}
	switch {
	case p.ask.Only != "":
		f.Message = "there is no usable model source of that name"
		f.Hint = "Choose one that is configured and enabled."
	case len(r.routes) > 0:
		f.Message, f.Hint = "all model sources are switched off", "Enable one, or add another."
	default:
		f.Hint = Hint(f.Kind)
	}
	return f
}

// cutKey reads the key of a mark.
func cutKey(text string) (string, bool) { return strings.CutPrefix(text, "key/") }

package admin

import (
	"context"
	"net/http"
	"os"
	"runtime"
	"time"

	"homeagent/messages"
	"homeagent/messages/api"
)

// memory is GET /api/v1/memory?text=&entity=&limit=&agent=.
func (f *face) memory(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	got, no := f.look(r, false)
	if no != nil {
		return nil, no
	}
	return memory(got), nil
}

// memoryWhy is GET /api/v1/memory/why?text=&limit=&agent=.
func (f *face) memoryWhy(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	if r.URL.Query().Get("text") == "" {
		return nil, malformed("text is empty.", "Send ?text= with a question, or the id of an event or a fact.")
	}
	a, no := f.look(r, true)
	if no != nil {
		return nil, no
	}
	return &api.MemoryWhy{
		Items: list(a.GetItems(), recalled), LeftOut: list(a.GetLeftOut(), recalled), None: a.GetNone(), Floor: a.GetFloor(),
		Events: list(a.GetEvents(), memoryEvent), Facts: list(a.GetFacts(), fact),
	}, nil
}

// look asks memory what a request asks for.
func (f *face) look(r *http.Request, why bool) (*messages.MemoryAnswer, *refusal) {
	q := r.URL.Query()
	limit, no := number(r, "limit", 20, 1, 200)
	if no != nil {
		return nil, no
	}
	of, no := agentOf(q.Get("agent"))
	if no != nil {
		return nil, no
	}
	got, no := ask[*messages.MemoryAnswer](f, r.Context(), submitLimit, "memory", &messages.MemoryQuery{
		Text: q.Get("text"), Agent: of, Entity: q.Get("entity"), Limit: int32(limit), Why: why,
	})
	if no != nil {
		return nil, no
	}
	if got.GetError() != nil {
		return nil, refusalOf(got.GetError())
	}
	return got, nil
}

// writeFacts is POST /api/v1/memory/facts.
func (f *face) writeFacts(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	if f.draining.Load() {
		return nil, drainingRefusal()
	}
	var b api.Facts
	if no := decode(w, r, &b, true); no != nil {
		return nil, no
	}
	if len(b.Facts) == 0 || len(b.Facts) > 100 {
		return nil, malformed("Send 1 to 100 facts.", "").with("field", "facts")
	}
	if b.Key == "" {
		b.Key = f.newID("http:")
	}
	for i := range b.Facts {
		if b.Facts[i].Source == "" {
			b.Facts[i].Source = "owner"
		}
	}
	got, no := ask[*messages.CommitFactsResult](f, context.WithoutCancel(r.Context()), submitLimit, "memory/graph",
		&messages.CommitFacts{Facts: list(b.Facts, factMessage), Key: b.Key})
	if no != nil {
		return nil, no
	}
	if got.GetError() != nil {
		return nil, refusalOf(got.GetError())
	}
	same := func(s string) string { return s }
	return api.FactsWritten{FactIDs: list(got.GetFactIds(), same), Closed: list(got.GetClosed(), same)}, nil
}

// channels is GET /api/v1/channels.
func (f *face) channels(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	got, no := ask[*messages.ChannelList](f, r.Context(), askLimit, "channels", &messages.ListChannels{})
	if no != nil {
		return nil, no
	}
	return api.Channels{Channels: list(got.GetChannels(), func(c *messages.RegisterChannel) api.Channel {
		out := api.Channel{
			Name: c.GetName(), Kind: word(c.GetKind(), "CHANNEL_KIND_"), Mode: word(c.GetMode(), "MODE_"),
			Idempotent: c.GetIdempotent(), Owner: c.GetOwner().GetPath(),
		}
		if out.Kind == "" {
			out.Kind = "async"
		}
		if out.Mode == "" {
			out.Mode = "steer"
		}
		return out
	})}, nil
}

// broken is why nothing can be stored any more, for a person; empty while all is well.
func (f *face) broken() string {
	if f.deps.Broken == nil {
		return ""
	}
	if err := f.deps.Broken(); err != nil {
		return err.Error()
	}
	return ""
}

// word of the node's state.
func (f *face) state() string {
	switch {
	case f.broken() != "":
		return "broken"
	case f.draining.Load():
		return "draining"
	case f.ready.Load():
		return "ready"
	}
	return "starting"
}

// nodes is GET /api/v1/nodes: this one.
func (f *face) nodes(http.ResponseWriter, *http.Request) (any, *refusal) {
	return api.Nodes{Nodes: []api.Node{{
		Name: f.deps.Node, Self: true, State: f.state(), Version: f.deps.Build.Version, Epoch: f.epoch.Load(),
		Started: f.deps.Started.UTC(),
	}}}, nil
}

// status is GET /api/v1/status. A ledger that does not answer is left out: the rest is what helps to find out why.
func (f *face) status(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	d := f.deps
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	s := api.Status{
		Node: d.Node, Version: d.Build.Version, Revision: d.Build.Revision, State: f.state(), Epoch: f.epoch.Load(),
		PID: os.Getpid(), UptimeS: time.Since(d.Started).Seconds(), Started: d.Started.UTC(), Data: d.Data,
		HTTP: "http://" + d.Door.HTTP(), Socket: d.Door.Socket(),
		Goroutines: runtime.NumGoroutine(), MemoryBytes: mem.Sys - mem.HeapReleased, Streams: f.hub.len(),
	}
	got, no := ask[*messages.LedgerFigures](f, r.Context(), askLimit/5, "ledger", &messages.LedgerStats{})
	if no == nil {
		s.Ledger = ledger(got)
	}
	return s, nil
}

// healthLimit is how long the scheduler may take before the node counts as unwell.
const healthLimit = 2 * time.Second

// healthz asks the main scheduler: a socket that accepts says nothing about what stands behind it.
func (f *face) healthz(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	if why := f.broken(); why != "" {
		return answer{http.StatusServiceUnavailable, api.Health{Status: "unwell", Reason: why}}, nil
	}
	start := time.Now()
	_, no := ask[*messages.SchedulerState](f, r.Context(), healthLimit, "agents/main/scheduler",
		&messages.SchedulerQuery{Most: -1})
	if no != nil {
		return answer{http.StatusServiceUnavailable, api.Health{Status: "unwell"}}, nil
	}
	return api.Health{Status: "ok", TookMS: float64(time.Since(start).Microseconds()) / 1000}, nil
}

// readyz tells whether new work is taken.
func (f *face) readyz(http.ResponseWriter, *http.Request) (any, *refusal) {
	if s := f.state(); s != "ready" {
		return answer{http.StatusServiceUnavailable, api.Health{Status: s, Reason: f.broken()}}, nil
	}
	return api.Health{Status: "ok"}, nil
}

package admin

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"homeagent/internal/obs"
	"homeagent/messages"
)

// figures are what /metrics shows of the tree, the store and HTTP.
type figures struct {
	f        *face
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec

	live, waiting, oldest, handled, restarts, refused            *prometheus.Desc
	open, accepted, ended, bytes, free, diskLow, syncs, answered *prometheus.Desc
	space, budget, full, pressure, removed, broken               *prometheus.Desc

	mu   sync.Mutex
	seen map[string]seen                // last figures of each actor by path
	base map[string]*messages.ActorInfo // by kind, what actors that have ended had counted
}

// seen is what one actor had counted when it was last looked at.
type seen struct {
	kind                       string
	handled, restarts, refused uint64
}

func newFigures(f *face) *figures {
	m := f.deps.Metrics
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(obs.Namespace+"_"+name, help, labels, nil)
	}
	g := &figures{
		f: f, seen: make(map[string]seen), base: make(map[string]*messages.ActorInfo),
		requests: m.Counter("http", "requests_total", "HTTP requests answered.", "route", "status"),
		took:     m.Histogram("http", "request_seconds", "Time until a request was answered, streams left out.", nil, "route"),

		live:     desc("actor_live_items", "Actors that live.", "kind"),
		waiting:  desc("actor_mailbox_messages", "Messages that wait.", "kind", "lane"),
		oldest:   desc("actor_oldest_seconds", "Age of the oldest waiting message of the kind.", "kind"),
		handled:  desc("actor_handled_messages_total", "Messages handled, as last seen for actors that have ended.", "kind"),
		restarts: desc("actor_restarts_total", "Restarts after a failure.", "kind"),
		refused:  desc("actor_refused_messages_total", "Messages refused by admission.", "kind"),
		open:     desc("ledger_open_items", "Inputs accepted and not ended."),
		accepted: desc("ledger_accepted_items_total", "Inputs accepted since the store was made."),
		ended:    desc("ledger_ended_items_total", "Tasks ended since the store was made."),
		bytes:    desc("store_disk_bytes", "Bytes of the store on disk."),
		free:     desc("store_free_bytes", "Free bytes of the disk."),
		diskLow:  desc("store_disk_low_info", "1 while writes are refused for want of space."),
		syncs:    desc("store_syncs_total", "Syncs to disk by this process."),
		space:    desc("store_space_bytes", "What a key space of the store takes.", "space"),
		budget:   desc("store_budget_bytes", "Most bytes that the store may take, 0 for no limit."),
		full:     desc("store_full_info", "1 while inputs are refused because the store has reached its budget."),
		pressure: desc("store_pressure_steps", "How many times the times of retention are halved."),
		removed:  desc("store_removed_items_total", "What retention removed since the start of the process.", "kind"),
		broken:   desc("store_broken_info", "1 when nothing can be stored any more."),
		answered: desc("ledger_answered_info", "1 when the ledger answered in time; its other figures are missing at 0."),
	}
	m.GaugeFunc("http", "streams_items", "Open event streams and waiting callers.", func() float64 {
		return float64(f.hub.len())
	})
	m.Register(g)
	return g
}

// Describe tells of the figures.
func (g *figures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		g.live, g.waiting, g.oldest, g.handled, g.restarts, g.refused,
		g.open, g.accepted, g.ended, g.bytes, g.free, g.diskLow, g.syncs, g.answered,
		g.space, g.budget, g.full, g.pressure, g.removed, g.broken,
	} {
		to <- d
	}
}

// Collect reads the tree and asks the ledger. Any goroutine.
func (g *figures) Collect(to chan<- prometheus.Metric) {
	for kind, s := range g.sum(g.f.deps.Runtime.Tree()) {
		put := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, t, v, append([]string{kind}, labels...)...)
		}
		put(g.live, prometheus.GaugeValue, float64(s.live))
		put(g.waiting, prometheus.GaugeValue, float64(s.info.GetMailboxUser()), "user")
		put(g.waiting, prometheus.GaugeValue, float64(s.info.GetMailboxControl()), "control")
		put(g.oldest, prometheus.GaugeValue, float64(s.info.GetOldestMs())/1000)
		put(g.handled, prometheus.CounterValue, float64(s.info.GetHandled()))
		put(g.restarts, prometheus.CounterValue, float64(s.info.GetRestarts()))
		put(g.refused, prometheus.CounterValue, float64(s.info.GetRefused()))
	}
	g.store(to)
}

// sums are the figures of one kind; info holds them added up.
type sums struct {
	live int
	info *messages.ActorInfo
}

// sum adds up the tree by kind. What an actor that has ended had counted is kept: a total never falls.
func (g *figures) sum(root *messages.ActorInfo) map[string]*sums {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := make(map[string]seen, len(g.seen))
	out := make(map[string]*sums)
	of := func(kind string) *sums {
		if out[kind] == nil {
			out[kind] = &sums{info: &messages.ActorInfo{}}
		}
		return out[kind]
	}
	var walk func(a *messages.ActorInfo)
	walk = func(a *messages.ActorInfo) {
		s := of(a.GetKind())
		s.live++
		s.info.MailboxUser += a.GetMailboxUser()
		s.info.MailboxControl += a.GetMailboxControl()
		s.info.OldestMs = max(s.info.OldestMs, a.GetOldestMs())
		add(s.info, a.GetHandled(), a.GetRestarts(), a.GetRefused())
		now[a.GetPath()] = seen{a.GetKind(), a.GetHandled(), a.GetRestarts(), a.GetRefused()}
		for _, c := range a.GetChildren() {
			walk(c)
		}
	}
	walk(root)
	for path, old := range g.seen {
		if cur, ok := now[path]; ok && cur.kind == old.kind && cur.handled >= old.handled {
			continue
		}
		if g.base[old.kind] == nil {
			g.base[old.kind] = &messages.ActorInfo{}
		}
		add(g.base[old.kind], old.handled, old.restarts, old.refused)
	}
	g.seen = now
	for kind, b := range g.base {
		add(of(kind).info, b.GetHandled(), b.GetRestarts(), b.GetRefused())
	}
	return out
}

func add(to *messages.ActorInfo, handled, restarts, refused uint64) {
	to.Handled += handled
	to.Restarts += restarts
	to.Refused += refused
}

// store asks the ledger; figures that it does not give are missing rather than wrong.
func (g *figures) store(to chan<- prometheus.Metric) {
	got, no := ask[*messages.LedgerFigures](g.f, context.Background(), askLimit/5, "ledger", &messages.LedgerStats{})
	put := func(d *prometheus.Desc, t prometheus.ValueType, v float64) {
		to <- prometheus.MustNewConstMetric(d, t, v)
	}
	if no != nil {
		put(g.answered, prometheus.GaugeValue, 0)
		return
	}
	put(g.answered, prometheus.GaugeValue, 1)
	put(g.open, prometheus.GaugeValue, float64(got.GetOpen()))
	put(g.accepted, prometheus.CounterValue, float64(got.GetAccepted()))
	put(g.ended, prometheus.CounterValue, float64(got.GetEnded()))
	put(g.bytes, prometheus.GaugeValue, float64(got.GetBytes()))
	put(g.free, prometheus.GaugeValue, float64(got.GetFreeBytes()))
	put(g.diskLow, prometheus.GaugeValue, truth(got.GetDiskLow()))
	put(g.syncs, prometheus.CounterValue, float64(got.GetSyncs()))
	put(g.broken, prometheus.GaugeValue, truth(got.GetBroken() != ""))
	u := got.GetUpkeep()
	put(g.budget, prometheus.GaugeValue, float64(u.GetBudgetBytes()))
	put(g.full, prometheus.GaugeValue, truth(u.GetFull()))
	put(g.pressure, prometheus.GaugeValue, float64(u.GetPressure()))
	for _, s := range u.GetSpaces() {
		to <- prometheus.MustNewConstMetric(g.space, prometheus.GaugeValue, float64(s.GetBytes()), s.GetSpace())
	}
	for kind, n := range map[string]uint64{
		"journal": u.GetRemovedJournals(), "task": u.GetRemovedTasks(), "key": u.GetRemovedKeys(),
		"output": u.GetRemovedOutputs(), "aside": u.GetRemovedAsides(), "payload": u.GetRemovedPayloads(),
	} {
		to <- prometheus.MustNewConstMetric(g.removed, prometheus.CounterValue, float64(n), kind)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// counted notes each answer of a route. The label is the pattern, never the path: paths have no bound.
func (f *face) counted(route string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w}
		start := time.Now()
		next.ServeHTTP(rec, r)
		f.figures.requests.WithLabelValues(route, strconv.Itoa(rec.status)).Inc()
		if w.Header().Get("Content-Type") != "text/event-stream; charset=utf-8" {
			f.figures.took.WithLabelValues(route).Observe(time.Since(start).Seconds())
		}
	})
}

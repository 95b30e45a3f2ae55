package obs

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Namespace is the first word of the name of every metric of ours.
const Namespace = "homeagent"

// units are the endings that a measured value may have: a metric carries its unit in its name.
var units = []string{"_seconds", "_bytes", "_ratio", "_messages", "_tokens", "_items", "_info"}

// Metrics is a node's own registry; the library's global registry is never used, so two nodes in one test process do
// not meet. Names are homeagent_<subsystem>_<name>. Registering the same name twice, or a name without its unit, is a
// mistake in the program and panics.
type Metrics struct {
	registry *prometheus.Registry
}

// NewMetrics returns a registry that already holds homeagent_build_info and the figures of the Go runtime and of the
// process.
func NewMetrics(b Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	info := m.Gauge("build", "info", "Always 1; the labels say what is running.", "version", "revision", "modified", "go")
	info.WithLabelValues(b.Version, b.Revision, strconv.FormatBool(b.Modified), b.Go).Set(1)
	return m
}

// Counter registers a number that only grows; its name must end in _total.
func (m *Metrics) Counter(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
	mustEnd(subsystem, name, "_total")
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: Namespace, Subsystem: subsystem, Name: name, Help: help,
	}, labels)
	m.registry.MustRegister(c)
	return c
}

// CounterFunc registers a growing number that is read when somebody asks. read is called from any goroutine and must
// not block.
func (m *Metrics) CounterFunc(subsystem, name, help string, read func() float64) {
	mustEnd(subsystem, name, "_total")
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: Namespace, Subsystem: subsystem, Name: name, Help: help,
	}, read))
}

// Gauge registers a number that goes up and down; its name must end in a unit (_seconds, _bytes, _messages, _items …).
func (m *Metrics) Gauge(subsystem, name, help string, labels ...string) *prometheus.GaugeVec {
	mustEnd(subsystem, name, units...)
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: Namespace, Subsystem: subsystem, Name: name, Help: help,
	}, labels)
	m.registry.MustRegister(g)
	return g
}

// GaugeFunc registers a gauge that is read when somebody asks. read is called from any goroutine and must not block.
func (m *Metrics) GaugeFunc(subsystem, name, help string, read func() float64) {
	mustEnd(subsystem, name, units...)
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: Namespace, Subsystem: subsystem, Name: name, Help: help,
	}, read))
}

// Histogram registers a distribution over the given upper bounds, in the unit that the name ends in. No bounds means
// 100 µs to 100 s in steps of about three, for a name in seconds.
func (m *Metrics) Histogram(subsystem, name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	mustEnd(subsystem, name, units...)
	if len(bounds) == 0 {
		bounds = []float64{1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3, 10, 30, 100}
	}
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: Namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: bounds,
	}, labels)
	m.registry.MustRegister(h)
	return h
}

// Register adds a collector that gathers many figures in one sweep, such as that of the actor tree.
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

// Handler serves the Prometheus text format. A collector that fails makes the answer a 500 with the reason: a page
// with figures missing would look like a healthy node.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
}

func mustEnd(subsystem, name string, ends ...string) {
	ok := func(end string) bool { return strings.HasSuffix("_"+name, end) }
	if !slices.ContainsFunc(ends, ok) {
		panic(fmt.Sprintf("obs: metric %s_%s must end in one of %v", subsystem, name, ends))
	}
}

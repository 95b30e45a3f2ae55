package obs

import (
	"errors"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func page(t *testing.T, m *Metrics) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Code, w.Body.String()
}

func TestMetricsPage(t *testing.T) {
	m := NewMetrics(Build{Version: "1.2.3", Revision: "abc", Go: "go1"})
	m.Counter("scheduler", "preempted_total", "Turns preempted.", "level").WithLabelValues("l3").Add(2)
	m.CounterFunc("log", "lost_total", "Lines lost.", func() float64 { return 7 })
	m.Gauge("ledger", "waiting_items", "Inputs waiting.").WithLabelValues().Set(4)
	m.GaugeFunc("store", "reserve_bytes", "Reserve.", func() float64 { return 5 })
	m.Histogram("turn", "overhead_seconds", "Overhead.", nil).WithLabelValues().Observe(0.002)
	status, body := page(t, m)
	for _, want := range []string{
		`homeagent_build_info{go="go1",modified="false",revision="abc",version="1.2.3"} 1`,
		`homeagent_scheduler_preempted_total{level="l3"} 2`,
		"homeagent_log_lost_total 7",
		"homeagent_ledger_waiting_items 4",
		"homeagent_store_reserve_bytes 5",
		`homeagent_turn_overhead_seconds_bucket{le="0.003"} 1`,
		"go_goroutines ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if status != 200 {
		t.Errorf("status %d", status)
	}
}

func TestRegistriesAreSeparate(t *testing.T) {
	one, two := NewMetrics(Build{}), NewMetrics(Build{})
	one.Counter("a", "x_total", "X.").WithLabelValues().Inc()
	two.Counter("a", "x_total", "X.") // would panic on one shared registry
	if _, body := page(t, two); strings.Contains(body, "homeagent_a_x_total 1") {
		t.Error("one node's figure shows on the other's page")
	}
}

func TestMistakesInNamesPanic(t *testing.T) {
	m := NewMetrics(Build{})
	m.Counter("a", "x_total", "X.")
	for name, register := range map[string]func(){
		"counter without _total": func() { m.Counter("a", "x", "X.") },
		"gauge without unit":     func() { m.Gauge("a", "depth", "X.") },
		"histogram without unit": func() { m.Histogram("a", "time", "X.", nil) },
		"twice":                  func() { m.Counter("a", "x_total", "X.") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			register()
		})
	}
}

var errBroken = errors.New("sweep failed")

type broken struct{}

func (broken) Describe(chan<- *prometheus.Desc) {}

func (broken) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(errBroken), errBroken)
}

func TestBrokenCollectorIsNotHidden(t *testing.T) {
	m := NewMetrics(Build{})
	m.Register(broken{})
	if status, body := page(t, m); status != 500 || !strings.Contains(body, errBroken.Error()) {
		t.Errorf("status %d, body %q", status, body)
	}
}

func TestReadBuild(t *testing.T) {
	b := readBuild(&debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "deadbeef"},
		{Key: "vcs.modified", Value: "true"},
		{Key: "vcs.time", Value: "2026-01-02T03:04:05+01:00"},
	}})
	if b.Revision != "deadbeef" || !b.Modified || !b.Time.Equal(time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)) {
		t.Errorf("got %+v", b)
	}
	if want := "dev (deadbeef, modified) go"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("got %q, want it to begin with %q", b, want)
	}
	if none := readBuild(nil); none.Revision != Unknown || none.Version != "dev" {
		t.Errorf("with nothing recorded: %+v", none)
	}
	if ReadBuild().Go == "" {
		t.Error("the running binary has no toolchain version")
	}
}

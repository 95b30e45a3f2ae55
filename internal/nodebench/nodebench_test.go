package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"homeagent/configs/paths"
	"homeagent/memory/contextmem"
	"homeagent/memory/ledger"
	"homeagent/memory/store"
)

func TestQuantiles(t *testing.T) {
	for _, c := range []struct {
		s    sample
		q    float64
		want float64
	}{
		{sample{7}, 0.5, 7},
		{sample{7}, 0.99, 7},
		{sample{3, 1, 2}, 0.5, 2},
		{sample{4, 3, 2, 1}, 0.5, 2},
		{sample{1, 2, 3, 4}, 1, 4},
	} {
		if got := c.s.quantile(c.q); got != c.want {
			t.Errorf("the %v quantile of %v is %v, not %v", c.q, c.s, got, c.want)
		}
	}
	var hundred sample
	for i := range 200 {
		hundred = append(hundred, float64(200-i))
	}
	if got := hundred.quantile(0.99); got != 198 {
		t.Errorf("of 200 values the p99 is %v, not 198", got)
	}
}

func TestFigureStandsOnWhatWasAskedFor(t *testing.T) {
	for _, s := range []sample{nil, {1}, {1, 2, 3}} {
		if f, err := s.figure("x", "ms", 2); !errors.Is(err, errNothing) {
			t.Errorf("%v gives %+v, %v", s, f, err)
		}
	}
	if _, err := (sample{}).figure("x", "ms", 0); !errors.Is(err, errNothing) {
		t.Errorf("no values: %v", err)
	}
	f, err := sample{3, 1}.figure("x", "ms", 2)
	if want := (Figure{Name: "x", Unit: "ms", N: 2, P50: 1, P95: 3, P99: 3, Min: 1, Max: 3}); err != nil || f != want {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestTargets(t *testing.T) {
	f := Figure{P50: 4, P95: 7, P99: 9}
	for _, c := range []struct {
		of   string
		most float64
		ok   bool
	}{{"p50", 4, true}, {"p50", 3.9, false}, {"p95", 7, true}, {"p95", 5, false}, {"p99", 9, true}, {"p99", 8, false}} {
		if got := f.within(c.of, c.most); got.OK != c.ok {
			t.Errorf("%s <= %v: %v", c.of, c.most, got.OK)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0134: "0.013", -0.894: "-0.894", 1.5: "1.5", 12.345: "12.3", 123.4: "123", 1234.5: "1234", 10: "10"} {
		if got := number(v); got != want {
			t.Errorf("%v is written %s, not %s", v, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	r := Report{
		Revision: "abc", Go: "go1", At: time.Unix(0, 0).UTC(), Machine: Machine{CPU: "cpu", Cores: 2, Memory: 4e9, OS: "linux"},
		Figures: []Figure{
			Figure{Name: "good", Unit: "ms", N: 2, P50: 1, P99: 2}.within("p50", 1),
			Figure{Name: "bad", Unit: "MB", N: 2, P50: 1, P99: 2}.within("p99", 1),
			{Name: "plain", Unit: "%", N: 2, Note: "why"},
		},
	}
	var out bytes.Buffer
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"p50 <= 1 ok", "p99 <= 1 missed", "plain: why", "cpu, 2 cores, 4.0 GB"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in\n%s", part, &out)
		}
	}
}

const (
	status = "Name:\thomed\nVmHWM:\t   40000 kB\nVmRSS:\t   27676 kB\nRssAnon:\t    9912 kB\n"
	rollup = "00400000-7ffff4843000 ---p 00000000 00:00 0    [rollup]\nRss:               27676 kB\nPss:               27668 kB\n"
)

func TestMemoryOfAProcess(t *testing.T) {
	m, err := parseMemory([]byte(status), []byte(rollup))
	if want := (memory{rss: 27676 << 10, pss: 27668 << 10, anon: 9912 << 10}); err != nil || m != want {
		t.Errorf("%+v, %v", m, err)
	}
	for _, c := range [][2]string{{"", rollup}, {status, ""}, {strings.ReplaceAll(status, " kB", " MB"), rollup}, {strings.ReplaceAll(status, "9912", "many"), rollup}} {
		if m, err := parseMemory([]byte(c[0]), []byte(c[1])); !errors.Is(err, errProc) {
			t.Errorf("%q gives %+v, %v", c, m, err)
		}
	}
}

func TestProcessorTime(t *testing.T) {
	got, err := parseCPU("12 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0")
	if err != nil || got != 1750*time.Millisecond {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "12 (homed) S 1 2", "12 (homed) S 1 2 3 4 5 6 7 8 9 10 x 25"} {
		if got, err := parseCPU(bad); !errors.Is(err, errProc) {
			t.Errorf("%q gives %v, %v", bad, got, err)
		}
	}
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a node is measured on Linux")
	}
}

func TestMachine(t *testing.T) {
	onLinux(t)
	r, err := describe(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if r.Machine.Memory < 1<<20 || r.Machine.Cores < 1 || r.Go == "" || r.Revision == "" {
		t.Errorf("%+v", r)
	}
}

// TestSeed reads seeded events back.
func TestSeed(t *testing.T) {
	data := filepath.Join(t.TempDir(), "d")
	if err := seed(data, 12); err != nil {
		t.Fatal(err)
	}
	layout, err := paths.Resolve(data, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(layout.Store(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	events, err := contextmem.New(db, nil).Last(contextmem.Window{Agent: "main", Events: 20})
	if err != nil || len(events) != 12 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	if text := events[11].GetEvent().GetBlocks()[0].GetContent().GetText(); !strings.Contains(text, seededTopic(11)) {
		t.Errorf("the last event says %q", text)
	}
}

// TestSeedTasks reads seeded tasks back: those that are over with their journals, and those that wait.
func TestSeedTasks(t *testing.T) {
	data := filepath.Join(t.TempDir(), "d")
	if err := seedTasks(data); err != nil {
		t.Fatal(err)
	}
	layout, err := paths.Resolve(data, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(layout.Store(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l, err := ledger.Open(db, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f := l.Figures(); f.GetOpen() != waiting || f.GetAccepted() != journaled+waiting {
		t.Errorf("the ledger counts %v", f)
	}
	steps, err := l.Journal(seededID(journaled - 1))
	if err != nil || len(steps) != 6 {
		t.Errorf("%d steps, %v", len(steps), err)
	}
}

func TestCommand(t *testing.T) {
	onLinux(t)
	var out, errs bytes.Buffer
	if err := run(context.Background(), []string{"-only", "size,speed"}, &out, &errs); err == nil || !strings.Contains(err.Error(), `"speed"`) {
		t.Errorf("an unknown part: %v", err)
	}
	self, err := filepath.Abs("nodebench_test.go")
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "figures.json")
	if err := run(context.Background(), []string{"-only", "size", "-homed", self, "-json", saved}, &out, &errs); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "binary size, stripped") || !strings.Contains(out.String(), "p50 <= 28 ok") {
		t.Errorf("the table is\n%s", &out)
	}
	var r Report
	if b, err := os.ReadFile(saved); err != nil || json.Unmarshal(b, &r) != nil || len(r.Figures) != 1 || !r.Figures[0].OK {
		t.Errorf("saved was %s, %v", b, err)
	}
}

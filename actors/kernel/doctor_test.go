package kernel

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"homeagent/configs/paths"
)

// visit runs the doctor and returns what it found by id.
func visit(t *testing.T, o DoctorOptions) (Diagnosis, map[string]Finding) {
	t.Helper()
	got, err := Doctor(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]Finding{}
	for i, f := range got.Findings {
		if f.ID == "" || f.Evidence == "" || rank(f.Severity) < 0 || f.Fix == "" && f.Severity == SeverityError {
			t.Errorf("finding %+v", f)
		}
		if i > 0 && rank(f.Severity) < rank(got.Findings[i-1].Severity) {
			t.Errorf("%s comes after %s", f.ID, got.Findings[i-1].ID)
		}
		by[f.ID] = f
	}
	return got, by
}

func TestDoctorOfAHealthyNode(t *testing.T) {
	o := options(t)
	d := DoctorOptions{Data: o.Data, Free: func(string) (int64, error) { return 1 << 40, nil }, Now: func() time.Time { return time.Now().UTC() }}
	_, by := visit(t, d)
	if len(by) != 1 || by["data_missing"].Severity != SeverityNote {
		t.Errorf("before the first start: %v", by)
	}
	n := boot(t, o)
	got, by := visit(t, d)
	if !got.Running || !got.Well() || by["store_in_use"].ID == "" {
		t.Errorf("of a running node: %+v", got)
	}
	for id, f := range by {
		if f.Severity != SeverityNote {
			t.Errorf("%s: %+v", id, f)
		}
	}
	closeNode(t, n)
	if got, by = visit(t, d); got.Running || len(by) != 0 {
		t.Errorf("after an orderly stop: %+v", got)
	}
}

// A visit while a node starts must not keep it from its lock for longer than a moment, and must not change a byte.
func TestDoctorFinds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are not those of this system")
	}
	o := options(t)
	closeNode(t, boot(t, o))
	l, err := paths.Resolve(o.Data, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		id       string
		severity Severity
		do       func(d *DoctorOptions)
		undo     func()
	}{
		{"data_open", SeverityError, func(*DoctorOptions) { must(os.Chmod(l.Data(), 0o777)) }, func() { must(os.Chmod(l.Data(), 0o700)) }},                            //nolint:gosec // what is to be found
		{"data_readable", SeverityWarning, func(*DoctorOptions) { must(os.Chmod(l.Run(), 0o755)) }, func() { must(os.Chmod(l.Run(), 0o700)) }},                        //nolint:gosec // what is to be found
		{"token_mode", SeverityError, func(*DoctorOptions) { must(os.Chmod(l.Token(), 0o644)) }, func() { must(os.Chmod(l.Token(), 0o600)) }},                         //nolint:gosec // what is to be found
		{"secret_key_mode", SeverityError, func(*DoctorOptions) { must(os.WriteFile(l.SecretKey(), []byte("k"), 0o644)) }, func() { must(os.Remove(l.SecretKey())) }}, //nolint:gosec // what is to be found
		{"stale_state", SeverityWarning, func(*DoctorOptions) { must(l.WriteState(paths.State{PID: 1 << 22})) }, func() { must(os.Remove(l.State())) }},
		{"state_unreadable", SeverityWarning, func(*DoctorOptions) { must(os.WriteFile(l.State(), []byte("{"), 0o600)) }, func() { must(os.Remove(l.State())) }},
		{"store_damaged", SeverityError, func(*DoctorOptions) { must(os.Rename(l.Store()+"/mark", l.Store()+"/x")) }, func() { must(os.Rename(l.Store()+"/x", l.Store()+"/mark")) }},
		{"store_format", SeverityError, func(*DoctorOptions) { must(os.WriteFile(l.Store()+"/format", []byte("homeagent store 99\n"), 0o600)) }, func() { must(os.WriteFile(l.Store()+"/format", []byte("homeagent store 2\n"), 0o600)) }},
		{"store_older", SeverityNote, func(*DoctorOptions) { must(os.WriteFile(l.Store()+"/format", []byte("homeagent store 1\n"), 0o600)) }, func() { must(os.WriteFile(l.Store()+"/format", []byte("homeagent store 2\n"), 0o600)) }},
		{"store_unclean", SeverityNote, func(*DoctorOptions) { must(os.Rename(l.Store()+"/clean", l.Store()+"/x")) }, func() { must(os.Rename(l.Store()+"/x", l.Store()+"/clean")) }},
		{"aside_kept", SeverityWarning, func(*DoctorOptions) {
			must(os.MkdirAll(l.Store()+"/aside/1", 0o700))
			must(os.WriteFile(l.Store()+"/aside/1/KEEP", nil, 0o600))
		}, func() { must(os.RemoveAll(l.Store() + "/aside")) }},
		{"aside_copies", SeverityNote, func(*DoctorOptions) { must(os.MkdirAll(l.Store()+"/aside/1", 0o700)) }, func() { must(os.RemoveAll(l.Store() + "/aside")) }},
		{"disk_low", SeverityError, func(d *DoctorOptions) { d.Free = func(string) (int64, error) { return 1 << 20, nil } }, nil},
		{"disk_tight", SeverityWarning, func(d *DoctorOptions) { d.Free = func(string) (int64, error) { return 300 << 20, nil } }, nil},
		{"disk_low", SeverityError, func(d *DoctorOptions) {
			d.Free, d.Environ = func(string) (int64, error) { return 1 << 30, nil }, []string{"HOMED_CORE_STORE_RESERVE_BYTES=2GiB"}
		}, nil},
		{"disk_unknown", SeverityWarning, func(d *DoctorOptions) { d.Free = func(string) (int64, error) { return 0, errors.New("boom") } }, nil},
		{"variable_unknown", SeverityWarning, func(d *DoctorOptions) { d.Environ = []string{"HOMED_LISTN=x"} }, nil},
		{"variable_wrong", SeverityError, func(d *DoctorOptions) { d.Environ = []string{"HOMED_CORE_AGENT_NAMEE=x"} }, nil},
		{"listen_open", SeverityWarning, func(d *DoctorOptions) { d.Listen = "0.0.0.0:8765" }, nil},
		{"listen_open", SeverityWarning, func(d *DoctorOptions) { d.Environ = []string{"HOMED_LISTEN=192.168.1.5:8765"} }, nil},
		{"listen_wrong", SeverityError, func(d *DoctorOptions) { d.Listen = "8765" }, nil},
		{"clock_wrong", SeverityError, func(d *DoctorOptions) { d.Now = func() time.Time { return time.Unix(0, 0).UTC() } }, nil},
		{"clock_behind", SeverityWarning, func(d *DoctorOptions) { d.Now = func() time.Time { return time.Now().Add(-time.Hour).UTC() } }, nil},
		{"zone_unknown", SeverityWarning, func(d *DoctorOptions) { d.Environ = []string{"TZ=Mars/Base"} }, nil},
		{"personal_no_file", SeverityWarning, func(*DoctorOptions) { must(os.Mkdir(l.Personal(), 0o700)) }, func() { must(os.Remove(l.Personal())) }},
		{"personal_long", SeverityWarning, func(*DoctorOptions) { must(os.WriteFile(l.Personal(), make([]byte, maxPersonal+1), 0o600)) }, func() { must(os.Remove(l.Personal())) }},
		{"personal_encoding", SeverityWarning, func(*DoctorOptions) { must(os.WriteFile(l.Personal(), []byte{0xff, 0xfe, 'a'}, 0o600)) }, func() { must(os.Remove(l.Personal())) }},
		{"personal_empty", SeverityNote, func(*DoctorOptions) { must(os.WriteFile(l.Personal(), []byte(" \n"), 0o600)) }, func() { must(os.Remove(l.Personal())) }},
		{"adapter_name", SeverityWarning, func(*DoctorOptions) { must(os.WriteFile(l.Adapters()+"/a.txt", nil, 0o600)) }, func() { must(os.Remove(l.Adapters() + "/a.txt")) }},
		{"adapter_unreadable", SeverityError, func(*DoctorOptions) { must(os.Symlink("nowhere", l.Adapters()+"/a.lua")) }, func() { must(os.Remove(l.Adapters() + "/a.lua")) }},
		{"leftover", SeverityNote, func(*DoctorOptions) { must(os.Mkdir(filepath.Dir(l.Data())+"/.homed-restore-1", 0o700)) }, func() { must(os.Remove(filepath.Dir(l.Data()) + "/.homed-restore-1")) }},
	}
	for _, c := range cases {
		t.Run(c.id, func(t *testing.T) {
			d := DoctorOptions{Data: o.Data, Free: func(string) (int64, error) { return 1 << 40, nil }, Now: func() time.Time { return time.Now().UTC() }}
			c.do(&d)
			got, by := visit(t, d)
			if by[c.id].Severity != c.severity || got.Well() == (c.severity == SeverityError) {
				t.Errorf("found %+v", got.Findings)
			}
			if c.undo != nil {
				c.undo()
			}
		})
	}
	_, by := visit(t, DoctorOptions{Data: o.Data, Free: func(string) (int64, error) { return 1 << 40, nil }, Now: func() time.Time { return time.Now().UTC() }})
	if len(by) != 0 {
		t.Errorf("when all is well again: %v", by)
	}
	closeNode(t, boot(t, o))
}

// A process that holds the lock and does not answer is stuck, or another program.
func TestDoctorOfAStuckNode(t *testing.T) {
	o := options(t)
	n := boot(t, o)
	if err := os.Rename(n.w.layout.Socket(), n.w.layout.Socket()+"x"); err != nil {
		t.Fatal(err)
	}
	_, by := visit(t, DoctorOptions{Data: o.Data})
	if by["node_stuck"].Severity != SeverityError {
		t.Errorf("found %v", by)
	}
	closeNode(t, n)
}

func TestVariables(t *testing.T) {
	got := strange([]string{"HOMED_DATA=x", "HOMED_LISTN=y", "HOMED_AGENT_NAME=z", "HOMED_CORE_X=1", "PATH=p", "HOMED_WHATEVERITIS=1"})
	if len(got) != 3 || got[0].name != "HOMED_LISTN" || !slices.Contains(got[0].near, "HOMED_LISTEN") ||
		!strings.Contains(got[1].hint(), "HOMED_CORE_AGENT_NAME") || !strings.Contains(got[2].hint(), "remove it") {
		t.Errorf("got %+v", got)
	}
	o := options(t)
	o.Environ = []string{"HOMED_LISTN=y"}
	n := boot(t, o)
	closeNode(t, n)
	b, err := os.ReadFile(filepath.Join(n.Data(), "logs", "homed.log"))
	if err != nil || strings.Count(string(b), "HOMED_LISTN") != 1 || !strings.Contains(string(b), "HOMED_LISTEN") {
		t.Errorf("the log does not name it (%v):\n%s", err, b)
	}
}

func TestListening(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	got, err := listening(os.Getpid())
	if err != nil || !slices.Contains(got, l.Addr().String()) {
		t.Errorf("%v lacks %s (%v)", got, l.Addr(), err)
	}
}

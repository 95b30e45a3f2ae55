package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"homeagent/configs/paths"
	"homeagent/internal/obs"
)

// Severity of a finding.
type Severity string

// The severities: a node with an error does not run or loses something, one with a warning may, and a note is good to know.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note"
)

// Finding is one thing that the doctor saw.
type Finding struct {
	// ID names the kind of finding; it is never renamed.
	ID string `json:"id"`
	// Severity tells how bad it is.
	Severity Severity `json:"severity"`
	// Evidence is what was seen, Fix what to do; a note may have no fix.
	Evidence string `json:"evidence"`
	Fix      string `json:"fix,omitempty"`
}

// Diagnosis is what the doctor found.
type Diagnosis struct {
	// Data is the folder that was looked at, Version that of this program.
	Data    string `json:"data"`
	Version string `json:"version"`
	// Running says that a node answered on the folder.
	Running bool `json:"running"`
	// Findings, the worst first.
	Findings []Finding `json:"findings"`
}

// Well reports that there is no error.
func (d Diagnosis) Well() bool {
	return !slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Severity == SeverityError })
}

// DoctorOptions say what to look at.
type DoctorOptions struct {
	// Data is the data folder as for Options; Listen is where the node would listen, empty for the default.
	Data, Listen string
	// Environ is the environment in the form of os.Environ.
	Environ []string
	// Now tells the time; nil means time.Now.
	Now func() time.Time
	// Free tells the free bytes of the disk that holds a folder; nil asks the system.
	Free func(dir string) (int64, error)
}

// doctor is one visit. The store is never opened, and nothing is changed but a lock that is taken for a moment.
type doctor struct {
	DoctorOptions
	build  obs.Build
	layout paths.Layout
	// state is what a running node wrote down; nil without a file.
	state *paths.State
	out   Diagnosis
}

func (d *doctor) add(severity Severity, id, evidence, fix string) {
	d.out.Findings = append(d.out.Findings, Finding{ID: id, Severity: severity, Evidence: evidence, Fix: fix})
}

// Doctor looks at a node's data folder, its environment and, where one runs, its process. An error means that it could not
// look at all.
func Doctor(ctx context.Context, o DoctorOptions) (Diagnosis, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &doctor{DoctorOptions: o, build: obs.ReadBuild()}
	var err error
	if d.layout, err = paths.Resolve(o.Data, d.env); err != nil {
		return Diagnosis{}, err
	}
	d.out = Diagnosis{Data: d.layout.Data(), Version: d.build.Version, Findings: []Finding{}}
	if d.folder() {
		d.process(ctx)
		d.secrets()
		d.store()
		d.disk()
		d.texts()
		d.leftovers()
	}
	d.environment()
	d.address()
	d.clock()
	slices.SortStableFunc(d.out.Findings, func(a, b Finding) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	return d.out, nil
}

func rank(s Severity) int {
	return slices.Index([]Severity{SeverityError, SeverityWarning, SeverityNote}, s)
}

func (d *doctor) env(name string) string {
	for _, line := range slices.Backward(d.Environ) {
		if len(line) > len(name) && line[:len(name)] == name && line[len(name)] == '=' {
			return line[len(name)+1:]
		}
	}
	return ""
}

// process finds out whether a node runs, and how it is.
func (d *doctor) process(ctx context.Context) {
	s, err := d.layout.ReadState()
	switch {
	case errors.Is(err, paths.ErrNotRunning):
	case err != nil:
		d.add(SeverityWarning, "state_unreadable", err.Error(), "restart the node; it writes the file anew")
	default:
		d.state = &s
	}
	held := d.held()
	health, err := d.askReady(ctx)
	d.out.Running = err == nil
	switch {
	case err == nil && health.Status != "ok":
		d.add(SeverityError, "node_unwell", fmt.Sprintf("the node says %s: %s", health.Status, health.Reason), "see its log; restart it if it does not recover")
	case err == nil:
		d.running()
	case held:
		d.add(SeverityError, "node_stuck", "a process holds the lock of the folder and does not answer at its socket: "+err.Error(),
			"see logs/homed.log; end that process if it does not come up")
	case d.state != nil:
		d.add(SeverityWarning, "stale_state", fmt.Sprintf("run/homed.json names process %d, and no node runs: it was killed or crashed", d.state.PID),
			"start homed; nothing that was accepted is lost")
	}
	if err := d.layout.CheckSocket(); err != nil {
		d.add(SeverityError, "socket_path", err.Error(), "choose a data folder with a shorter path")
	}
}

// running compares a node that runs with this program.
func (d *doctor) running() {
	if d.state == nil {
		return
	}
	if d.state.Version != d.build.Version {
		d.add(SeverityWarning, "version_mismatch", fmt.Sprintf("the node runs %s, this program is %s", d.state.Version, d.build.Version),
			"restart the node to run the program that is installed now")
	}
	sockets, err := listening(d.state.PID)
	if err != nil {
		d.add(SeverityNote, "sockets_unknown", "the listening sockets of the node cannot be read: "+err.Error(), "")
		return
	}
	for _, s := range sockets {
		if s == d.state.HTTP {
			continue // the address is looked at by itself
		}
		severity := SeverityNote
		if open(s) {
			severity = SeverityWarning
		}
		d.add(severity, "socket_listens", "the node's process also listens on "+s, "")
	}
}

// held reports whether a process holds the lock; it takes it for a moment to see.
func (d *doctor) held() bool {
	if _, err := os.Stat(d.layout.Lock()); err != nil {
		return false
	}
	lock := flock.New(d.layout.Lock())
	ok, err := lock.TryLock()
	if ok {
		_ = lock.Unlock()
	}
	return err == nil && !ok
}

type readiness struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// askReady asks the node at its socket.
func (d *doctor) askReady(ctx context.Context) (readiness, error) {
	var out readiness
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.layout.Socket())
	}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://homed/readyz", nil)
	if err != nil {
		return out, err
	}
	res, err := (&http.Client{Transport: transport}).Do(q)
	if err != nil {
		return out, err
	}
	defer func() { _ = res.Body.Close() }()
	return out, json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&out)
}

package kit

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// act is a machine made of one function.
type act func(now time.Time, e Event) []Effect

func (a act) Step(now time.Time, e Event) []Effect { return a(now, e) }

// props makes actors that all run a.
func props(a act) Props { return Props{Kind: "test", New: func() Machine { return a }} }

// logs is a log that a test can read.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is a runtime for one test; it is shut down at the end of run.
type world struct {
	*Runtime
	t     *testing.T
	log   *logs
	facts []Fact
	mu    sync.Mutex
}

// run runs a test in a bubble of its own time, with a runtime.
func run(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, log: &logs{}}
		rt, err := NewRuntime(Config{
			Node: "n1", Epoch: 7, Seed: 1, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
			Observe: func(f Fact) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.facts = append(w.facts, f)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Runtime = rt
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := rt.Shutdown(ctx); err != nil && !t.Failed() {
				t.Errorf("shutdown: %v", err)
			}
			if n := rt.Counters().Actors; n != 0 && !t.Failed() {
				t.Errorf("%d actors left", n)
			}
		}()
		f(w)
	})
}

func (w *world) factCodes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var codes []string
	for _, f := range w.facts {
		codes = append(codes, string(f.Code)+":"+f.Path)
	}
	return strings.Join(codes, " ")
}

// top starts an actor below the root.
func (w *world) top(name string, p Props) *messages.Address {
	w.t.Helper()
	a, err := w.SpawnTop(name, p)
	if err != nil {
		w.t.Fatalf("spawn %s: %v", name, err)
	}
	return a
}

// ask asks and fails the test when there is no answer.
func (w *world) ask(path string, m proto.Message) proto.Message {
	w.t.Helper()
	a, err := w.Ask(context.Background(), Path(path), m)
	if err != nil {
		w.t.Fatalf("ask %s: %v", path, err)
	}
	return a
}

// tell sends and fails the test when the message is not taken.
func (w *world) tell(to *messages.Address, m proto.Message) {
	w.t.Helper()
	if err := w.Tell(to, m); err != nil {
		w.t.Errorf("tell %s: %v", to.GetPath(), err)
	}
}

// diary notes what machines saw, from any goroutine.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, s)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, " ")
}

func (d *diary) want(t *testing.T, want string) {
	t.Helper()
	if got := d.String(); got != want {
		t.Errorf("saw  %q\nwant %q", got, want)
	}
}

// user is a message of the user lane, urgent one of the control lane; both carry a text.
func user(s string) *messages.Principal { return &messages.Principal{Id: s} }

func urgent(s string) *messages.Cancel { return &messages.Cancel{Reason: s} }

// word is the text of such a message, or the name of another one.
func word(m any) string {
	switch m := m.(type) {
	case *messages.Principal:
		return m.GetId()
	case *messages.Cancel:
		return m.GetReason()
	case string:
		return m
	case Started:
		return "started"
	case Stopping:
		return "stopping"
	case Ended:
		return "ended(" + m.Name + "," + m.Failure + ")"
	case Restarted:
		return "restarted(" + m.Name + "," + m.Failure + ")"
	case Fault:
		return "fault(" + m.Err.GetCode() + ")"
	case *messages.Error:
		return "error(" + m.GetCode() + ")"
	case *messages.Busy:
		return "busy"
	case *messages.Ok:
		return "ok"
	default:
		return "?"
	}
}

package kernel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options of a node over a folder of its own; the path is short because a socket is in it.
func options(t *testing.T) Options {
	t.Helper()
	//nolint:usetesting // the path of t.TempDir is too long for a socket in it
	dir, err := os.MkdirTemp("", "ha-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return Options{Data: filepath.Join(dir, "d"), Listen: "127.0.0.1:0", Name: "test", Reserve: -1, NoLocals: true}
}

func boot(t *testing.T, opt Options) *Node {
	t.Helper()
	n, err := Boot(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func closeNode(t *testing.T, n *Node) {
	t.Helper()
	if err := n.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// find looks an actor of the tree up by its path.
func find(a *messages.ActorInfo, path string) *messages.ActorInfo {
	if a.GetPath() == path {
		return a
	}
	for _, c := range a.GetChildren() {
		if f := find(c, path); f != nil {
			return f
		}
	}
	return nil
}

// The log of a node that ended tells whether it was asked to.
func TestStopIsLogged(t *testing.T) {
	n := boot(t, options(t))
	closeNode(t, n)
	b, err := os.ReadFile(filepath.Join(n.Data(), "logs", "homed.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"node is ready", "node is stopping", "actors have stopped"} {
		if strings.Count(string(b), `msg="`+line+`"`) != 1 {
			t.Errorf("%q is not once in the log:\n%s", line, b)
		}
	}
}

func TestBootAndClose(t *testing.T) {
	opt := options(t)
	n := boot(t, opt)
	for _, r := range Table() {
		for _, p := range r.Paths {
			a := find(n.Tree(), p)
			if a == nil || a.GetKind() != r.Kind || a.GetSystem() != r.System {
				t.Errorf("the tree has %v at %s, want kind %s", a, p, r.Kind)
			}
		}
	}
	for _, p := range []string{"agents/main", "agents/main/scheduler", "providers/source/offline"} {
		if find(n.Tree(), p) == nil {
			t.Errorf("nobody stands at %s", p)
		}
	}
	if _, err := os.Stat(n.w.layout.State()); err != nil {
		t.Errorf("run/homed.json: %v", err)
	}
	closeNode(t, n)
	closeNode(t, n)
	if _, err := os.Stat(n.w.layout.State()); err == nil {
		t.Error("run/homed.json is still there")
	}
	closeNode(t, boot(t, opt)) // the folder can be used again
}

func TestSecondNodeIsRefused(t *testing.T) {
	opt := options(t)
	n := boot(t, opt)
	defer closeNode(t, n)
	_, err := Boot(context.Background(), opt)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), n.Data()) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("the second node: %v", err)
	}
}

func TestBootRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(*Options)
		says string
	}{
		{"profile", func(o *Options) { o.Profile = "toaster" }, "toaster"},
		{"name", func(o *Options) { o.Name = "a/b" }, "a/b"},
		{"address", func(o *Options) { o.Listen = "nowhere.invalid:1" }, "listen"},
		{"variable", func(o *Options) { o.Environ = []string{"HOMED_CORE_AGENT_NAMEE=x"} }, "HOMED_CORE_AGENT_NAMEE"},
		{"value", func(o *Options) { o.Environ = []string{"HOMED_CORE_SCHEDULER_COOLDOWN=soon"} }, "soon"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := options(t)
			c.with(&opt)
			n, err := Boot(context.Background(), opt)
			if err == nil {
				closeNode(t, n)
				t.Fatal("it boots")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
			closeNode(t, boot(t, Options{
				Data: opt.Data, Listen: "127.0.0.1:0", Name: "again", Reserve: -1, NoLocals: true,
			})) // nothing was left locked or half made
		})
	}
}

// A restarted provider of a facility is told to those who need it: the tools of memory and agents are there again.
func TestToolsComeBack(t *testing.T) {
	n := boot(t, options(t))
	defer closeNode(t, n)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	list := func() map[string]bool {
		m, err := n.w.rt.Ask(ctx, kit.Path("tools"), &messages.ListTools{Agent: "main"})
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, d := range m.(*messages.ToolList).GetTools() {
			names[d.GetName()] = true
		}
		return names
	}
	before := list()
	if !before["memory_recall"] || !before["resident_agents"] {
		t.Fatalf("tools at the start: %v", before)
	}
	for _, owner := range []string{"memory", "agents"} {
		if _, err := n.w.rt.Ask(ctx, kit.Path("tools"), &messages.RegisterTools{Owner: kit.Path(owner)}); err != nil {
			t.Fatal(err)
		}
	}
	if l := list(); l["memory_recall"] || l["resident_agents"] {
		t.Fatalf("tools after they were taken back: %v", l)
	}
	n.observe(kit.Fact{Code: kit.FactRestarted, Path: "tools"})
	for ctx.Err() == nil {
		if l := list(); l["memory_recall"] && l["resident_agents"] {
			return
		}
	}
	t.Errorf("tools after the restart: %v", list())
}

// Who stands below another in its path is shown below it.
func TestTreeNests(t *testing.T) {
	n := boot(t, options(t))
	defer closeNode(t, n)
	memory := find(n.Tree(), "memory")
	for _, p := range []string{"memory/context", "memory/graph"} {
		if find(memory, p) == nil {
			t.Errorf("%s is not shown below memory", p)
		}
	}
}

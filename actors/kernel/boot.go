package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/admin"
	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/configs/paths"
	"homeagent/internal/obs"
	"homeagent/messages"
	"homeagent/providers"
)

// Options of a node. Keys that open the store come from here and not from the configuration.
type Options struct {
	// Data is the data folder; empty means the environment's or the platform's.
	Data string
	// Listen is the address of the HTTP face; empty means 127.0.0.1:8765; port 0 takes a free one.
	Listen string
	// Name of the node; empty means the host's name.
	Name string
	// Profile is "server" or "phone"; empty means server.
	Profile string
	// Environ is the environment in the form of os.Environ.
	Environ []string
	// Stderr gets log lines besides the log file; nil means only the file.
	Stderr io.Writer
	// JSON makes the log lines JSON.
	JSON bool
	// Reserve is the disk space in bytes below which writes are refused; zero means the store's default, negative none.
	Reserve int64
	// Salvage opens a damaged store without what is missing.
	Salvage bool
	// Grace is how long the node goes on after its store broke; zero means 5 s.
	Grace time.Duration
	// ReadyIn bounds the start of one layer; zero means 30 s.
	ReadyIn time.Duration
	// NoLocals leaves out the search for model servers on loopback.
	NoLocals bool
	// Worker is the program that does Worker, with its arguments. Without it adapter files that nobody has confirmed are
	// refused.
	Worker []string
}

func (o Options) locals() []providers.Local {
	if o.NoLocals {
		return []providers.Local{}
	}
	return providers.Locals
}

// Node is a running node. Close ends it.
type Node struct {
	w      *world
	layers [][]Row
	mu     sync.Mutex
	ready  map[string]bool
	change chan struct{}
	closed sync.Once
	fate   fate
}

// Boot starts a node and returns when it takes input. On an error everything that was opened is closed again.
func Boot(ctx context.Context, opt Options) (*Node, error) {
	w := &world{opt: opt, started: time.Now(), build: obs.ReadBuild()}
	n := &Node{w: w, ready: map[string]bool{}, change: make(chan struct{}, 1), fate: fate{ch: make(chan error, 1)}}
	w.lose = n.lose
	if err := n.boot(ctx); err != nil {
		return nil, errors.Join(err, n.Close(context.WithoutCancel(ctx)))
	}
	return n, nil
}

func (n *Node) boot(ctx context.Context) error {
	w := n.w
	var err error
	if n.layers, err = Plan(Table()); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"platform", w.checkPlatform},
		{"data folder", w.lockData},
		{"log", w.openLog},
		{"store", w.openStore},
		{"configuration", w.openSettings},
		{"models", w.openModels},
		{"plugins", w.openPlugins},
		{"listener", w.openDoor},
		{"runtime", func() error { return n.openRuntime() }},
	} {
		begin := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if w.logger != nil {
			w.logger.Debug("boot step done", "step", step.name, "took", time.Since(begin))
		}
	}
	for i, layer := range n.layers {
		if err := n.startLayer(ctx, i, layer); err != nil {
			return err
		}
	}
	w.logger.Info("node is ready", "node", w.opt.Name, "http", w.door.HTTP(), "version", w.build.Version, "took", time.Since(w.started))
	return w.door.Announce(paths.State{
		PID: os.Getpid(), Version: w.build.Version, Node: w.opt.Name, StartedAt: w.started.UTC(),
	})
}

func (w *world) checkPlatform() error {
	if strconv.IntSize < 64 {
		return fmt.Errorf("homed needs a 64-bit system; %s/%s is not one", runtime.GOOS, runtime.GOARCH)
	}
	switch w.opt.Profile {
	case "":
		w.opt.Profile = "server"
	case "server", "phone":
	default:
		return fmt.Errorf("there is no profile %q; use server or phone", w.opt.Profile)
	}
	if w.opt.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the host has no name; give one: %w", err)
		}
		w.opt.Name = host
	}
	if strings.ContainsAny(w.opt.Name, "/@ \t\n") || len(w.opt.Name) > 64 {
		return fmt.Errorf("%q is no name for a node: no spaces, slashes or @, at most 64 bytes", w.opt.Name)
	}
	if w.opt.Listen == "" {
		w.opt.Listen = "127.0.0.1:8765"
	}
	return nil
}

// ErrInUse is returned by Boot when another process runs on the data folder.
var ErrInUse = errors.New("another homed runs on this data folder")

func (w *world) lockData() error {
	env := func(name string) string {
		for _, v := range w.opt.Environ {
			if k, value, ok := strings.Cut(v, "="); ok && k == name {
				return value
			}
		}
		return ""
	}
	var err error
	if w.layout, err = paths.Resolve(w.opt.Data, env); err != nil {
		return err
	}
	if err := w.layout.Create(); err != nil {
		return err
	}
	lock := flock.New(w.layout.Lock())
	ok, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", w.layout.Lock(), err)
	}
	if !ok {
		other := ""
		if s, err := w.layout.ReadState(); err == nil {
			other = fmt.Sprintf(" (process %d)", s.PID)
		}
		return fmt.Errorf("%w%s: %s; talk to it with waiter, stop it, or choose another folder with --data", ErrInUse, other, w.layout.Data())
	}
	w.onClose("lock", lock.Unlock)
	return nil
}

func (w *world) openLog() error {
	format := obs.FormatText
	if w.opt.JSON {
		format = obs.FormatJSON
	}
	if err := os.MkdirAll(w.layout.Logs(), 0o700); err != nil {
		return err
	}
	var err error
	if w.log, err = obs.Open(obs.Options{
		File: filepath.Join(w.layout.Logs(), "homed.log"), Stderr: w.opt.Stderr, Format: format,
	}); err != nil {
		return err
	}
	w.onClose("log", w.log.Close)
	w.logger = w.log.Logger("kernel")
	for _, m := range strange(w.opt.Environ) {
		w.logger.Warn("nobody reads a variable of the environment", "name", m.name, "hint", m.hint())
	}
	w.metrics = obs.NewMetrics(w.build)
	return nil
}

func (w *world) openDoor() error {
	s := w.settings()
	door, err := admin.OpenDoor(admin.DoorOptions{
		Listen: w.opt.Listen, Layout: w.layout, Hosts: s.List(configs.KeyAdminAllowedHosts), Origins: s.List(configs.KeyAdminAllowedOrigins), Log: w.log.Logger("admin"),
	})
	if err != nil {
		return err
	}
	w.door = door
	w.onClose("listener", door.Close)
	w.log.Secrets().Add(door.Token())
	return nil
}

func (n *Node) openRuntime() error {
	w := n.w
	rt, err := kit.NewRuntime(kit.Config{Node: w.opt.Name, Logger: w.log.Logger("actors"), Observe: n.observe})
	if err != nil {
		return err
	}
	w.rt = rt
	w.registerFigures()
	for _, r := range Table() {
		rt.Register(r.Kind, func(params proto.Message) (kit.Props, error) { return r.props(w, "", params) })
	}
	return nil
}

// observe hears what happens to actors: who is ready, and whose facility came back after a failure.
func (n *Node) observe(f kit.Fact) {
	switch f.Code {
	case kit.FactReady:
		n.mu.Lock()
		n.ready[f.Path] = true
		n.mu.Unlock()
		select {
		case n.change <- struct{}{}:
		default:
		}
	case kit.FactRestarted:
		n.tellDependents(f)
	case kit.FactGivenUp:
		n.givenUp(f)
	default: // kit logs and publishes the others
	}
}

// tellDependents tells the actors that need what a restarted one provides.
func (n *Node) tellDependents(f kit.Fact) {
	provides := map[kit.Facility]bool{}
	for _, layer := range n.layers {
		for _, r := range layer {
			for _, p := range r.Paths {
				if p == f.Path {
					for _, facility := range r.Provides {
						provides[facility] = true
					}
				}
			}
		}
	}
	for _, layer := range n.layers {
		for _, r := range layer {
			for _, need := range r.Requires {
				if !provides[need] {
					continue
				}
				for _, p := range r.Paths {
					n.w.rt.Notify(p, kit.Restarted{Who: kit.Path(f.Path), Failure: f.Failure})
				}
				break
			}
		}
	}
}

// startLayer starts the actors of one layer and waits until all of them are ready.
func (n *Node) startLayer(ctx context.Context, number int, layer []Row) error {
	w := n.w
	if err := n.checkProduced(layer); err != nil {
		return err
	}
	begin := time.Now()
	var kinds []string
	for _, r := range layer {
		kinds = append(kinds, r.Kind)
		for _, p := range r.Paths {
			props, err := r.props(w, p, nil)
			if err != nil {
				return fmt.Errorf("layer %d: %s: %w", number, p, err)
			}
			if _, err := w.rt.SpawnTop(p, props); err != nil {
				return fmt.Errorf("layer %d: start %s: %w", number, p, err)
			}
		}
	}
	limit := w.opt.ReadyIn
	if limit == 0 {
		limit = 30 * time.Second
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		late := n.late(layer)
		if len(late) == 0 {
			break
		}
		select {
		case <-n.change:
		case <-ctx.Done():
			return fmt.Errorf("layer %d: %w", number, context.Cause(ctx))
		case <-timer.C:
			return fmt.Errorf("layer %d is not ready after %s: %s did not say so", number, limit, strings.Join(late, ", "))
		}
	}
	w.logger.Info("layer is ready", "layer", number, "kinds", strings.Join(kinds, " "), "took", time.Since(begin))
	return nil
}

// late lists the paths of a layer that are not ready.
func (n *Node) late(layer []Row) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var late []string
	for _, r := range layer {
		for _, p := range r.Paths {
			if !n.ready[p] {
				late = append(late, p)
			}
		}
	}
	return late
}

// checkProduced compares the facilities really produced with those that a layer needs.
func (n *Node) checkProduced(layer []Row) error {
	produced := map[kit.Facility]bool{}
	for _, l := range n.layers {
		if len(n.late(l)) > 0 {
			break
		}
		for _, r := range l {
			for _, f := range r.Provides {
				produced[f] = true
			}
		}
	}
	for _, r := range layer {
		for _, f := range r.Requires {
			if !produced[f] {
				return fmt.Errorf("%s needs facility %q, which has not been produced", r.Kind, f)
			}
		}
	}
	return nil
}

// Name of the node.
func (n *Node) Name() string { return n.w.opt.Name }

// HTTP is the address of the HTTP face.
func (n *Node) HTTP() string { return n.w.door.HTTP() }

// Data is the data folder.
func (n *Node) Data() string { return n.w.layout.Data() }

// Tree is the live tree.
func (n *Node) Tree() *messages.ActorInfo { return n.w.rt.Tree() }

// drainTime is how long actors have to let go of what they can before they are ended.
const drainTime = 2 * time.Second

// Close ends the node: first what takes input, then the layers in reverse, each awaited, then what the boot had opened.
// A second call does nothing.
func (n *Node) Close(ctx context.Context) error {
	var err error
	n.closed.Do(func() { err = n.close(ctx) })
	return err
}

func (n *Node) close(ctx context.Context) error {
	w := n.w
	var errs []error
	begin := time.Now()
	if w.rt != nil {
		w.logger.Info("node is stopping", "up", begin.Sub(w.started).Round(time.Millisecond))
		n.drain(ctx)
		for i := len(n.layers) - 1; i >= 0; i-- {
			for _, r := range n.layers[i] {
				for _, p := range r.Paths {
					errs = append(errs, w.rt.End(ctx, p))
				}
			}
		}
		errs = append(errs, w.rt.Shutdown(ctx))
		w.logger.Info("actors have stopped", "took", time.Since(begin))
	}
	errs = append(errs, w.close())
	return errors.Join(errs...)
}

// drain asks those who take input to take nothing new.
func (n *Node) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	for _, path := range []string{"admin", "agents"} {
		if !n.isReady(path) {
			continue
		}
		if _, err := n.w.rt.Ask(ctx, kit.Path(path), &messages.Drain{LimitMs: drainTime.Milliseconds()}); err != nil {
			n.w.logger.Warn("actor did not drain", "actor", path, "error", err)
		}
	}
}

func (n *Node) isReady(path string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ready[path]
}

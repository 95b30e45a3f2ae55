package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs/paths"
	"homeagent/internal/obs"
	"homeagent/messages"
	"homeagent/messages/api"
)

// Runtime is what HTTP handlers need of the tree; *kit.Runtime is one. All methods may be called from any goroutine.
type Runtime interface {
	// Ask sends a request and waits for its answer, or for ctx.
	Ask(ctx context.Context, to *messages.Address, m proto.Message) (proto.Message, error)
	// Tree is the live tree, a copy that belongs to the caller.
	Tree() *messages.ActorInfo
	// Actor is one actor of it without its children; false when there is none of this path.
	Actor(path string) (*messages.ActorInfo, bool)
	// Stop, Restart, Pause and Resume act on one actor in the name of a person; those of the kernel's own table are
	// refused.
	Stop(ctx context.Context, path string) error
	Restart(ctx context.Context, path string) error
	Pause(ctx context.Context, path string) error
	Resume(ctx context.Context, path string) error
}

// Deps are what the admin actor is given. All but the sizes must be set.
type Deps struct {
	// Runtime of the node.
	Runtime Runtime
	// Door that was opened for it; it stays the caller's to close, after the tree.
	Door *Door
	// Metrics of the node: the figures of the tree and of HTTP are registered there, once.
	Metrics *obs.Metrics
	// Build of the binary.
	Build obs.Build
	// Node is its name, Data its data folder, Started when the process began.
	Node    string
	Data    string
	Started time.Time
	// Tokens looks a named token up by the SHA-256 of it; nil without an error for one that there is not. It is called
	// once for each request that brings one, from any goroutine. Nil means that there are none.
	Tokens func(digest [32]byte) (*messages.TokenRecord, error)
	// Decides tells whether a person besides the owner may decide approvals; nil means that none may.
	Decides func(*messages.Principal) bool
	// Broken tells why nothing can be stored any more, nil while the store works; from any goroutine. Nil means that it
	// always works.
	Broken func() error
	// Backup writes the whole node to w while it goes on; from any goroutine. Nil means that there are no backups.
	Backup func(ctx context.Context, w io.Writer, withKey bool) error
	// Keep checks and stores media that came in; from any goroutine. Nil means that none is taken.
	Keep func(mediaType string, data []byte) (*messages.PayloadRef, *messages.Error)
	// Params of the machine.
	Params Params
	// Streams is how many event streams and waiting callers there may be; zero means 256.
	Streams int
	// Queue is how many events may wait for one of them; zero means 4096.
	Queue int
	// Body is the largest request body in bytes; zero means 32 MiB.
	Body int64
	// Heartbeat is the pause after which a silent stream gets a comment; zero means 15 s.
	Heartbeat time.Duration
}

// face is the shell behind all incarnations: what HTTP handlers see of the actor.
type face struct {
	deps    Deps
	hub     *hub
	figures *figures
	handler http.Handler
	holders holders

	shell    atomic.Pointer[kit.Shell]
	logger   atomic.Pointer[slog.Logger]
	tokens   atomic.Pointer[api.Tokens]
	epoch    atomic.Uint64
	ready    atomic.Bool
	draining atomic.Bool

	mu   sync.Mutex
	stop chan struct{} // closed when the incarnation that serves now is to end
}

// Props makes the admin actor. It registers metrics and must be called once per registry. The kernel sets restart and
// limits.
func Props(d Deps) kit.Props {
	return newFace(d).props()
}

func (f *face) props() kit.Props {
	return kit.Props{
		Kind: "admin", System: true,
		New:     func() kit.Machine { return New(f.deps.Params) },
		Perform: f.perform,
	}
}

func newFace(d Deps) *face {
	if d.Streams <= 0 {
		d.Streams = 256
	}
	if d.Queue <= 0 {
		d.Queue = 4096
	}
	if d.Body <= 0 {
		d.Body = 32 << 20
	}
	if d.Heartbeat <= 0 {
		d.Heartbeat = 15 * time.Second
	}
	f := &face{deps: d, hub: newHub(d.Streams, d.Queue), stop: make(chan struct{})}
	f.figures = newFigures(f)
	f.handler = f.routes()
	return f
}

// perform does one private effect.
func (f *face) perform(sh kit.Shell, e kit.Effect) {
	switch v := e.(type) {
	case serve:
		f.begin(sh, v.Epoch)
	case announce:
		f.announce(sh)
	case drain:
		f.draining.Store(true)
	case deliver:
		if o := f.hub.find(v.Name); o != nil {
			o.push(portion{batch: v.Batch, sync: v.Sync})
		}
	case refuse:
		if o := f.hub.find(v.Name); o != nil {
			o.refuse(v.Err)
		}
	case tally:
		f.tokens.Store(v.Tokens)
	}
}

func (f *face) begin(sh kit.Shell, epoch uint64) {
	f.mu.Lock()
	stop := make(chan struct{})
	f.stop = stop
	f.mu.Unlock()
	f.ready.Store(false)
	f.epoch.Store(epoch)
	f.shell.Store(&sh)
	f.logger.Store(sh.Log())
	sh.Go("serve", 0, func(ctx context.Context, _ func(any)) any {
		if err := f.serve(ctx, stop); err != nil {
			return failed{Err: err}
		}
		return nil
	})
}

func (f *face) announce(sh kit.Shell) {
	d := f.deps
	sh.Go("announce", 0, func(context.Context, func(any)) any {
		err := d.Door.Announce(paths.State{
			PID: os.Getpid(), Version: d.Build.Version, Node: d.Node, StartedAt: d.Started,
		})
		if err != nil {
			return failed{Err: fmt.Errorf("write run file: %w", err)}
		}
		f.ready.Store(true)
		return announced{}
	})
}

// stopping is closed when the incarnation that serves now ends.
func (f *face) stopping() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stop
}

func (f *face) log() *slog.Logger {
	if l := f.logger.Load(); l != nil {
		return l
	}
	return slog.New(slog.DiscardHandler)
}

// newID makes a time-sortable unique id.
func (f *face) newID(prefix string) string { return prefix + ulid.Make().String() }

// Timeouts of the servers.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	bodyTimeout   = 2 * time.Minute
	// graceful is how long answers under way may take when the node stops.
	graceful = 3 * time.Second
)

// serve runs both servers until ctx ends. Streams and waits are ended first, then answers under way get a moment.
func (f *face) serve(ctx context.Context, stop chan struct{}) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var servers []*http.Server
	broke := make(chan error, 2)
	var running sync.WaitGroup
	start := func(l deadlined, local bool) error {
		b, err := borrow(l)
		if err != nil {
			return err
		}
		srv := f.server(base, local)
		servers = append(servers, srv)
		running.Go(func() {
			if err := srv.Serve(b); !errors.Is(err, http.ErrServerClosed) {
				broke <- err
			}
		})
		return nil
	}
	err := start(f.deps.Door.tcp, false)
	if l := f.deps.Door.unix; l != nil && err == nil {
		err = start(l, true)
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-broke:
		}
	}
	close(stop)
	end, done := context.WithTimeout(base, graceful)
	defer done()
	for _, s := range servers {
		if s.Shutdown(end) != nil { // some did not finish in time
			_ = s.Close() // closing is all that is left; its error would tell nothing more
		}
	}
	cancel()
	running.Wait()
	return err
}

// server makes the server of one listener. What net/http has to say by itself goes to the debug log: it reports every
// broken handshake of a scanner.
func (f *face) server(base context.Context, local bool) *http.Server {
	return &http.Server{
		Handler:           f.handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(f.log().Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, visitorKey{}, newVisitor(c, local))
		},
	}
}

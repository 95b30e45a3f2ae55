package kit

import (
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// Config of a Runtime. Node and Logger must be given.
type Config struct {
	// Node is the name of this node.
	Node string
	// Epoch is the boot epoch in Unix microseconds; it differs from that of every earlier boot. Zero means now.
	Epoch uint64
	// Logger gets what kit and the actor runtime have to say; loggers of actors derive from it.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now. Timers run by the time package regardless.
	Now func() time.Time
	// Seed of the jitter of restarts; zero means random.
	Seed uint64
	// Events is the path of the actor that Publish sends to; empty means "events".
	Events string
	// AskTimeout bounds an Ask whose context has no deadline; zero means 30 s.
	AskTimeout time.Duration
	// Observe is told of facts about actors; nil means nobody wants them. It is called on the actor's or its parent's
	// goroutine and must not block nor call back into the Runtime other than by Tell and Notify.
	Observe func(Fact)
}

// FactCode says what a Fact is about; it is also the code of the system notice.
type FactCode string

// The facts.
const (
	// FactReady: the actor performed Ready.
	FactReady FactCode = "actor_ready"
	// FactRestarted: a new incarnation stands after a failure or at a person's wish.
	FactRestarted FactCode = "actor_restarted"
	// FactGivenUp: the actor failed more often than its row allows and is ended for good.
	FactGivenUp FactCode = "actor_given_up"
	// FactSlow: the watchdog saw a message handled for longer than the actor's limit.
	FactSlow FactCode = "actor_slow"
)

// Fact is something that happened to an actor.
type Fact struct {
	Code FactCode
	// Path and Kind of the actor.
	Path, Kind string
	// Failure that made it so; empty for none.
	Failure string
}

// Counters of a Runtime since it was made.
type Counters struct {
	// Actors alive, the root included.
	Actors int
	// Failures of actors, by panics in machines, performers and workers.
	Failures uint64
	// Restarts of actors.
	Restarts uint64
	// GivenUp is how many actors were ended because they failed too often.
	GivenUp uint64
	// DeadLetters is how many messages reached nobody.
	DeadLetters uint64
	// Refused is how many messages admission refused.
	Refused uint64
	// Slow is how many messages the watchdog found to be handled for too long.
	Slow uint64
	// Sweeps of the statistics; it stands still while the node is idle.
	Sweeps uint64
}

type counts struct {
	failures, restarts, givenUp, deadLetters, refused, slow, sweeps atomic.Uint64
}

// Runtime is the actor world of one node. All methods are safe for concurrent use, and none of them may be called from
// a machine.
type Runtime struct {
	cfg     Config
	log     *slog.Logger
	now     func() time.Time
	since   func(time.Time) time.Duration
	system  *actor.ActorSystem
	props   *actor.Props
	root    *cell
	counts  counts
	sweep   *sweeper
	crew    crew
	asks    asks
	events  *messages.Address
	evCell  atomic.Pointer[cell]
	unknown sync.Map // message type name of dead letters already logged

	table  table
	rows   sync.Map // row -> *row: actors of a kind share one
	kinds  sync.Map // string -> Factory
	endsMu sync.Mutex
	ends   map[*cell]*ends // guarded by endsMu
	fates  fates           // guarded by endsMu

	spawnMu  sync.Mutex
	pending  *cell // guarded by spawnMu: the cell of the spawn under way
	randMu   sync.Mutex
	rand     *rand.Rand
	draining atomic.Bool
	down     sync.Once
}

// Factory makes the Props of one actor of a kind from the parameters of its Spawn, which may be nil.
type Factory func(params proto.Message) (Props, error)

// stock makes the mailbox that a cell wraps.
var stock = actor.Unbounded()

// rootID names the root in the actor runtime; paths leave it out.
const rootID = "homed"

// NewRuntime starts an actor world that holds nothing but its root. The caller ends it with Shutdown.
func NewRuntime(cfg Config) (*Runtime, error) {
	if cfg.Node == "" {
		return nil, fmt.Errorf("kit: a runtime needs the name of its node")
	}
	if cfg.Logger == nil {
		return nil, fmt.Errorf("kit: a runtime needs a logger")
	}
	since := time.Since // reads half a clock
	if cfg.Now == nil {
		cfg.Now = time.Now
	} else {
		since = func(t time.Time) time.Duration { return cfg.Now().Sub(t) }
	}
	if cfg.Epoch == 0 {
		cfg.Epoch = uint64(cfg.Now().UnixMicro())
	}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	if cfg.Events == "" {
		cfg.Events = string(FacilityEvents)
	}
	if cfg.AskTimeout <= 0 {
		cfg.AskTimeout = 30 * time.Second
	}
	rt := &Runtime{
		cfg: cfg, log: cfg.Logger, now: cfg.Now, since: since,
		rand:   rand.New(rand.NewPCG(cfg.Seed, cfg.Seed^0x9e3779b97f4a7c15)),
		events: Path(cfg.Events),
	}
	rt.ends = make(map[*cell]*ends)
	rt.table.seed = maphash.MakeSeed()
	rt.asks.start(rt)
	rt.sweep = newSweeper(rt)
	quiet := slog.New(quieter{cfg.Logger.Handler()})
	rt.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	// The runtime's own listeners to dead letters log each one and start a goroutine that nobody waits for. A fresh stream
	// has none of them.
	rt.system.EventStream = eventstream.NewEventStream()
	rt.system.EventStream.Subscribe(rt.lostByRuntime)
	one := &hull{rt: rt}
	rt.props = actor.PropsFromProducer(func() actor.Actor { return one },
		actor.WithMailbox(rt.takePending), actor.WithSupervisor(&supervision{rt: rt}))
	return rt, rt.startRoot()
}

// startRoot spawns the supervisor at the top. It is a real actor, so that no failure ever reaches a guardian of the
// actor runtime, which would take the process down.
func (rt *Runtime) startRoot() error {
	rt.root = rt.newCell(nil, Props{Kind: "root", New: func() Machine { return idle{} }, System: true})
	rt.spawnMu.Lock()
	defer rt.spawnMu.Unlock()
	rt.pending = rt.root
	if _, err := rt.system.Root.SpawnNamed(rt.props, rootID); err != nil {
		return fmt.Errorf("kit: start the root: %w", err)
	}
	return nil
}

// idle is the machine of the root.
type idle struct{}

func (idle) Step(time.Time, Event) []Effect { return nil }

func (rt *Runtime) takePending() actor.Mailbox {
	c := rt.pending
	rt.pending = nil
	return c
}

// embody spawns kid in the actor runtime, on its parent's goroutine. All actors share one actor.Props; the mailbox
// producer finds its cell in pending.
func (rt *Runtime) embody(parent, kid *cell, name string) error {
	rt.spawnMu.Lock()
	defer rt.spawnMu.Unlock()
	rt.pending = kid
	_, err := parent.ctx().SpawnNamed(rt.props, name)
	return err
}

// row is what actors of a kind have in common.
type row struct {
	kind    string
	restart Restart
	limits  Limits
	system  bool
}

// newCell makes the cell of an actor; its address follows when the runtime has taken the name.
func (rt *Runtime) newCell(parent *cell, props Props) *cell {
	common := row{kind: props.Kind, restart: props.Restart.normal(), limits: props.Limits.normal(), system: props.System}
	shared, known := rt.rows.Load(common)
	if !known {
		shared, _ = rt.rows.LoadOrStore(common, &common)
	}
	c := &cell{
		Mailbox: stock(), rt: rt, parent: parent, row: shared.(*row),
		newMachine: props.New, performer: props.Perform, closer: props.Close,
	}
	c.since.Store(rt.now().UnixMicro())
	return c
}

// get finds a living actor. The table also holds those that have just ended, until their parents have noticed.
func (rt *Runtime) get(path string) *cell {
	c := rt.table.get(path)
	if c == nil || c.is(gone) {
		return nil
	}
	return c
}

func (rt *Runtime) byPID(pid *actor.PID) *cell {
	id := pid.GetId()
	if id == rootID {
		return rt.root
	}
	if len(id) <= len(rootID) {
		return nil
	}
	return rt.table.get(id[len(rootID)+1:])
}

// find looks an address up.
func (rt *Runtime) find(to *messages.Address) (*cell, *messages.Error) {
	if to == nil {
		return nil, errGone("")
	}
	if to.Node != "" && to.Node != rt.cfg.Node {
		return nil, errUnreachable(to.Node)
	}
	c := rt.get(to.Path)
	if c == nil || to.Epoch != 0 && to.Epoch != rt.cfg.Epoch {
		return nil, errGone(to.Path)
	}
	return c, nil
}

// Register names a kind that Spawn effects and SpawnKind can start. A kind registered twice is a mistake in the program
// and panics.
func (rt *Runtime) Register(kind string, f Factory) {
	if _, twice := rt.kinds.LoadOrStore(kind, f); twice {
		panic(fmt.Sprintf("kit: actor kind %q is registered twice", kind))
	}
}

func (rt *Runtime) kind(name string) Factory {
	f, _ := rt.kinds.Load(name)
	factory, _ := f.(Factory)
	return factory
}

// Node is the name of this node.
func (rt *Runtime) Node() string { return rt.cfg.Node }

// Epoch is the boot epoch in Unix microseconds.
func (rt *Runtime) Epoch() uint64 { return rt.cfg.Epoch }

// Counters reads the counters.
func (rt *Runtime) Counters() Counters {
	k := &rt.counts
	return Counters{
		Actors: int(rt.table.n.Load()), Failures: k.failures.Load(), Restarts: k.restarts.Load(), GivenUp: k.givenUp.Load(),
		DeadLetters: k.deadLetters.Load(), Refused: k.refused.Load(), Slow: k.slow.Load(), Sweeps: k.sweeps.Load(),
	}
}

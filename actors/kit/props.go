package kit

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// Facility is a named thing that actors provide and require. The constants are part of the plugin contract.
type Facility string

// The facilities of a node.
const (
	FacilityConfig    Facility = "config"
	FacilityLedger    Facility = "ledger"
	FacilityEvents    Facility = "events"
	FacilityMemory    Facility = "memory"
	FacilityContext   Facility = "context"
	FacilityGraph     Facility = "graph"
	FacilityProviders Facility = "llm"
	FacilityStages    Facility = "stagehost"
	FacilityTools     Facility = "tools"
	FacilityChannels  Facility = "channels"
	FacilityPlugins   Facility = "plugins"
	FacilityAgents    Facility = "agent"
	FacilityTimers    Facility = "timers"
	FacilityGuard     Facility = "guard"
	FacilityAdmin     Facility = "admin"
)

// Restart says what happens when an actor of a kind fails. A zero Intensity means that the first failure ends it.
type Restart struct {
	// Intensity is how many restarts are allowed within Period; one more and the failure goes up to the parent.
	Intensity int
	// Period in which restarts are counted; zero means one minute.
	Period time.Duration
	// Backoff before the first restart; it doubles with each further one up to MaxBackoff. Zero means 50 ms.
	Backoff time.Duration
	// MaxBackoff; zero means 10 s.
	MaxBackoff time.Duration
	// Jitter is the share of the back-off that is random, 0 to 1.
	Jitter float64
	// Escalate says what happens above Intensity: true restarts the parent, false ends the actor for good.
	Escalate bool
	// StopTimeout is how long a stop is awaited before the actor is given up; zero means 5 s.
	StopTimeout time.Duration
}

// Limits bound a mailbox's user lane; the control lane is never refused.
type Limits struct {
	// Soft: above it a request is answered with Busy. Zero means 4096.
	Soft int
	// Hard: above it every message is refused to its sender. Zero means 16384.
	Hard int
	// Slow is how long one message may be handled before the watchdog reports it; zero means 250 ms.
	Slow time.Duration
}

// Props is how actors of one kind are made. The same Props serve every start of the actor.
type Props struct {
	// Kind is the row of the kernel's table.
	Kind string
	// New makes the machine of one incarnation.
	New func() Machine
	// Perform performs a private effect on the actor's goroutine; long work goes through Shell.Go. Nil when the actor
	// has no private effects.
	Perform func(sh Shell, e Effect)
	// Close releases what the shell of one incarnation holds, after its workers have ended; may be nil.
	Close func()
	// Restart and Limits of this kind; the kernel's table fills them in.
	Restart Restart
	Limits  Limits
	// System marks actors that people cannot stop by accident.
	System bool
}

// Shell is what a performer of private effects may use. It belongs to one incarnation of one actor and is used on its
// goroutine only, except where said.
type Shell interface {
	// Self is the actor's address.
	Self() *messages.Address
	// Now is the time by the node's clock.
	Now() time.Time
	// Go runs fn in a worker. What it emits and, at the end, its result (unless nil) come back as events, in order; they
	// come no more after the worker was cancelled or the actor restarted. ctx ends with CancelWork of the key, with the
	// actor, or after limit (zero means none). A panic in fn fails the actor. Several workers may share a key. Workers
	// are awaited when the actor stops. emit may be called from fn's goroutine only and never blocks.
	Go(key string, limit time.Duration, fn func(ctx context.Context, emit func(any)) any)
	// CancelWork cancels the workers of key, as the effect of the same name does.
	CancelWork(key string)
	// Post steps the machine with a private value later, as an event of its own; it may be called from any goroutine
	// while the actor lives and reports false when the actor is gone.
	Post(v any) bool
	// Tell sends a message without asking for an answer.
	Tell(to *messages.Address, m proto.Message) *messages.Error
	// Log is the actor's logger.
	Log() *slog.Logger
}

// Path makes the address of a well-known actor of this node.
func Path(path string) *messages.Address { return &messages.Address{Path: path} }

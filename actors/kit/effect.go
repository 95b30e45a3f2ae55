package kit

import (
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// Effect is what a machine wants done. The sum is sealed: the variants of this file serve all actors; an actor's own
// variants embed Private and are performed by the Perform function of its Props.
type Effect interface{ isEffect() }

// Private makes a type an effect of the actor that declares it.
type Private struct{}

func (Private) isEffect() {}

type (
	// Send sends a message. The lane follows from the message's type. With Corr the receiver sees a request and its
	// answer comes back as an event with the same Corr.
	Send struct {
		To   *messages.Address
		Msg  proto.Message
		Corr string
	}
	// Reply answers a request; the asker may be an actor or a caller outside of the tree. Without To it does nothing.
	Reply struct {
		To   *messages.Address
		Corr string
		Msg  proto.Message
	}
	// Publish hands an event to the events actor; its time is set when it is zero.
	Publish struct{ Event *messages.AgentEvent }
	// After steps the machine with Msg after D. A timer of the same Key is replaced. Timers end with the incarnation.
	After struct {
		Key string
		D   time.Duration
		Msg any
	}
	// CancelAfter ends the timer of Key, if any; its message does not come after this step.
	CancelAfter struct{ Key string }
	// Spawn starts a child of a registered kind. Name is its last path segment or segments ("turn/01J..."). A failure
	// comes back as Fault. With Watch, Ended comes when it has ended for good.
	Spawn struct {
		Kind   string
		Name   string
		Params proto.Message
		Watch  bool
	}
	// Stop ends an actor: at once, or after what is in its mailbox when Drain is set. Children end first.
	Stop struct {
		Who   *messages.Address
		Drain bool
	}
	// Watch asks for Ended of another actor; for one that is gone already it comes at once.
	Watch struct{ Who *messages.Address }
	// Unwatch takes Watch back.
	Unwatch struct{ Who *messages.Address }
	// Ready tells the kernel that this actor provides its facilities from now on.
	Ready struct{}
	// State sets the word and the line that the tree shows for this actor. An empty field leaves the old value.
	State struct {
		Word    string
		Summary string
	}
	// CancelWork cancels the workers that the actor's performers started under Key; their results do not come after
	// this step.
	CancelWork struct{ Key string }
	// Log writes a line with the actor's logger. Attrs are snake_case key and value in turn.
	Log struct {
		Level LogLevel
		Text  string
		Attrs []any
	}
)

// LogLevel of a Log effect.
type LogLevel int

// Levels of Log, as in slog.
const (
	Debug LogLevel = -4
	Info  LogLevel = 0
	Warn  LogLevel = 4
	Error LogLevel = 8
)

func (Send) isEffect()        {}
func (Reply) isEffect()       {}
func (Publish) isEffect()     {}
func (After) isEffect()       {}
func (CancelAfter) isEffect() {}
func (Spawn) isEffect()       {}
func (Stop) isEffect()        {}
func (Watch) isEffect()       {}
func (Unwatch) isEffect()     {}
func (Ready) isEffect()       {}
func (State) isEffect()       {}
func (CancelWork) isEffect()  {}
func (Log) isEffect()         {}

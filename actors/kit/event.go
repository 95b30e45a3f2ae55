package kit

import (
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// Machine decides for one actor. Step is a pure function of the machine's state, the event and the time: it reads no
// clock, starts no goroutine and does no IO. It is called by one goroutine at a time and returns what is to be done, in
// order. A machine is made anew at each start and restart of its actor.
type Machine interface {
	Step(now time.Time, e Event) []Effect
}

// Shower is a machine that shows its state to people. Show is called on the actor's goroutine and returns a value
// that encodes as JSON and holds no secrets.
type Shower interface {
	Show() any
}

// Event is what a machine is stepped with: a message of another actor, a result of one of this actor's workers, a
// timer, or a fact of its own life.
type Event struct {
	// From is who sent the message and gets the Reply; nil for the actor's own events and for senders that want none.
	From *messages.Address
	// Corr is the correlation id of the request this message is, or of the request that it answers; empty means none.
	Corr string
	// Msg is the message: a frozen proto.Message, a private value of a worker, or one of Started, Stopping, Ended, Fault.
	Msg any
}

// Reply answers this event; without an asker it is an effect that does nothing.
func (e Event) Reply(m proto.Message) Reply { return Reply{To: e.From, Corr: e.Corr, Msg: m} }

// Started is the first event of a machine.
type Started struct {
	// Self is the actor's own address, with the boot epoch.
	Self *messages.Address
	// Restarts counts earlier incarnations of this actor in this process; zero at the first start.
	Restarts int
	// Failure is what ended the earlier incarnation; empty at the first start.
	Failure string
}

// Stopping is the last event of a machine; the effects of its step are performed before the actor ends. Workers are
// cancelled after it.
type Stopping struct{}

// Ended tells that a watched actor, or a child spawned with Watch, has ended for good.
type Ended struct {
	// Who ended.
	Who *messages.Address
	// Name under which a child was spawned; empty for other actors.
	Name string
	// Failure that ended it; empty means it was stopped or had finished.
	Failure string
	// ByPerson says that a person had ordered the stop.
	ByPerson bool
}

// Restarted tells a parent that its child was restarted after a failure.
type Restarted struct {
	// Who was restarted.
	Who *messages.Address
	// Name under which it was spawned.
	Name string
	// Failure that made it so.
	Failure string
}

// Fault tells a machine that an effect of its own could not be performed.
type Fault struct {
	// Effect that failed.
	Effect Effect
	// Err says why: for Send that the receiver is gone or full, for Spawn that the name is taken or the kind unknown.
	Err *messages.Error
}

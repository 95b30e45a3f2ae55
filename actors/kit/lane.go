package kit

import (
	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// What lies in a mailbox is either a bare proto.Message, for senders that want no answer and have no address, or one of
// the items below. A shell in an item is the incarnation it is meant for: after a restart it is dropped.

// envelope is a message with its sender and correlation.
type envelope struct {
	from *messages.Address
	corr string
	msg  proto.Message
}

// private is an event of the actor's own: what a worker emitted, what was posted, a fact of another actor's life.
type private struct {
	sh *shell
	v  any
	// w is the worker that sent it, or nil.
	w *worker
	// last says that w has ended; v is its result, or nil.
	last bool
}

// crashed tells that a worker panicked.
type crashed struct {
	sh *shell
	w  *worker
	p  *workerPanic
}

// fired tells that a timer ran down; it counts only while that timer is still the one of its key.
type fired struct {
	sh  *shell
	key string
	seq uint64
}

// kidEnded comes to a parent after everything its child had sent.
type kidEnded struct {
	sh  *shell
	kid *cell
}

// kidRestarted comes to a parent when its child was restarted.
type kidRestarted struct {
	kid     *cell
	failure string
}

// stopOrder ends an actor; it lies in the control lane, or in the user lane to drain.
type stopOrder struct{ drain bool }

// exec runs on the actor's goroutine. drop is called instead when the actor has ended.
type exec struct {
	run  func(c *cell)
	drop func()
}

// controlMessage marks the control lane; messages/control.go lists who is in it.
type controlMessage interface{ SystemMessage() }

// isControl reports whether m travels in the control lane.
func isControl(m proto.Message) bool {
	_, ok := m.(controlMessage)
	return ok
}

// deliver puts a message into c's mailbox, through admission: a request over the soft limit and anything over the hard
// limit is refused. The control lane is never refused.
func (c *cell) deliver(from *messages.Address, corr string, m proto.Message) *messages.Error {
	if isControl(m) {
		c.postControl(&envelope{from: from, corr: corr, msg: m})
		return nil
	}
	depth := c.Mailbox.UserMessageCount()
	if depth >= c.row.limits.Soft && (corr != "" || depth >= c.row.limits.Hard) {
		c.refused.Add(1)
		c.rt.counts.refused.Add(1)
		return errBusy(c.path(), depth)
	}
	if from == nil && corr == "" {
		c.Mailbox.PostUserMessage(m)
		return nil
	}
	c.Mailbox.PostUserMessage(&envelope{from: from, corr: corr, msg: m})
	return nil
}

// answer puts a reply into c's mailbox. Replies pass admission always: there are never more than requests, and a lost
// one leaves its asker waiting.
func (c *cell) answer(from *messages.Address, corr string, m proto.Message) {
	e := &envelope{from: from, corr: corr, msg: m}
	if isControl(m) {
		c.postControl(e)
		return
	}
	c.Mailbox.PostUserMessage(e)
}

// postControl puts an item into the control lane.
func (c *cell) postControl(item any) {
	c.control.Add(1)
	c.Mailbox.PostSystemMessage(item)
}

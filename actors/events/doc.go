// Package events numbers what happens in a node and hands it to those who asked for it.
//
// Who it is: one actor of a node, kind "events", path "events". It provides the facility "events".
//
// Messages in:
//   - AgentEvent, from any actor (the effect kit.Publish): is numbered from 1 within the epoch of the stream, kept in
//     the ring unless it is a delta, and sent to each subscription that wants it. Its type must be known; one without
//     is counted, logged once per type and dropped. Not answered.
//   - Subscribe, from admin and proxies of plugins: answered at once with an EventBatch that holds the replay, maybe
//     empty. A subscription of the same name and subscriber is replaced, so asking again is also how a subscriber
//     makes sure that it still has one. When the batches are to go to another actor than the asker, the replay goes
//     there and the asker gets Ok. Refused with Error `too_many_subscriptions`, `bad_subscription`.
//   - Unsubscribe: answered with Ok, also when there was none.
//   - Ended of a watched subscriber: its subscriptions end.
//   - Fault of a batch that could not be delivered: the next batch of that subscription says sync_required, so a gap is
//     never silent.
//
// State: last sequence; the ring; the subscriptions; events numbered and not yet sent.
//
// Order and gaps: a subscription sees events in the order of their sequence, each at most once, and from its answer on
// without a gap except where a batch says sync_required. Sequences that its filter leaves out are missing in it.
//
// Batching: after a pause an event goes out in the step that numbered it. What follows within Params.Gap of the last
// batch is collected and sent together when the gap is over, or as soon as Params.Batch events wait. An output, an error
// or a change of a task does not wait: it goes out at once, with what was collected before it.
//
// Epoch: that of the boot, plus the number of restarts of this actor; so a restart within a process is a new stream,
// and who asks for a place in the old one is told sync_required instead of being given wrong numbers.
//
// A restart loses the ring, the subscriptions and what was not yet sent. Subscribers renew (admin does so every
// 15 seconds).
//
// Bounds: the ring by Params.Ring events and Params.RingBytes bytes; subscriptions by Params.Subscriptions; the events
// that wait by Params.Batch. The mailbox has the limits of the kernel's table; an event refused by a full mailbox has no
// number and leaves no gap.
package events

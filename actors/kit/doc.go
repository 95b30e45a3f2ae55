// Package kit is the shell that all actors share: it runs pure machines on the actor runtime, performs their common
// effects, wraps the runtime's mailbox with a control lane, admission and statistics, restarts what fails by its row,
// and shows the live tree.
//
// # Order
//
//  1. A machine is stepped by one goroutine at a time, first with Started and last with Stopping, and the effects of a
//     step are performed in order before the next step.
//  2. Messages of one sender to one receiver in one lane arrive in the order in which they were sent. The control lane
//     (messages with a SystemMessage method) goes ahead of everything that waits in the user lane.
//  3. Ended and Restarted of a child, and Ended of a watched actor, come after all messages which that actor had sent to
//     the same receiver in the user lane.
//  4. Timers, results of workers and posted values lie in the user lane. They belong to the incarnation that asked for
//     them: after a restart, or after their key was cancelled, they come no more.
//
// # Delivery
//
// Delivery is at most once. A message to an actor that is gone, or over its hard limit, comes back as Fault with the
// Send. A request (a Send with Corr) over the soft limit is answered with Busy in the receiver's name; one that was
// taken by an actor which then ended is answered with Error of code actor_gone. Other messages that an ended actor had
// left are counted as dead letters. Replies, timers and results of workers pass admission always: what they can pile up
// to is bounded by what their receiver asked for. Who needs certainty waits for an answer.
//
// # Failure
//
// A panic in a machine, in a performer or in a worker fails the actor. The message in hand is lost; the mailbox is kept,
// in both lanes, until a new incarnation stands at the same path. Restarts wait with true exponential back-off. Above its
// intensity the failure goes to the parent, which is restarted as a whole, or the actor ends for good; the root never
// fails. A restart given up is told to watchers as Ended with Failure and published as a system notice.
// A machine that failed gets no Stopping.
//
// # Stopping
//
// A stop ends the children first, bottom-up, while their parents still handle what the children tell them last; then the
// machine is stepped with Stopping, its workers are cancelled and awaited, and watchers are told. What does not end
// within its stop timeout is left behind and named.
package kit

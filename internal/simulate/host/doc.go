// Package host runs the machines of actors the way actors/kit does, but on one goroutine, in virtual time and in an order
// that a seed chooses.
//
// What is kept of kit and of the runtime below it: the two lanes of a mailbox, control first; the order in which messages
// were put into a mailbox, whoever sent them; admission and its Busy; Fault for an effect that could not be performed, told
// through the mailbox; timers by key; workers whose results are dropped after a cancel or a restart; Spawn, Watch and Ended;
// a stop that ends children first; a failure that suspends the mailbox, restarts by the row of the kind after a back-off,
// gives up or escalates; the Restarted of a parent.
//
// What is chosen by the seed: which of the actors with something in the mailbox is next, how long each step and each worker
// takes, and which actors fall behind for a while. A step is one event of one machine with all of its effects; nothing comes
// between the effects of a step. Nothing is lost but what the runtime loses: messages to an actor that is gone.
package host

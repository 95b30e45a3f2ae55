// Package ledger is the engine that keeps what a node has promised: accepted
// inputs, the state and the one end of each task, the journal of each turn,
// outputs that must reach a channel, events of the context, resident agents.
//
// # Keys
//
//	m ledger                          counters (see counters)
//	i <sequence, 8 BE>                messages.InboxRecord
//	k <SHA-256 of principal 00 key>   messages.KeyRecord
//	t <input id>                      messages.TaskRecord
//	t 00 <sequence, 8 BE>             input id of a task that has not ended
//	j <input id> 00 <sequence, 8 BE>  messages.JournalRecord
//	j 00 <end, 8 BE> <input id>       empty: the journal of a task that has ended
//	z <input id>                      messages.AsideRecord of a crash loop
//	o <output id>                     messages.OutputRecord
//	o 00 <output id>                  empty: the output is not known as sent
//	o 00 00 <time, 8 BE> <output id>  empty: the output was sent then
//	e <agent> 00 <event id>           messages.EventRecord
//	e 00 w <number, 8 BE>             agent 00 event id of an event that the late index lacks
//	a <agent path>                    messages.AgentRecord
//
// Ids hold no zero byte, so that they never meet the lists under 00.
//
// # Retention
//
// Retain removes what has ended and is older than its Policy, in small transactions.
// The inbox stays dense: its records go from the oldest on, the counters know the
// last one that went (the floor), and one that is to go before an older one has
// ended leaves an empty record in its place. An input is kept at least as long as
// its idempotency key, and the journal of a crash loop as long as its record. What
// has not ended, and an output that was not sent, is never removed.
//
// Upkeep measures the spaces and keeps the store below its budget: above it the times
// are halved, up to four times, with a compaction after each; when that does not
// help, inputs are refused with store_full until there is room.
//
// # Starts
//
// A task's starts count those after which its turn got nowhere: a result in the
// journal (an answer, a tool's result, a steered text, a commit) begins the count
// anew. What is written before every attempt is no result, or a task that kills its
// node would look like one that gets on.
//
// # Writing
//
// Execute takes requests in order. Each is one transaction: all of its
// operations take effect or none; only an accept may be refused by itself. One
// sync at the end covers all of them. Execute must not be called concurrently
// with itself: one actor owns it.
//
// Options.Indexer joins the transaction that stores events. Options.Late follows
// in a transaction of its own, so that an answer does not wait for it: before the
// next accept, the next end of a task or the next events. What a crash leaves out
// is made up for by Open.
//
// Everything that is derived from an input id may be written again: an accepted
// input, an output intent, a receipt, an event, the same end of a task. The
// second time changes nothing. A second, different end is refused.
//
// # Reading
//
// All other methods read a snapshot and may be called from any goroutine.
//
// # Guard
//
// Inbox and journals have dense sequences and each record a checksum. Open
// compares them with the store's mark and refuses to go on when something that
// was promised is missing, unless the store is being salvaged.
package ledger

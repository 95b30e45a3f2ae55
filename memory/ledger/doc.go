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
//	o <output id>                     messages.OutputRecord
//	o 00 <output id>                  empty: the output is not known as sent
//	e <agent> 00 <event id>           messages.EventRecord
//	e 00 w <number, 8 BE>             agent 00 event id of an event that the late index lacks
//	a <agent path>                    messages.AgentRecord
//
// Ids hold no zero byte, so that they never meet the lists under 00. All of
// what belongs to one task or agent is one range of keys, and the inbox is one
// range by age: retention deletes ranges.
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

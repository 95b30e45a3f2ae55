// Package contextmem reads the context: what was said, in order, byte for byte.
// Nothing here summarises or replaces; other tiers only point to these events.
//
// # Layout
//
// The ledger stores the events themselves (e <agent> 00 <event id>). This package
// keeps beside them, under a zero byte that no agent begins with:
//
//	e 00 c <agent> 00 <conversation> 00 <event id>   events by conversation; no value
//	e 00 n                                           number of the last event
//
// Event ids are time-sortable, so both orders are orders of time by task.
//
// # Writing
//
// Context is an indexer of the ledger: what it writes, and what the indexer
// behind it writes, is in the transaction that appends the events. One goroutine
// writes.
//
// # Reading
//
// Readers are safe for concurrent use and see committed events only. A long text
// that stands in a payload is put back into its block.
package contextmem

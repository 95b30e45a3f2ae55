// Package contextmem keeps the context: what was said, in order, byte for byte.
// Nothing here summarises or replaces; other tiers only point to these events.
//
// # Layout
//
// Keys in the space 'e'; <agent> and <conversation> end with a zero byte.
//
//	e<agent><event id>                  EventRecord, sealed
//	c<agent><conversation><event id>    the same events by conversation; no value
//	n                                   number of the last event of the node
//
// Event ids are time-sortable, so that both orders are orders of time. The number
// of an event is dense over all agents of the node and names it in the lexical
// index.
//
// # Writing
//
// Append joins the ledger's transaction: the event, its place in the
// conversation and its postings are there together or not at all. The same event
// id again changes nothing. One goroutine writes.
//
// # Reading
//
// Readers are safe for concurrent use and see committed events only.
package contextmem

// Package context reads the context for prompts: what was said last.
//
// Who it is: kind "memory/context", at memory/context.
//
// Messages in:
//
//	ContextWindow -> ContextEvents: the latest events of a conversation within a count and an estimate of tokens, oldest
//	                 first, their texts byte for byte
//	Drain         -> Ok
//
// State: the requests that wait for one of the readers. It writes nothing: the ledger appends events.
//
// Phases: running, always.
//
// A restart loses the requests under way; their askers' own limits tell them, and asking again is safe.
//
// Mailbox: the kind's limits. The machine takes a request at once; the askers bound their own.
package context

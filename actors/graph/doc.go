// Package graph is the one writer of the fact graph.
//
// Who it is: kind "memory/graph", at memory/graph.
//
// Messages in:
//
//	CommitFacts -> CommitFactsResult, after the facts are synced to disk
//	Drain       -> Ok
//
// State: requests in the order they came; one of them is with the engine. A fact without an id gets one from the key of
// its batch, so that a batch sent twice is stored once. A batch that says nothing new is answered with the ids of what
// says it already.
//
// Phases: idle <-> writing.
//
// A failure of the store is answered with an error and harms nothing: the engine makes its view of the graph anew. Of a
// batch larger than one transaction a part may have been stored then; the answer names it, and the same batch again
// stores the rest.
//
// A restart loses the requests that wait and the answer to the one being written; their askers' own limits tell them,
// and asking again is safe.
//
// Mailbox: the kind's limits. The machine takes a request at once; the askers bound their own.
package graph

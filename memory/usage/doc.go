// Package usage is the engine of what model calls used and of what is remembered of the failures of model sources.
//
// # Rows
//
// A row sums up the calls of one day in the person's zone that have source, model, agent, channel and conversation in
// common. It is written as a whole, with what it is then, so that the same write twice is the same as once. A day has at
// most MaxRows of them: further conversations are summed up under Other.
//
// Money is counted in millionths of the unit of core.llm.currency, call by call, by the prices at the time of the call.
// A call of a source without a price counts as unpriced, never as free.
//
// # Keys
//
//	u d/<day>/<hash of the other names>  messages.UsageRow
//	u m/<source>                         messages.SourceMarks
//
// Rows and marks are written by ledger, from the operations made here. All functions may be called from any goroutine; a
// Book belongs to one at a time.
package usage

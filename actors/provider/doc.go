// Package provider asks models. It has three kinds of actors:
//
//	providers                          decides which source answers, falls back, keeps cooldowns
//	└─ source/<name>                   one configured source: open calls, those that wait
//	   └─ call/<id>.<attempt>          one call: its worker streams
//
// # providers
//
// It provides the facility "llm". Messages in:
//
//	Complete          from turns -> RequestSent and Delta (from the call) and at the end exactly one CompletionDone,
//	                  all to reply_to; Error duplicate_call to the asker when the call id is under way
//	CancelCompletion  control lane; not answered, and no CompletionDone follows
//	CompletionDone    from sources: what came of an attempt
//	ConfigChanged     from config: sources, budgets and retries are read anew
//	ListSources       -> SourceList, with the model servers found on loopback
//	AddSource         -> SourceTested: a live completion, then a ConfigSet
//	TestSource        -> SourceTested, or Error unknown_source; a test that works ends the source's cooldowns
//	RemoveSource      -> Ok or Error, after a ConfigSet
//	UseSource         -> Ok or Error, after a ConfigSet of the priorities
//	ResetSource       -> Ok or Error unknown_source
//	QueryUsage        -> UsageAnswer, or Error bad_query
//	CallTool          llm_list_sources and llm_set_source -> ToolResult
//	ConfigSetResult, LedgerFigures, LedgerDone answer its own requests
//	Ended, Restarted  of sources: the attempts they had are failed attempts, and nobody else is asked, because what they
//	                  have shown is not known
//
// A request goes: asked (an attempt is at a source) -> done, or after a failure asked again, or waiting (a pause before one
// more attempt) -> asked. The order of sources and their keys, cooldowns and what a failure leads to are those of Router in
// package providers. A cancel can overtake its Complete, because it travels in the control lane: the ids of the last
// cancels are remembered.
//
// It publishes system notices source_cooling, source_broken and source_ready when a source's standing changes,
// source_waiting before a long pause, budget_warning at 80 % and budget_spent at all of a budget, usage_damaged.
//
// A source that is switched off, removed or renamed is asked no more at once; its actor ends with its last call.
//
// With no source that is switched on, the source "offline" stands in; it answers without a model and says so.
//
// Usage: each attempt that ends is counted in the row of its day, source, model, agent, channel and conversation, and the
// row is written by ledger as it is then, without waiting, in one transaction with what changed of the failures of
// sources. A cancelled call counts as a call without tokens: nobody said how many. Once a budget is spent, a request in
// the background goes to sources that cost nothing, or fails with the kind budget, and the turn is parked; requests that people wait for go on.
//
// A source that llm_set_source chose is asked first in its turn or its conversation, where it is ready. Choices are kept
// in memory, a day after their last use, at most 1000.
//
// A restart answers the requests under way with a failure of the kind server, also those that it had not begun; calls end
// with their sources. Cooldowns, usage and budgets are read back; choices are lost. Bounds: one request for each running
// turn; 1024 requests, above it Complete is answered with a failure of the kind overloaded.
//
// # source
//
// Messages in: Complete and CancelCompletion from providers, CompletionDone from its calls, SourceSpec from providers when
// the settings change. Each Complete ends in one CompletionDone to providers unless it is cancelled. As many calls are open
// as max_concurrent says; others wait in order, at most 256; above it a Complete fails with the kind overloaded. A call
// that crashes is a failed attempt. A restart ends its calls; providers is told by the runtime.
//
// # call
//
// It is spawned with the Complete; its name ends in the number of the attempt. Its worker runs the client's Stream:
// RequestSent and each Delta go straight to the turn, the result goes to the source, and the call ends. CancelCompletion
// cancels the worker's context, which closes the connection. It also ends when the turn is gone: nobody is left to pay for.
// It is never restarted: a crash is the source's to report.
package provider

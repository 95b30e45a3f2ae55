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
//	ConfigChanged     from config: sources are read anew
//	ListSources       -> SourceList, with the model servers found on loopback
//	AddSource         -> SourceTested: a live completion, then a ConfigSet
//	TestSource        -> SourceTested, or Error unknown_source
//	RemoveSource      -> Ok or Error, after a ConfigSet
//	ResetSource       -> Ok or Error unknown_source
//	ConfigSetResult   answers its ConfigSet
//	Ended, Restarted  of sources: the attempts they had are failed attempts
//
// A request goes: asked (an attempt is at a source) -> done, or after a failure asked again, or waiting (a pause before the
// same source is asked once more) -> asked. The order of sources, cooldowns and what a failure leads to are those of
// Router in package providers. A cancel can overtake its Complete, because it travels in the control lane: the ids of the
// last cancels are remembered.
//
// It publishes system notices source_cooling, source_broken and source_ready when a source's standing changes.
//
// With no source that is switched on, the source "offline" stands in; it answers without a model and says so.
//
// A restart loses the requests under way and the cooldowns; calls end with their sources. Turns notice by their own
// silence limit. Bounds: one request for each running turn; 1024 requests, above it Complete is answered with a failure of
// the kind overloaded.
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

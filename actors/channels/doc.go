// Package channels is the way in and the way out of a node.
//
// Who it is: one actor at channels. It knows the registered channels, gives every input its level, has ledger make it
// durable, offers it to the scheduler of its agent, and hands outputs to the channel they are for.
//
// Messages in:
//
//	RegisterChannel -> Ok or Error: a channel of the sender; the same name again replaces it
//	ListChannels    -> ChannelList
//	SubmitInput     -> SubmitResult, after the input is on disk and its outcome is known; an error means that nothing was
//	                   accepted
//	StopAll         -> StopResult or Error: marks what is on its way in, and passes it on to the scheduler of the agent
//	SendOutput      -> OutputSent: by the channel's owner, or by the event stream where the channel has no owner; a channel
//	                   that is not there is waited for, as turns go on after a start before all channels are registered
//	OutputSent      from owners
//	CallTool        -> ToolResult: output_send and output_list_channels, whose owner channels is
//	CancelTool      ends a call of which nothing was done yet; control lane
//	AgentList       of a resident that sends: which channels it may use
//	ConfigChanged from config: the most inputs that may wait
//	LedgerDone, InputOutcome, PendingTasks from ledger and schedulers
//
// Levels: see level.go; this is the one place where a level is decided, and where what a plugin asks for is clamped. Who
// is a plugin is known by the address it sends from. What does not fit (unknown channel, no content, a level out of range,
// a deadline in the past) is refused before anything is written.
//
// A send in mid-turn has an intent of its own under the id of its call, on disk before anything is sent, and its result is
// what the channel's owner said, never better than what is known. The same call again, after a restart, is answered from
// what is on disk: it is not sent twice, unless the channel tells repeats apart by its key. Within 10 s of a start a send
// waits for a channel that is not there yet, and the tools are registered only when the channels of Params.Awaited are there. A turn sends at most as many
// as core.tools.sends says, and no text twice to one place; an answer that it has sent word for word is not sent again.
//
// A restart loses the registrations of owners, who register again when they are told, and the outcome of inputs on their
// way: they are offered again, and the asker learns the state by the input's id. Outputs that were intended and not known as sent by a task that
// has ended are sent again at the start, marked as a possible repeat; inputs of agents that are not there are ended as
// refused (unknown_agent).
//
// Bounds: at most maxUnderway inputs are on their way in; one more is refused with queue_full. The number of inputs accepted and not ended is ledger's to limit; text of an input is at most MaxText bytes
// in at most MaxParts blocks.
package channels

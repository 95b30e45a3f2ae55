// Package memory answers what memory holds: for turns, for the model's tools, and for people.
//
// Who it is: kind "memory", at memory. It provides the facility "memory"; memory/context reads the conversation and
// memory/graph writes facts, each an actor of its own.
//
// Messages in:
//
//	Recall      -> RecallResult; behind what is new, the excluded events that bear on the text stand with via "context"
//	MemoryQuery -> MemoryAnswer
//	CallTool    -> ToolResult, exactly one for each call: memory_recall searches, memory_commit has memory/graph store
//	               facts and tells what it really did
//	CancelTool  ends a call with the result "cancelled"; what was handed to the graph may be stored nevertheless, and a
//	            repeated call with the same id changes nothing
//	Ok, Error   of the tools' registry, which is asked again until it takes the tools
//	Drain       -> Ok
//
// State: requests in the order they came, a few of them with the engine at a time. The tools are registered at the
// start; memory works without them.
//
// The dictionary of Chinese words is loaded at the first question with Han characters, behind the questions, and dropped
// when unused for a while. No answer waits for it.
//
// Phases: running, always.
//
// A restart loses the requests under way; their askers' own limits tell them, and asking again is safe.
//
// Mailbox: the kind's limits. The machine takes a request at once; the askers bound their own.
package memory

// Package tools knows which tools there are, checks what a model asks of them, and hands calls to their owners.
//
// Who it is: one actor of a node, kind "tools", path "tools". It provides the facility "tools".
//
// Messages in:
//
//	RegisterTools -> Ok or Error   bad_tool, tool_exists; all of the list or nothing. The same owner again replaces its
//	                               list; an owner that ends loses it. Without an owner the sender is the owner.
//	ListTools     -> ToolList      what the agent may use, sorted by name, without those of core.tools.denied; after a
//	                               start not before Params.Owners have registered, which are waited for 10 s
//	CallTool      -> ToolResult    exactly one, whatever happens
//	ToolResult    of the owner, for a call handed on; a late one is dropped
//	CancelTool    handed on to the owner of each running call of that id; control lane, not answered
//	DetachCall    lets a running call go on under a handle, its call id; control lane. Who waits for the call is answered
//	              at once with {"handle":…,"state":"running"}
//	SubmitResult  of channels, for a notice
//	Error, Busy, Ended, Fault      end the calls they are about as failed
//
// A call is run only if the agent may use the tool and its arguments fit the tool's schema. Arguments that are written
// in the wrong type and mean one thing only are put right: "true" for a boolean, "5" for a number, "[1]" for a list, an
// empty text for no arguments. All others are refused, naming the field. Bytes that fit as they are go on unchanged.
//
// A call that does not run, or that ends without its owner's word, is answered by tools itself: not_found (with the
// nearest names), required, type, denied, timeout (after the tool's own time, which the text names), failed,
// cancelled (its owner did not confirm a cancel within 5 s), and unknown_outcome in place of the last two when a call
// that may not run twice was with its owner.
//
// A structured result becomes compact JSON. One that says of itself that it failed, by isError, by an error that is not
// empty, by ok or success that is false, is a failure. A result of more than Params.ResultCap bytes is cut at a character
// and says so. A result without a taint is foreign.
//
// A call that goes on under a handle keeps its own time and no longer ends with its turn. Its result is kept for 24 h,
// 64 of them at most. Unless a calls_result waits for it, its agent is told by an input in the channel and conversation
// of the call (source terminal, idempotency key "call:<handle>"), which is sent until channels takes or refuses it.
//
// tools serves three tools itself: time_now, calls_list and calls_result.
//
// A restart loses the registrations, the calls under way and what was kept: owners register again when they are told
// (the kernel does), turns give a call up after its time, and a handle of before is answered with unknown_outcome. A stop
// of the node cancels the calls that go on by themselves. Bounds: calls by the turns that wait for them; the mailbox by the kind's
// limits, above which a call is answered with Busy.
package tools

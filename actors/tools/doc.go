// Package tools knows which tools there are, checks what a model asks of them, and hands calls to their owners.
//
// Who it is: one actor of a node, kind "tools", path "tools". It provides the facility "tools".
//
// Messages in:
//
//	RegisterTools -> Ok or Error   bad_tool, tool_exists; all of the list or nothing. The same owner again replaces its
//	                               list; an owner that ends loses it. Without an owner the sender is the owner.
//	ListTools     -> ToolList      what the agent may use, sorted by name, without those of core.tools.denied
//	CallTool      -> ToolResult    exactly one, whatever happens
//	ToolResult    of the owner, for a call handed on; a late one is dropped
//	CancelTool    handed on to the owner of each running call of that id; control lane, not answered
//	Error, Busy, Ended, Fault      end the calls they are about as failed
//
// A call is run only if the agent may use the tool and its arguments fit the tool's schema. Arguments that are written
// in the wrong type and mean one thing only are put right: "true" for a boolean, "5" for a number, an empty text for no
// arguments. All others are refused, naming the field. Bytes that fit as they are go on unchanged.
//
// A call that does not run, or that ends without its owner's word, is answered by tools itself: not_found (with the
// nearest names), required, type, denied, timeout (after the tool's own time, which the text names), failed,
// cancelled (its owner did not confirm a cancel within 5 s), and unknown_outcome in place of the last two when a call
// that may not run twice was with its owner.
//
// A result of more than Params.ResultCap bytes is cut at a character and says so. A result without a taint is foreign.
//
// tools serves one tool itself: time_now.
//
// A restart loses the registrations and the calls under way: owners register again when they are told (the kernel does),
// and turns give a call up after its time. Bounds: calls by the turns that wait for them; the mailbox by the kind's
// limits, above which a call is answered with Busy.
package tools

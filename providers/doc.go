// Package providers speaks to model servers. It holds the contract between the
// node and a model source, the client that carries one call out, and the pure
// policy that orders sources; it knows no actor.
//
// # Parts
//
//   - Source says where a model is and how to reach it; Check validates it.
//   - Adapter turns a request free of vendors into a vendor's HTTP body and the
//     vendor's events into Pieces. Adapters are Lua scripts (package lua); they
//     see one decoded event at a time and never the socket, the clock or a key.
//   - Client.Stream carries out one call: it frames, assembles tool calls,
//     classifies failures, guards timeouts, and closes the socket on cancel.
//   - Router decides which source is next; it is a pure state machine.
//
// # One call
//
// A call has three outcomes. Finished: the vendor's end mark was seen, or the
// end of the stream with tool calls that are whole. Failed: an HTTP error, an
// error event, a broken adapter. Truncated: the stream ended without its mark.
// Only the first returns a nil error; the others return the text that arrived
// together with a *Failure. Failure.Visible tells whether something had been
// shown, which is when another source may no longer be asked in silence.
//
// Tool calls never run on a guess: arguments that do not parse are marked in
// ToolInvocation.Invalid with the reason, and a truncated answer's calls all are.
package providers

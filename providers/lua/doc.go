// Package lua runs model adapters written in Lua: it loads the embedded ones
// and those of a folder, and turns the node's requests and a vendor's events
// into the tables and back.
//
// # Contract, version 1
//
// A file returns one table:
//
//	contract      1
//	name          equal to the file's name without .lua
//	version       text, for people
//	base_url      default base; may be missing
//	endpoint      text, or function(req, source) -> text; appended to the base
//	framing       "sse", "ndjson" or "json"
//	capabilities  { stream, tools, vision, audio } booleans
//	headers(source) -> table                       may be missing
//	transform_request(req, source) -> body         a table; becomes JSON
//	transform_response(body, state) -> pieces      a whole JSON answer
//	transform_stream_chunk(event, state) -> pieces one event of a stream
//	classify_error(err) -> fault or nil            may be missing
//
// or, for an adapter that answers by itself, contract, name, version,
// capabilities and
//
//	respond(req, source) -> pieces
//
// req is { messages, tools, max_tokens, temperature, stream, question,
// recalled, memory_none }. A message is { role, text, parts, calls, call_id,
// name, failed, reasoning, replay }: role is "system", "user", "assistant" or
// "tool"; text is all its text; parts are { type = "text", text } or { type =
// "image" or "audio", media_type, data (base64) }; calls are { id, name,
// arguments (JSON text) }. A tool is { name, description, parameters (raw
// JSON) }. A recalled item is { id, text, at (seconds), via, score, speaker,
// conversation }. Missing things are nil, lists are never nil.
//
// source is { name, model, base_url, thinking, vision, audio, has_key }. The key
// itself never enters a script: write "{{api_key}}" into a header's value.
//
// event is { event, json } or { event, data } where the data is no JSON, with
// partial = true when the stream ended inside it. After the last event of a
// stream that was not cut, the chunk function is called once more with event =
// "@end". state is one table per stream.
//
// pieces is nil, one piece or a list of pieces. A piece is { text, reasoning,
// refusal, tools = { { index, id, name, args } }, finish, usage = { input,
// output, cached, reasoning, cache_write, prompt_total, total }, model, replay
// (text), done, error = fault }. args is a piece of JSON text, or a table that is
// all of the arguments; index counts as the wire counts. finish is "stop",
// "length", "tool_calls", "content_filter" or "pause", and only the vendor's
// end mark sets it. A fault is { kind, status, code, message, retry_after }
// with a kind from KindName in package providers; without one the status
// decides.
//
// A field or a type that the contract does not know is an error with file and
// line, never ignored.
package lua

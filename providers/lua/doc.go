// Package lua runs model adapters written in Lua: it loads the embedded ones
// and those of a folder, and turns the node's requests and a vendor's events
// into the tables and back. docs/adapters.md explains the contract to people who
// write adapters; this is its exact form.
//
// # Contract, version 1
//
// A file NAME.lua returns one table:
//
//	contract      1
//	name          equal to the file's name without .lua
//	version       text, for people
//	extends       name of an adapter that this one is a profile of; may be missing
//	base_url      default base; may be missing, may have places {option}
//	endpoint      text, or function(req, source) -> text; appended to the base
//	framing       "sse", "ndjson", "aws-eventstream" or "json"
//	capabilities  { stream, tools, vision, audio, thinking, structured } booleans
//	auth          missing, or { kind = "aws", service } for signed requests
//	tool_ids      "any", "plain" or "nine": providers.IDForm; may be missing
//	options       a table of data that a source can change; may be missing
//	headers(source, req) -> table                          may be missing
//	transform_request(req, source) -> body                 a table; becomes JSON
//	transform_response(body, state, source, text) -> pieces   a whole JSON answer
//	transform_stream_chunk(event, state, source) -> pieces    one event of a stream
//	classify_error(status, headers, body, source) -> fault or nil   may be missing
//	embed_endpoint                                         as endpoint
//	embed_request(req, source) -> body                     req is { texts, purpose, dimensions }
//	embed_response(body, source) -> { vectors, usage, error }
//
// The three for embeddings come together or not at all; an adapter that has
// them may do without the transforms.
//
// or, for an adapter that answers by itself, contract, name, version,
// capabilities and
//
//	respond(req, source) -> pieces
//
// A profile has the fields of the adapter that it extends where it has none of
// its own; of capabilities and options it has each that it does not name. A
// value of json.null removes. A file whose name begins with an underscore is no
// adapter but a part that others take with use("_name") while they are loaded;
// use gives what the file returns, and works for adapters as well.
//
// # What a script is given
//
// req is { messages, tools, max_tokens, temperature, stream, thinking,
// tool_choice, output_schema, question, recalled, memory_none }. A message is {
// role, text, parts, calls, call_id, name, failed, reasoning, replay }: role is
// "system", "user", "assistant" or "tool"; text is all its text; parts are {
// type = "text", text } or { type = "image" or "audio", media_type, data
// (base64) }; calls are { id, name, arguments (JSON text), made }, made where the
// node made the id, which a tool's message says as well; replay is the JSON
// text of the array of items that this source's pieces brought. A tool is {
// name, description, parameters (raw JSON) }. thinking is "off", "on",
// "minimal", "low", "medium", "high" or "max"; tool_choice is { mode = "auto",
// "none" or "required" } or { mode = "tool", name }; output_schema is raw JSON.
// question, recalled and memory_none are for respond alone; a recalled item is {
// id, text, at (seconds), via, score, speaker, conversation }. Missing things
// are nil, lists are never nil.
//
// source is { name, model, base_url, options, vision, audio, has_key,
// context_window }. The key
// itself never enters a script: write "{{api_key}}" into a header's value.
//
// event is { event, data, json, partial, exception }: data is the text of the
// event, json what it decodes to where it is JSON; partial is true when the
// stream ended inside it, exception when an AWS stream calls it an error. The
// event of a model that AWS wraps as {bytes} comes unwrapped. After the last
// event of a stream that was not cut, the chunk function is called once more
// with event = "@end". state is one table per call. body is what the JSON of an
// answer decodes to, text the JSON itself; the body of classify_error is a text
// where it is no JSON object or array.
//
// # What a script gives
//
// pieces is nil, one piece or a list of pieces. A piece is { text, reasoning,
// refusal, tools, finish, usage, model, replay, server_blocks, done, error }.
// tools are { index, id, name, args, whole }: args is a piece of JSON text, or a
// table, or with whole a text, that is all of the arguments; index counts as the wire counts, and may be nil.
// finish is "stop", "length", "tool_calls", "content_filter" or "pause", and
// only the vendor's end mark sets it. usage is { input, output, cached,
// reasoning, cache_write, prompt_total, total, billed_input, billed_output }; a
// figure that is given replaces the one before. replay is a list of items to
// append, tables with a type or raw JSON; they come back in the message's replay
// with the bytes they had. server_blocks are type names. done ends the reading
// of the stream. error is a fault: { kind, status, code, message, retry_after,
// again } with a kind from KindName in package providers; without one the status
// decides. again is "without_replay" or "whole": providers.Again. vectors are
// lists of numbers, or base64 of little-endian 32-bit floats.
//
// A field or a type that the contract does not know is an error with file and
// line, never ignored.
//
// # Functions
//
// The libraries base, table, string and math of Lua as package luavm gives them,
// the module json, and
//
//	log(level, text)                    "debug", "info", "warn" or "error"
//	http_get(address [, headers])       { status, headers, body, json }, or nil and a text
//	http_post(address, body [, headers])
//	escape(text)                        the text as one step of a path
//	use(name)                           see above
//
// http asks the source's own server and no other, with a time limit; the key
// goes along only where a header has its place.
package lua

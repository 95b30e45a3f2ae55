// Package luavm is the one Lua interpreter of a node. It is the only importer
// of gopher-lua; model adapters and Lua plugins speak to scripts through the
// Go values of this package and never see the interpreter's own types.
//
// # What a script gets
//
// Lua 5.1 with the libraries base, table, string and math, without everything
// that reaches out of the script or reads code: no os, io, debug, package,
// channel or coroutine; no load, loadstring, loadfile, dofile, require, module,
// newproxy, getfenv, setfenv, collectgarbage. print goes to the host's log.
// The module json has
//
//	json.encode(value)        JSON text; raises on a value that has no JSON form
//	json.decode(text)         value, or nil and a message
//	json.null                 the JSON null; distinct from nil (absent)
//	json.array([table])       marks a table as an array, also when it is empty
//	json.object([table])      marks a table as an object, also when it is empty
//	json.raw(text)            JSON text that is written as it stands
//	json.get(value, key, ...) the value at a path, or nil where a step is missing or null
//	json.pick(text, key, ...) the original bytes at a path of JSON text, as a raw value, or nil
//	json.empty_array, json.empty_object   [] and {} as they are written
//
// # Guarantees
//
//  1. A Program is compiled once and can be shared; a State belongs to one
//     goroutine at a time; a Pool hands states out and takes them back.
//  2. Every call has an instruction budget and a deadline and obeys its
//     context. Both end the script even inside pcall; the state is then
//     broken and the pool drops it. The budget is counted, not timed, so the
//     same script on the same input ends at the same place on every machine.
//  3. What one call can allocate through strings is bounded: rep, format,
//     find, match, gmatch, gsub, concat and the .. operator are this package's
//     own, charge the budget for the work they do, and refuse results above
//     Limits.String. Table growth is bounded by the budget alone, so scripts
//     of strangers belong into a worker process, not here.
//  4. Globals of a script are read-only after it has been loaded: what must
//     live longer than a call is passed in as an argument. Two calls, or two
//     streams, can therefore never mix.
//  5. An error names the file and the line: *Error, for syntax and at run time.
//
// # JSON both ways
//
// Decoding keeps the order of keys, the difference between [] and {}, and
// between null and absent. An integer that a float64 cannot hold becomes a raw
// value that is written back digit by digit. Encoding writes keys in the order
// in which they were set, so equal requests have equal bytes.
package luavm

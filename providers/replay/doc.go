// Package replay feeds recorded answers of model servers to adapters, without a
// network: one file for the author of an adapter, or a folder of recordings with
// the results they must give, under every way in which a transport may deliver
// or cut them.
//
// A folder has a file expected.jsonl with lines {file, expected}; what may stand
// in expected is Want. The first folder of a file's path names its family, from
// which AdapterFor chooses the adapter.
//
// # Transforms
//
// None may change a result: T1 one byte a read, T2 random reads, T3 CRLF, T4 CR,
// T5 comments, T6 no space after the colon, T7 further fields, T8 a byte order
// mark, T9 no last blank line, T10 no [DONE], T11 gzip, T12 an event over two
// data lines, T13 an event of 5 MB. Each is applied where the framing has it.
//
// # Truncations
//
// Each must give stream_truncated with the text so far and no call that may run:
// C1 before the end mark, C2 inside an event, C3 inside the arguments of a call,
// C5 a broken connection, C6 silence. C4, nothing at all, is an error of the
// server. A stream that has no end mark, because it is one of an error, is not
// cut.
package replay

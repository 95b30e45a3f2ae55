// Package framing cuts the body of a model server's answer into events.
// Framing is Go's part; what an event means is the adapter's.
//
// Four framings exist: server-sent events by the letter of the standard (line
// ends LF, CRLF and CR, comments, several data lines, a byte order mark),
// newline-delimited JSON, the binary event stream of AWS with its checksums, and
// one JSON document. None has a line limit; all
// have a cap on one event, and an event above the cap is ErrTooLarge: it is
// never cut short and never looks like the end of the stream.
//
// A body that ends in the middle of an event gives that event with Partial
// set: servers do forget the last blank line, and the reader of the event can
// tell from its content whether it is whole.
package framing

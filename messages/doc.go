// Package messages is the vocabulary of a node: every message that actors exchange and every record that the store
// holds. The proto files are the source; *.pb.go is generated and never edited.
//
// A message that was sent is frozen: the sender never touches it again, the receiver never changes it, and whoever
// keeps it beyond the handling of the message clones it.
//
// Field numbers are never reused; enums start with UNSPECIFIED.
package messages

// Package api holds the structs of a node's HTTP JSON, as the node writes and its clients read them: snake_case names,
// numbers as numbers, enums as lower-case words, times in RFC 3339 UTC. A field that does not apply is left out.
//
// It imports nothing but the standard library, so that a client needs nothing else of this repository.
package api

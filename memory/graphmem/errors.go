package graphmem

import "errors"

var (
	// ErrInvalid is returned for a fact that cannot be stored: no id, no
	// subject, no predicate, no object, a confidence outside 0..1, or a validity
	// that ends before it begins. Permanent.
	ErrInvalid = errors.New("graphmem: invalid fact")
	// ErrCorrupt is returned when stored bytes do not decode. Permanent; the
	// store needs a restore.
	ErrCorrupt = errors.New("graphmem: corrupt record")
	// ErrNotFound is returned when no fact has the given id.
	ErrNotFound = errors.New("graphmem: no such fact")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("graphmem: closed")
)

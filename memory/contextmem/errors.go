package contextmem

import "errors"

var (
	// ErrNotFound is returned when an agent has no event of the given id.
	ErrNotFound = errors.New("contextmem: no such event")
	// ErrInvalid is returned for an event without agent or id, or with a zero
	// byte in a name. Permanent.
	ErrInvalid = errors.New("contextmem: invalid event")
	// ErrCorrupt is returned when what is stored does not decode. Permanent.
	ErrCorrupt = errors.New("contextmem: corrupt record")
)

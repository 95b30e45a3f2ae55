package contextmem

import "errors"

var (
	// ErrNotFound is returned when an agent has no event of the given id.
	ErrNotFound = errors.New("contextmem: no such event")
	// ErrInvalid is returned for an event that cannot be stored: no id, no agent,
	// no kind, or a zero byte in a name. Permanent.
	ErrInvalid = errors.New("contextmem: invalid event")
	// ErrCorrupt is returned when a stored event does not decode. Permanent.
	ErrCorrupt = errors.New("contextmem: corrupt event")
)

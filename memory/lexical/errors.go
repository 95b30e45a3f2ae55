package lexical

import "errors"

var (
	// ErrCorrupt is returned when a record of the index does not decode. The
	// index can be made anew from the events.
	ErrCorrupt = errors.New("lexical: corrupt index")
	// ErrInvalid is returned for an event without number, agent or id.
	ErrInvalid = errors.New("lexical: invalid event")
)

package usage

import "errors"

var (
	// ErrField reports a field that rows cannot be kept apart by.
	ErrField = errors.New("usage: rows have no such field")
	// ErrDay reports a day that is none.
	ErrDay = errors.New("usage: not a day such as 2027-03-01")
)

package approvals

import "errors"

var (
	// ErrInvalid refuses a record that cannot be kept: an id that is empty, long or holds a zero byte, a token without a
	// name, a record over MaxRecord.
	ErrInvalid = errors.New("approvals: not a record that can be kept")
	// ErrNotFound says that there is no such approval or token.
	ErrNotFound = errors.New("approvals: not found")
)

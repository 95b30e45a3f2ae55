package obs

import "errors"

var (
	// ErrLevel says that a text names no log level.
	ErrLevel = errors.New("unknown log level")
	// ErrFormat says that a text names no log format.
	ErrFormat = errors.New("unknown log format")
	// ErrClosed is returned by writes to a log file after Close.
	ErrClosed = errors.New("log is closed")
)

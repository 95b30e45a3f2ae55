package worker

import "errors"

var (
	// ErrFrame reports bytes that are no frame of this protocol.
	ErrFrame = errors.New("worker: bad frame")
	// ErrOrder reports a question that does not fit where it was asked.
	ErrOrder = errors.New("worker: question out of order")
	// ErrClosed reports the use of an adapter after Close.
	ErrClosed = errors.New("worker: closed")
)

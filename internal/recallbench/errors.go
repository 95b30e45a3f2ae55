package main

import "errors"

var (
	// errShape: a file is of neither shape.
	errShape = errors.New("neither LoCoMo nor MemoryBank")
	// errNothing: no question was run.
	errNothing = errors.New("no question was run")
	// errUsage: the arguments make no sense.
	errUsage = errors.New("usage")
)

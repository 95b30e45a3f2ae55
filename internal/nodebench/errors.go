package main

import "errors"

var (
	// errNothing: a measurement did not execute as often as it says.
	errNothing = errors.New("a figure stands on nothing")
	// errProc: a file of the system is not as expected.
	errProc = errors.New("unexpected file of the system")
	// errNode: the node did something else than what is measured.
	errNode = errors.New("the node did not do what is measured")
)

// Command nodebench measures a whole node from outside: `go run ./internal/nodebench`.
//
// It builds homed as it is released (no cgo, stripped), runs it over fresh data folders with a scripted model server in
// this process, and prints each figure beside its target. Both ends of a measured path are in this process, so that they
// share one clock; the few points that only the node knows are told by the time stamps of its events, on the same
// machine's wall clock.
//
// A figure stands on as many samples as were asked for, or the command fails: what executed nothing is not reported. A
// missed target is printed as missed and does not change the exit code.
package main

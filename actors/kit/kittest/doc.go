// Package kittest runs machines of actors by transcripts: a test steps a machine with events at chosen times, and what
// went in and came out is compared with a text file that people read.
//
//	s := kittest.New(t, "preempt", newMachine(params), start)
//	s.Step(0, kit.Event{Msg: kit.Started{Self: self}})
//	s.Step(250*time.Millisecond, kit.Event{From: scheduler, Corr: "c1", Msg: &messages.Preempt{}})
//	s.Done() // compares with testdata/preempt.txt
//
// Run the tests with -update to write the files anew; then read the difference.
//
// A script also checks that messages are frozen: Done fails when a message changed after it was sent or received.
package kittest

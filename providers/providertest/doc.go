// Package providertest has what tests and benchmarks of model sources need: a
// scripted vendor over real HTTP, and the suite that every adapter of the
// OpenAI family must pass against recorded streams.
//
// A Script is a list of steps; for each request the first step that fits
// answers it. Nothing in it sleeps unless told so: a step can hold at a named
// gate until the gate is opened, and everything that happens at the server is
// an event that a test can await. The command fakevendor serves the same
// scripts to other processes, with the gates and events under /_control/.
package providertest

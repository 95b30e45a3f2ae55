// Package providertest has what tests and benchmarks of model sources need: a
// scripted vendor over real HTTP, fixtures for every adapter that is built in, and
// the suites that run them.
//
// A Script is a list of steps; for each request the first step that fits
// answers it. Nothing in it sleeps unless told so: a step can hold at a named
// gate until the gate is opened, and everything that happens at the server is
// an event that a test can await. The command fakevendor serves the same
// scripts to other processes, with the gates and events under /_control/.
//
// The fixtures in testdata are what adapters are held to; Catalogue lists them,
// and docs/providers.md is made of it.
package providertest

//go:generate go run ./docgen ../../docs/providers.md

// Package self starts the node's own program anew as a process that may do little:
// one that speaks over its standard input and output, and has no other way to
// anything. Whoever runs in it calls Confine first.
package self

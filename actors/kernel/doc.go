// Package kernel makes a node of the actor packages: it is the only package that imports all of them.
//
// The table (table.go) has one row for each kind of actor: where it stands, which facilities it requires and provides,
// how it is restarted and how long its mailbox may grow. Plan derives the layers from it and finds the three structural
// errors: a facility that nobody provides, one that two rows provide, and a circle.
//
// Boot first does, in this order, what later parts rely on: platform check, lock of the data folder, log, store, secrets,
// configuration snapshot. Then it starts the actors layer by layer; before each layer the facilities really produced are
// compared with those that the layer needs, and a layer that is not ready in time is named with who is late. Close ends
// the layers in reverse, awaiting each, then closes what the boot had opened.
//
// When an actor was restarted, the rows that require its facility are told by kit.Restarted.
package kernel

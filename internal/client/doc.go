// Package client speaks to a node over its HTTP interface: through the local socket of a data folder, or over TCP with a
// token. It is what waiter, homed pair and the end-to-end tests use; the names of messages/api that its callers need are
// aliases here, so that a command needs this package alone.
//
// Errors: what the node refuses comes as *Error with the node's code, message and hint. A node that can not be reached
// gives an error that wraps ErrUnreachable; no node on the data folder one that wraps ErrNotRunning.
package client

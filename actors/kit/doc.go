// Package kit is the shell that all actors share: it runs pure machines on the actor runtime, performs their common
// effects, wraps the runtime's mailbox with a control lane, admission and statistics, restarts what fails by its row,
// and shows the live tree.
package kit

// Package disk is a model of the store and of the ledger's engine over it, fast enough to be made anew for each of many
// thousand runs, with the ways in which a disk fails.
//
// It answers as memory/ledger does; a test drives both with the same random operations and compares every answer. Writes are
// kept as a write-ahead file would keep them: what was synced stays, of the rest a power cut leaves any number of whole
// transactions from the front (a torn one is cut by its checksum, so it counts as lost). A process that is killed loses
// nothing, for what was written is with the system.
package disk

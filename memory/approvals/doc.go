// Package approvals is the engine that keeps questions to people about tool calls, and the named tokens with which others
// than the owner ask from outside.
//
// # Keys
//
//	y <approval id>        messages.ApprovalRecord
//	n <SHA-256 of a token> messages.TokenRecord
//
// Ids hold no zero byte. A token itself is never kept: who reads the store cannot ask with what it finds.
//
// # Writing
//
// The ledger actor is the only writer of the store. The encoders of this package make writes for its transactions; each
// may be given twice. Who writes approvals (guard) and tokens (admin) keeps the order of its own writes.
//
// # Reading
//
// Engine reads snapshots and may be used from any goroutine.
package approvals

// Package ledger is the one writer of the store.
//
// Who it is: one actor at ledger. It gathers what comes while the disk is busy and has the engine execute all of it with
// one sync.
//
// Messages in:
//
//	LedgerExecute -> LedgerDone, after the sync where one was wanted; a silent one is answered only when it failed
//	LedgerPending -> PendingTasks or Error
//	TaskQuery     -> TaskStatus or Error
//	LedgerStats   -> LedgerFigures
//
// All of them take effect in the order in which they came, so that a read sees every write that its sender sent before.
//
// Retention and upkeep: every minute, when the engine is idle (and after a while though it is not), it removes some of what is
// too old in one small pass, again while there is more; then upkeep measures and compacts beside the work.
//
// On a full disk an input is refused at once (disk_low); all other writes, and reads of pending tasks, wait in order and
// are tried every second, or when another write has found room, until all of it is written.
//
// Phases: idle -> busy (one worker in the engine) -> idle. At its end all that waits is handed to the engine, unanswered. A
// failure loses what was not yet handed over, silent steps of turns among it, and the answers under way: it ends the
// process (see the kernel's table), whose next start goes on from what is on disk. Bounds: the mailbox, and maxGroup requests
// for one visit of the engine.
package ledger

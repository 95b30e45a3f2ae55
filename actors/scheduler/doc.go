// Package scheduler decides which task of an agent runs.
//
// Who it is: one per agent, at <agent>/scheduler. It supervises the turns of its agent: it has them spawned by the agent,
// and only it suspends, resumes or ends them.
//
// Messages in:
//
//	Offer          -> InputOutcome: a durable input; started, steered, queued (position), preempting or duplicate
//	StopAll        -> StopResult: ends what runs, what is suspended and what waits; later inputs are not touched
//	SchedulerQuery -> SchedulerState
//	PendingTasks   from ledger, at the start and when a turn was lost: what has not ended, with its journal
//	TurnSpawned    from the agent, for SpawnTurn
//	TurnLost       from the agent: a turn failed; it is started again from its journal, at the third loss it ends failed;
//	               without a failure a person has stopped the turn, and its task ends as stopped
//	Suspended, Resumed, Finished, SteerTaken from turns; a wrong generation is ignored
//	ConfigChanged  from config: cooldown, duplicate window, deadline and rounds of the turns that start from now on
//	LedgerDone     for the ends it writes; a failed write is tried again until it succeeds
//
// Rules. A waiting task has its level; a running or suspended one its effective level,
// max(level, min(cap, level + min(preempted, 2))), cap 1 for work that no person waits for and 3 for the rest. A task
// preempts only on a strictly greater effective level; an explicit interrupt of the same principal is compared with the
// bare level. For two seconds after a preemption a task is not preempted again, except by level 4 and by a person's task
// over one that no person waits for; when the time is over the question is asked again. The preemptor has the immediate
// slot; a greater one takes the slot and the displaced one goes back to the head of its queue. Suspended tasks form a
// stack, last in first out. Next to run: the slot; then the top of the stack against the head of the highest interrupt
// queue, the stack winning ties; then level 0 in order.
//
// Phases of a task: waiting -> spawning -> running -> (suspending -> suspended -> running)* -> ending -> gone; a lost turn
// goes back to spawning. Each task gets exactly one end, written by ledger before it is published.
//
// A restart loses nothing: all tasks are read back from ledger, and the agent ends turns of the former incarnation before
// it spawns new ones of the same name. Bounds: the queue is bounded by ledger's admission; the stack by the levels.
package scheduler

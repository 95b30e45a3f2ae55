// Package scheduler decides which task of an agent runs.
//
// Who it is: one per agent, at <agent>/scheduler. It supervises the turns of its agent: it has them spawned by the agent,
// and only it suspends, resumes or ends them.
//
// Messages in:
//
//	Offer          -> InputOutcome: a durable input; started, steered, queued (position), preempting or duplicate
//	StopAll        -> StopResult: ends what runs, is suspended, parked and waits; later inputs are not touched
//	EditQueue      -> TaskView or Error: promotes, cancels or changes one waiting task
//	SchedulerQuery -> SchedulerState
//	PendingTasks   from ledger, at the start and when a turn is gone: what has not ended, with its journal
//	TurnSpawned    from the agent, for SpawnTurn
//	TurnLost       from the agent: a turn failed; it is started again from its journal; without a failure a person has
//	               stopped the turn, and its task ends as stopped
//	Suspended, Resumed, Parked, Finished, SteerTaken from turns; a wrong generation is ignored
//	ApprovalsDecided from guard: a parked task may go on
//	ApprovalList   from guard, asked when a task is parked or was found parked: without a pending one it goes on
//	StopResult     from the agent: what the residents have stopped
//	ConfigChanged  from config: cooldown, duplicate window, deadline and rounds of the turns that start from now on
//	LedgerDone     for the ends, stops and changes it writes; a failed end or stop is tried again until it succeeds
//	Drain          -> Ok: nothing new starts
//
// Rules. A waiting task has its level; a running or suspended one its effective level,
// max(level, min(cap, level + min(preempted, 2))), cap 1 for work that no person waits for and 3 for the rest. A task
// preempts only on a strictly greater effective level; an explicit interrupt of the same principal is compared with the
// bare level. For two seconds after a preemption a task is not preempted again, except by level 4 and by a person's task
// over one that no person waits for; when the time is over the question is asked again, and also whenever another one is
// at the head of the queues. The preemptor has the immediate slot; a greater one takes the slot and the displaced one goes
// back to the head of its queue. Suspended tasks form a stack, last in first out. Next to run: the slot; then the top of
// the stack against the head of the highest interrupt queue, the stack winning ties; then level 0 in order. A queue is in
// the order in which its inputs were accepted, but for what was displaced or promoted.
//
// Phases of a task: waiting -> spawning -> running -> (suspending -> suspended -> running)* -> ending -> gone; a lost turn
// goes back to spawning; running -> parked -> waiting for one that waits for approvals or for a budget. Each task gets exactly one end,
// written by ledger before it is published.
//
// Steering. An input of mode steer joins the running turn of the same principal in the same conversation (where the
// channel says so, of anybody in it). The turn says whether it takes it: what it does not take, or takes and does not
// answer, becomes a task of its own, unless a stop has met the turn.
//
// Stop. All that waits or is parked ends with the moment of the stop in one transaction of ledger; turns are cancelled,
// and one that does not end is ended. The moment also counts for inputs that were made just before it and come after it, or
// that channels marked as on their way, and after a power cut for turns whose end did not get to disk; a turn that has
// committed its answer sends it. The answer waits for the disk and the residents, at most stopLimit.
//
// Deadline. An input that has one and still waits when it passes ends as expired; once its turn has begun it has no more
// meaning.
//
// Crash loop. Ledger counts the starts of a turn since it last had a result; after three in vain the task ends as failed
// with the reason crash_loop and one agent_error event of that code.
//
// Changes of waiting tasks. Text and level are written before the task can be noted as running, so that they survive a
// power cut; a promotion does not. Only the owner, or who said it, changes a task.
//
// A restart loses nothing: all tasks are read back from ledger, and the agent ends turns of the former incarnation before
// it spawns new ones of the same name. An input that is in the journal of a turn as steered joins it, though the note at
// the input may be missing. Bounds: the queue is bounded by ledger's admission; the stack by the levels; what is
// remembered of ended tasks and of stops by constants.
package scheduler

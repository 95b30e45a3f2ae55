// Package turn runs one task: it asks memory, the model and the tools in turn until there is an answer, commits it and
// has it sent.
//
// Who it is: kind "turn", at <agent>/turn/<task>, spawned by its agent with a StartTurn and supervised by the scheduler
// that the StartTurn names. It ends itself after Finished or Parked.
//
// Messages in:
//
//	Preempt        -> Suspended, or Finished when it ends first; control lane
//	Resume         -> Resumed; control lane
//	Cancel         -> Finished; control lane
//	Steer          -> SteerTaken
//	StageDone      answers RunStage of stages/<stage>
//	ContextEvents, RecallResult   answer ContextWindow and Recall
//	ToolList, ToolResult          answer ListTools and CallTool
//	CallVerdicts                  answers CheckCalls of guard
//	RequestSent, Delta, CompletionDone   of the completion it asked for; others are late and dropped
//	LedgerDone     for what it writes
//	OutputSent     answers SendOutput
//	Error, Busy    in place of any answer; a busy receiver is asked again until the step's time is over
//
// A generation that is not its own is ignored. Finished or Parked is sent exactly once.
//
// Phases:
//
//	admitted -> on_input -> recalling -> pre_action -> prompting -> completing -> post_action -> tools -> prompting ...
//	post_action -> before_output -> committing -> sending -> after_output -> ended
//
// A stage that sets a response leads to committing; any phase can lead to ended. After a resume the prefix of the prompt
// is stale, so the next request is made by way of recalling. Suspended is orthogonal: it remembers the phase to go on with.
// Stages of Settings.Idle are passed without being asked; their event is published all the same.
//
// Tools. The calls of a round are a batch: all at the same time when each is declared parallel-safe and no two send to one
// channel, else all of them in order. Each group goes through before_toolcall, guard, the journal, its run and
// after_toolcall. Results go back in the order of the calls, with their own media. A call of a tool that was not there when
// guard was asked does not run, though it may be there by now.
//
// Guard is asked about each group before anything of it starts, for everybody whose words the turn works on (the
// principals of the input and of what joined, those in whose name it was set up, and who asked for a resident) and with
// the worst taint of what was read: input, steered inputs, the window, recalled items, results. What is not allowed in so
// many words does not run; a guard that does not answer allows nothing. A call that a person must be asked about waits
// until the others of its group are done. Then the turn is parked: it journals that, synced, sends Parked, and ends. The
// turn that is made from the journal when people have decided asks guard again: what was allowed runs, once; what was denied
// is told to the model with the person's word, and the model keeps its tools. An input that joins while a call waits has
// the call skipped and its question withdrawn; a turn that ends releases what it asked. The answer of a turn that has read
// foreign text is kept as foreign.
//
// A turn that no person waits for is parked, too, when a completion is refused because the budget for models is spent; it
// asks again at the time that its Parked names.
//
// Preemption. Recalling, prompting and completing are cut at once: the request is cancelled, what came of it is
// discarded, and a resume makes one new attempt of the same round. In tools the turn is suspended at once; running calls
// finish and keep their result, are cancelled, or go on under a handle, as their definition says. A cancelled call is made
// again on resume if running it twice does no harm, or if its owner is certain that it had not begun to take effect; else
// its outcome is unknown. For one that goes on by itself tools answers at once with its handle, which is then its result;
// without a preemption it runs to its end. What waits or has not started is checked by guard anew on resume. A stage is
// waited for. The commit is never cut: once it has begun the turn suspends after sending, or finishes first.
//
// Cancel ends the turn from any phase before committing, and its running calls, whatever their definition says, but for
// those that a preemption has let go on by themselves. From committing on the answer exists: the turn finishes what it has
// committed, without the last stage, and reports it as answered.
//
// Steer. A steered input is journaled and taken until before_output begins or the last request is under way. It joins
// before the next request; calls of the batch that have not started by then are skipped and the model is told so. When
// an answer is final and the model has not seen a steered input, another round is made with it; if no round is left, it
// goes back as unanswered. The texts of such answers are joined.
//
// Prompt. It is kept to Settings.PromptTokens, by estimate, and measured before every request. Of what rules, tools, input
// and the turn's tail leave, recalled memory gets a third at most and the conversation the rest. When the tail grows, the
// oldest events go first, then recalled memory, then all but the heads of the oldest results of the turn; no call is ever
// parted from its result. What is left out stays in the store, and the rules tell the model so. A prompt above
// Settings.Window is not sent. When the vendor cannot read a prompt, a shorter one is tried, twice in a turn at most; then
// the turn fails with context_overflow and the numbers.
//
// Journal. Each step is handed to the ledger before the next begins. The start of calls of class once or idempotent,
// parking and the commit are awaited with a sync; the mark of a sent output too, unless the end of the task follows at
// once, whose sync is that of both. The rest relies on the order of the ledger's mailbox. A second response of a round is
// what post_action made of it. A steered entry's round is the first whose request holds it. Responses carry the taint of
// what had been read. Journals of older nodes say by a committed entry of attempt 2 that the output was sent.
//
// A restart of the process loses the step under way and nothing else: a new turn is made from StartTurn.task.journal. A
// request without a response is made once more; a call that was started and has no result runs again with the same call
// id if it is pure or idempotent, else the model is told that its outcome is unknown; an answer committed and not known
// as sent is sent again, marked as maybe repeated. The stage of the step under way runs again. A restart in place has
// no fresh journal and ends the actor at once, so that the scheduler starts the task anew.
//
// Rounds. At most StartTurn.max_rounds requests offer tools; after that, and after a round whose every call was denied
// without a person's word, one last request without tools is made so that there is an answer, and the turn ends with
// reason tool_cap or tools_denied.
//
// Times. The turn has a deadline, which its summary shows; one before 1970 is refused (bad_deadline). Each question to an
// actor of this node has a limit of its own; a call has the time of its definition, a day at most, and is given up 10 s
// after it; a completion is given up when nothing comes for Settings.Silence. A deadline that passes while the turn is
// suspended ends it on resume; a parked turn has none until it goes on.
//
// Ids are derived from the task: request "<task>/<round>/<attempt>", call "<task>/<round>/c<index>", output "<task>/o1",
// events "<task>/in", "<task>/in/<input>" for steered ones, "<task>/out" (in this order when sorted), blocks
// "<event>/b<n>".
//
// Mailbox: bounded by the kind's limits; what arrives is bounded by what it asked for and by the deltas of one stream.
package turn

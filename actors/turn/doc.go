// Package turn runs one task: it asks memory, the model and the tools in turn until there is an answer, commits it and
// has it sent.
//
// Who it is: kind "turn", at <agent>/turn/<task>, spawned by its agent with a StartTurn and supervised by the scheduler
// that the StartTurn names. It ends itself after Finished.
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
//	RequestSent, Delta, CompletionDone   of the completion it asked for; others are late and dropped
//	LedgerDone     for what it writes
//	OutputSent     answers SendOutput
//	Error, Busy    in place of any answer; a busy receiver is asked again until the step's time is over
//
// A generation that is not its own is ignored. Finished is sent exactly once.
//
// Phases:
//
//	admitted -> on_input -> recalling -> pre_action -> prompting -> completing -> post_action -> tools -> prompting ...
//	post_action -> before_output -> committing -> sending -> after_output -> ended
//
// A stage that sets a response leads to committing; any phase can lead to ended. After a resume the prefix of the prompt
// is stale, so the next request is made by way of recalling. Suspended is orthogonal: it remembers the phase to go on with.
//
// Preemption. Recalling, prompting and completing are cut at once: the request is cancelled, what came of it is
// discarded, and a resume makes one new attempt of the same round. In tools the turn is suspended at once; running calls
// are cancelled and made again, or finish and keep their result, as their definition says. A stage is waited for. The
// commit is never cut: once it has begun the turn suspends after sending, or finishes first.
//
// Cancel ends the turn from any phase before committing. From committing on the answer exists: the turn finishes what
// it has committed, without the last stage, and reports it as answered.
//
// Steer. A steered input is journaled and taken until before_output begins or the last request is under way. It joins
// before the next request; calls of the batch that have not started by then are skipped and the model is told so. When
// an answer is final and the model has not seen a steered input, another round is made with it; if no round is left, it
// goes back as unanswered. The texts of such answers are joined.
//
// Journal. Each step is handed to the ledger before the next begins. The start of calls of class once or idempotent, the
// commit and the mark of a sent output are awaited with a sync; the rest relies on the order of the ledger's mailbox.
// Two entries have a second meaning, because their kinds have no field for it: a second response of a round is what
// post_action made of it, and a committed entry of attempt 2 says that the output was sent. A steered entry's round is
// the first whose request holds it.
//
// A restart of the process loses the step under way and nothing else: a new turn is made from StartTurn.task.journal. A
// request without a response is made once more; a call that was started and has no result runs again with the same call
// id if it is pure or idempotent, else the model is told that its outcome is unknown; an answer committed and not known
// as sent is sent again, marked as maybe repeated. The stage of the step under way runs again. A restart in place has
// no fresh journal and ends the actor at once, so that the scheduler starts the task anew.
//
// Rounds. At most StartTurn.max_rounds requests offer tools; after that, and after a round whose every call was denied,
// one last request without tools is made so that there is an answer, and the turn ends with reason tool_cap or
// tools_denied.
//
// Times. The turn has a deadline; each question to an actor of this node has a limit of its own; a completion is given
// up when nothing comes for Settings.Silence. A deadline that passes while the turn is suspended ends it on resume.
//
// Ids are derived from the task: request "<task>/<round>/<attempt>", call "<task>/<round>/c<index>", output "<task>/o1",
// events "<task>/in", "<task>/in/<input>" for steered ones, "<task>/out" (in this order when sorted), blocks
// "<event>/b<n>".
//
// Mailbox: bounded by the kind's limits; what arrives is bounded by what it asked for and by the deltas of one stream.
package turn

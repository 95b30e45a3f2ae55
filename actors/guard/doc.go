// Package guard says which tool calls may run, and keeps the questions to people about those that may not run without
// their word.
//
// Who it is: one actor of a node, kind "guard", path "guard". It provides the facility "guard" and requires config and
// ledger.
//
// Messages in:
//
//	CheckCalls       -> CallVerdicts  one verdict for each call, in order. A call that is to be asked about is answered
//	                                  only when its approval is on disk. Asking again about the same call (the same call
//	                                  id, tool, arguments and circumstances) gives the same answer or, once a person has
//	                                  decided, the decision. A call that was changed is another question; what waited for
//	                                  the old one is released.
//	ListApprovals    -> ApprovalList  oldest first; Error when the store does not answer
//	DecideApproval   -> Approval, or Error unknown_approval, approval_decided, approval_changed, not_allowed
//	ReleaseApprovals -> Ok            what waits for the tasks is released; later checks for them are denied
//	AddToken         -> NamedToken    or Error token_exists, bad_token, too_many_tokens; a named token, by its hash
//	RemoveToken      -> NamedToken    or Error unknown_token; admin reads tokens from the store at each request, so that it
//	                                  works no more when this is answered
//	ListTokens       -> TokenList
//	ConfigChanged                     the policy; it is in force from the next check on
//	TaskStatus, Error                 of ledger, asked at the start: what waits for a task that has ended is released, and
//	                                  a parked task with nothing left to wait for is told
//	LedgerDone, Busy, Fault, Restarted  of ledger: changes are written in order, one group at a time; a group that ledger
//	                                  did not take is handed over again
//	Drain            -> Ok
//
// Messages out, besides answers: LedgerExecute and TaskQuery to ledger; ApprovalsDecided to agents/<agent>/scheduler when
// the last approval that a task waited for was decided or has expired, and once more 2 s later, since a decision can come
// before the task is parked (a scheduler that parks a task may ask ListApprovals for it as well); an event of type approval for each that was asked
// for, decided, has expired or was released, with the whole call.
//
// # Policy
//
// The verdict is the strictest of: the rule of each principal's kind for the tool's class (core.guard.<kind>.<class>), that
// of residents when the agent is one, and that for foreign text when the turn's taint is foreign or not said. A rule for
// the tool (core.guard.tool.<name>) makes it stricter, or lets run what would be asked about; a deny always holds. Nobody
// as principal is a stranger; a class that is not said is write; an unknown tool, a call with unusable arguments and a rule
// that is not known are denied.
//
// # Approvals
//
// pending -> allowed, denied, expired, released; released (changed, policy) -> pending when the very same call is asked
// about again. An approval is bound to the SHA-256 over tool, arguments, agent, principals, channel, conversation and
// task, and to the call id, which a turn runs once. The owner decides, and the people of core.guard.deciders; neither
// agents, programs nor nodes do.
//
// Bounds: core.guard.approval_limit pending ones for each agent, maxCall bytes for each call, keepDecided decided ones
// (the oldest go first) for core.guard.approval_retention; above the first two a call is denied, with the reason. maxTokens
// tokens. maxLater requests that wait for the disk, above which they are answered with Busy. Mailbox: the kind's limits.
//
// A restart loses checks and decisions that were not answered: askers ask again. What was answered is on disk.
package guard

// Package timers makes tasks at given times.
//
// Who it is: one actor at timers. It keeps the timers of all agents; what a slot is and how timers are stored is in
// memory/timers.
//
// Messages in:
//
//	PutTimer    -> Timer or Error, after it is on disk
//	DeleteTimer -> Timer as it was, or Error
//	PauseTimer  -> Timer or Error; slots that pass while a timer is held are skipped
//	RunTimer    -> Timer or Error, after its task is on disk
//	ListTimers  -> TimerList
//	CallTool    -> ToolResult: timer_set, timer_list, timer_cancel, timer_pause
//	ConfigChanged from config: limits, and the zone of timers that name none
//	TaskStatus, SubmitResult, LedgerDone, ChannelList: answers to what it asked
//
// # A slot
//
//	due -> (overlap: is the task of an earlier slot still there?) -> the intent is written -> SubmitInput to channels ->
//	the outcome, with the next slot, is written and synced -> event
//
// Each slot runs once or not at all, whenever the process ends:
//
//   - The input bears the key "timer:<id>:<slot in Unix seconds>", so that handing it over again makes no second task.
//   - The intent names the task before the input is handed over, and is written ahead of it. A start that finds one asks
//     ledger whether that task exists: if it does, the slot ran; if not, the policy for missed slots decides.
//   - The next slot follows from the slot that was taken and not from the clock, and is always after it. A clock that
//     steps back makes no slot due again.
//
// Slots go by the wall clock, which is looked at when the nearest slot should come, and once a minute in any case: after a
// sleep or a step of the clock. Of several slots that have passed at most the latest runs, once: when it is not older than
// the grace, or when the timer's policy for missed slots is to run once. All the others are counted as skipped. A slot
// that cannot be handed over (queue full, disk full, channel not there) is tried again for ten minutes and then refused.
//
// A task is made in the name of the timer, of kind system; who set the timer stands in on_behalf, and the taint of the
// turn that set it goes with its text: it has no more rights than they. A timer without a channel speaks on the channel
// "timers", which this actor registers and which goes no further than the event stream.
//
// A restart loses nothing: timers are read from the store, requests under way are tried again by their askers. Bounds:
// the number of timers and their texts, 64 slots under way at a time.
package timers

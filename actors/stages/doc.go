// Package stages runs the handlers of the seven hook points of a turn.
//
// Who it is: one actor for each stage, kind "stage", at stages/<stage>. Handlers are written in Go and named when the
// node is wired; a stage without handlers answers at once.
//
// Messages in:
//
//	RunStage -> StageDone   a wrong stage is answered with Error `wrong_stage`
//
// Several runs may be under way; each is a worker, and runs of one stage are independent of each other.
//
// Rules of a run. Observers start together, each on a copy of its own, and run beside the modifiers. Modifiers run one
// after the other in the order of registration, each on a copy of what the ones before it left. Of that copy the fields
// that the table below permits are taken, field by field; anything else that was changed is dropped and reported. A
// response set by a modifier ends the run: later modifiers are not asked. StageDone comes when observers and modifiers
// are done.
//
//	on_input         input_text, response
//	pre_action       messages, response
//	post_action      model_text, calls, response
//	before_toolcall  calls (arguments_json and denied of the given calls), response
//	after_toolcall   results (all but the ids of the given results), response
//	before_output    final_text, response
//	after_output     nothing
//
// In all but after_output a modifier may also leave a note under its own name in extra.
//
// A handler that panics, is late, returns an error or writes what it may not is a StageFault; the other handlers take
// effect. What a late or failed handler wrote is dropped. A guard of before_toolcall that fails denies the calls: what
// could not be checked does not run.
//
// A handler is Go code and cannot be killed: one that does not return after its deadline keeps its goroutine and its own
// copy, and nothing else waits for it but the end of the actor. A handler with too many such runs is not called again
// until some return; each of these calls is a timeout.
//
// A restart loses the runs under way; the turn that waits for one gives up after its own time. Mailbox: bounded by the
// kind's limits; a request above them is answered with Busy, and the turn asks again.
package stages

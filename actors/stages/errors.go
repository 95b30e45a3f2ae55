package stages

import "homeagent/messages"

// Reasons of a StageFault.
const (
	// ReasonPanic is a handler that panicked.
	ReasonPanic = "panic"
	// ReasonTimeout is a handler that was not done by its deadline.
	ReasonTimeout = "timeout"
	// ReasonForbidden is a handler that wrote what it may not; what it may write took effect.
	ReasonForbidden = "forbidden_write"
	// ReasonError is a handler that returned an error.
	ReasonError = "error"
)

var errWrongStage = &messages.Error{
	Code: "wrong_stage", Message: "This actor runs the handlers of another stage.",
	Hint: "Ask the actor that is named after the stage.",
}

package turn

import (
	"fmt"
	"strings"
	"time"

	"homeagent/messages"
)

var (
	errBusy     = &messages.Error{Code: "busy", Message: "A part of the node was too busy to answer.", Hint: "Try again in a moment."}
	errDeadline = &messages.Error{
		Code: "deadline", Message: "The time for this task is over.",
		Hint: "Ask for less at once, or raise the deadline of turns.",
	}
	errBadDeadline = &messages.Error{
		Code: "bad_deadline", Message: "The deadline of this turn is no time.",
		Hint: "A deadline is a time after 1970, or none.",
	}
	errEmpty = &messages.Error{
		Code: "empty_answer", Message: "The model ended without saying anything.",
		Hint: "Ask again; if it stays so, try another model.",
	}
	errRounds = &messages.Error{
		Code: "tool_cap", Message: "The model gave no answer within the rounds of this turn.",
		Hint: "Ask for less at once, or raise the number of rounds.",
	}
	errFilter = &messages.Error{
		Code: "content_blocked", Message: "The vendor filtered the answer.",
		Hint: "Say it in other words, or use another model.",
	}
	errContract = &messages.Error{
		Code: "bad_completion", Message: "The model's answer came without its end.",
		Hint: "The log of the node has the details.",
	}
)

func errLate(what string, limit time.Duration) *messages.Error {
	return &messages.Error{
		Code: "timeout", Message: fmt.Sprintf("No answer from %s within %v.", what, limit),
		Hint: "See in the tree of actors what it is doing.", Details: map[string]string{"step": what},
	}
}

func errSilent(limit time.Duration) *messages.Error {
	return &messages.Error{
		Code: "timeout", Message: fmt.Sprintf("The model sent nothing for %v.", limit),
		Hint: "Try again, or use another model.",
	}
}

// kindCode is the machine code of a model failure: "stream_truncated".
func kindCode(k messages.ErrorKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "ERROR_KIND_"))
}

// failureError is what a person is told of a model failure. What the model had said is a detail, never an answer.
func failureError(r *messages.CompletionResult) *messages.Error {
	f := r.GetFailure()
	if f == nil {
		return errContract
	}
	e := &messages.Error{
		Code: kindCode(f.GetKind()), Message: f.GetError().GetMessage(), Hint: f.GetError().GetHint(),
		Details: map[string]string{}, RetryAfterMs: f.GetError().GetRetryAfterMs(),
	}
	if f.GetKind() == messages.ErrorKind_ERROR_KIND_UNSPECIFIED {
		e.Code = f.GetError().GetCode()
	}
	if e.Code == "" {
		e.Code = "completion_failed"
	}
	if e.Message == "" {
		e.Message = "The model call failed."
	}
	for k, v := range f.GetError().GetDetails() {
		e.Details[k] = v
	}
	if r.GetText() != "" {
		e.Details["partial"] = r.GetText()
	}
	return e
}

// failedCompletion is the end of a completion that providers did not take.
func failedCompletion(id string, err *messages.Error) *messages.CompletionDone {
	return &messages.CompletionDone{CallId: id, Result: &messages.CompletionResult{
		Finish: messages.Finish_FINISH_ERROR, Failure: &messages.CompletionFailure{Error: err},
	}}
}

// failedCall is the result of a call that did not run, or whose end nobody knows.
func failedCall(inv *messages.ToolInvocation, reason string, err *messages.Error) *messages.ToolResult {
	return &messages.ToolResult{
		CallId: inv.GetCallId(), Name: inv.GetName(),
		Error: &messages.ToolError{Reason: reason, Detail: err.GetMessage(), Hint: err.GetHint()},
		Taint: messages.Taint_TAINT_TRUSTED,
	}
}

// word is the short name of a phase: "before_output".
func word(p messages.Phase) string {
	return strings.ToLower(strings.TrimPrefix(p.String(), "PHASE_"))
}

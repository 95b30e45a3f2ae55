package kit

import (
	"context"
	"errors"
	"fmt"

	"homeagent/messages"
)

// Codes of the errors that kit makes itself.
const (
	// CodeGone: no actor has this path, it has ended, or the address is of an earlier boot.
	CodeGone = "actor_gone"
	// CodeBusy: the receiver's mailbox is over its limit; the message was not taken.
	CodeBusy = "busy"
	// CodeUnreachable: the address is of another node to which there is no way.
	CodeUnreachable = "node_unreachable"
	// CodeNameTaken: an actor of that path runs already.
	CodeNameTaken = "name_taken"
	// CodeBadName: the name is not a path of non-empty segments.
	CodeBadName = "bad_name"
	// CodeUnknownKind: no actor kind of that name is registered.
	CodeUnknownKind = "unknown_kind"
	// CodeSpawnFailed: the kind could not be made from its parameters.
	CodeSpawnFailed = "spawn_failed"
	// CodeStopping: the actor, or the node, is stopping and takes nothing new.
	CodeStopping = "stopping"
	// CodeSystemActor: people cannot stop, restart or pause an actor of the kernel's own table.
	CodeSystemActor = "system_actor"
	// CodeTimeout: no answer came in time; what was asked may still happen.
	CodeTimeout = "timeout"
	// CodeCancelled: the asker gave up.
	CodeCancelled = "cancelled"
	// CodeStopTimeout: the actor did not end within its stop timeout.
	CodeStopTimeout = "stop_timeout"
	// CodeBroken: the actor could not show its state.
	CodeBroken = "not_shown"
)

// Refused is an error of the actor world as a Go error: its machine code, safe message and hint are in Err. It is what
// Ask, Tell and the operations of people return; errors.As finds it.
type Refused struct {
	// Err is never nil.
	Err *messages.Error
}

// Error returns the safe message and the hint.
func (r *Refused) Error() string {
	if h := r.Err.GetHint(); h != "" {
		return r.Err.GetMessage() + " (" + h + ")"
	}
	return r.Err.GetMessage()
}

// Is reports whether target is a Refused of the same code.
func (r *Refused) Is(target error) bool {
	var t *Refused
	return errors.As(target, &t) && t.Err.GetCode() == r.Err.GetCode()
}

// Code is the machine code of an error that came from this package, or "" for any other.
func Code(err error) string {
	var r *Refused
	if errors.As(err, &r) {
		return r.Err.GetCode()
	}
	return ""
}

// AsError makes the message that carries err over to another actor or to a person. A Refused keeps its code; anything
// else gets the given code and its own text, so use it only for errors whose text is safe. nil stays nil.
func AsError(code string, err error) *messages.Error {
	var r *Refused
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r):
		return r.Err
	case errors.Is(err, context.DeadlineExceeded):
		return &messages.Error{Code: CodeTimeout, Message: err.Error()}
	case errors.Is(err, context.Canceled):
		return &messages.Error{Code: CodeCancelled, Message: err.Error()}
	default:
		return &messages.Error{Code: code, Message: err.Error()}
	}
}

// refuse is the error as a Go value; nil stays nil.
func refuse(e *messages.Error) error {
	if e == nil {
		return nil
	}
	return &Refused{Err: e}
}

func errGone(path string) *messages.Error {
	return &messages.Error{
		Code: CodeGone, Message: fmt.Sprintf("no actor %q is running", path),
		Hint: "the tree shows what runs", Details: map[string]string{"path": path},
	}
}

func errBusy(path string, depth int) *messages.Error {
	return &messages.Error{
		Code: CodeBusy, Message: fmt.Sprintf("%q has %d messages waiting and takes no more", path, depth),
		Hint: "try again later", Details: map[string]string{"path": path}, RetryAfterMs: busyRetryMs,
	}
}

// busyRetryMs is what a refused sender is told to wait: long enough for thousands of messages to be handled.
const busyRetryMs = 250

func errUnreachable(node string) *messages.Error {
	return &messages.Error{
		Code: CodeUnreachable, Message: fmt.Sprintf("there is no way to node %q", node),
		Details: map[string]string{"node": node},
	}
}

func errStopping(path string) *messages.Error {
	return &messages.Error{
		Code: CodeStopping, Message: fmt.Sprintf("%q is stopping", path), Details: map[string]string{"path": path},
	}
}

package guard

import (
	"fmt"

	"homeagent/messages"
)

// Codes of refused decisions.
const (
	// CodeUnknown is an approval that there is not, or not any more.
	CodeUnknown = "unknown_approval"
	// CodeDecided is one that does not wait any more.
	CodeDecided = "approval_decided"
	// CodeChanged is a call that is not the one that the person was shown.
	CodeChanged = "approval_changed"
	// CodeNotAllowed is somebody who may not decide.
	CodeNotAllowed = "not_allowed"
	// CodeBadNote is a note that is too long.
	CodeBadNote = "bad_note"
)

// Codes of refused changes of tokens.
const (
	// CodeTokenExists is a name that another token has.
	CodeTokenExists = "token_exists"
	// CodeBadToken is a token that cannot be kept.
	CodeBadToken = "bad_token"
	// CodeTooManyTokens is one too many.
	CodeTooManyTokens = "too_many_tokens"
	// CodeUnknownToken is a name that no token has.
	CodeUnknownToken = "unknown_token"
)

func errToken(code, name, message, hint string) *messages.Error {
	return &messages.Error{Code: code, Message: message, Hint: hint, Details: map[string]string{"name": name}}
}

const listHint = "`waiter approvals` shows those that wait."

func errUnknown(id string) *messages.Error {
	return &messages.Error{
		Code: CodeUnknown, Message: fmt.Sprintf("There is no approval %q.", id), Hint: listHint,
		Details: map[string]string{"approval": id},
	}
}

func errDecided(id string, s messages.ApprovalState) *messages.Error {
	text := map[messages.ApprovalState]string{
		messages.ApprovalState_APPROVAL_STATE_ALLOWED:  "was allowed already",
		messages.ApprovalState_APPROVAL_STATE_DENIED:   "was denied already",
		messages.ApprovalState_APPROVAL_STATE_EXPIRED:  "has expired",
		messages.ApprovalState_APPROVAL_STATE_RELEASED: "is not needed any more: its task has ended",
	}[s]
	return &messages.Error{
		Code: CodeDecided, Message: fmt.Sprintf("The approval %s %s.", id, text), Hint: listHint,
		Details: map[string]string{"approval": id, "state": word(s)},
	}
}

func errChanged(id string) *messages.Error {
	return &messages.Error{
		Code: CodeChanged, Message: "The call is not the one that was shown; nothing was decided.",
		Hint: listHint + " Look at the call again.", Details: map[string]string{"approval": id},
	}
}

func errNotAllowed(p *messages.Principal) *messages.Error {
	return &messages.Error{
		Code: CodeNotAllowed, Message: "Only the owner decides about calls, and the people named in core.guard.deciders.",
		Hint: "Ask the owner.", Details: map[string]string{"principal": p.GetId()},
	}
}

func errNote() *messages.Error {
	return &messages.Error{
		Code: CodeBadNote, Message: fmt.Sprintf("The note is longer than %d bytes.", maxNote), Hint: "Say it shorter.",
	}
}

func errRead(code string) *messages.Error {
	return &messages.Error{Code: code, Message: "The approvals could not be read.", Hint: "See the log; `homed doctor` checks the store."}
}

package timers

import "homeagent/messages"

// Codes of an Error.
const (
	// CodeBad refuses a timer that makes no sense; Field says where.
	CodeBad = "bad_timer"
	// CodeZone refuses a zone that the time zone database does not have.
	CodeZone = "unknown_zone"
)

// Error says what is wrong with a timer, for people.
type Error struct {
	// Code is one of the constants above.
	Code string
	// Field of the timer as people name it: at, in, every, cron, zone, text, name, level…
	Field string
	// Message is safe to show, Hint says what to do.
	Message, Hint string
}

// Error implements error.
func (e *Error) Error() string { return e.Field + ": " + e.Message }

// Proto is the error as it crosses an actor.
func (e *Error) Proto() *messages.Error {
	return &messages.Error{Code: e.Code, Message: e.Message, Hint: e.Hint, Details: map[string]string{"field": e.Field}}
}

func bad(field, message, hint string) *Error {
	return &Error{Code: CodeBad, Field: field, Message: message, Hint: hint}
}

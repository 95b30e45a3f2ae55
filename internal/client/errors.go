package client

import (
	"errors"
	"fmt"
	"strings"

	"homeagent/configs/paths"
	"homeagent/messages/api"
)

var (
	// ErrNotRunning says that no node runs on the data folder.
	ErrNotRunning = paths.ErrNotRunning
	// ErrUnreachable says that the node did not answer at its address.
	ErrUnreachable = errors.New("the node can not be reached")
	// ErrAnswer says that what answered does not speak like a node.
	ErrAnswer = errors.New("the answer is not that of a node")
	// ErrStream says that an event stream is not well-formed or holds a frame that is too large.
	ErrStream = errors.New("the event stream is broken")
)

// Error is a refusal of the node.
type Error struct {
	// Status of HTTP.
	Status int
	body
}

// body gives Error the fields Code, Message, Hint and Details.
type body = api.Error

// Error returns the safe message and the hint.
func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = e.Code
	}
	if e.Hint == "" {
		return text
	}
	if !strings.HasSuffix(text, ".") {
		text += ";"
	}
	return text + " " + e.Hint
}

// Code is the node's code of an error, or empty when it did not come from a node.
func Code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func unreachable(where string, err error) error {
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, where, err)
}

// notRunning is ErrNotRunning with the folder.
type notRunning struct{ data string }

func (e *notRunning) Error() string {
	return "no node runs on the data folder " + e.data + ": start it with homed --data"
}

func (*notRunning) Unwrap() error { return ErrNotRunning }

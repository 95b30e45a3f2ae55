package client

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

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
	// Status of HTTP; zero where no node made the error.
	Status int `json:"status,omitempty"`
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
	if strings.HasSuffix(text, ".") {
		return text + " " + initial(e.Hint, unicode.ToUpper)
	}
	return text + "; " + initial(e.Hint, unicode.ToLower)
}

// initial changes the first letter of a sentence by f; a name in capitals keeps its own, and so does what begins with no
// letter.
func initial(s string, f func(rune) rune) string {
	first, n := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[n:]); unicode.IsUpper(next) {
		return s
	}
	return string(f(first)) + s[n:]
}

// Code is the node's code of an error, or empty when it did not come from a node.
func Code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// unreachable tells where the node was looked for, once: errors of the network repeat it at every level.
func unreachable(where string, err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, where, err)
}

// notRunning is ErrNotRunning with the folder.
type notRunning struct{ data string }

func (e *notRunning) Error() string {
	return "no node runs on the data folder " + e.data + ": start homed on it, or name another one with --data"
}

func (*notRunning) Unwrap() error { return ErrNotRunning }

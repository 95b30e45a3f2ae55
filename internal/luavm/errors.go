package luavm

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Sentinels; match them with errors.Is.
var (
	// ErrSyntax is wrapped by an Error of a script that does not compile.
	ErrSyntax = errors.New("lua: syntax error")
	// ErrRuntime is wrapped by an Error that the script raised or ran into.
	ErrRuntime = errors.New("lua: runtime error")
	// ErrBudget is wrapped by an Error of a call that used up its instructions.
	ErrBudget = errors.New("lua: instruction budget used up")
	// ErrDeadline is wrapped by an Error of a call that took too long.
	ErrDeadline = errors.New("lua: call took too long")
	// ErrLimit is wrapped by an Error of a call that asked for a string, a
	// pattern match or a nesting beyond the limits.
	ErrLimit = errors.New("lua: limit exceeded")
	// ErrJSON reports text that is no JSON or a value that has no JSON form.
	ErrJSON = errors.New("lua: json")
	// ErrClosed reports the use of a pool after Close.
	ErrClosed = errors.New("lua: pool closed")
)

// Error is a failure of a script with its place. Unwrap gives one of the
// sentinels above, or the context's error when the caller cancelled.
type Error struct {
	// File is the name given to Compile; Line counts from 1, 0 if unknown.
	File string
	Line int
	// Message says what is wrong, without file and line.
	Message string
	// Stack is the script's own stack, for the log; empty for syntax errors.
	Stack string
	cause error
}

// Error gives "file:line: message".
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Message)
}

// Unwrap gives the sentinel that classifies the error.
func (e *Error) Unwrap() error { return e.cause }

var placed = regexp.MustCompile(`^(.*?):(\d+):\s*`)

// place splits "file:line: message" as the interpreter writes it. A message
// without a place keeps the script's name and line 0.
func place(file, message, stack string, cause error) *Error {
	e := &Error{File: file, Message: strings.TrimSpace(message), Stack: stack, cause: cause}
	if m := placed.FindStringSubmatch(e.Message); m != nil {
		if line, err := strconv.Atoi(m[2]); err == nil {
			e.File, e.Line, e.Message = m[1], line, e.Message[len(m[0]):]
		}
	}
	return e
}

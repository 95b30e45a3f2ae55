package configs

import (
	"errors"
	"slices"
	"strings"

	"homeagent/messages"
)

// Sentinels of the store interface.
var (
	// ErrEmptyKey says that a KV was asked to store under the empty key.
	ErrEmptyKey = errors.New("configs: empty key")
)

// Code is the machine-readable kind of an Error. Codes are part of the HTTP
// face and are never renamed.
type Code string

// The codes of this package.
const (
	// CodeUnknownKey: no such key is declared.
	CodeUnknownKey Code = "unknown_key"
	// CodeDroppedKey: the key existed in an earlier system and has a successor
	// or a reason why it is gone.
	CodeDroppedKey Code = "dropped_key"
	// CodeBadValue: the value has the wrong form or is out of range.
	CodeBadValue Code = "bad_value"
	// CodeBadName: a name inside a key (of a source, a tool, a plugin) is not
	// allowed.
	CodeBadName Code = "bad_name"
	// CodeRequired: an edit would leave a group without a key it needs.
	CodeRequired Code = "required_key"
	// CodeOverridden: the key is set by the environment, so that an edit would
	// have no effect.
	CodeOverridden Code = "overridden_key"
	// CodeCollision: two declared keys claim the same name.
	CodeCollision Code = "key_collision"
	// CodeBadKey: a declaration of a key is itself wrong.
	CodeBadKey Code = "bad_key"
	// CodeStore: the store could not be read or written.
	CodeStore Code = "config_store_failed"
	// CodeKeyFileMissing: sealed values exist, their key file does not.
	CodeKeyFileMissing Code = "secret_key_missing"
	// CodeKeyFileMode: others than the owner may read the key file.
	CodeKeyFileMode Code = "secret_key_mode"
	// CodeKeyFileBad: the key file is unreadable or not a key file.
	CodeKeyFileBad Code = "secret_key_bad"
	// CodeWrongKey: a value was sealed under another key file.
	CodeWrongKey Code = "secret_wrong_key"
	// CodeDamaged: a sealed or plain record was changed, cut or moved to another
	// name.
	CodeDamaged Code = "damaged_record"
	// CodePath: a path of the node cannot be used.
	CodePath Code = "bad_path"
)

// Error is every error of this package that a person may see. Message and Hint
// are safe to show: they never hold the value of a secret.
type Error struct {
	// Code is the kind.
	Code Code
	// Key is the dotted name concerned, empty when there is none.
	Key string
	// Message says what is wrong, in one sentence without a full stop.
	Message string
	// Hint says what to do, empty when there is nothing to add.
	Hint string
	// Err is the cause for the log; it is not part of what people see.
	Err error
}

// Error returns message and hint, and the cause when there is one.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString(" (")
		b.WriteString(e.Hint)
		b.WriteString(")")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error with the same code, so that
// errors.Is(err, &Error{Code: CodeUnknownKey}) asks for the kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CodeOf returns the code of the first *Error in err's chain, or "".
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Message turns an error of this package into the form that crosses actors and
// reaches people: of several joined ones the first code, all messages, and each
// hint once. What is no *Error becomes "internal", with nothing of its text. nil
// gives nil.
func Message(err error) *messages.Error {
	if err == nil {
		return nil
	}
	found := collect(err, nil)
	if len(found) == 0 {
		return &messages.Error{Code: "internal", Message: "the configuration failed in an unforeseen way", Hint: "see the log of the node"}
	}
	var texts, hints []string
	for _, e := range found {
		texts = append(texts, e.Message)
		if e.Hint != "" && !slices.Contains(hints, e.Hint) {
			hints = append(hints, e.Hint)
		}
	}
	m := &messages.Error{Code: string(found[0].Code), Message: strings.Join(texts, "; "), Hint: strings.Join(hints, "; ")}
	if found[0].Key != "" {
		m.Details = map[string]string{"key": found[0].Key}
	}
	return m
}

// collect appends every *Error in the tree of err.
func collect(err error, found []*Error) []*Error {
	switch e := err.(type) { //nolint:errorlint // walks the tree itself
	case *Error:
		return append(found, e)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			found = collect(one, found)
		}
	case interface{ Unwrap() error }:
		return collect(e.Unwrap(), found)
	}
	return found
}

func storeError(operation, key string, err error) *Error {
	return &Error{
		Code: CodeStore, Key: key, Message: "the configuration store failed to " + operation,
		Hint: "look at the state of the store with `homed doctor`", Err: err,
	}
}

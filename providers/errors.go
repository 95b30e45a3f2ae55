package providers

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"homeagent/messages"
)

var (
	// ErrSource reports a source that cannot be used as it is configured.
	ErrSource = errors.New("providers: bad source")
	// ErrUnknownAdapter reports an adapter name that nobody provides.
	ErrUnknownAdapter = errors.New("providers: unknown adapter")
	// ErrRequest reports a request that breaks the contract.
	ErrRequest = errors.New("providers: bad request")
	// ErrClosed reports the use of a client after Close.
	ErrClosed = errors.New("providers: client closed")
)

// Causes of a cancelled context; Stream tells them apart from a caller's cancel.
var (
	errConnectLate   = errors.New("no connection in time")
	errFirstByteLate = errors.New("no answer in time")
	errIdle          = errors.New("the stream stalled")
	errTotal         = errors.New("the call took too long")
)

// Failure is how a call failed. It is an error; Unwrap gives the cause, which
// is for the log alone. Message and Hint are safe for people: keys are cut out.
type Failure struct {
	// Kind decides cooldown and fallback.
	Kind messages.ErrorKind
	// Source that failed.
	Source string
	// Status is the HTTP status, 0 when there was none.
	Status int
	// Code is the vendor's own error code; may be empty. Numeric tells that it is
	// a number on the wire.
	Code    string
	Numeric bool
	// Message says what happened; Hint what to do, may be empty.
	Message string
	Hint    string
	// RetryAfter is what the vendor asked for; 0 when it did not. At most a day.
	RetryAfter time.Duration
	// Visible tells that text, reasoning or a tool call had been emitted.
	Visible bool
	// Refused tells that no answer had begun: there was no stream, and no usage
	// was counted.
	Refused bool
	// again is another way to ask for the same answer.
	again Again
	cause error
}

// Error gives source, kind and message.
func (f *Failure) Error() string {
	s := fmt.Sprintf("%s: %s: %s", f.Source, KindName(f.Kind), f.Message)
	if f.cause != nil {
		s += ": " + f.cause.Error()
	}
	return s
}

// Unwrap gives the cause; may be nil.
func (f *Failure) Unwrap() error { return f.cause }

// Proto gives the failure as messages carry it.
func (f *Failure) Proto() *messages.CompletionFailure {
	details := map[string]string{"source": f.Source}
	if f.Code != "" {
		details["vendor_code"] = f.Code
	}
	return &messages.CompletionFailure{
		Kind: f.Kind, Status: int32(f.Status),
		Error: &messages.Error{
			Code: KindName(f.Kind), Message: f.Message, Hint: f.Hint, Details: details,
			RetryAfterMs: f.RetryAfter.Milliseconds(),
		},
	}
}

// AsFailure gives the failure in err; any other error becomes one of the kind
// server, which is temporary.
func AsFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return &Failure{Kind: messages.ErrorKind_ERROR_KIND_SERVER, Message: "the call failed", cause: err}
}

// KindName gives a kind as a machine code, such as "rate_limit".
func KindName(k messages.ErrorKind) string {
	if k == messages.ErrorKind_ERROR_KIND_UNSPECIFIED {
		return "none"
	}
	return strings.ToLower(strings.TrimPrefix(k.String(), "ERROR_KIND_"))
}

// ParseKind is the inverse of KindName.
func ParseKind(name string) (messages.ErrorKind, bool) {
	v, ok := messages.ErrorKind_value["ERROR_KIND_"+strings.ToUpper(name)]
	return messages.ErrorKind(v), ok && v != 0
}

// hints say what a person can do about a kind.
var hints = map[messages.ErrorKind]string{
	messages.ErrorKind_ERROR_KIND_AUTH:                "Check the key of this source and that it may use the model.",
	messages.ErrorKind_ERROR_KIND_QUOTA_EXHAUSTED:     "The account behind this source is out of quota or money; top it up or use another source.",
	messages.ErrorKind_ERROR_KIND_RATE_LIMIT:          "The source allows fewer requests; it is asked again after a pause.",
	messages.ErrorKind_ERROR_KIND_OVERLOADED:          "The source is overloaded; it is asked again after a pause.",
	messages.ErrorKind_ERROR_KIND_SERVER:              "The source failed on its side; it is asked again after a pause.",
	messages.ErrorKind_ERROR_KIND_TIMEOUT:             "The source was too slow; raise its time limits if this is normal for the model.",
	messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED:    "The answer broke off; ask again.",
	messages.ErrorKind_ERROR_KIND_INVALID_REQUEST:     "The source refused the form of the request; another model or adapter may take it.",
	messages.ErrorKind_ERROR_KIND_CONTEXT_OVERFLOW:    "The request is longer than the model can read; set the source's context window, or use a larger model.",
	messages.ErrorKind_ERROR_KIND_MODEL_NOT_FOUND:     "Check the name of the model and that the server has it.",
	messages.ErrorKind_ERROR_KIND_CONTENT_BLOCKED:     "The vendor's filter stopped this; rephrase it, or use another source.",
	messages.ErrorKind_ERROR_KIND_TOOL_USE_FAILED:     "The model formed no valid tool call; ask again, or use a model that can use tools.",
	messages.ErrorKind_ERROR_KIND_MALFORMED_TOOL_CALL: "The model formed no valid tool call; ask again, or use a model that can use tools.",
	messages.ErrorKind_ERROR_KIND_CONNECT:             "Check the address of the source and that its server runs.",
	messages.ErrorKind_ERROR_KIND_ADAPTER:             "Repair or remove the adapter file that the message names.",
	messages.ErrorKind_ERROR_KIND_NO_SOURCE:           "Add a model source.",
	messages.ErrorKind_ERROR_KIND_BUDGET:              "Raise the budget, wait for the next one, or add a source that costs nothing.",
}

// Hint gives what a person can do about a kind; empty when nothing helps.
func Hint(k messages.ErrorKind) string { return hints[k] }

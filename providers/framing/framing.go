package framing

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
)

// DefaultLimit is the cap on one event in bytes.
const DefaultLimit = 32 << 20

var (
	// ErrTooLarge reports an event above the cap. Permanent for this body.
	ErrTooLarge = errors.New("framing: event too large")
	// ErrDamaged reports a binary event that is not as it was sent. Permanent for
	// this body.
	ErrDamaged = errors.New("framing: event damaged")
	// ErrUnknown reports a framing name that does not exist.
	ErrUnknown = errors.New("framing: unknown framing")
)

// Kind names a framing, as adapters declare it.
type Kind string

// The framings.
const (
	SSE         Kind = "sse"
	NDJSON      Kind = "ndjson"
	EventStream Kind = "aws-eventstream"
	JSON        Kind = "json"
)

// Parse checks a framing name; the error wraps ErrUnknown and lists the names.
func Parse(name string) (Kind, error) {
	switch k := Kind(name); k {
	case SSE, NDJSON, EventStream, JSON:
		return k, nil
	}
	return "", fmt.Errorf("%w %q: legal are sse, ndjson, aws-eventstream, json", ErrUnknown, name)
}

// Choose gives the framing of a body: the content type decides where it names
// one, because servers answer a streaming request with a plain JSON error; the
// declared framing holds otherwise.
func Choose(declared Kind, contentType string) Kind {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = strings.TrimSpace(strings.ToLower(contentType))
	}
	switch media {
	case "text/event-stream":
		return SSE
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/stream+json":
		return NDJSON
	case "application/vnd.amazon.eventstream":
		return EventStream
	case "application/json", "application/problem+json":
		return JSON
	}
	return declared
}

// Event is one unit of a body. Data is valid until the next call of Next.
type Event struct {
	// Name is the event field of SSE, or the event's type of an AWS stream;
	// "message" where there is none.
	Name string
	// ID is the last id field of SSE; empty for other framings.
	ID string
	// Data is the payload without framing.
	Data []byte
	// Partial tells that the body ended before the event was closed.
	Partial bool
	// Exception tells that an AWS stream says it is an error; Name is its type.
	Exception bool
}

// Reader gives the events of one body in order. Next ends with io.EOF, with
// ErrTooLarge, or with the error of the body. Not safe for concurrent use.
type Reader interface {
	Next() (Event, error)
}

// New makes a reader over body; limit caps one event, 0 means DefaultLimit.
func New(k Kind, body io.Reader, limit int) (Reader, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	switch k {
	case SSE:
		return &sse{lines: lines{src: body, limit: limit}}, nil
	case NDJSON:
		return &ndjson{lines: lines{src: body, limit: limit}}, nil
	case EventStream:
		return &eventstream{src: body, limit: limit}, nil
	case JSON:
		return &document{src: body, limit: limit}, nil
	}
	return nil, fmt.Errorf("%w %q", ErrUnknown, k)
}

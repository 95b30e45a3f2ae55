package providers

import (
	"context"

	"homeagent/messages"
	"homeagent/providers/framing"
)

// Adapters finds adapters by name. Safe for concurrent use. The error wraps
// ErrUnknownAdapter and lists the names, or says why the adapter is broken with
// file and line (a *Failure of the kind adapter).
type Adapters interface {
	Adapter(name string) (Adapter, error)
}

// Adapter speaks one vendor's language. Safe for concurrent use.
type Adapter interface {
	// Info is constant for the adapter's life.
	Info() Info
	// Open starts one call. The exchange belongs to one goroutine.
	// fetch is how the adapter's http functions ask the source's server; nil
	// refuses them.
	Open(ctx context.Context, src *Source, req *Request, fetch Fetch) (Exchange, error)
}

// Fetch makes one small request to the source's own server beside the call,
// such as for a token. body is nil for GET. The error is safe to show.
type Fetch func(ctx context.Context, target string, headers map[string]string, body []byte) (*Fetched, error)

// Fetched is the answer to a Fetch.
type Fetched struct {
	Status int
	// Headers with lower-case names; Body of at most 1 MiB.
	Headers map[string]string
	Body    []byte
}

// Info says what an adapter is.
type Info struct {
	Name, Version string
	// BaseURL is the default base; empty means that a source must have one.
	BaseURL string
	// Framing of a stream.
	Framing framing.Kind
	// Local adapters answer without HTTP.
	Local bool
	// Streams tells that the adapter can ask for streams.
	Streams bool
	// Tools, Vision and Audio tell what it can carry; Thinking that it can ask for
	// thought, Structured that it can ask for text that follows a schema.
	Tools, Vision, Audio, Thinking, Structured bool
	// Auth says how a request proves whose it is.
	Auth Auth
	// Extends names the adapter that this one is a profile of; empty for none.
	Extends string
	// File it came from, for people; "embedded/…" for built-in ones.
	File string
	// ToolIDs is the form of ids of calls that its servers take.
	ToolIDs IDForm
	// Chat and Embeds tell what it is for: at least one is set.
	Chat, Embeds bool
}

// Auth says how requests of an adapter prove whose they are.
type Auth struct {
	// Kind is "key", where the adapter's headers place the key, or "aws", where
	// the request is signed (Signature Version 4) when the source's key has the
	// form ID:SECRET or ID:SECRET:TOKEN; any other key goes into the headers.
	Kind string
	// Service is the signing name, such as "bedrock"; only for "aws".
	Service string
}

// The kinds of Auth.
const (
	AuthKey = "key"
	AuthAWS = "aws"
)

// Request is what an adapter turns into a vendor's request.
type Request struct {
	*messages.CompletionRequest
	// Stream asks for a stream.
	Stream bool
	// Media gives the bytes of payload parts that the source takes, by payload id.
	Media map[string][]byte
}

// Exchange is one call under way. All methods are called on one goroutine, in
// the order Prepare, then Event for each event or Answer once, then End; or
// PrepareEmbed, then Embeddings once. Close is called exactly once. Every error is a *Failure.
type Exchange interface {
	// Prepare gives the vendor's request.
	Prepare(ctx context.Context) (*Prepared, error)
	// Event handles one event of a stream.
	Event(ctx context.Context, ev framing.Event) ([]Piece, error)
	// Answer handles a whole JSON body of a 2xx response; for local adapters it
	// is called with nil and gives the answer itself.
	Answer(ctx context.Context, body []byte) ([]Piece, error)
	// End is called after the last event of a stream that was not cut.
	End(ctx context.Context) ([]Piece, error)
	// Classify names the failure behind an HTTP error; nil leaves it to the
	// status.
	Classify(ctx context.Context, e HTTPError) (*Fault, error)
	// PrepareEmbed gives the request for embeddings of texts.
	PrepareEmbed(ctx context.Context, texts []string, o EmbedOptions) (*Prepared, error)
	// Embeddings reads the answer to it.
	Embeddings(ctx context.Context, body []byte) (*Embedded, error)
	// Close gives the exchange's means back.
	Close()
}

// Embedded is what a server gave for texts, as it gave it.
type Embedded struct {
	// Vectors, one for each text in its order.
	Vectors [][]float32
	// Tokens that were counted; 0 when not said.
	Tokens int64
	// Fault in place of vectors.
	Fault *Fault
}

// Prepared is a vendor's request, without its base and without the key.
type Prepared struct {
	// Base of the address: the source's own, else the adapter's default with its
	// places filled in. Never empty but for local adapters.
	Base string
	// Endpoint is appended to the base; what it needs escaped is escaped.
	Endpoint string
	// Region is where an "aws" request is signed for; empty means that the
	// address tells.
	Region string
	// Headers may contain KeyPlace; such a header is left out when there is no key.
	Headers map[string]string
	// Body is JSON.
	Body []byte
	// Model as sent.
	Model string
}

// KeyPlace stands for the key in an adapter's headers; the key itself never
// enters a script.
const KeyPlace = "{{api_key}}"

// HTTPError is what is known of a refused request.
type HTTPError struct {
	Status int
	// Body is the answer's beginning, at most 256 KiB.
	Body []byte
	// Headers are those of the answer, lower-case names.
	Headers map[string]string
}

// Piece is what one event brought. Absent fields are empty.
type Piece struct {
	Text, Reasoning, Refusal string
	Tools                    []ToolPiece
	// Finish is set by the vendor's end mark.
	Finish messages.Finish
	// Usage overwrites what came before, field by field where Reported says so.
	Usage *messages.Usage
	// Replay has items of replay material to append, each one JSON value.
	Replay [][]byte
	// ServerBlocks are types of content that the vendor's server made and that
	// has no other place here.
	ServerBlocks []string
	// Model as the wire says it.
	Model string
	// Done tells that nothing follows; the stream is not read further.
	Done bool
	// Fault ends the call.
	Fault *Fault
}

// ToolPiece is a piece of a tool call.
type ToolPiece struct {
	// Index on the wire, -1 when there is none.
	Index int
	// ID and Name may be empty in later pieces.
	ID, Name string
	// Args is appended; with Whole it is all of the arguments.
	Args  string
	Whole bool
}

// Fault is a failure as an adapter names it.
type Fault struct {
	// Kind; unspecified leaves it to the status.
	Kind messages.ErrorKind
	// Status that the error itself claims; 0 when none.
	Status int
	// Code and Message of the vendor; Numeric tells that the code is a number on
	// the wire.
	Code, Message string
	Numeric       bool
	// RetryAfter in seconds; 0 when not said.
	RetryAfter float64
	// Again says that the same source may be asked once more at once, in another
	// way.
	Again Again
}

// Again is another way to ask for the same answer.
type Again string

// The ways. Each is tried at most once a call, and only while nothing was shown.
const (
	AgainNever Again = ""
	// AgainWithoutReplay leaves the replay material out, which the server refused.
	AgainWithoutReplay Again = "without_replay"
	// AgainWhole asks for the answer in one piece.
	AgainWhole Again = "whole"
)

package worker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/framing"
)

// maxFrame bounds a frame in bytes: an event of the largest size, as base64, with
// what is around it.
const maxFrame = 128 << 20

// The questions.
const (
	opLoad     = "load"
	opOpen     = "open"
	opPrepare  = "prepare"
	opEvent    = "event"
	opAnswer   = "answer"
	opEnd      = "end"
	opClassify = "classify"
	opEmbed    = "embed"
	opVectors  = "vectors"
	opClose    = "close"
	// opFetched answers the worker's opFetch.
	opFetched = "fetched"
)

// What a worker writes.
const (
	opDone  = "done"
	opLog   = "log"
	opFetch = "fetch"
)

// question is a frame to a worker. What belongs to its op is set.
type question struct {
	Op string `json:"op"`
	// Name and Files of load.
	Name  string            `json:"name,omitempty"`
	Files map[string][]byte `json:"files,omitempty"`
	// Call of open.
	Call *call `json:"call,omitempty"`
	// Event of event.
	Event *framing.Event `json:"event,omitempty"`
	// Body of answer and vectors; None tells that there is none.
	Body []byte `json:"body,omitempty"`
	None bool   `json:"none,omitempty"`
	// Refusal of classify.
	Refusal *providers.HTTPError `json:"refusal,omitempty"`
	// Texts and Embed of embed.
	Texts []string                `json:"texts,omitempty"`
	Embed *providers.EmbedOptions `json:"embed,omitempty"`
	// Fetched or Error of fetched.
	Fetched *providers.Fetched `json:"fetched,omitempty"`
	Error   string             `json:"error,omitempty"`
}

// reply is a frame from a worker.
type reply struct {
	Op string `json:"op"`
	// What done brings.
	Info     *providers.Info     `json:"info,omitempty"`
	Prepared *providers.Prepared `json:"prepared,omitempty"`
	Pieces   []piece             `json:"pieces,omitempty"`
	Fault    *providers.Fault    `json:"fault,omitempty"`
	Embedded *providers.Embedded `json:"embedded,omitempty"`
	Failure  *failure            `json:"failure,omitempty"`
	// Level and Text of log.
	Level int    `json:"level,omitempty"`
	Text  string `json:"text,omitempty"`
	// Target, Headers and Body of fetch; None tells that there is no body.
	Target  string            `json:"target,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"`
	None    bool              `json:"none,omitempty"`
}

// call is a call to a model as its worker sees it: a source without key, headers and
// limits of the node.
type call struct {
	Name          string   `json:"name"`
	Adapter       string   `json:"adapter"`
	BaseURL       string   `json:"base_url"`
	Model         string   `json:"model"`
	HasKey        bool     `json:"has_key"`
	Extra         []byte   `json:"extra"`
	Options       []byte   `json:"options"`
	ContextWindow int      `json:"context_window"`
	MaxTokens     int      `json:"max_tokens"`
	Temperature   *float64 `json:"temperature"`
	Thinking      string   `json:"thinking"`
	Vision        bool     `json:"vision"`
	Audio         bool     `json:"audio"`
	// Request is a messages.CompletionRequest; absent for embeddings.
	Request []byte            `json:"request"`
	Stream  bool              `json:"stream"`
	Media   map[string][]byte `json:"media"`
}

func callOf(src *providers.Source, req *providers.Request) (*call, error) {
	c := &call{
		Name: src.Name, Adapter: src.Adapter, BaseURL: src.BaseURL, Model: src.Model, HasKey: src.HasKey(), Extra: src.Extra, Options: src.Options,
		ContextWindow: src.ContextWindow, MaxTokens: src.MaxTokens, Temperature: src.Temperature, Thinking: src.Thinking,
		Vision: src.Vision, Audio: src.Audio,
	}
	if req == nil {
		return c, nil
	}
	c.Stream, c.Media = req.Stream, req.Media
	var err error
	c.Request, err = proto.Marshal(req.CompletionRequest)
	return c, err
}

func (c *call) source() *providers.Source {
	src := &providers.Source{
		Name: c.Name, Adapter: c.Adapter, BaseURL: c.BaseURL, Model: c.Model, Extra: c.Extra, Options: c.Options, ContextWindow: c.ContextWindow,
		MaxTokens: c.MaxTokens, Temperature: c.Temperature, Thinking: c.Thinking, Vision: c.Vision, Audio: c.Audio,
	}
	if c.HasKey {
		src.APIKey = func() configs.Secret { return configs.NewSecret(providers.KeyPlace) }
	}
	return src
}

func (c *call) request() (*providers.Request, error) {
	req := &providers.Request{CompletionRequest: &messages.CompletionRequest{}, Stream: c.Stream, Media: c.Media}
	return req, proto.Unmarshal(c.Request, req.CompletionRequest)
}

// piece is a providers.Piece with its usage as protobuf has it.
type piece struct {
	providers.Piece
	Counted []byte `json:"counted,omitempty"`
}

func piecesOut(list []providers.Piece) ([]piece, error) {
	out := make([]piece, len(list))
	for i, p := range list {
		if p.Usage != nil {
			b, err := proto.Marshal(p.Usage)
			if err != nil {
				return nil, err
			}
			// An empty message has no bytes, and is none.
			out[i].Counted, p.Usage = b, nil
		}
		out[i].Piece = p
	}
	return out, nil
}

func piecesIn(list []piece) ([]providers.Piece, error) {
	out := make([]providers.Piece, len(list))
	for i, p := range list {
		out[i] = p.Piece
		if len(p.Counted) > 0 {
			out[i].Usage = &messages.Usage{}
			if err := proto.Unmarshal(p.Counted, out[i].Usage); err != nil {
				return nil, err
			}
		}
		for _, item := range p.Replay {
			if !json.Valid(item) {
				return nil, fmt.Errorf("an item of replay is no JSON")
			}
		}
	}
	return out, nil
}

// failure is a providers.Failure on the wire.
type failure struct {
	Kind       messages.ErrorKind `json:"kind"`
	Status     int                `json:"status,omitempty"`
	Code       string             `json:"code,omitempty"`
	Numeric    bool               `json:"numeric,omitempty"`
	Message    string             `json:"message"`
	Hint       string             `json:"hint,omitempty"`
	RetryAfter time.Duration      `json:"retry_after,omitempty"`
}

func failureOut(err error) *failure {
	f := providers.AsFailure(err)
	out := &failure{
		Kind: f.Kind, Status: f.Status, Code: f.Code, Numeric: f.Numeric, Message: f.Message, Hint: f.Hint, RetryAfter: f.RetryAfter,
	}
	return out
}

func (f *failure) failure() *providers.Failure {
	return &providers.Failure{
		Kind: f.Kind, Status: f.Status, Code: f.Code, Numeric: f.Numeric, Message: f.Message, Hint: f.Hint, RetryAfter: f.RetryAfter,
	}
}

// write sends a frame.
func write(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrame {
		return fmt.Errorf("%w: %d bytes to send", ErrFrame, len(body))
	}
	frame := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// read receives a frame. The error is io.EOF when nothing more came.
func read(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return fmt.Errorf("%w: of %d bytes", ErrFrame, n)
	}
	// Grown as it comes: a length alone takes no memory.
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return err
	}
	if len(body) < int(n) {
		return io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return nil
}

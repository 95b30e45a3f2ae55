package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"homeagent/messages"
	"homeagent/providers"
)

// How a body ends.
const (
	// EndWhole is a clean end of the body.
	EndWhole = iota
	// EndReset is a broken connection.
	EndReset
	// EndStall is silence.
	EndStall
)

// Delivery is how a body comes.
type Delivery struct {
	// Read bounds how much one read gives; 0 means no bound, -1 random.
	Read int
	// Encoding is the Content-Encoding header; the body is packed already.
	Encoding string
	// End is how it ends.
	End int
}

// errReset is what a broken connection reads as.
var errReset = errors.New("connection reset by peer")

// stallFor is the idle limit under which a stall is told; real sources have
// minutes.
const stallFor = 20 * time.Millisecond

// Run makes one call that is answered with the recording's bytes and gives what
// came of it, as Client.Stream does. The error that matters is a
// *providers.Failure; nothing leaves the process.
func Run(ctx context.Context, adapters providers.Adapters, adapter string, rec Recording, d Delivery, h providers.Hooks) (*messages.CompletionResult, error) {
	c := providers.NewClient(providers.Options{Adapters: adapters, Transport: &tape{rec: rec, d: d}})
	defer c.Close()
	src := providers.Source{Name: "replay", Adapter: adapter, BaseURL: "http://replay.invalid/v1", Model: "model"}
	if d.End == EndStall {
		src.Idle = stallFor
	}
	return c.Stream(ctx, src, Ask("hello"), h)
}

// Ask is a small request.
func Ask(text string) *messages.CompletionRequest {
	return &messages.CompletionRequest{
		CallId: "call-1", TaskId: "task-1", Agent: "main", Question: text,
		Messages: []*messages.ChatMessage{{Role: messages.Role_ROLE_USER, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: text}}}}},
	}
}

// tape answers each request with a recording.
type tape struct {
	rec Recording
	d   Delivery
}

func (t *tape) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {t.rec.ContentType}}
	if t.d.Encoding != "" {
		h.Set("Content-Encoding", t.d.Encoding)
	}
	for name, value := range t.rec.Header {
		h.Set(name, value)
	}
	body := &reel{ctx: r.Context(), rest: t.rec.Body, d: t.d, rnd: rand.New(rand.NewPCG(1, 2))}
	return &http.Response{
		StatusCode: t.rec.Status, Status: http.StatusText(t.rec.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: body, ContentLength: -1, Request: r,
	}, nil
}

// reel is a body that comes in pieces.
type reel struct {
	ctx  context.Context //nolint:containedctx // a response body lives as long as its request
	rest []byte
	d    Delivery
	rnd  *rand.Rand
}

func (b *reel) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if len(b.rest) == 0 {
		switch b.d.End {
		case EndReset:
			return 0, errReset
		case EndStall:
			<-b.ctx.Done()
			return 0, b.ctx.Err()
		}
		return 0, io.EOF
	}
	n := b.d.Read
	if n < 0 {
		n = 1 + b.rnd.IntN(40)
	}
	if n > 0 && len(p) > n {
		p = p[:n]
	}
	n = copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *reel) Close() error { return nil }

// Unified replays a recording and gives the unified result. The error says why
// it could not be replayed: a failure of the recorded server is a result.
func Unified(ctx context.Context, adapters providers.Adapters, adapter string, rec Recording) (*providers.Unified, error) {
	res, err := Run(ctx, adapters, adapter, rec, Delivery{}, providers.Hooks{})
	if err != nil {
		f := providers.AsFailure(err)
		if f.Kind == messages.ErrorKind_ERROR_KIND_ADAPTER || f.Kind == messages.ErrorKind_ERROR_KIND_CANCELLED {
			return nil, f
		}
	}
	return providers.Unify(res, err), nil
}

// ParseHeaders reads lines "Name: value"; a status line and blank lines are
// passed over.
func ParseHeaders(text []byte) (map[string]string, error) {
	out := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "HTTP/") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("%q is no header", line)
		}
		out[http.CanonicalHeaderKey(name)] = strings.TrimSpace(value)
	}
	return out, nil
}

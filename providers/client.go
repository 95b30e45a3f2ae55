package providers

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
	"homeagent/providers/framing"
)

// Options make a Client.
type Options struct {
	// Adapters; required.
	Adapters Adapters
	// Media loads a payload for a source that takes media; nil means that
	// payloads are only named to the model.
	Media func(ctx context.Context, ref *messages.PayloadRef) ([]byte, error)
	// Pictures gives the limits of pictures in force; nil means 20 MiB, 50 million
	// pixels, and edges of 2048.
	Pictures func() PictureLimits
	// Dial opens connections; nil means directly, or by the environment's proxy.
	Dial Dial
	// Log receives what people need not see; nil drops it.
	Log *slog.Logger
	// MaxAnswer caps an answer and each event in bytes; 0 means 32 MiB.
	MaxAnswer int
	// Agent is the User-Agent header; empty means "homed".
	Agent string
	// Transport carries requests in place of the network, for the replay of
	// recorded answers; nil means the network.
	Transport http.RoundTripper
}

// Client carries out calls. Safe for concurrent use.
type Client struct {
	o    Options
	http *http.Client
	// pictures are those that were sent last.
	pictures album

	mu     sync.Mutex
	closed bool
	tails  sync.WaitGroup
}

// NewClient makes a client; Close frees its connections.
func NewClient(o Options) *Client {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = framing.DefaultLimit
	}
	if o.Agent == "" {
		o.Agent = "homed"
	}
	c := &Client{o: o, http: newHTTP(o.Dial)}
	if o.Transport != nil {
		c.http.Transport = o.Transport
	}
	return c
}

// Close closes idle connections and waits for what reads the tails of finished
// streams. Calls under way are the callers' to cancel. It may be called twice.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.tails.Wait()
	c.http.CloseIdleConnections()
}

// Sent tells what is about to leave.
type Sent struct {
	// Model as sent; Hash is the lower-case hex SHA-256 of the body.
	Model, Hash string
	// Bytes of the body.
	Bytes int
}

// Hooks are called on the goroutine of Stream, in order; nil ones are left out.
type Hooks struct {
	// Sent is called before a request leaves: once, or twice where the server
	// refused replay material or lost its stream before anything was shown.
	Sent func(Sent)
	// Delta is called with each piece that can be shown. The message is the
	// callee's.
	Delta func(*messages.Delta)
}

// Stream makes one call and returns when it has ended. The result is never nil
// for a source and request that could be sent: on failure it holds what had
// arrived, with its finish set to error, and the error is a *Failure. Cancelling
// ctx closes the connection at once, also before the first byte.
func (c *Client) Stream(ctx context.Context, src Source, req *messages.CompletionRequest, h Hooks) (*messages.CompletionResult, error) {
	src = src.filled()
	start := time.Now()
	res, fail := c.once(ctx, src, req, h)
	if fail == nil {
		return res, nil
	}
	if fail.again == AgainNever || fail.Visible || ctx.Err() != nil {
		return res, fail
	}
	// The source says itself how it can be asked: nothing was shown, so that it is
	// no second answer.
	if src.Total -= time.Since(start); src.Total <= 0 {
		return res, fail
	}
	if fail.again == AgainWhole {
		if src.Whole {
			return res, fail
		}
		src.Whole = true
	} else if req = withoutReplay(req); req == nil {
		return res, fail
	}
	if res, fail = c.once(ctx, src, req, h); fail != nil {
		return res, fail
	}
	return res, nil
}

// once asks once.
func (c *Client) once(ctx context.Context, src Source, req *messages.CompletionRequest, h Hooks) (*messages.CompletionResult, *Failure) {
	r := &run{c: c, src: &src, req: req, hooks: h}
	r.asm = assembly{call: req.GetCallId(), limit: c.o.MaxAnswer, model: src.Model}
	cut, fail := r.do(ctx)
	res := r.asm.result(cut || fail != nil)
	res.Source = src.Name
	for _, call := range res.GetCalls() {
		call.Name = r.names.Back(call.Name)
	}
	if fail == nil {
		return res, nil
	}
	fail.Source, fail.Visible = src.Name, r.asm.visible
	fail.Refused = !r.streamed && !r.asm.visible && r.asm.usage.GetReported() == 0
	if fail.Hint == "" {
		fail.Hint = Hint(fail.Kind)
	}
	res.Finish, res.Failure = messages.Finish_FINISH_ERROR, fail.Proto()
	return res, fail
}

// run is one call.
type run struct {
	c     *Client
	src   *Source
	req   *messages.CompletionRequest
	hooks Hooks
	asm   assembly
	ex    Exchange
	watch *watch
	key   string
	// events counts those of the stream; streamed tells that there was one.
	events   int
	streamed bool
	// tail tells that the reader of the stream's tail ends the context.
	tail bool
	// names of tools as they were sent.
	names Names
	// fetched counts the adapter's own requests, fetching is the time they took.
	fetched  int
	fetching time.Duration
}

func (r *run) fail(kind messages.ErrorKind, message string, cause error) *Failure {
	return &Failure{Kind: kind, Message: shown(message, r.key), cause: cause}
}

// do carries the call out. cut tells that the answer is not whole.
func (r *run) do(outer context.Context) (cut bool, fail *Failure) {
	ctx, cancel := context.WithCancelCause(outer)
	defer func() {
		if !r.tail {
			cancel(nil)
		}
	}()
	total := time.AfterFunc(r.src.Total, func() { cancel(errTotal) })
	defer total.Stop()
	if err := r.open(ctx); err != nil {
		return true, r.settle(ctx, err)
	}
	defer r.ex.Close()
	prep, err := r.ex.Prepare(ctx)
	if err != nil {
		return true, r.settle(ctx, err)
	}
	if prep.Model != "" {
		r.asm.model = prep.Model
	}
	if r.hooks.Sent != nil {
		sum := sha256.Sum256(prep.Body)
		r.hooks.Sent(Sent{Model: prep.Model, Hash: hex.EncodeToString(sum[:]), Bytes: len(prep.Body)})
	}
	a, _ := r.adapter()
	if a.Info().Local {
		return r.local(ctx)
	}
	return r.remote(ctx, cancel, a.Info(), prep)
}

// settle gives err as a failure; a cancelled context is its own reason.
func (r *run) settle(ctx context.Context, err error) *Failure {
	if ctx.Err() != nil {
		kind, text := kindOfTransport(ctx, err)
		return r.fail(kind, text, err)
	}
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return r.fail(messages.ErrorKind_ERROR_KIND_INVALID_REQUEST, err.Error(), err)
}

func (r *run) adapter() (Adapter, error) { return r.c.o.Adapters.Adapter(r.src.Adapter) }

// ready gives the adapter where all is in order so far.
func (r *run) ready() (Adapter, error) {
	r.c.mu.Lock()
	closed := r.c.closed
	r.c.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if err := r.src.Check(); err != nil {
		return nil, err
	}
	a, err := r.adapter()
	var f *Failure
	if err == nil || errors.As(err, &f) {
		return a, err
	}
	f = r.fail(messages.ErrorKind_ERROR_KIND_ADAPTER, strings.TrimPrefix(err.Error(), "providers: "), err)
	if errors.Is(err, ErrUnknownAdapter) {
		f.Hint = "Name one of these, or put an adapter of that name into adapters/ in the data folder."
	}
	return nil, f
}

func (r *run) open(ctx context.Context) error {
	if err := checkRequest(r.req); err != nil {
		return err
	}
	a, err := r.ready()
	if err != nil {
		return err
	}
	if !a.Info().Chat {
		return r.fail(messages.ErrorKind_ERROR_KIND_INVALID_REQUEST, "the adapter "+a.Info().Name+" is for embeddings alone", nil)
	}
	fitted, names := Fit(r.req, r.src.Name, a.Info())
	r.names = names
	if r.src.NoTools {
		fitted.Tools, fitted.ToolChoice = nil, ""
	}
	req := &Request{CompletionRequest: fitted, Stream: a.Info().Streams && !r.src.Whole}
	if err = r.media(ctx, a.Info(), req); err != nil {
		return err
	}
	r.key = r.src.key().Reveal()
	r.ex, err = a.Open(ctx, r.src, req, r.fetch)
	return err
}

// withoutReplay gives the request without any replay material; nil when it has
// none.
func withoutReplay(q *messages.CompletionRequest) *messages.CompletionRequest {
	has := slices.ContainsFunc(q.GetMessages(), func(m *messages.ChatMessage) bool { return len(m.GetReplay()) > 0 })
	if !has {
		return nil
	}
	out := proto.Clone(q).(*messages.CompletionRequest)
	for _, m := range out.Messages {
		m.Replay, m.ReplaySource, m.Reasoning = nil, "", ""
	}
	return out
}

func takes(s *Source, info Info, media string) bool {
	return s.Vision && info.Vision && strings.HasPrefix(media, "image/") ||
		s.Audio && info.Audio && strings.HasPrefix(media, "audio/")
}

func (r *run) local(ctx context.Context) (bool, *Failure) {
	pieces, err := r.ex.Answer(ctx, nil)
	if err != nil {
		return true, r.settle(ctx, err)
	}
	if f := r.take(ctx, pieces); f != nil {
		return true, f
	}
	return r.close(ctx, nil)
}

// take adds pieces and shows them.
func (r *run) take(ctx context.Context, pieces []Piece) *Failure {
	for _, p := range pieces {
		if ctx.Err() != nil {
			return r.settle(ctx, ctx.Err())
		}
		d, err := r.asm.add(p)
		if err != nil {
			return r.fail(messages.ErrorKind_ERROR_KIND_SERVER, err.Error(), nil)
		}
		if d != nil && r.hooks.Delta != nil {
			for _, t := range d.Tools {
				t.Name = r.names.Back(t.Name)
			}
			r.hooks.Delta(d)
		}
		if p.Fault != nil {
			return r.fault(p.Fault, 0, nil)
		}
	}
	return nil
}

// fault gives an adapter's fault as a failure.
func (r *run) fault(f *Fault, status int, header http.Header) *Failure {
	if f.Status != 0 {
		status = f.Status
	}
	kind := f.Kind
	if kind == messages.ErrorKind_ERROR_KIND_UNSPECIFIED {
		kind = kindOfStatus(status)
	}
	text := f.Message
	if text == "" {
		text = strings.TrimSpace("the source refused " + f.Code)
	}
	out := r.fail(kind, text, nil)
	out.Status, out.Code, out.Numeric, out.again = status, shown(f.Code, r.key), f.Numeric, f.Again
	if out.RetryAfter = seconds(f.RetryAfter); out.RetryAfter == 0 && header != nil {
		out.RetryAfter = RetryAfter(header, time.Now())
	}
	return out
}

// close decides the outcome once nothing more comes; readErr is what ended the
// body, nil for its clean end.
func (r *run) close(ctx context.Context, readErr error) (bool, *Failure) {
	if r.asm.ended() {
		return false, nil
	}
	if ctx.Err() != nil {
		return true, r.settle(ctx, ctx.Err())
	}
	switch {
	case errors.Is(readErr, framing.ErrTooLarge):
		return true, r.fail(messages.ErrorKind_ERROR_KIND_SERVER, "an event of the stream is larger than allowed", readErr)
	case errors.Is(readErr, framing.ErrDamaged):
		return true, r.fail(messages.ErrorKind_ERROR_KIND_SERVER, "an event of the stream arrived damaged", readErr)
	}
	if r.watch != nil && r.events == 0 && readErr == nil {
		return true, r.fail(messages.ErrorKind_ERROR_KIND_SERVER, "the server sent an empty answer", nil)
	}
	f := r.fail(messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED, "the answer ended before its end mark", readErr)
	return true, f
}

func (r *run) remote(ctx context.Context, cancel context.CancelCauseFunc, info Info, prep *Prepared) (bool, *Failure) {
	r.watch = newWatch(cancel, r.src)
	defer r.watch.stop()
	hr, err := r.request(httptrace.WithClientTrace(ctx, r.watch.trace()), info, prep)
	if err != nil {
		return true, r.settle(ctx, err)
	}
	resp, err := r.c.http.Do(hr)
	if err != nil {
		kind, text := kindOfTransport(ctx, err)
		return true, r.fail(kind, text, bare(err))
	}
	resp.Body = &body{resp.Body, r.watch}
	defer func() { r.drain(ctx, cancel, resp) }()
	if resp.StatusCode/100 != 2 {
		return true, r.refused(ctx, resp)
	}
	plain, err := unpacked(resp)
	if err != nil {
		return r.close(ctx, err)
	}
	in := bufio.NewReader(plain)
	kind, err := framing.Detect(info.Framing, resp.Header.Get("Content-Type"), in)
	if err != nil {
		f := r.fail(messages.ErrorKind_ERROR_KIND_SERVER, "the server sent a web page in place of an answer", err)
		f.Hint = "Check the base_url of the source."
		return true, f
	}
	r.streamed = kind != framing.JSON
	rd, err := framing.New(kind, in, r.c.o.MaxAnswer)
	if err != nil {
		return true, r.fail(messages.ErrorKind_ERROR_KIND_ADAPTER, err.Error(), err)
	}
	for {
		ev, err := rd.Next()
		if errors.Is(err, io.EOF) {
			return r.end(ctx, kind)
		}
		if err != nil {
			return r.close(ctx, bare(err))
		}
		r.events++
		var pieces []Piece
		if kind == framing.JSON {
			pieces, err = r.ex.Answer(ctx, ev.Data)
		} else {
			pieces, err = r.ex.Event(ctx, ev)
		}
		if err != nil && ev.Partial && ctx.Err() == nil {
			// Half an event at the end of the body is no fault of the adapter.
			return r.close(ctx, err)
		}
		if err != nil {
			return true, r.settle(ctx, err)
		}
		if f := r.take(ctx, pieces); f != nil {
			return true, f
		}
		if r.asm.done {
			return r.end(ctx, kind)
		}
	}
}

// end lets the adapter add what it kept, then decides.
func (r *run) end(ctx context.Context, kind framing.Kind) (bool, *Failure) {
	if kind != framing.JSON {
		pieces, err := r.ex.End(ctx)
		if err != nil {
			return true, r.settle(ctx, err)
		}
		if f := r.take(ctx, pieces); f != nil {
			return true, f
		}
	}
	return r.close(ctx, nil)
}

// maxRefusal is how much of an error body is read.
const maxRefusal = 256 << 10

func (r *run) refused(ctx context.Context, resp *http.Response) *Failure {
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return &Failure{
			Kind: messages.ErrorKind_ERROR_KIND_CONNECT, Status: resp.StatusCode,
			Message: "the server redirects to another address, which is not followed", Hint: "Set the source's base_url to the final address.",
		}
	}
	plain, err := unpacked(resp)
	if err != nil {
		plain = resp.Body
	}
	text, err := io.ReadAll(io.LimitReader(plain, maxRefusal))
	if err != nil && ctx.Err() != nil {
		return r.settle(ctx, err)
	}
	e := HTTPError{Status: resp.StatusCode, Body: text, Headers: lower(resp.Header)}
	f, err := r.ex.Classify(ctx, e)
	if err != nil {
		return r.settle(ctx, err)
	}
	if f == nil {
		f = &Fault{Message: http.StatusText(resp.StatusCode)}
	}
	return r.fault(f, resp.StatusCode, resp.Header)
}

// maxTail and tailTime bound the reading of what a server sends after its end
// mark, which is what lets the connection be used again.
const (
	maxTail  = 4 << 10
	tailTime = 250 * time.Millisecond
)

// drain closes the response. After a finished stream it first reads the tail,
// aside, because the caller has the answer already.
func (r *run) drain(ctx context.Context, cancel context.CancelCauseFunc, resp *http.Response) {
	if !r.asm.done || ctx.Err() != nil {
		_ = resp.Body.Close()
		return
	}
	r.c.mu.Lock()
	if r.c.closed {
		r.c.mu.Unlock()
		_ = resp.Body.Close()
		return
	}
	r.c.tails.Add(1)
	r.c.mu.Unlock()
	r.tail = true
	inner := resp.Body.(*body).ReadCloser
	timer := time.AfterFunc(tailTime, func() { _ = inner.Close() })
	go func() {
		defer r.c.tails.Done()
		defer cancel(nil)
		_, _ = io.CopyN(io.Discard, inner, maxTail)
		timer.Stop()
		_ = inner.Close()
	}()
}

// bare takes the URL out of a transport error: a query may hold a key.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

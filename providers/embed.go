package providers

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net/http/httptrace"
	"strings"
	"time"

	"homeagent/messages"
)

// Purposes of embeddings, for vendors that make a difference.
const (
	// EmbedDocument is for texts that will be searched.
	EmbedDocument = "document"
	// EmbedQuery is for texts that search.
	EmbedQuery = "query"
)

// EmbedOptions say what embeddings are asked for.
type EmbedOptions struct {
	// Purpose is EmbedDocument or EmbedQuery; empty is EmbedDocument.
	Purpose string
	// Dimensions of the vectors; 0 leaves them to the model. A server that gives
	// others is refused.
	Dimensions int
}

// Embeddings are vectors of texts.
type Embeddings struct {
	// Vectors, one for each text in its order, all of the same length, of finite
	// numbers. They are as the server gave them, not normalised.
	Vectors [][]float32
	// Dimensions of each.
	Dimensions int
	// Fingerprint names what made them: vectors of different fingerprints must
	// not be compared. 16 hexadecimal digits.
	Fingerprint string
	// Tokens that were counted; 0 when not said.
	Tokens int64
}

// MaxEmbed is how many texts may go into one request.
const MaxEmbed = 256

// Embed asks a source for embeddings of texts, with the time limits of the
// source. The error is a *Failure.
func (c *Client) Embed(ctx context.Context, src Source, texts []string, o EmbedOptions) (*Embeddings, error) {
	src = src.filled()
	if o.Purpose == "" {
		o.Purpose = EmbedDocument
	}
	r := &run{c: c, src: &src, req: &messages.CompletionRequest{CallId: "embed"}}
	out, err := r.embed(ctx, texts, o)
	if err == nil {
		return out, nil
	}
	fail := r.settle(ctx, err)
	fail.Source = src.Name
	if fail.Hint == "" {
		fail.Hint = Hint(fail.Kind)
	}
	return nil, fail
}

func (r *run) embed(outer context.Context, texts []string, o EmbedOptions) (*Embeddings, error) {
	if len(texts) == 0 || len(texts) > MaxEmbed {
		return nil, fmt.Errorf("%w: %d texts; legal are 1 to %d", ErrRequest, len(texts), MaxEmbed)
	}
	for i, t := range texts {
		if strings.TrimSpace(t) == "" {
			return nil, fmt.Errorf("%w: text %d is empty", ErrRequest, i)
		}
	}
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	total := time.AfterFunc(r.src.Total, func() { cancel(errTotal) })
	defer total.Stop()
	a, err := r.ready()
	if err != nil {
		return nil, err
	}
	r.key = r.src.key().Reveal()
	if r.ex, err = a.Open(ctx, r.src, &Request{CompletionRequest: r.req}, r.fetch); err != nil {
		return nil, err
	}
	defer r.ex.Close()
	prep, err := r.ex.PrepareEmbed(ctx, texts, o)
	if err != nil {
		return nil, err
	}
	body, err := r.ask(ctx, cancel, a.Info(), prep)
	if err != nil {
		return nil, r.settle(ctx, err)
	}
	got, err := r.ex.Embeddings(ctx, body)
	if err != nil {
		return nil, err
	}
	if got.Fault != nil {
		return nil, r.fault(got.Fault, 0, nil)
	}
	return r.checked(got, len(texts), o)
}

// ask makes one plain request and gives the body of its answer.
func (r *run) ask(ctx context.Context, cancel context.CancelCauseFunc, info Info, prep *Prepared) ([]byte, error) {
	r.watch = newWatch(cancel, r.src)
	defer r.watch.stop()
	hr, err := r.request(httptrace.WithClientTrace(ctx, r.watch.trace()), info, prep)
	if err != nil {
		return nil, err
	}
	resp, err := r.c.http.Do(hr)
	if err != nil {
		kind, text := kindOfTransport(ctx, err)
		return nil, r.fail(kind, text, bare(err))
	}
	resp.Body = &body{ReadCloser: resp.Body, w: r.watch}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return nil, r.refused(ctx, resp)
	}
	plain, err := unpacked(resp)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(plain, int64(r.c.o.MaxAnswer)+1))
	if err != nil {
		return nil, r.fail(messages.ErrorKind_ERROR_KIND_SERVER, "the answer broke off", bare(err))
	}
	if len(b) > r.c.o.MaxAnswer {
		return nil, r.fail(messages.ErrorKind_ERROR_KIND_SERVER, "the answer is larger than allowed", nil)
	}
	return b, nil
}

// checked makes sure that vectors can be stored beside each other.
func (r *run) checked(got *Embedded, texts int, o EmbedOptions) (*Embeddings, error) {
	bad := func(format string, args ...any) (*Embeddings, error) {
		return nil, r.fail(messages.ErrorKind_ERROR_KIND_SERVER, fmt.Sprintf(format, args...), nil)
	}
	if len(got.Vectors) != texts {
		return bad("the server gave %d embeddings for %d texts", len(got.Vectors), texts)
	}
	out := &Embeddings{Vectors: got.Vectors, Dimensions: len(got.Vectors[0]), Tokens: got.Tokens}
	for i, v := range got.Vectors {
		if len(v) == 0 || len(v) != out.Dimensions {
			return bad("embedding %d has %d dimensions, the first has %d", i, len(v), out.Dimensions)
		}
		for _, f := range v {
			if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
				return bad("embedding %d has an element that is no finite number", i)
			}
		}
	}
	if o.Dimensions > 0 && out.Dimensions != o.Dimensions {
		return bad("the server gave embeddings of %d dimensions, %d were asked for", out.Dimensions, o.Dimensions)
	}
	out.Fingerprint = Fingerprint(r.src.Adapter, r.src.Model, out.Dimensions)
	return out, nil
}

// Fingerprint names what makes embeddings: the adapter, the model and the number
// of dimensions.
func Fingerprint(adapter, model string, dimensions int) string {
	return hex.EncodeToString(hash(fmt.Sprintf("%d:%s %d:%s %d", len(adapter), adapter, len(model), model, dimensions))[:8])
}

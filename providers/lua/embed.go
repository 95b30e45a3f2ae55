package lua

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"homeagent/internal/luavm"
	"homeagent/messages"
	"homeagent/providers"
)

// PrepareEmbed implements providers.Exchange.
func (x *exchange) PrepareEmbed(ctx context.Context, texts []string, o providers.EmbedOptions) (*providers.Prepared, error) {
	if !x.a.info.Embeds {
		return nil, &providers.Failure{
			Kind:    messages.ErrorKind_ERROR_KIND_INVALID_REQUEST,
			Message: fmt.Sprintf("the adapter %s makes no embeddings", x.a.info.Name),
		}
	}
	list := x.vm.Array()
	for _, t := range texts {
		list.Append(luavm.Str(t))
	}
	req := x.vm.Object().Set("texts", list).Set("purpose", luavm.Str(o.Purpose)).Set("dimensions", count(o.Dimensions))
	v, err := x.call(ctx, fnEmbedRequest, req, x.source)
	if err != nil {
		return nil, err
	}
	if v.Kind() != luavm.Table {
		return nil, x.bad(fnEmbedRequest, "must return a table")
	}
	if err := x.extra(v); err != nil {
		return nil, err
	}
	p := &providers.Prepared{Model: x.src.Model, Base: x.base, Region: x.options.Get("region").Text()}
	if p.Endpoint, err = x.endpoint(ctx, fnEmbedEndpoint, req); err != nil {
		return nil, err
	}
	if p.Body, err = x.vm.Encode(v); err != nil {
		return nil, x.bad(fnEmbedRequest, "%s", err)
	}
	p.Headers, err = x.headers(ctx)
	return p, err
}

// Embeddings implements providers.Exchange.
func (x *exchange) Embeddings(ctx context.Context, body []byte) (*providers.Embedded, error) {
	v, err := x.vm.Decode(body)
	if err != nil {
		return nil, &providers.Failure{
			Kind: messages.ErrorKind_ERROR_KIND_SERVER, Message: "the server's answer is no JSON: " + err.Error(),
		}
	}
	out, err := x.call(ctx, fnEmbedResponse, v, x.source)
	if err != nil {
		return nil, err
	}
	if out.Kind() != luavm.Table {
		return nil, x.bad(fnEmbedResponse, "must return a table")
	}
	if e := out.Get("error"); !e.Missing() {
		f, err := fault(e)
		if err != nil {
			return nil, x.bad(fnEmbedResponse, "%s", err)
		}
		return &providers.Embedded{Fault: f}, nil
	}
	got := &providers.Embedded{}
	got.Tokens, _ = out.Get("usage").Get("input").Int()
	list := out.Get("vectors")
	for i := 1; i <= list.Len(); i++ {
		vec, err := vector(list.At(i))
		if err != nil {
			return nil, &providers.Failure{
				Kind: messages.ErrorKind_ERROR_KIND_SERVER, Message: fmt.Sprintf("embedding %d: %s", i, err),
			}
		}
		got.Vectors = append(got.Vectors, vec)
	}
	return got, nil
}

// vector reads a list of numbers, or base64 of little-endian 32-bit floats.
func vector(v luavm.Value) ([]float32, error) {
	if v.Kind() == luavm.String {
		b, err := base64.StdEncoding.DecodeString(v.Text())
		if err != nil || len(b)%4 != 0 {
			return nil, fmt.Errorf("no base64 of 32-bit floats")
		}
		out := make([]float32, len(b)/4)
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		return out, nil
	}
	out := make([]float32, 0, v.Len())
	for i := 1; i <= v.Len(); i++ {
		f, ok := v.At(i).Float()
		if !ok {
			return nil, fmt.Errorf("its element %d is no number", i)
		}
		out = append(out, float32(f))
	}
	return out, nil
}

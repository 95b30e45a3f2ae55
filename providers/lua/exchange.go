package lua

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"homeagent/internal/luavm"
	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/framing"
)

// adapter is one loaded file.
type adapter struct {
	info providers.Info
	pool *luavm.Pool
	// options is the JSON text of the adapter's own options.
	options []byte
}

// Info implements providers.Adapter.
func (a *adapter) Info() providers.Info { return a.info }

// close drops the interpreters that are idle.
func (a *adapter) close() { a.pool.Close() }

// Open implements providers.Adapter. The interpreter is the call's own until
// Close, so that two streams can never mix.
func (a *adapter) Open(ctx context.Context, src *providers.Source, req *providers.Request, fetch providers.Fetch) (providers.Exchange, error) {
	vm, err := a.pool.Get(ctx)
	if err != nil {
		return nil, failed(a.info.Name, err)
	}
	x := &exchange{a: a, vm: vm, src: src, req: req, fetch: fetch, state: vm.Object()}
	if err := x.fill(); err != nil {
		a.pool.Put(vm)
		return nil, err
	}
	vm.SetOwner(x)
	return x, nil
}

// fill makes the tables that a script is given in every call.
func (x *exchange) fill() error {
	options, err := x.vm.Decode(x.a.options)
	if err != nil {
		return x.bad("options", "%s", err)
	}
	if len(bytes.TrimSpace(x.src.Options)) > 0 {
		own, err := x.vm.Decode(x.src.Options)
		if err != nil {
			return &providers.Failure{Kind: messages.ErrorKind_ERROR_KIND_INVALID_REQUEST, Message: "options of the source: " + err.Error()}
		}
		overlay(options, own)
	}
	x.options = options
	if x.base, err = x.baseURL(); err != nil {
		return err
	}
	x.source, x.request = x.sourceTable(), x.requestTable()
	return nil
}

var place = regexp.MustCompile(`\{([a-z_]+)\}`)

// baseURL gives the source's own base, or the adapter's with its places filled
// from the options.
func (x *exchange) baseURL() (string, error) {
	if x.src.BaseURL != "" || x.a.info.Local {
		return x.src.BaseURL, nil
	}
	missing := ""
	base := place.ReplaceAllStringFunc(x.a.info.BaseURL, func(p string) string {
		v := x.options.Get(p[1 : len(p)-1]).Text()
		if !label.MatchString(v) {
			missing = p[1 : len(p)-1]
		}
		return v
	})
	if base == "" || missing != "" {
		need := "base_url"
		if missing != "" {
			need += ", or the option " + missing
		}
		return "", &providers.Failure{
			Kind:    messages.ErrorKind_ERROR_KIND_INVALID_REQUEST,
			Message: fmt.Sprintf("the adapter %s has no default address for this source", x.a.info.Name),
			Hint:    "Set " + need + " of the source.",
		}
	}
	return base, nil
}

// label is what may stand at a place of a base: never a slash or an at sign,
// which would lead elsewhere.
var label = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

type exchange struct {
	a       *adapter
	vm      *luavm.State
	src     *providers.Source
	req     *providers.Request
	fetch   providers.Fetch
	base    string
	options luavm.Value
	request luavm.Value
	source  luavm.Value
	state   luavm.Value
}

// Close implements providers.Exchange.
func (x *exchange) Close() {
	x.vm.SetOwner(nil)
	x.a.pool.Put(x.vm)
}

func (x *exchange) call(ctx context.Context, fn string, args ...luavm.Value) (luavm.Value, error) {
	v, err := x.vm.Call(ctx, x.vm.Exports().Get(fn), args...)
	if err != nil {
		return v, failed(x.a.info.Name, err)
	}
	return v, nil
}

func (x *exchange) bad(fn, format string, args ...any) error {
	return broken(x.a.info.Name, fmt.Errorf("%s: %s: %s", x.a.info.File, fn, fmt.Sprintf(format, args...)))
}

// Prepare implements providers.Exchange. For an adapter that answers by itself
// the body is the request as it sees it.
func (x *exchange) Prepare(ctx context.Context) (*providers.Prepared, error) {
	if x.a.info.Local {
		b, err := x.vm.Encode(x.request)
		if err != nil {
			return nil, x.bad(fnRespond, "%s", err)
		}
		return &providers.Prepared{Body: b, Model: x.src.Model}, nil
	}
	v, err := x.call(ctx, fnRequest, x.request, x.source)
	if err != nil {
		return nil, err
	}
	if v.Kind() != luavm.Table {
		return nil, x.bad(fnRequest, "must return a table")
	}
	if err := x.extra(v); err != nil {
		return nil, err
	}
	p := &providers.Prepared{Model: v.Get("model").Text(), Base: x.base, Region: x.options.Get("region").Text()}
	if p.Model == "" {
		p.Model = x.src.Model
	}
	if p.Body, err = x.vm.Encode(v); err != nil {
		return nil, x.bad(fnRequest, "%s", err)
	}
	if p.Endpoint, err = x.endpoint(ctx, fnEndpoint, x.request); err != nil {
		return nil, err
	}
	p.Headers, err = x.headers(ctx)
	return p, err
}

// extra merges the source's own fields into a body.
func (x *exchange) extra(body luavm.Value) error {
	if len(bytes.TrimSpace(x.src.Extra)) == 0 {
		return nil
	}
	v, err := x.vm.Decode(x.src.Extra)
	if err != nil {
		return &providers.Failure{Kind: messages.ErrorKind_ERROR_KIND_INVALID_REQUEST, Message: "extra_body of the source: " + err.Error()}
	}
	x.vm.Merge(body, v)
	return nil
}

func (x *exchange) endpoint(ctx context.Context, field string, req luavm.Value) (string, error) {
	v := x.vm.Exports().Get(field)
	if v.Kind() == luavm.String {
		return v.Text(), nil
	}
	v, err := x.call(ctx, field, req, x.source)
	if err == nil && v.Kind() != luavm.String {
		err = x.bad(field, "must return a text")
	}
	return v.Text(), err
}

func (x *exchange) headers(ctx context.Context) (map[string]string, error) {
	if x.vm.Exports().Get(fnHeaders).Kind() == luavm.Nil {
		return nil, nil
	}
	v, err := x.call(ctx, fnHeaders, x.source, x.request)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string)
	v.Each(func(name string, val luavm.Value) bool {
		if val.Kind() != luavm.String {
			err = x.bad(fnHeaders, "%s must be a text", name)
			return false
		}
		out[name] = val.Text()
		return true
	})
	return out, err
}

// Event implements providers.Exchange.
func (x *exchange) Event(ctx context.Context, ev framing.Event) ([]providers.Piece, error) {
	t := x.vm.Object().Set("event", luavm.Str(ev.Name)).Set("data", luavm.Str(string(ev.Data)))
	v, isJSON, err := x.payload(ev.Data)
	if err != nil {
		return nil, &providers.Failure{
			Kind: messages.ErrorKind_ERROR_KIND_SERVER, Message: "the server sent an event that is no JSON: " + err.Error(),
		}
	}
	if isJSON {
		t.Set("json", v)
	}
	if ev.Partial {
		t.Set("partial", luavm.Boolean(true))
	}
	if ev.Exception {
		t.Set("exception", luavm.Boolean(true))
	}
	out, err := x.call(ctx, fnChunk, t, x.state, x.source)
	if err != nil {
		return nil, err
	}
	return x.pieces(fnChunk, out)
}

// payload decodes what looks like JSON. "[DONE]" looks like it and is not.
func (x *exchange) payload(data []byte) (luavm.Value, bool, error) {
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return luavm.Value{}, false, nil
	}
	v, err := x.vm.Decode(trimmed)
	if err != nil && trimmed[0] == '[' {
		return v, false, nil
	}
	return v, true, err
}

// Answer implements providers.Exchange.
func (x *exchange) Answer(ctx context.Context, body []byte) ([]providers.Piece, error) {
	if x.a.info.Local {
		out, err := x.call(ctx, fnRespond, x.request, x.source)
		if err != nil {
			return nil, err
		}
		return x.pieces(fnRespond, out)
	}
	v, err := x.vm.Decode(body)
	if err != nil {
		return nil, &providers.Failure{
			Kind: messages.ErrorKind_ERROR_KIND_SERVER, Message: "the server's answer is no JSON: " + err.Error(),
		}
	}
	out, err := x.call(ctx, fnResponse, v, x.state, x.source, luavm.Str(string(body)))
	if err != nil {
		return nil, err
	}
	return x.pieces(fnResponse, out)
}

// End implements providers.Exchange.
func (x *exchange) End(ctx context.Context) ([]providers.Piece, error) {
	out, err := x.call(ctx, fnChunk, x.vm.Object().Set("event", luavm.Str("@end")), x.state, x.source)
	if err != nil {
		return nil, err
	}
	return x.pieces(fnChunk, out)
}

// Classify implements providers.Exchange.
func (x *exchange) Classify(ctx context.Context, e providers.HTTPError) (*providers.Fault, error) {
	if x.vm.Exports().Get(fnClassify).Kind() == luavm.Nil {
		return nil, nil
	}
	plain := bytes.TrimPrefix(e.Body, []byte("\xef\xbb\xbf"))
	body := luavm.Str(string(plain))
	if json.Valid(plain) {
		if v, err := x.vm.Decode(plain); err == nil && v.Kind() == luavm.Table {
			body = v
		}
	}
	v, err := x.call(ctx, fnClassify, luavm.Num(float64(e.Status)), headerTable(x.vm, e.Headers), body, x.source)
	if err != nil || v.Missing() {
		return nil, err
	}
	f, err := fault(v)
	if err != nil {
		return nil, x.bad(fnClassify, "%s", err)
	}
	return f, nil
}

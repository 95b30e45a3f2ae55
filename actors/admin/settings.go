package admin

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
	"homeagent/messages/api"
)

func (f *face) valuesOf(ctx context.Context, m proto.Message) ([]api.Value, *refusal) {
	got, no := ask[*messages.ConfigValues](f, ctx, askLimit, "config", m)
	if no != nil {
		return nil, no
	}
	if got.GetError() != nil {
		return nil, refusalOf(got.GetError())
	}
	return list(got.GetValues(), value), nil
}

// values is GET /api/v1/config?prefix=.
func (f *face) values(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	vs, no := f.valuesOf(r.Context(), &messages.ConfigList{Prefix: r.URL.Query().Get("prefix")})
	if no != nil {
		return nil, no
	}
	return api.Values{Values: vs}, nil
}

// value is GET /api/v1/config/{key}.
func (f *face) value(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	key := r.PathValue("key")
	vs, no := f.valuesOf(r.Context(), &messages.ConfigGet{Key: key})
	if no != nil {
		return nil, no
	}
	if len(vs) == 0 {
		return nil, refused(404, "unknown_key", "There is no key "+key+".", "GET /api/v1/config lists all.").with("key", key)
	}
	return vs[0], nil
}

// entry reads a wanted value; null means back to the default.
func entry(key string, raw json.RawMessage) (*messages.ConfigEntry, *refusal) {
	e := &messages.ConfigEntry{Key: key}
	if string(raw) == "null" {
		return e, nil
	}
	if len(raw) == 0 || raw[0] == '{' || raw[0] == '[' {
		return nil, malformed("A value is a string, a number, true, false, or null for the default.",
			"Write lists as one string with commas.").with("key", key)
	}
	text := api.Plain(raw)
	e.Value = &text
	return e, nil
}

func (f *face) set(ctx context.Context, values map[string]json.RawMessage) (any, *refusal) {
	if len(values) == 0 {
		return nil, malformed("No values are given.", "Send values: {key: value}.").with("field", "values")
	}
	m := &messages.ConfigSet{Principal: owner()}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		e, no := entry(key, values[key])
		if no != nil {
			return nil, no
		}
		m.Entries = append(m.Entries, e)
	}
	got, no := ask[*messages.ConfigSetResult](f, context.WithoutCancel(ctx), submitLimit, "config", m)
	if no != nil {
		return nil, no
	}
	if got.GetError() != nil {
		return nil, refusalOf(got.GetError())
	}
	restart := got.GetRestart()
	if restart == nil {
		restart = []string{}
	}
	return api.ValuesSet{Values: list(got.GetValues(), value), Restart: restart}, nil
}

// setValues is PUT /api/v1/config: all or none.
func (f *face) setValues(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	var s api.SetValues
	if no := decode(w, r, &s, true); no != nil {
		return nil, no
	}
	return f.set(r.Context(), s.Values)
}

// setValue is PUT /api/v1/config/{key}.
func (f *face) setValue(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	var s api.SetValue
	if no := decode(w, r, &s, true); no != nil {
		return nil, no
	}
	return f.set(r.Context(), map[string]json.RawMessage{r.PathValue("key"): s.Value})
}

func (f *face) sourcesOf(ctx context.Context) (*api.Sources, *refusal) {
	got, no := ask[*messages.SourceList](f, ctx, askLimit, "providers", &messages.ListSources{})
	if no != nil {
		return nil, no
	}
	return &api.Sources{Sources: list(got.GetSources(), sourceView), Found: list(got.GetFound(), source)}, nil
}

// sources is GET /api/v1/providers.
func (f *face) sources(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	s, no := f.sourcesOf(r.Context())
	if no != nil {
		return nil, no
	}
	return s, nil
}

// source is GET /api/v1/providers/{name}.
func (f *face) source(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	all, no := f.sourcesOf(r.Context())
	if no != nil {
		return nil, no
	}
	name := r.PathValue("name")
	at := slices.IndexFunc(all.Sources, func(s api.SourceView) bool { return s.Name == name })
	if at < 0 {
		return nil, refused(404, "unknown_source", "There is no source "+name+".", "GET /api/v1/providers lists all.").
			with("name", name)
	}
	return all.Sources[at], nil
}

// addSource is POST /api/v1/providers. A source that does not work and was not forced is an error, not a success
// without effect.
func (f *face) addSource(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	var a api.AddSource
	if no := decode(w, r, &a, true); no != nil {
		return nil, no
	}
	for field, n := range map[string]int{
		"priority": a.Priority, "max_concurrent": a.MaxConcurrent, "context_window": a.ContextWindow,
	} {
		if n < -1<<30 || n > 1<<30 || (n < 0 && field != "priority") {
			return nil, malformed("The number is out of range.", "").with("field", field)
		}
	}
	got, no := ask[*messages.SourceTested](f, r.Context(), testLimit, "providers", &messages.AddSource{
		Spec: &messages.SourceSpec{
			Name: a.Name, Adapter: a.Adapter, BaseUrl: a.BaseURL, Model: a.Model, Priority: int32(a.Priority),
			MaxConcurrent: int32(a.MaxConcurrent), ContextWindow: int32(a.ContextWindow), Enabled: !a.Disabled,
		},
		ApiKey: a.APIKey, Force: a.Force,
	})
	if no != nil {
		return nil, no
	}
	if !got.GetSaved() {
		return nil, testFailed(got)
	}
	return answer{http.StatusCreated, tested(got)}, nil
}

// testFailed is the answer to a source that was not kept.
func testFailed(t *messages.SourceTested) *refusal {
	no := refused(422, "source_test_failed", "The source did not answer its test; it was not kept.",
		"Check its address, model and key, or send force to keep it anyway.")
	f := failure(t.GetFailure())
	if f == nil {
		return no
	}
	no.with("kind", f.Kind)
	if f.Message != "" {
		no.with("reason", f.Message)
		no.body.Message = "The source was not kept, since its test failed: " + f.Message + "."
	}
	if f.Hint != "" {
		no.body.Hint = f.Hint
	}
	return no
}

// removeSource is DELETE /api/v1/providers/{name}.
func (f *face) removeSource(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.change(r, &messages.RemoveSource{Name: r.PathValue("name")})
}

// resetSource is POST /api/v1/providers/{name}/reset.
func (f *face) resetSource(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.change(r, &messages.ResetSource{Name: r.PathValue("name")})
}

// useSource is POST /api/v1/providers/{name}/use.
func (f *face) useSource(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.change(r, &messages.UseSource{Name: r.PathValue("name")})
}

// change does what is answered with Ok, and shows what sources there are then.
func (f *face) change(r *http.Request, m proto.Message) (any, *refusal) {
	if _, no := ask[*messages.Ok](f, context.WithoutCancel(r.Context()), askLimit, "providers", m); no != nil {
		return nil, no
	}
	return f.sources(nil, r)
}

// testSource is POST /api/v1/providers/{name}/test.
func (f *face) testSource(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	got, no := ask[*messages.SourceTested](f, r.Context(), testLimit, "providers",
		&messages.TestSource{Name: r.PathValue("name")})
	if no != nil {
		return nil, no
	}
	return tested(got), nil
}

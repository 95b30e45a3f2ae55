package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
	"homeagent/messages/api"
)

// answer is a success with a status of its own.
type answer struct {
	status int
	body   any
}

// plain is a route that answers with JSON once.
type plain func(w http.ResponseWriter, r *http.Request) (any, *refusal)

// plains are the routes that answer with JSON once. docs/http.md describes them.
func (f *face) plains() map[string]plain {
	return map[string]plain{
		"POST /api/v1/inputs":                 f.submit,
		"GET /api/v1/inputs/{id}":             f.input,
		"POST /api/v1/stop":                   f.stopAgent,
		"GET /api/v1/actors":                  f.tree,
		"GET /api/v1/actors/{path...}":        f.actor,
		"POST /api/v1/actors/{path...}":       f.order,
		"GET /api/v1/scheduler":               f.scheduler,
		"PUT /api/v1/scheduler/{id}":          f.changeWaiting,
		"POST /api/v1/scheduler/{id}/promote": f.promote,
		"POST /api/v1/scheduler/{id}/cancel":  f.cancelWaiting,
		"GET /api/v1/agents":                  f.agents,
		"POST /api/v1/agents":                 f.createAgent,
		"GET /api/v1/agents/{agent...}":       f.agent,
		"DELETE /api/v1/agents/{agent...}":    f.destroyAgent,
		"GET /api/v1/memory":                  f.memory,
		"GET /api/v1/memory/why":              f.memoryWhy,
		"POST /api/v1/memory/facts":           f.writeFacts,
		"GET /api/v1/config":                  f.values,
		"PUT /api/v1/config":                  f.setValues,
		"GET /api/v1/config/{key}":            f.value,
		"PUT /api/v1/config/{key}":            f.setValue,
		"GET /api/v1/providers":               f.sources,
		"POST /api/v1/providers":              f.addSource,
		"GET /api/v1/providers/{name}":        f.source,
		"DELETE /api/v1/providers/{name}":     f.removeSource,
		"POST /api/v1/providers/{name}/test":  f.testSource,
		"POST /api/v1/providers/{name}/reset": f.resetSource,
		"POST /api/v1/providers/{name}/use":   f.useSource,
		"GET /api/v1/plugins":                 f.plugins,
		"GET /api/v1/plugins/{name}":          f.plugin,
		"POST /api/v1/plugins/{name}/enable":  f.enablePlugin,
		"POST /api/v1/plugins/{name}/disable": f.disablePlugin,
		"GET /api/v1/approvals":               f.approvals,
		"GET /api/v1/approvals/{id}":          f.approval,
		"POST /api/v1/approvals/{id}/allow":   f.allow,
		"POST /api/v1/approvals/{id}/deny":    f.deny,
		"GET /api/v1/tokens":                  f.listTokens,
		"POST /api/v1/tokens":                 f.addToken,
		"DELETE /api/v1/tokens/{name}":        f.removeToken,
		"GET /api/v1/timers":                  f.timers,
		"POST /api/v1/timers":                 f.addTimer,
		"GET /api/v1/timers/{id}":             f.timer,
		"DELETE /api/v1/timers/{id}":          f.removeTimer,
		"POST /api/v1/timers/{id}/pause":      f.pauseTimer,
		"POST /api/v1/timers/{id}/resume":     f.resumeTimer,
		"POST /api/v1/timers/{id}/run":        f.runTimer,
		"GET /api/v1/channels":                f.channels,
		"GET /api/v1/nodes":                   f.nodes,
		"GET /api/v1/status":                  f.status,
		"GET /api/v1/usage":                   f.usage,
		"GET /healthz":                        f.healthz,
		"GET /readyz":                         f.readyz,
		"GET /v1/models":                      f.models,
	}
}

// others are the routes that write in their own way.
func (f *face) others() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /api/v1/events":        http.HandlerFunc(f.events),
		"GET /api/v1/backup":        http.HandlerFunc(f.backup),
		"POST /v1/chat/completions": http.HandlerFunc(f.chat),
		"POST /v1/messages":         http.HandlerFunc(f.messages),
		"GET /metrics":              f.deps.Metrics.Handler(),
	}
}

// routes builds the one handler of both listeners.
func (f *face) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, do := range f.plains() {
		mux.Handle(pattern, f.counted(pattern, f.righted(pattern, f.json(do))))
	}
	for pattern, h := range f.others() {
		mux.Handle(pattern, f.counted(pattern, f.righted(pattern, h)))
	}
	mux.Handle("/", f.counted("other", f.nowhere(mux)))
	return f.named(f.isolated(f.guarded(mux)))
}

func (f *face) json(do plain) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, no := do(w, r)
		if no != nil {
			f.refuse(w, r, no)
			return
		}
		if a, ok := v.(answer); ok {
			writeJSON(w, a.status, a.body)
			return
		}
		writeJSON(w, http.StatusOK, v)
	})
}

// nowhere answers what no route takes: 405 where another method would be taken, else 404.
func (f *face) nowhere(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var allow []string
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			other := &http.Request{Method: method, Host: r.Host, URL: r.URL}
			if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
				allow = append(allow, method)
			}
		}
		if len(allow) == 0 {
			f.refuse(w, r, refused(404, api.CodeNotFound, "There is no such route.", "See docs/http.md for the routes.").
				with("path", r.URL.Path))
			return
		}
		w.Header().Set("Allow", strings.Join(allow, ", "))
		f.refuse(w, r, refused(405, api.CodeMethod, "This route does not take "+r.Method+".",
			"Use "+strings.Join(allow, " or ")+"."))
	})
}

// decode reads a JSON body into v. strict refuses fields that v does not have.
func decode(w http.ResponseWriter, r *http.Request, v any, strict bool) *refusal {
	d := json.NewDecoder(r.Body)
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.Join(errTrailing, more)
		}
	}
	// What follows may take longer than a body: the connection must not be given up meanwhile.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	var typed *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return refused(413, api.CodeTooLarge, "The body is larger than "+strconv.FormatInt(large.Limit, 10)+" bytes.",
			"Send less at once.")
	case errors.As(err, &typed):
		return malformed("The field "+typed.Field+" can not be a JSON "+typed.Value+".", "See docs/http.md for its type.").
			with("field", typed.Field)
	case errors.Is(err, io.EOF):
		return malformed("The body is empty.", "Send a JSON object.")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		field := strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`)
		return malformed("There is no field "+field+" here.", "See docs/http.md for the fields.").with("field", field)
	}
	return malformed("The body is not the JSON that this route takes.", "Send one JSON object, UTF-8, complete.")
}

var errTrailing = errors.New("more than one JSON value")

// Deadlines of questions to actors.
const (
	askLimit    = 10 * time.Second
	submitLimit = 30 * time.Second
	testLimit   = 90 * time.Second
)

// ask puts a question to an actor and takes an answer of type T. Who asks is a person at an HTTP connection: when it
// goes away, the question is still answered, only nobody hears it.
func ask[T proto.Message](f *face, ctx context.Context, limit time.Duration, path string, m proto.Message) (T, *refusal) {
	var none T
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	got, err := f.deps.Runtime.Ask(ctx, kit.Path(path), m)
	if err != nil {
		return none, refusalFrom(err).with("actor", path)
	}
	switch v := got.(type) {
	case T:
		return v, nil
	case *messages.Error:
		return none, refusalOf(v)
	case *messages.Busy:
		return none, refused(429, api.CodeBusy, "The actor asked has too much to do.", "Try again.").with("actor", path)
	}
	return none, refused(500, api.CodeInternal, "The node gave an answer of another kind.", "The log tells more.").
		caused(errors.New("unexpected answer "+string(got.ProtoReflect().Descriptor().Name()))).with("actor", path)
}

// owner is whom the socket and the token of the data folder stand for.
func owner() *messages.Principal {
	return &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER}
}

// agentPath is the form of an agent's path.
var agentPath = regexp.MustCompile(`^main(/resident/[a-z0-9][a-z0-9-]{0,31})*$`)

// agentOf reads an agent path; empty means main, a bare name means a resident of main.
func agentOf(s string) (string, *refusal) {
	switch {
	case s == "":
		return "main", nil
	case agentPath.MatchString(s):
		return s, nil
	case agentPath.MatchString("main/resident/" + s):
		return "main/resident/" + s, nil
	}
	return "", refused(400, "bad_agent", "This is no path of an agent.",
		"Use main, main/resident/<name>, or the bare name of a resident.").with("agent", s)
}

// number reads a query parameter between low and high.
func number(r *http.Request, name string, fallback, low, high int) (int, *refusal) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		return 0, malformed("The parameter "+name+" must be a number from "+strconv.Itoa(low)+" to "+strconv.Itoa(high)+".", "").
			with("parameter", name)
	}
	return n, nil
}

// flag reads a query parameter that is true or false.
func flag(r *http.Request, name string) (bool, *refusal) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, malformed("The parameter "+name+" must be true or false.", "").with("parameter", name)
	}
	return b, nil
}

// eventTypes reads a list of event types, separated by commas.
func eventTypes(s string) ([]messages.EventType, *refusal) {
	var out []messages.EventType
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		n, ok := messages.EventType_value["EVENT_TYPE_"+strings.ToUpper(name)]
		if !ok || n == 0 || strings.ToLower(name) != name {
			return nil, malformed("There is no event type "+name+".", "Types are "+strings.Join(typeNames(), ", ")+".").
				with("type", name)
		}
		out = append(out, messages.EventType(n))
	}
	return out, nil
}

func typeNames() []string {
	var names []string
	for n := range messages.EventType_name {
		if w := eventType(messages.EventType(n)); w != "" {
			names = append(names, w)
		}
	}
	slices.Sort(names)
	return names
}

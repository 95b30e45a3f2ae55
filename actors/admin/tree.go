package admin

import (
	"context"
	"net/http"
	"strings"

	"homeagent/messages"
	"homeagent/messages/api"
)

// tree is GET /api/v1/actors.
func (f *face) tree(http.ResponseWriter, *http.Request) (any, *refusal) {
	return actorInfo(f.deps.Runtime.Tree()), nil
}

// find looks for a path below a.
func find(a *messages.ActorInfo, path string) *messages.ActorInfo {
	if a.GetPath() == path {
		return a
	}
	for _, c := range a.GetChildren() {
		if p := c.GetPath(); p == path || strings.HasPrefix(path, p+"/") {
			if got := find(c, path); got != nil {
				return got
			}
		}
	}
	return nil
}

func noActor(path string) *refusal {
	return refused(404, "unknown_actor", "There is no actor at this path now.", "`waiter tree`, or GET /api/v1/actors, shows all.").
		with("path", path)
}

// actor is GET /api/v1/actors/{path}: its figures and what it shows of its state. An actor that is too busy to show it
// has no inner; its figures tell why.
func (f *face) actor(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	path := strings.Trim(r.PathValue("path"), "/")
	info := find(f.deps.Runtime.Tree(), path)
	if info == nil {
		return nil, noActor(path)
	}
	out := actorInfo(info)
	got, no := ask[*messages.Inspected](f, r.Context(), askLimit/5, path, &messages.Inspect{})
	switch {
	case no == nil:
		if b := got.GetStateJson(); len(b) > 0 {
			out.Inner = b
		}
	case path == "": // the root has no machine
	case no.body.Code == api.CodeUnavailable:
		return nil, noActor(path) // it ended in between
	}
	return out, nil
}

// order is POST /api/v1/actors/{path}/{stop|restart|pause|resume}. The pattern can not split at the last slash itself.
func (f *face) order(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	whole := strings.Trim(r.PathValue("path"), "/")
	at := strings.LastIndexByte(whole, '/')
	if at < 0 {
		at = 0
	}
	path, verb := strings.Trim(whole[:at], "/"), strings.Trim(whole[at:], "/")
	act, ok := map[string]func(context.Context, string) error{
		"stop": f.deps.Runtime.Stop, "restart": f.deps.Runtime.Restart,
		"pause": f.deps.Runtime.Pause, "resume": f.deps.Runtime.Resume,
	}[verb]
	if !ok || path == "" {
		return nil, refused(404, api.CodeNotFound, "There is no such order.",
			"POST /api/v1/actors/<path>/stop, restart, pause or resume.").with("path", whole)
	}
	if _, ok := f.deps.Runtime.Actor(path); !ok {
		return nil, noActor(path)
	}
	// Not cut short by a client that goes away: the log says that it was ordered.
	if err := act(context.WithoutCancel(r.Context()), path); err != nil {
		return nil, refusalFrom(err).with("path", path)
	}
	f.log().Info("actor ordered", "request_id", requestID(r), "order", verb, "path", path)
	if info, ok := f.deps.Runtime.Actor(path); ok {
		return actorInfo(info), nil
	}
	return api.Actor{Path: path, Node: f.deps.Node, State: "stopped", Children: []api.Actor{}}, nil
}

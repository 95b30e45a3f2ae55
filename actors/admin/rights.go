package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"homeagent/messages"
	"homeagent/messages/api"
)

// right is what somebody must hold to use a route.
type right int

const (
	// forOwner are routes for the owner alone; a route that the table does not name is one.
	forOwner right = iota
	// forDeciders are for the owner and for people who may decide approvals (core.guard.deciders).
	forDeciders
	// forAskers are for everybody with a credential. Such a route shows and touches, of what others than the owner may,
	// only what is the asker's own.
	forAskers
	// forAll answer without a credential.
	forAll
)

// rights is the one table of who may use which route.
var rights = map[string]right{
	"POST /api/v1/inputs":       forAskers,
	"GET /api/v1/inputs/{id}":   forAskers,
	"POST /api/v1/stop":         forAskers,
	"GET /api/v1/events":        forAskers,
	"POST /v1/chat/completions": forAskers,
	"POST /v1/messages":         forAskers,
	"GET /v1/models":            forAskers,

	"PUT /api/v1/scheduler/{id}":          forAskers,
	"POST /api/v1/scheduler/{id}/promote": forAskers,
	"POST /api/v1/scheduler/{id}/cancel":  forAskers,

	"GET /api/v1/approvals":             forDeciders,
	"GET /api/v1/approvals/{id}":        forDeciders,
	"POST /api/v1/approvals/{id}/allow": forDeciders,
	"POST /api/v1/approvals/{id}/deny":  forDeciders,

	"GET /api/v1/tokens":                  forOwner,
	"POST /api/v1/tokens":                 forOwner,
	"DELETE /api/v1/tokens/{name}":        forOwner,
	"GET /api/v1/actors":                  forOwner,
	"GET /api/v1/actors/{path...}":        forOwner,
	"POST /api/v1/actors/{path...}":       forOwner,
	"GET /api/v1/scheduler":               forOwner,
	"GET /api/v1/agents":                  forOwner,
	"POST /api/v1/agents":                 forOwner,
	"GET /api/v1/agents/{agent...}":       forOwner,
	"DELETE /api/v1/agents/{agent...}":    forOwner,
	"GET /api/v1/memory":                  forOwner,
	"GET /api/v1/memory/why":              forOwner,
	"POST /api/v1/memory/facts":           forOwner,
	"GET /api/v1/config":                  forOwner,
	"PUT /api/v1/config":                  forOwner,
	"GET /api/v1/config/{key}":            forOwner,
	"PUT /api/v1/config/{key}":            forOwner,
	"GET /api/v1/providers":               forOwner,
	"POST /api/v1/providers":              forOwner,
	"GET /api/v1/providers/{name}":        forOwner,
	"DELETE /api/v1/providers/{name}":     forOwner,
	"POST /api/v1/providers/{name}/test":  forOwner,
	"POST /api/v1/providers/{name}/reset": forOwner,
	"POST /api/v1/providers/{name}/use":   forOwner,
	"GET /api/v1/plugins":                 forOwner,
	"GET /api/v1/plugins/{name}":          forOwner,
	"POST /api/v1/plugins/{name}/enable":  forOwner,
	"POST /api/v1/plugins/{name}/disable": forOwner,
	"GET /api/v1/timers":                  forOwner,
	"POST /api/v1/timers":                 forOwner,
	"GET /api/v1/timers/{id}":             forOwner,
	"DELETE /api/v1/timers/{id}":          forOwner,
	"POST /api/v1/timers/{id}/pause":      forOwner,
	"POST /api/v1/timers/{id}/resume":     forOwner,
	"POST /api/v1/timers/{id}/run":        forOwner,
	"GET /api/v1/channels":                forOwner,
	"GET /api/v1/nodes":                   forOwner,
	"GET /api/v1/status":                  forOwner,
	"GET /api/v1/usage":                   forOwner,
	"GET /api/v1/backup":                  forOwner,
	"GET /metrics":                        forOwner,

	"GET /healthz": forAll,
	"GET /readyz":  forAll,
}

// holds tells whether somebody holds a right.
func (f *face) holds(who *messages.Principal, need right) bool {
	person := who.GetKind() == messages.PrincipalKind_PRINCIPAL_KIND_PERSON && who.GetId() != ""
	switch {
	case need == forAll || isOwner(who):
		return true
	case need == forDeciders:
		return person && f.deps.Decides != nil && f.deps.Decides(who)
	case need == forAskers:
		return person || who.GetKind() == messages.PrincipalKind_PRINCIPAL_KIND_TOKEN && who.GetId() != ""
	}
	return false
}

// righted lets only those through who hold the right of the route.
func (f *face) righted(pattern string, next http.Handler) http.Handler {
	need := rights[pattern]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.holds(asker(r), need) {
			f.refuse(w, r, notAllowed("This is not for "+asker(r).GetId()+".",
				"A token may hand over inputs, follow and stop its own, and use /v1/chat/completions; ask the owner for the rest."))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func notAllowed(message, hint string) *refusal {
	return refused(http.StatusForbidden, api.CodeNotAllowed, message, hint)
}

type askerKey struct{}

// asker is who asks, by the credential of the request.
func asker(r *http.Request) *messages.Principal {
	who, _ := r.Context().Value(askerKey{}).(*messages.Principal)
	return who
}

func isOwner(p *messages.Principal) bool {
	return p.GetKind() == messages.PrincipalKind_PRINCIPAL_KIND_OWNER && p.GetId() != ""
}

// ownConversation gives others than the owner conversations of their own: what is said in one is read in its turns, and a
// stop of one ends them.
func ownConversation(who *messages.Principal, name string) string {
	switch {
	case isOwner(who):
		return name
	case name == "":
		return who.GetId()
	}
	return who.GetId() + "/" + name
}

// shownConversation is the name by which somebody knows a conversation of their own.
func shownConversation(who *messages.Principal, name string) string {
	if isOwner(who) {
		return name
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, who.GetId()), "/")
}

// askerChannels are those that others than the owner may speak in: what is answered there reaches only who asks.
var askerChannels = []string{"api", "cli", "web"}

// maxAskerLevel is the highest level that others than the owner may ask for: they do not interrupt the owner.
const maxAskerLevel = 2

// bound keeps an input of others than the owner to what they may.
func bound(who *messages.Principal, in *messages.Input) *refusal {
	switch {
	case isOwner(who):
	case in.GetAgent() != "main":
		return notAllowed("Only the main agent takes inputs of "+who.GetId()+".", "Leave the agent out.").with("field", "agent")
	case !slices.Contains(askerChannels, in.GetChannel()):
		return notAllowed("The channel "+in.GetChannel()+" is not for "+who.GetId()+".", "Use api, cli or web.").with("field", "channel")
	case in.GetLevel() > maxAskerLevel || in.GetMode() == messages.Mode_MODE_INTERRUPT:
		return refused(http.StatusForbidden, api.CodeLevel, "Only the owner interrupts what runs.", "Use at most level 2, and the mode steer or queue.")
	}
	return nil
}

// askerTypes are the events that others than the owner see of their own tasks: what they said, what they are answered, and
// how it goes. Prompts, tool calls and approvals hold what is not theirs.
var askerTypes = []messages.EventType{
	messages.EventType_EVENT_TYPE_RAW_INPUT, messages.EventType_EVENT_TYPE_AGENT_OUTPUT, messages.EventType_EVENT_TYPE_REASONING_DELTA,
	messages.EventType_EVENT_TYPE_CONTENT_DELTA, messages.EventType_EVENT_TYPE_STAGE, messages.EventType_EVENT_TYPE_AGENT_ERROR,
	messages.EventType_EVENT_TYPE_TASK,
}

// own tells which tasks are somebody's own. One stream uses it, on one goroutine.
type own struct {
	f     *face
	who   *messages.Principal
	tasks map[string]bool
}

// ownOf is the filter of somebody's streams; nil for the owner, who sees everything.
func (f *face) ownOf(who *messages.Principal) *own {
	if isOwner(who) {
		return nil
	}
	return &own{f: f, who: who, tasks: make(map[string]bool)}
}

// knownTasks bounds what a stream remembers.
const knownTasks = 4096

// has asks the ledger about a task once. What it does not answer is nobody's.
func (o *own) has(ctx context.Context, task string) bool {
	if task == "" {
		return false
	}
	mine, known := o.tasks[task]
	if known {
		return mine
	}
	s, no := ask[*messages.TaskStatus](o.f, ctx, askLimit, "ledger", &messages.TaskQuery{InputId: task})
	if no != nil && no.body.Code != "unknown_input" {
		return false
	}
	if len(o.tasks) >= knownTasks {
		clear(o.tasks)
	}
	mine = no == nil && s.GetInput().GetPrincipal().GetId() == o.who.GetId()
	o.tasks[task] = mine
	return mine
}

// narrow keeps a stream of others than the owner to what they may see. The filter by task works on each event.
func (o *own) narrow(ctx context.Context, ask *opened) *refusal {
	if len(ask.Types) == 0 {
		ask.Types = askerTypes
	}
	for _, t := range ask.Types {
		if !slices.Contains(askerTypes, t) {
			return notAllowed("Events of type "+eventType(t)+" are not for "+o.who.GetId()+".", "Leave types out for those that are.").with("type", eventType(t))
		}
	}
	if ask.Task != "" && !o.has(ctx, ask.Task) {
		return unknownInput()
	}
	return nil
}

func unknownInput() *refusal {
	return refused(http.StatusNotFound, "unknown_input", "There is no such input.", "Check the id.")
}

// view is an event as its owner knows it.
func (o *own) view(e *api.Event) *api.Event {
	e.Conversation = shownConversation(o.who, e.Conversation)
	if e.Output != nil {
		e.Output.Conversation = shownConversation(o.who, e.Output.Conversation)
	}
	return e
}

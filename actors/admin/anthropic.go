package admin

import (
	"net/http"
	"strings"

	"homeagent/messages"
	"homeagent/messages/api"
)

// messagesOf reads a request into an input.
func (f *face) messagesOf(w http.ResponseWriter, r *http.Request) (*api.MessagesRequest, *messages.Input, *refusal) {
	var q api.MessagesRequest
	if no := decode(w, r, &q, false); no != nil {
		return nil, nil, no
	}
	switch {
	case len(q.Tools) > 0:
		return nil, nil, unsupported("tools", noTools)
	case len(q.OutputFormat) > 0 && string(q.OutputFormat) != "null":
		return nil, nil, unsupported("output_format", "Answers are text of no given form.")
	}
	in, no := f.heard(r, asked{turns: q.Messages, model: q.Model, conversation: q.Metadata.UserID})
	return &q, in, no
}

// messages is POST /v1/messages.
func (f *face) messages(w http.ResponseWriter, r *http.Request) {
	q, in, no := f.messagesOf(w, r)
	if no != nil {
		f.refuse(w, r, no)
		return
	}
	f.complete(w, r, in, q.Stream, func(id string) dialect {
		m := &message{id: "msg_" + id, model: q.Model}
		if m.model == "" {
			m.model = modelName
		}
		return m
	})
}

// message is the dialect of /v1/messages. What the model thinks is not shown in it: its form wants a signature that only
// the model's vendor can give.
type message struct {
	id, model string
}

func (m *message) answer(t *api.Task) *api.MessagesResponse {
	out := &api.MessagesResponse{ID: m.id, Type: "message", Role: "assistant", Model: m.model, Content: []api.MessagesBlock{}}
	if t != nil {
		stop := "end_turn"
		out.StopReason, out.Usage = &stop, messagesUsage(t.Usage)
		out.Content = append(out.Content, api.MessagesBlock{Type: "text", Text: t.Text})
	}
	return out
}

func messagesUsage(u *api.Usage) api.MessagesUsage {
	if u == nil {
		return api.MessagesUsage{}
	}
	return api.MessagesUsage{InputTokens: u.Prompt, OutputTokens: u.Output}
}

func (m *message) whole(t *api.Task) any { return m.answer(t) }

func frame(out *frames, e api.MessagesEvent) { out.add("", e.Type, e) }

func (m *message) begin(out *frames) {
	var first int
	frame(out, api.MessagesEvent{Type: "message_start", Message: m.answer(nil)})
	frame(out, api.MessagesEvent{Type: "content_block_start", Index: &first, ContentBlock: &api.MessagesBlock{Type: "text"}})
}

func (m *message) say(out *frames, text string) {
	var first int
	frame(out, api.MessagesEvent{Type: "content_block_delta", Index: &first, Delta: api.MessagesBlock{Type: "text_delta", Text: text}})
}

func (m *message) think(*frames, string) {}

func (m *message) beat(out *frames) { frame(out, api.MessagesEvent{Type: "ping"}) }

func (m *message) finish(out *frames, t *api.Task) {
	var first int
	u := messagesUsage(t.Usage)
	frame(out, api.MessagesEvent{Type: "content_block_stop", Index: &first})
	frame(out, api.MessagesEvent{Type: "message_delta", Delta: api.MessagesEnd{StopReason: "end_turn"}, Usage: &u})
	frame(out, api.MessagesEvent{Type: "message_stop"})
}

func (m *message) fail(out *frames, no *refusal) { out.add("", "error", messagesError(no, "")) }

// messagesKinds are the types of errors of that interface by status.
var messagesKinds = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error",
}

func messagesError(no *refusal, request string) api.MessagesError {
	out := api.MessagesError{Type: "error", RequestID: request}
	if out.Error.Type = messagesKinds[no.status]; out.Error.Type == "" {
		out.Error.Type = "api_error"
		if no.status < 500 {
			out.Error.Type = "invalid_request_error"
		}
	}
	out.Error.Message = spoken(no)
	return out
}

// vendorError is the body of a refusal in the form of the vendor's interface that a request speaks; nil where it speaks the
// node's own.
func vendorError(r *http.Request, no *refusal) any {
	switch {
	case !strings.HasPrefix(r.URL.Path, "/v1/"):
		return nil
	case strings.HasPrefix(r.URL.Path, "/v1/messages") || r.Header.Get("Anthropic-Version") != "":
		return messagesError(no, requestID(r))
	}
	return chatError(no)
}

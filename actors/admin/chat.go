package admin

import (
	"net/http"
	"slices"
	"time"

	"homeagent/messages"
	"homeagent/messages/api"
)

// models is GET /v1/models: each agent is a model.
func (f *face) models(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	l, no := f.agentsOf(r.Context(), "main")
	if no != nil {
		return nil, no
	}
	out := api.Models{Object: "list", Data: []api.Model{}}
	for i, a := range l.GetAgents() {
		if i > 0 && !isOwner(asker(r)) {
			break // residents are the owner's
		}
		id := a.GetSpec().GetAgent()
		if i == 0 {
			id = modelName
		}
		created := a.GetSpec().GetCreatedUs() / 1e6
		if created == 0 {
			created = f.deps.Started.Unix()
		}
		out.Data = append(out.Data, api.Model{ID: id, Object: "model", Created: created, OwnedBy: f.deps.Node})
	}
	return out, nil
}

// grantable refuses wishes that an agent can not grant.
func grantable(q *api.ChatWishes) *refusal {
	switch {
	case len(q.Tools) > 0:
		return unsupported("tools", noTools)
	case len(q.Functions) > 0:
		return unsupported("functions", noTools)
	case q.N != nil && *q.N != 1:
		return unsupported("n", "There is one answer to an input.")
	case q.Logprobs:
		return unsupported("logprobs", "Probabilities are not known here.")
	case slices.ContainsFunc(q.Modalities, func(m string) bool { return m != "text" }):
		return unsupported("modalities", "Answers are text.")
	case q.ResponseFormat != nil && q.ResponseFormat.Type != "text" && q.ResponseFormat.Type != "":
		return unsupported("response_format", "Answers are text of no given form.")
	}
	return nil
}

// chatOf reads a request into an input.
func (f *face) chatOf(w http.ResponseWriter, r *http.Request) (*api.ChatRequest, *messages.Input, *refusal) {
	var q api.ChatRequest
	if no := decode(w, r, &q, false); no != nil {
		return nil, nil, no
	}
	if no := grantable(&q.ChatWishes); no != nil {
		return nil, nil, no
	}
	in, no := f.heard(r, asked{turns: q.Messages, model: q.Model, conversation: q.User})
	return &q, in, no
}

// chat is POST /v1/chat/completions.
func (f *face) chat(w http.ResponseWriter, r *http.Request) {
	q, in, no := f.chatOf(w, r)
	if no != nil {
		f.refuse(w, r, no)
		return
	}
	f.complete(w, r, in, q.Stream, func(id string) dialect {
		c := &chat{id: "chatcmpl-" + id, model: q.Model, created: time.Now().Unix(), usage: q.StreamOptions != nil && q.StreamOptions.IncludeUsage}
		if c.model == "" {
			c.model = modelName
		}
		return c
	})
}

// chat is the dialect of /v1/chat/completions.
type chat struct {
	id, model string
	created   int64
	// usage asks for a last chunk with the usage.
	usage bool
}

func chatUsage(u *api.Usage) api.ChatUsage {
	if u == nil {
		return api.ChatUsage{}
	}
	return api.ChatUsage{PromptTokens: u.Prompt, CompletionTokens: u.Output, TotalTokens: u.Prompt + u.Output}
}

func (c *chat) whole(t *api.Task) any {
	return api.ChatResponse{
		ID: c.id, Object: "chat.completion", Created: c.created, Model: c.model,
		Choices: []api.ChatChoice{{Message: api.ChatAnswer{Role: "assistant", Content: t.Text}, FinishReason: "stop"}},
		Usage:   chatUsage(t.Usage),
	}
}

func (c *chat) chunk(d api.ChunkDelta, finish *string) api.ChatChunk {
	return api.ChatChunk{
		ID: c.id, Object: "chat.completion.chunk", Created: c.created, Model: c.model,
		Choices: []api.ChunkPiece{{Delta: d, FinishReason: finish}},
	}
}

func (c *chat) begin(out *frames) { out.add("", "", c.chunk(api.ChunkDelta{Role: "assistant"}, nil)) }

func (c *chat) say(out *frames, text string) {
	out.add("", "", c.chunk(api.ChunkDelta{Content: text}, nil))
}

func (c *chat) think(out *frames, text string) {
	out.add("", "", c.chunk(api.ChunkDelta{ReasoningContent: text}, nil))
}

func (c *chat) beat(out *frames) { out.raw(": heartbeat\n\n") }

func (c *chat) finish(out *frames, t *api.Task) {
	stop := "stop"
	out.add("", "", c.chunk(api.ChunkDelta{}, &stop))
	if c.usage {
		u := chatUsage(t.Usage)
		last := c.chunk(api.ChunkDelta{}, nil)
		last.Choices, last.Usage = []api.ChunkPiece{}, &u
		out.add("", "", last)
	}
	out.raw("data: [DONE]\n\n")
}

func (c *chat) fail(out *frames, no *refusal) {
	out.add("", "", chatError(no))
	out.raw("data: [DONE]\n\n")
}

func chatError(no *refusal) api.ChatError {
	kind := "api_error"
	switch {
	case no.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case no.status == http.StatusUnauthorized:
		kind = "authentication_error"
	case no.status == http.StatusForbidden:
		kind = "permission_error"
	case no.status >= 400 && no.status < 500:
		kind = "invalid_request_error"
	}
	return api.ChatError{Error: api.ChatErrorBody{
		Message: spoken(no), Type: kind, Code: no.body.Code, Param: no.body.Details["field"],
	}}
}

// spoken is the message with its hint, for interfaces that have one text.
func spoken(no *refusal) string {
	if no.body.Hint == "" {
		return no.body.Message
	}
	return no.body.Message + " " + no.body.Hint
}

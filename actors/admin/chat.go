package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"homeagent/messages"
	"homeagent/messages/api"
)

// modelName is how the main agent is called as a model.
const modelName = "homeagent"

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

// lastUser is the text of the last message of role user.
func lastUser(turns []api.ChatTurn) (string, *refusal) {
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].Role != "user" {
			continue
		}
		var text string
		if json.Unmarshal(turns[i].Content, &text) == nil && text != "" {
			return text, nil
		}
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(turns[i].Content, &parts) != nil || len(parts) == 0 {
			return "", malformed("The content of the last message is neither text nor a list of parts.", "")
		}
		var texts []string
		for _, p := range parts {
			if p.Type != "text" {
				return "", refused(400, "unsupported_block", "Parts of type "+p.Type+" are not taken.", "Send parts of type text.")
			}
			texts = append(texts, p.Text)
		}
		return strings.Join(texts, "\n"), nil
	}
	return "", malformed("There is no message of role user.", "The last one becomes the input of the agent.")
}

// chatOf reads a request into an input.
func (f *face) chatOf(w http.ResponseWriter, r *http.Request) (*api.ChatRequest, *messages.Input, *refusal) {
	if f.draining.Load() {
		return nil, nil, drainingRefusal()
	}
	var q api.ChatRequest
	if no := decode(w, r, &q, false); no != nil {
		return nil, nil, no
	}
	text, no := lastUser(q.Messages)
	if no != nil {
		return nil, nil, no
	}
	s := &api.Submit{Text: text, Agent: q.Model, Conversation: q.User, Mode: "queue", Wait: true}
	if q.Model == modelName {
		s.Agent = ""
	}
	if c := r.Header.Get("X-Conversation"); c != "" {
		s.Conversation = c
	}
	s.IdempotencyKey = r.Header.Get("Idempotency-Key")
	in, no := f.inputOf(asker(r), s)
	if no != nil && no.body.Code == "bad_agent" {
		no = refused(404, "model_not_found", "There is no agent of this name.", "GET /v1/models lists all.").
			with("model", q.Model)
	}
	return &q, in, no
}

// chat is POST /v1/chat/completions.
func (f *face) chat(w http.ResponseWriter, r *http.Request) {
	q, in, no := f.chatOf(w, r)
	if no != nil {
		f.refuseChat(w, no)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), defaultWait)
	defer cancel()
	watch, got, no := f.handWatched(ctx, in, messages.EventType_EVENT_TYPE_TASK,
		messages.EventType_EVENT_TYPE_CONTENT_DELTA, messages.EventType_EVENT_TYPE_REASONING_DELTA,
		messages.EventType_EVENT_TYPE_STAGE)
	if no != nil {
		f.refuseChat(w, no)
		return
	}
	defer watch.close()
	c := &chatAnswer{f: f, w: w, id: "chatcmpl-" + got.InputID, model: q.Model, created: time.Now().Unix()}
	if c.model == "" {
		c.model = modelName
	}
	if q.Stream {
		c.stream(ctx, watch, q.StreamOptions != nil && q.StreamOptions.IncludeUsage)
		return
	}
	c.whole(ctx, watch)
}

// chatAnswer writes the answer of one completion.
type chatAnswer struct {
	f       *face
	w       http.ResponseWriter
	id      string
	model   string
	created int64
}

// endRefusal is the refusal for a task that did not end answered; nil for one that did.
func endRefusal(t *api.Task) *refusal {
	status := map[string]int{"refused": 403, "stopped": 409, "expired": 504, "failed": 502}
	switch {
	case t == nil:
		return refused(504, api.CodeTimeout, "The answer did not come in time; the agent goes on with it.",
			"GET /api/v1/inputs/{id} tells how it ends.")
	case t.End == "answered":
		return nil
	case t.End == "duplicate":
		return refused(409, "duplicate", "The same input is being answered already.", "")
	}
	code := t.Reason
	if code == "" {
		code = t.End
	}
	message := t.Text
	if message == "" {
		message = "The task ended as " + t.End + "."
	}
	s, ok := status[t.End]
	if !ok {
		s = 500
	}
	return refused(s, code, message, "").with("input_id", t.InputID).with("end", t.End)
}

func chatUsage(u *api.Usage) api.ChatUsage {
	if u == nil {
		return api.ChatUsage{}
	}
	return api.ChatUsage{PromptTokens: u.Prompt, CompletionTokens: u.Output, TotalTokens: u.Prompt + u.Output}
}

func (c *chatAnswer) whole(ctx context.Context, w *watch) {
	t, no := w.end(ctx, nil)
	if no == nil {
		no = endRefusal(t)
	}
	if no != nil {
		c.f.refuseChat(c.w, no)
		return
	}
	writeJSON(c.w, http.StatusOK, api.ChatResponse{
		ID: c.id, Object: "chat.completion", Created: c.created, Model: c.model,
		Choices: []api.ChatChoice{{Message: api.ChatAnswer{Role: "assistant", Content: t.Text}, FinishReason: "stop"}},
		Usage:   chatUsage(t.Usage),
	})
}

func (c *chatAnswer) chunk(d api.ChunkDelta, finish *string) api.ChatChunk {
	return api.ChatChunk{
		ID: c.id, Object: "chat.completion.chunk", Created: c.created, Model: c.model,
		Choices: []api.ChunkPiece{{Delta: d, FinishReason: finish}},
	}
}

// stream writes chunks as the answer comes. What was sent can not be taken back: a call that is made again shows
// nothing twice as long as it says the same, and a final text that differs is sent whole, set apart.
func (c *chatAnswer) stream(ctx context.Context, w *watch, usage bool) {
	out := newFrames(c.w)
	out.add("", "", c.chunk(api.ChunkDelta{Role: "assistant"}, nil))
	if !out.flush() {
		return
	}
	var text api.Text
	say := func(piece string, joint api.Joint) {
		if piece == "" {
			return
		}
		if joint != api.Joined {
			piece = "\n\n" + piece
		}
		out.add("", "", c.chunk(api.ChunkDelta{Content: piece}, nil))
	}
	t, no := w.end(ctx, func(e *messages.AgentEvent) bool {
		switch {
		case e == nil:
			out.raw(": heartbeat\n\n")
		case e.GetType() == messages.EventType_EVENT_TYPE_CONTENT_DELTA:
			say(text.Add(e.GetText()))
		case e.GetType() == messages.EventType_EVENT_TYPE_REASONING_DELTA && e.GetText() != "":
			out.add("", "", c.chunk(api.ChunkDelta{ReasoningContent: e.GetText()}, nil))
		case e.GetTask().GetChange() == "suspended":
			text.Restart()
		case e.GetStage().GetStage() == messages.Stage_STAGE_POST_ACTION:
			text.Round()
		}
		return out.flush()
	})
	if no == nil {
		no = endRefusal(t)
	}
	if no != nil {
		out.add("", "", chatError(no))
	} else {
		c.finish(out, &text, t, say, usage)
	}
	out.raw("data: [DONE]\n\n")
	out.flush()
	out.end()
}

func (c *chatAnswer) finish(out *frames, text *api.Text, t *api.Task, say func(string, api.Joint), usage bool) {
	say(text.Finish(t.Text))
	stop := "stop"
	out.add("", "", c.chunk(api.ChunkDelta{}, &stop))
	if usage {
		u := chatUsage(t.Usage)
		last := c.chunk(api.ChunkDelta{}, nil)
		last.Choices, last.Usage = []api.ChunkPiece{}, &u
		out.add("", "", last)
	}
}

// refuseChat answers in the form of that interface.
func (f *face) refuseChat(w http.ResponseWriter, no *refusal) {
	f.retryAfter(w, no)
	writeJSON(w, no.status, chatError(no))
}

func chatError(no *refusal) api.ChatError {
	kind := "api_error"
	switch {
	case no.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case no.status >= 400 && no.status < 500:
		kind = "invalid_request_error"
	}
	message := no.body.Message
	if no.body.Hint != "" {
		message += " " + no.body.Hint
	}
	return api.ChatError{Error: api.ChatErrorBody{
		Message: message, Type: kind, Code: no.body.Code, Param: no.body.Details["field"],
	}}
}

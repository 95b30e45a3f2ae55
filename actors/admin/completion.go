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

// dialect is the form in which a vendor's interface answers. It belongs to one request.
type dialect interface {
	// whole is the body of an answer in one piece.
	whole(t *api.Task) any
	// begin, say, think and beat add to a stream; text that is not joined to what was said is set apart already.
	begin(out *frames)
	say(out *frames, text string)
	think(out *frames, text string)
	beat(out *frames)
	// finish ends a stream, fail ends it with an error.
	finish(out *frames, t *api.Task)
	fail(out *frames, no *refusal)
}

// asked is a request in the form of a vendor's interface, with what all of them have.
type asked struct {
	turns               []api.ChatTurn
	model, conversation string
}

// lastUser is the text of the last message, which must be one of role user but for those that an assistant is to go on
// with: what it would have to go on with is not the agent's.
func lastUser(turns []api.ChatTurn) (string, *refusal) {
	for i := len(turns) - 1; i >= 0; i-- {
		switch turns[i].Role {
		case "user":
			return userText(turns[i].Content)
		case "tool", "function":
			return "", refused(400, "unsupported_parameter", "Results of tools are not taken: the agent runs its own.",
				"End with a message of role user.").with("field", "messages")
		}
	}
	return "", malformed("There is no message of role user.", "The last one becomes the input of the agent.").with("field", "messages")
}

func userText(content json.RawMessage) (string, *refusal) {
	var text string
	if json.Unmarshal(content, &text) == nil && text != "" {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil || len(parts) == 0 {
		return "", malformed("The content of the last message is neither text nor a list of parts.", "").with("field", "messages")
	}
	var texts []string
	for _, p := range parts {
		if p.Type != "text" {
			return "", refused(400, "unsupported_block", "Parts of type "+p.Type+" are not taken.", "Send parts of type text.").
				with("field", "messages")
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n"), nil
}

// unsupported refuses a field that asks for what an agent can not grant.
func unsupported(field, why string) *refusal {
	return refused(400, "unsupported_parameter", why, "Leave "+field+" out.").with("field", field)
}

// noTools is the reason why tools of a client are refused: the call would have to leave the turn and come back as another
// request, of which the agent would know only by the client's word.
const noTools = "The agent has tools of its own and does not call those of a client."

// heard makes the input of a request.
func (f *face) heard(r *http.Request, q asked) (*messages.Input, *refusal) {
	if f.draining.Load() {
		return nil, drainingRefusal()
	}
	text, no := lastUser(q.turns)
	if no != nil {
		return nil, no
	}
	s := &api.Submit{
		Text: text, Agent: q.model, Conversation: q.conversation, Mode: "queue", Wait: true,
		IdempotencyKey: r.Header.Get("Idempotency-Key"),
	}
	if q.model == modelName {
		s.Agent = ""
	}
	if c := r.Header.Get("X-Conversation"); c != "" {
		s.Conversation = c
	}
	in, no := f.inputOf(asker(r), s)
	if no != nil && no.body.Code == "bad_agent" {
		no = unknownModel(q.model)
	}
	return in, no
}

func unknownModel(name string) *refusal {
	return refused(404, "model_not_found", "There is no agent of the name "+name+".", "GET /v1/models lists all.").
		with("model", name).with("field", "model")
}

// complete has an input answered in a dialect; make is told the id of the input.
func (f *face) complete(w http.ResponseWriter, r *http.Request, in *messages.Input, stream bool, make func(id string) dialect) {
	ctx, cancel := context.WithTimeout(r.Context(), defaultWait)
	defer cancel()
	watch, got, no := f.handWatched(ctx, in, messages.EventType_EVENT_TYPE_TASK,
		messages.EventType_EVENT_TYPE_CONTENT_DELTA, messages.EventType_EVENT_TYPE_REASONING_DELTA,
		messages.EventType_EVENT_TYPE_STAGE)
	if no != nil {
		if no.status == http.StatusNotFound && in.GetAgent() != "main" {
			no = unknownModel(in.GetAgent())
		}
		f.refuse(w, r, no)
		return
	}
	defer watch.close()
	a := &answering{f: f, w: w, r: r, in: in, id: got.InputID, d: make(got.InputID)}
	if stream {
		a.stream(ctx, watch)
		return
	}
	a.whole(ctx, watch)
}

// answering writes the answer to one input.
type answering struct {
	f  *face
	w  http.ResponseWriter
	r  *http.Request
	in *messages.Input
	// id is that of the input that is answered: an earlier one, where its key was repeated.
	id string
	d  dialect
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

// whole answers in one piece.
func (a *answering) whole(ctx context.Context, w *watch) {
	t, no := w.end(ctx, nil)
	if a.left(t) {
		return
	}
	if no == nil {
		no = endRefusal(t)
	}
	if no != nil {
		// The agent has heard it: a client that asks again by itself would say it twice.
		a.w.Header().Set("X-Should-Retry", "false")
		a.f.refuse(a.w, a.r, no)
		return
	}
	writeJSON(a.w, http.StatusOK, a.d.whole(t))
}

// stream writes the answer as it comes. What was sent can not be taken back: a call that is made again shows nothing twice
// as long as it says the same, and a final text that differs is sent whole, set apart.
func (a *answering) stream(ctx context.Context, w *watch) {
	out := newFrames(a.w)
	a.d.begin(out)
	out.flush()
	var text api.Text
	say := func(piece string, joint api.Joint) {
		if piece == "" {
			return
		}
		if joint != api.Joined {
			piece = "\n\n" + piece
		}
		a.d.say(out, piece)
	}
	t, no := w.end(ctx, func(e *messages.AgentEvent) bool {
		switch {
		case e == nil:
			a.d.beat(out)
		case e.GetType() == messages.EventType_EVENT_TYPE_CONTENT_DELTA:
			say(text.Add(e.GetText()))
		case e.GetType() == messages.EventType_EVENT_TYPE_REASONING_DELTA && e.GetText() != "":
			a.d.think(out, e.GetText())
		case e.GetTask().GetChange() == "suspended":
			text.Restart()
		case e.GetStage().GetStage() == messages.Stage_STAGE_POST_ACTION:
			text.Round()
		}
		return out.flush()
	})
	if out.dead || a.left(t) {
		a.abandon()
		return
	}
	if no == nil {
		no = endRefusal(t)
	}
	if no != nil {
		a.d.fail(out, no)
	} else {
		say(text.Finish(t.Text))
		a.d.finish(out, t)
	}
	out.flush()
	out.end()
}

// left says that the client has gone before the end t, and has the answer stopped then.
func (a *answering) left(t *api.Task) bool {
	if t != nil || a.r.Context().Err() == nil {
		return false
	}
	a.abandon()
	return true
}

// abandonTries bounds how often an answer is looked for that moves on while it is looked for.
const abandonTries = 5

// abandon stops the answer that nobody waits for any more, as clients of these interfaces expect of a closed connection. A
// client that gave a key means to come back.
func (a *answering) abandon() {
	if a.in.GetIdempotencyKey() != "" || a.id != a.in.GetId() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.r.Context()), askLimit)
	defer cancel()
	turn := "agents/" + a.in.GetAgent() + "/turn/" + a.id
	for range abandonTries {
		if _, running := a.f.deps.Runtime.Actor(turn); running {
			if err := a.f.deps.Runtime.Stop(ctx, turn); err == nil {
				break
			}
			continue // it ended meanwhile, or is parked now
		}
		_, no := ask[*messages.TaskView](a.f, ctx, askLimit, "agents/"+a.in.GetAgent()+"/scheduler", &messages.EditQueue{
			InputId: a.id, Principal: a.in.GetPrincipal(), Edit: messages.QueueEdit_QUEUE_EDIT_CANCEL,
		})
		if no == nil || no.body.Code != "not_waiting" {
			break
		}
		if t, no := a.f.taskOf(ctx, a.id); no != nil || t.End != "" {
			break
		}
		// Its turn begins just now.
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	a.f.log().Info("the client of an answer has gone", "request_id", requestID(a.r), "input_id", a.id)
}

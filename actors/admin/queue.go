package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
	"homeagent/messages/api"
)

// listedWaiting is how many waiting tasks are listed when nothing else is asked for.
const listedWaiting = 1000

// schedulerOf asks an agent's scheduler for its figures, with the first most of what waits, and sees in the tree in which
// phase the turn that runs is.
func (f *face) schedulerOf(ctx context.Context, of string, most int) (*api.Scheduler, *refusal) {
	s, no := ask[*messages.SchedulerState](f, ctx, askLimit, "agents/"+of+"/scheduler",
		&messages.SchedulerQuery{Most: int32(most)})
	if no != nil {
		return nil, agentGone(of, no)
	}
	out := scheduler(s)
	f.seePhase(of, out)
	return out, nil
}

// seePhase joins the word that the turn itself shows: a turn tells its scheduler nothing of its phases, which would cost
// a message each.
func (f *face) seePhase(of string, s *api.Scheduler) {
	if s.Running == nil {
		return
	}
	info, ok := f.deps.Runtime.Actor("agents/" + of + "/turn/" + s.Running.TaskID)
	if !ok {
		return
	}
	if _, phase := messages.Phase_value["PHASE_"+strings.ToUpper(info.GetState())]; phase {
		s.Running.Phase = info.GetState()
	}
}

// scheduler is GET /api/v1/scheduler?agent=&most=.
func (f *face) scheduler(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	of, no := agentOf(r.URL.Query().Get("agent"))
	if no != nil {
		return nil, no
	}
	most, no := number(r, "most", listedWaiting, 1, 1<<20)
	if no != nil {
		return nil, no
	}
	s, no := f.schedulerOf(r.Context(), of, most)
	if no != nil {
		return nil, no
	}
	return s, nil
}

// promote is POST /api/v1/scheduler/{id}/promote.
func (f *face) promote(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.editQueue(r, &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_PROMOTE})
}

// cancelWaiting is POST /api/v1/scheduler/{id}/cancel.
func (f *face) cancelWaiting(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.editQueue(r, &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_CANCEL})
}

// changeWaiting is PUT /api/v1/scheduler/{id}. With a text and a level both are changed, or the first refusal told.
func (f *face) changeWaiting(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	var c api.ChangeWaiting
	if no := decode(w, r, &c, true); no != nil {
		return nil, no
	}
	level, no := levelOf(c.Level)
	switch {
	case no != nil:
		return nil, no
	case c.Text == nil && level == nil:
		return nil, malformed("There is nothing to change.", "Give a text, a level, or both.")
	case c.Text != nil && strings.TrimSpace(*c.Text) == "":
		return nil, malformed("The text is empty.", "Cancel the input, or give a text.").with("field", "text")
	case level != nil && !isOwner(asker(r)) && *level > maxAskerLevel:
		return nil, notAllowed("This level is not for "+asker(r).GetId()+".", "Use at most 2.").with("field", "level")
	}
	var edits []*messages.EditQueue
	if c.Text != nil {
		edits = append(edits, &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_TEXT, Text: *c.Text})
	}
	if level != nil {
		edits = append(edits, &messages.EditQueue{Edit: messages.QueueEdit_QUEUE_EDIT_LEVEL, Level: *level})
	}
	return f.editQueue(r, edits...)
}

// editQueue changes one waiting input, in order; the ledger tells which agent it is for. What somebody else waits for is
// not there for who asks.
func (f *face) editQueue(r *http.Request, edits ...*messages.EditQueue) (any, *refusal) {
	id, who := r.PathValue("id"), asker(r)
	s, no := f.statusOf(r.Context(), id)
	switch {
	case no != nil:
		return nil, no.with("input_id", id)
	case !isOwner(who) && s.GetInput().GetPrincipal().GetId() != who.GetId():
		return nil, unknownInput().with("input_id", id)
	case s.GetState() == messages.TaskState_TASK_STATE_ENDED:
		return nil, refused(http.StatusConflict, "not_waiting", "The input has ended.", "GET /api/v1/inputs/{id} tells how.").
			with("input_id", id)
	}
	of := s.GetInput().GetAgent()
	if of == "" {
		of = "main"
	}
	var view *messages.TaskView
	for _, e := range edits {
		e.InputId, e.Principal = id, proto.CloneOf(who)
		// Not cut short by a client that goes away: what was changed is told to the others.
		view, no = ask[*messages.TaskView](f, context.WithoutCancel(r.Context()), askLimit, "agents/"+of+"/scheduler", e)
		if no != nil {
			return nil, agentGone(of, no).with("input_id", id)
		}
	}
	out := work(view)
	out.Conversation = shownConversation(who, out.Conversation)
	return out, nil
}

// deadlineOf reads when an input must have begun; nil means never too late. One that has passed is refused by channels.
func deadlineOf(at *time.Time) (int64, *refusal) {
	if at == nil {
		return 0, nil
	}
	if y := at.UTC().Year(); y < 1970 || y > 9999 {
		return 0, refused(http.StatusBadRequest, "bad_deadline", "This is no time that can be waited for.",
			"Give a time to come in RFC 3339, such as 2030-01-02T15:04:05Z.").with("field", "deadline")
	}
	return at.UnixMicro(), nil
}

// stopAt has an agent stopped by way of channels, which marks what is on its way in.
func (f *face) stopAt(ctx context.Context, m *messages.StopAll) (*messages.StopResult, *refusal) {
	to := m.GetAgent()
	got, no := ask[*messages.StopResult](f, context.WithoutCancel(ctx), askLimit, "channels", m)
	if no != nil && no.body.Code == api.CodeUnavailable {
		// channels is starting anew: what is on its way in was made before the stop, which is enough for the scheduler.
		got, no = ask[*messages.StopResult](f, context.WithoutCancel(ctx), askLimit, "agents/"+to+"/scheduler", m)
	}
	return got, agentGone(to, no)
}

// levelDigits are the levels as JSON writes them.
var levelDigits = map[string]int32{"0": 0, "1": 1, "2": 2, "3": 3, "4": 4}

// levelOf reads a level strictly: one of the numbers 0 to 3 and nothing else. Level 4 is for the kernel and for parents of
// residents.
func levelOf(raw json.RawMessage) (*int32, *refusal) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	n, ok := levelDigits[string(raw)]
	switch {
	case !ok:
		return nil, malformed("The level must be a whole number from 0 to 3.", "Leave it out for the channel's default.").
			with("field", "level")
	case n == 4:
		return nil, refused(403, api.CodeLevel, "Level 4 can not be asked for over HTTP.", "Use at most 3.")
	}
	return &n, nil
}

package admin

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
	"homeagent/messages/api"
)

const (
	defaultWait = 5 * time.Minute
	maxWait     = time.Hour
	// maxKey bounds an idempotency key, maxName the names of a channel or conversation, in bytes.
	maxKey  = 256
	maxName = 256
)

// interactive are the channels of this actor at which a person sits.
var interactive = map[string]bool{"cli": true, "web": true}

// modeOf reads a mode; empty means the channel's default.
func modeOf(s string) (messages.Mode, *refusal) {
	switch s {
	case "":
		return messages.Mode_MODE_UNSPECIFIED, nil
	case "steer":
		return messages.Mode_MODE_STEER, nil
	case "queue":
		return messages.Mode_MODE_QUEUE, nil
	case "interrupt":
		return messages.Mode_MODE_INTERRUPT, nil
	}
	return 0, malformed("There is no mode "+s+".", "Use steer, queue or interrupt.").with("field", "mode")
}

// partsOf reads the content of an input, and stores what is media.
func (f *face) partsOf(s *api.Submit) ([]*messages.Part, *refusal) {
	var parts []*messages.Part
	add := func(text string) {
		parts = append(parts, &messages.Part{Content: &messages.Part_Text{Text: text}})
	}
	if s.Text != "" {
		add(s.Text)
	}
	for i, b := range s.Blocks {
		at := "blocks[" + strconv.Itoa(i) + "]"
		switch b.Type {
		case "text":
			if b.Text != "" {
				add(b.Text)
			}
		case "image", "audio":
			ref, no := f.keep(&b, at)
			if no != nil {
				return nil, no
			}
			parts = append(parts, &messages.Part{Content: &messages.Part_Payload{Payload: ref}})
		default:
			return nil, refused(400, "unsupported_block", "Blocks of type "+b.Type+" are not taken.", "Send blocks of type text, image or audio.").
				with("field", at+".type")
		}
	}
	if len(parts) == 0 {
		return nil, malformed("The input says nothing.", "Set text, or a block that is not empty.").with("field", "text")
	}
	return parts, nil
}

// keep stores the content of a media block, which stands at a place of the request.
func (f *face) keep(b *api.Block, at string) (*messages.PayloadRef, *refusal) {
	if len(b.Data) == 0 {
		return nil, malformed("The block has no data.", "Send its bytes as base64 in data.").with("field", at+".data")
	}
	kind, _, _ := strings.Cut(strings.ToLower(b.MediaType), "/")
	if kind != b.Type {
		return nil, malformed("The media type does not fit the block.", "Set it to "+b.Type+"/ and what it is, such as image/png.").
			with("field", at+".media_type")
	}
	if f.deps.Keep == nil {
		return nil, refused(400, "unsupported_block", "This node takes no media.", "Send text.").with("field", at+".type")
	}
	ref, err := f.deps.Keep(b.MediaType, b.Data)
	if err != nil {
		return nil, refusalOf(err).with("field", at)
	}
	return ref, nil
}

// inputOf makes the input of a request of who, with a new id.
func (f *face) inputOf(who *messages.Principal, s *api.Submit) (*messages.Input, *refusal) {
	level, no := levelOf(s.Level)
	if no != nil {
		return nil, no
	}
	mode, no := modeOf(s.Mode)
	if no != nil {
		return nil, no
	}
	parts, no := f.partsOf(s)
	if no != nil {
		return nil, no
	}
	to, no := agentOf(s.Agent)
	if no != nil {
		return nil, no
	}
	deadline, no := deadlineOf(s.Deadline)
	if no != nil {
		return nil, no
	}
	for field, v := range map[string]string{"channel": s.Channel, "conversation": s.Conversation} {
		if len(v) > maxName {
			return nil, malformed("The "+field+" is too long.", "Use at most 256 bytes.").with("field", field)
		}
	}
	if len(s.IdempotencyKey) > maxKey {
		return nil, malformed("The idempotency key is too long.", "Use at most 256 bytes.").with("field", "idempotency_key")
	}
	if s.Channel == "" {
		s.Channel = "api"
	}
	in := &messages.Input{
		Id: f.newID(""), IdempotencyKey: s.IdempotencyKey, Principal: proto.CloneOf(who), Channel: s.Channel,
		Conversation: ownConversation(who, s.Conversation), Agent: to, Level: level, Mode: mode,
		Source: messages.InputSource_INPUT_SOURCE_PERSON, Parts: parts, Taint: messages.Taint_TAINT_TRUSTED,
		CreatedUs: time.Now().UnixMicro(), PersonWaits: s.Wait || interactive[s.Channel], DeadlineUs: deadline,
	}
	return in, bound(who, in)
}

// submit is POST /api/v1/inputs.
func (f *face) submit(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	if f.draining.Load() {
		return nil, drainingRefusal()
	}
	var s api.Submit
	if no := decode(w, r, &s, true); no != nil {
		return nil, no
	}
	wait := time.Duration(s.WaitMS) * time.Millisecond
	switch {
	case s.WaitMS < 0 || s.WaitMS > maxWait.Milliseconds():
		return nil, malformed("wait_ms must be from 0 to 3600000.", "").with("field", "wait_ms")
	case wait == 0:
		wait = defaultWait
	}
	in, no := f.inputOf(asker(r), &s)
	if no != nil {
		return nil, no
	}
	if !s.Wait {
		got, no := f.hand(r.Context(), in)
		if no != nil {
			return nil, no
		}
		return answer{http.StatusAccepted, got}, nil
	}
	got, no := f.submitAndWait(r.Context(), in, wait)
	if no == nil && got.Task != nil {
		got.Task.Conversation = shownConversation(asker(r), got.Task.Conversation)
		return got, nil
	}
	return answer{http.StatusAccepted, got}, no
}

// hand gives an input to channels. It is not cut short by a client that goes away: what was accepted is answered.
func (f *face) hand(ctx context.Context, in *messages.Input) (*api.Submitted, *refusal) {
	res, no := ask[*messages.SubmitResult](f, context.WithoutCancel(ctx), submitLimit, "channels",
		&messages.SubmitInput{Input: in})
	if no != nil {
		return nil, no
	}
	if res.GetError() != nil {
		return nil, refusalOf(res.GetError())
	}
	return &api.Submitted{
		InputID: res.GetInputId(), Outcome: word(res.GetOutcome(), "OUTCOME_"), Position: int(res.GetPosition()),
		Duplicate: res.GetDuplicate(),
	}, nil
}

func (f *face) submitAndWait(ctx context.Context, in *messages.Input, wait time.Duration) (*api.Submitted, *refusal) {
	watch, got, no := f.handWatched(ctx, in, messages.EventType_EVENT_TYPE_TASK)
	if no != nil {
		return nil, no
	}
	defer watch.close()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	done, no := watch.end(ctx, nil)
	switch {
	case no != nil:
		return nil, no.with("input_id", got.InputID)
	case done == nil:
		got.TimedOut = true
		return got, nil
	}
	got.Task = done
	return got, nil
}

// handWatched hands an input over with its end, and events of the given types on the way, being watched from before. The
// caller closes the watch.
func (f *face) handWatched(ctx context.Context, in *messages.Input, types ...messages.EventType) (
	*watch, *api.Submitted, *refusal,
) {
	w, no := f.watch(ctx, in.GetId(), types...)
	if no != nil {
		return nil, nil, no
	}
	got, no := f.hand(ctx, in)
	if no != nil {
		w.close()
		return nil, nil, no
	}
	if got.InputID == in.GetId() {
		return w, got, nil
	}
	w.close() // a repeated key: the first input is the one to wait for, and it may have ended before
	if w, no = f.watch(ctx, got.InputID, types...); no != nil {
		return nil, nil, no.with("input_id", got.InputID)
	}
	w.due = true
	return w, got, nil
}

// input is GET /api/v1/inputs/{id}.
func (f *face) input(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	who := asker(r)
	s, no := f.statusOf(r.Context(), r.PathValue("id"))
	switch {
	case no != nil:
		return nil, no
	case !isOwner(who) && s.GetInput().GetPrincipal().GetId() != who.GetId():
		return nil, unknownInput() // whether somebody else has it is not theirs to know
	}
	t := task(s)
	t.Conversation = shownConversation(who, t.Conversation)
	return t, nil
}

func (f *face) statusOf(ctx context.Context, id string) (*messages.TaskStatus, *refusal) {
	return ask[*messages.TaskStatus](f, ctx, askLimit, "ledger", &messages.TaskQuery{InputId: id})
}

func (f *face) taskOf(ctx context.Context, id string) (*api.Task, *refusal) {
	s, no := f.statusOf(ctx, id)
	if no != nil {
		return nil, no
	}
	return task(s), nil
}

// stopAgent is POST /api/v1/stop. An empty body stops the main agent.
func (f *face) stopAgent(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	var s api.Stop
	if r.ContentLength != 0 {
		if no := decode(w, r, &s, true); no != nil {
			return nil, no
		}
	}
	to, no := agentOf(s.Agent)
	if no != nil {
		return nil, no
	}
	who := asker(r)
	if !isOwner(who) && to != "main" {
		return nil, notAllowed("Only the owner stops other agents.", "Leave the agent out.").with("field", "agent")
	}
	got, no := f.stopAt(r.Context(), &messages.StopAll{
		Agent: to, Conversation: ownConversation(who, s.Conversation), Principal: proto.CloneOf(who),
	})
	if no != nil {
		return nil, no
	}
	return api.Stopped{Stopped: int(got.GetStopped()), Quota: int(got.GetQuota())}, nil
}

package admin

import (
	"context"
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/proto"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/messages/api"
)

func (f *face) timersOf(ctx context.Context, of string) (*messages.TimerList, *refusal) {
	return ask[*messages.TimerList](f, ctx, askLimit, "timers", &messages.ListTimers{Agent: of})
}

// timers is GET /api/v1/timers?agent=.
func (f *face) timers(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	of := r.URL.Query().Get("agent")
	if of != "" {
		var no *refusal
		if of, no = agentOf(of); no != nil {
			return nil, no
		}
	}
	l, no := f.timersOf(r.Context(), of)
	if no != nil {
		return nil, no
	}
	return api.Timers{Timers: list(l.GetTimers(), timer)}, nil
}

// timer is GET /api/v1/timers/{id}.
func (f *face) timer(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	id := r.PathValue("id")
	l, no := f.timersOf(r.Context(), "")
	if no != nil {
		return nil, no
	}
	if t := timerBy(l, id); t != nil {
		return timer(t), nil
	}
	return nil, refused(http.StatusNotFound, "unknown_timer", "There is no such timer.",
		"`waiter timers`, or GET /api/v1/timers, shows all.").with("timer", id)
}

var (
	missedPolicies = map[string]messages.MissedPolicy{
		"": messages.MissedPolicy_MISSED_POLICY_UNSPECIFIED, "skip": messages.MissedPolicy_MISSED_POLICY_SKIP,
		"run_once": messages.MissedPolicy_MISSED_POLICY_RUN_ONCE,
	}
	overlapPolicies = map[string]messages.OverlapPolicy{
		"": messages.OverlapPolicy_OVERLAP_POLICY_UNSPECIFIED, "skip": messages.OverlapPolicy_OVERLAP_POLICY_SKIP,
		"queue": messages.OverlapPolicy_OVERLAP_POLICY_QUEUE,
	}
)

// addTimer is POST /api/v1/timers.
func (f *face) addTimer(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	if f.draining.Load() {
		return nil, drainingRefusal()
	}
	var a api.AddTimer
	if no := decode(w, r, &a, true); no != nil {
		return nil, no
	}
	of, no := agentOf(a.Agent)
	if no != nil {
		return nil, no
	}
	if len(a.IdempotencyKey) > maxKey {
		return nil, malformed("The idempotency key is too long.", "Use at most 256 bytes.").with("field", "idempotency_key")
	}
	who := asker(r)
	t, no := timerFrom(&a, who)
	if no != nil {
		return nil, no
	}
	t.TimerId, t.Agent = f.newID(""), of
	if a.IdempotencyKey != "" {
		t.TimerId = keyID(who, a.IdempotencyKey)
		l, no := f.timersOf(r.Context(), "")
		if no != nil {
			return nil, no
		}
		if known := timerBy(l, t.GetTimerId()); known != nil {
			return timer(known), nil
		}
	}
	got, no := ask[*messages.Timer](f, context.WithoutCancel(r.Context()), submitLimit, "timers",
		&messages.PutTimer{Timer: t, At: a.At, In: a.In, Every: a.Every})
	if no != nil {
		return nil, no
	}
	return answer{http.StatusCreated, timer(got)}, nil
}

// timerFrom is the timer that a request wants, but for its id and agent.
func timerFrom(a *api.AddTimer, who *messages.Principal) (*messages.Timer, *refusal) {
	t := &messages.Timer{
		Name: a.Name, Cron: a.Cron, Zone: a.Zone, Text: a.Text, Reminder: a.Reminder, Channel: a.Channel, Conversation: a.Conversation,
		Principal: who, OnBehalf: []*messages.Principal{who}, Taint: messages.Taint_TAINT_TRUSTED,
	}
	var ok bool
	if t.Missed, ok = missedPolicies[a.Missed]; !ok {
		return nil, malformed("There is no policy "+a.Missed+" for missed slots.", "Use skip or run_once.").with("field", "missed")
	}
	if t.Overlap, ok = overlapPolicies[a.Overlap]; !ok {
		return nil, malformed("There is no policy "+a.Overlap+" for slots that overlap.", "Use skip or queue.").with("field", "overlap")
	}
	if a.Cron != "" {
		t.Kind = messages.TimerKind_TIMER_KIND_CRON
	}
	if a.Level != nil {
		if *a.Level < 0 || *a.Level > 3 {
			return nil, malformed("The level must be a whole number from 0 to 3.", "Leave it out for that of its kind.").with("field", "level")
		}
		t.Level = proto.Int32(int32(*a.Level)) //nolint:gosec // 0 to 3
	}
	return t, nil
}

// timerBy finds a timer by its id; nil when there is none.
func timerBy(l *messages.TimerList, id string) *messages.Timer {
	for _, t := range l.GetTimers() {
		if t.GetTimerId() == id {
			return t
		}
	}
	return nil
}

// keyID is the id of what an idempotency key of somebody stands for.
func keyID(who *messages.Principal, key string) string {
	sum := sha256.Sum256([]byte("timer\x00" + who.GetId() + "\x00" + key))
	return ulid.ULID(sum[:16]).String()
}

// removeTimer is DELETE /api/v1/timers/{id}.
func (f *face) removeTimer(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.changeTimer(r, &messages.DeleteTimer{Timer: r.PathValue("id")})
}

// pauseTimer is POST /api/v1/timers/{id}/pause, resumeTimer is …/resume.
func (f *face) pauseTimer(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.changeTimer(r, &messages.PauseTimer{Timer: r.PathValue("id"), Paused: true})
}

func (f *face) resumeTimer(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.changeTimer(r, &messages.PauseTimer{Timer: r.PathValue("id")})
}

// runTimer is POST /api/v1/timers/{id}/run. The id of the request makes one that is sent again run once.
func (f *face) runTimer(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	if f.draining.Load() {
		return nil, drainingRefusal()
	}
	return f.changeTimer(r, &messages.RunTimer{Timer: r.PathValue("id"), RequestId: requestID(r)})
}

func (f *face) changeTimer(r *http.Request, m proto.Message) (any, *refusal) {
	got, no := ask[*messages.Timer](f, context.WithoutCancel(r.Context()), submitLimit, "timers", m)
	if no != nil {
		return nil, no
	}
	return timer(got), nil
}

// maybe is a moment that may not be.
func maybe(us int64) *time.Time {
	if us == 0 {
		return nil
	}
	t := moment(us)
	return &t
}

func timer(t *messages.Timer) api.Timer {
	out := api.Timer{
		ID: t.GetTimerId(), Name: t.GetName(), Agent: t.GetAgent(), Kind: word(t.GetKind(), "TIMER_KIND_"), At: maybe(t.GetAtUs()),
		Cron: t.GetCron(), Zone: t.GetZone(), EffectiveZone: t.GetEffectiveZone(), Text: t.GetText(), Reminder: t.GetReminder(),
		Missed: word(t.GetMissed(), "MISSED_POLICY_"), Overlap: word(t.GetOverlap(), "OVERLAP_POLICY_"), Channel: t.GetChannel(),
		Conversation: t.GetConversation(), Setter: t.GetPrincipal().GetId(), Created: moment(t.GetCreatedUs()), Paused: t.GetPaused(),
		Next: maybe(t.GetNextUs()), Last: maybe(t.GetLastUs()), LastOutcome: t.GetLastOutcome(), LastReason: t.GetLastReason(),
		LastTask: t.GetLastTask(), Runs: t.GetRuns(), Skipped: t.GetSkipped(),
	}
	if s := t.GetEverySeconds(); s > 0 {
		out.Every = configs.FormatDuration(time.Duration(s) * time.Second)
	}
	if t.Level != nil {
		l := int(t.GetLevel())
		out.Level = &l
	}
	return out
}

func timerSlot(s *messages.TimerSlot) *api.TimerSlot {
	return &api.TimerSlot{
		ID: s.GetTimerId(), Name: s.GetName(), Slot: moment(s.GetSlotUs()), Outcome: s.GetOutcome(), Reason: s.GetReason(),
		Next: maybe(s.GetNextUs()), Passed: s.GetPassed(),
	}
}

package timers

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// setArgs are the arguments of timer_set.
type setArgs struct {
	Text     string `json:"text"`
	At       string `json:"at"`
	In       string `json:"in"`
	Every    string `json:"every"`
	Cron     string `json:"cron"`
	Zone     string `json:"zone"`
	Name     string `json:"name"`
	Reminder *bool  `json:"reminder"`
	Missed   string `json:"missed"`
	Overlap  string `json:"overlap"`
}

// whichArgs are the arguments of timer_cancel and timer_pause.
type whichArgs struct {
	Timer  string `json:"timer"`
	Paused *bool  `json:"paused"`
}

// decode reads the arguments of a call strictly.
func decode(c *messages.CallTool, into any) *messages.ToolError {
	d := json.NewDecoder(bytes.NewReader(c.GetCall().GetArgumentsJson()))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	e := &messages.ToolError{Reason: "type", Detail: "The arguments are not a JSON object of this tool.", Hint: "Send one JSON object."}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		e.Field, e.Detail = wrong.Field, "It must be "+wrong.Type.String()+", not "+wrong.Value+"."
	} else if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		e.Field, e.Detail = strings.Trim(name, `"`), "There is no such argument."
	}
	return e
}

// listText is how much of a text timer_list shows.
const listText = 500

func (s *state) onCall(e kit.Event, c *messages.CallTool) {
	show := func(t *messages.Timer, err *messages.Error) {
		if err != nil {
			s.add(e.Reply(toolFailure(c, toolError(err))))
			return
		}
		s.add(e.Reply(toolSuccess(c, asJSON(t, s.zoneFor(t), 0), textTaint(t))))
	}
	switch c.GetCall().GetName() {
	case toolSet:
		s.onSet(e, c, show)
	case toolList:
		out := struct {
			Timers []timerJSON `json:"timers"`
		}{[]timerJSON{}}
		taint := messages.Taint_TAINT_TRUSTED
		for _, t := range s.list("") {
			if mine(s.timers[t.GetTimerId()], c.GetAgent()) {
				out.Timers = append(out.Timers, asJSON(t, s.zoneFor(t), listText))
				if textTaint(t) == messages.Taint_TAINT_FOREIGN {
					taint = messages.Taint_TAINT_FOREIGN
				}
			}
		}
		s.add(e.Reply(toolSuccess(c, out, taint)))
	case toolCancel, toolPause:
		var a whichArgs
		if err := decode(c, &a); err != nil {
			s.add(e.Reply(toolFailure(c, err)))
			return
		}
		if c.GetCall().GetName() == toolCancel {
			s.delete(a.Timer, c.GetAgent(), show)
			return
		}
		s.pause(a.Timer, c.GetAgent(), a.Paused == nil || *a.Paused, show)
	default:
		s.add(e.Reply(toolFailure(c, &messages.ToolError{Reason: "not_found", Detail: "Timers have no such tool."})))
	}
}

// textTaint is how far the text of a timer may be trusted when it is read.
func textTaint(t *messages.Timer) messages.Taint {
	switch t.GetTaint() {
	case messages.Taint_TAINT_TRUSTED, messages.Taint_TAINT_MODEL, messages.Taint_TAINT_RECALLED:
		return messages.Taint_TAINT_TRUSTED
	case messages.Taint_TAINT_UNSPECIFIED, messages.Taint_TAINT_FOREIGN:
	}
	return messages.Taint_TAINT_FOREIGN
}

// onSet sets a timer for the turn that calls. The id stems from the call, so that the same call sets one timer.
func (s *state) onSet(e kit.Event, c *messages.CallTool, show answer) {
	id := callTimerID(c.GetCall().GetCallId())
	if t := s.timers[id]; t != nil {
		show(t.get(), nil)
		return
	}
	var a setArgs
	if err := decode(c, &a); err != nil {
		s.add(e.Reply(toolFailure(c, err)))
		return
	}
	p, err := a.put(c, id)
	if err != nil {
		s.add(e.Reply(toolFailure(c, err)))
		return
	}
	s.put(p, show)
}

// put is the request that the arguments make.
func (a *setArgs) put(c *messages.CallTool, id string) (*messages.PutTimer, *messages.ToolError) {
	t := &messages.Timer{
		TimerId: id, Name: a.Name, Agent: c.GetAgent(), Cron: a.Cron, Zone: a.Zone, Text: a.Text, Channel: c.GetChannel(),
		Conversation: c.GetConversation(), Principal: c.GetPrincipal(), Taint: callTaint(c),
		Reminder: a.Cron == "" && a.Every == "",
	}
	for _, p := range c.GetPrincipals() {
		t.OnBehalf = append(t.OnBehalf, proto.CloneOf(p))
	}
	if a.Reminder != nil {
		t.Reminder = *a.Reminder
	}
	if a.Cron != "" {
		t.Kind = messages.TimerKind_TIMER_KIND_CRON
	}
	var ok bool
	if t.Missed, ok = missedWords[a.Missed]; !ok {
		return nil, &messages.ToolError{Reason: "type", Field: "missed", Detail: "There is no such policy.", Hint: "Use skip or run_once."}
	}
	if t.Overlap, ok = overlapWords[a.Overlap]; !ok {
		return nil, &messages.ToolError{Reason: "type", Field: "overlap", Detail: "There is no such policy.", Hint: "Use skip or queue."}
	}
	return &messages.PutTimer{Timer: t, At: a.At, In: a.In, Every: a.Every}, nil
}

var (
	missedWords = map[string]messages.MissedPolicy{
		"": messages.MissedPolicy_MISSED_POLICY_UNSPECIFIED, "skip": messages.MissedPolicy_MISSED_POLICY_SKIP,
		"run_once": messages.MissedPolicy_MISSED_POLICY_RUN_ONCE,
	}
	overlapWords = map[string]messages.OverlapPolicy{
		"": messages.OverlapPolicy_OVERLAP_POLICY_UNSPECIFIED, "skip": messages.OverlapPolicy_OVERLAP_POLICY_SKIP,
		"queue": messages.OverlapPolicy_OVERLAP_POLICY_QUEUE,
	}
)

// callTaint is how far the text of a timer may be trusted that a turn sets: words of the model, and foreign when the turn
// has read foreign words or nobody says what it has read.
func callTaint(c *messages.CallTool) messages.Taint {
	switch c.GetTaint() {
	case messages.Taint_TAINT_TRUSTED, messages.Taint_TAINT_MODEL, messages.Taint_TAINT_RECALLED:
		return messages.Taint_TAINT_MODEL
	case messages.Taint_TAINT_UNSPECIFIED, messages.Taint_TAINT_FOREIGN:
	}
	return messages.Taint_TAINT_FOREIGN
}

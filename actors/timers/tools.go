package timers

import (
	"encoding/json"
	"time"

	"homeagent/configs"
	"homeagent/messages"
)

const (
	toolSet    = "timer_set"
	toolList   = "timer_list"
	toolCancel = "timer_cancel"
	toolPause  = "timer_pause"
)

const setSchema = `{"type":"object","required":["text"],"additionalProperties":false,"properties":{` +
	`"text":{"type":"string","minLength":1,"maxLength":16384,"description":"What you are told when it is due: the words of a reminder, or the work to do. It must be clear without this conversation."},` +
	`"at":{"type":"string","description":"Once, at a time: RFC 3339, or local time as 2027-03-01 09:00, or 09:00 for the next time the clock shows it."},` +
	`"in":{"type":"string","description":"Once, after a while: 90s, 1h30m, 2d."},` +
	`"every":{"type":"string","description":"Again and again, so much time apart: 30m, 12h. With at or in, that is the first time."},` +
	`"cron":{"type":"string","description":"Again and again at times of day: five fields, minute hour day-of-month month day-of-week, such as 30 8 * * 1-5."},` +
	`"zone":{"type":"string","description":"IANA time zone of at and cron, such as Asia/Shanghai; absent means the person's."},` +
	`"name":{"type":"string","maxLength":100,"description":"A short name by which people know it."},` +
	`"reminder":{"type":"boolean","description":"True when a person waits for it at that time and is to be told at once; false for work in the background. Absent means true for at and in, false for every and cron."},` +
	`"missed":{"type":"string","enum":["skip","run_once"],"description":"What becomes of times that pass while the node is off. Absent means run_once for a reminder and for at and in, else skip."},` +
	`"overlap":{"type":"string","enum":["skip","queue"],"description":"What a time does while the work of an earlier one goes on; skip if absent."}}}`

const listSchema = `{"type":"object","additionalProperties":false,"properties":{}}`

const cancelSchema = `{"type":"object","required":["timer"],"additionalProperties":false,"properties":{` +
	`"timer":{"type":"string","minLength":1,"description":"Id, or a name that only one timer has."}}}`

const pauseSchema = `{"type":"object","required":["timer"],"additionalProperties":false,"properties":{` +
	`"timer":{"type":"string","minLength":1,"description":"Id, or a name that only one timer has."},` +
	`"paused":{"type":"boolean","description":"True holds it, false lets it go on; true if absent. Times that pass while it is held are skipped."}}}`

// toolDefs are the tools of this package.
func toolDefs() []*messages.ToolDef {
	def := func(name, schema, text string) *messages.ToolDef {
		return &messages.ToolDef{
			Name: name, Provider: Kind, ParametersJson: []byte(schema), Description: text, TimeoutMs: 60_000,
			Effect: messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH,
			ToolClass: messages.ToolClass_TOOL_CLASS_WRITE,
		}
	}
	list := def(toolList, listSchema, "List the timers that are set, the next one first, with when they are due and what became of the last time.")
	list.Effect, list.ToolClass, list.ParallelSafe = messages.ToolEffect_TOOL_EFFECT_PURE, messages.ToolClass_TOOL_CLASS_READ, true
	return []*messages.ToolDef{
		def(toolSet, setSchema, "Set a timer: a reminder, or work for later, once or again and again. Say when by exactly one of at, in, every and cron. "+
			"When it is due you get its text as a new task, and your answer goes to this conversation."),
		list,
		def(toolCancel, cancelSchema, "Remove a timer."),
		def(toolPause, pauseSchema, "Hold a timer, or let it go on."),
	}
}

// toolFailure refuses a call.
func toolFailure(c *messages.CallTool, e *messages.ToolError) *messages.ToolResult {
	return &messages.ToolResult{
		CallId: c.GetCall().GetCallId(), Name: c.GetCall().GetName(), Taint: messages.Taint_TAINT_TRUSTED, Error: e,
	}
}

// toolError turns an error over for the model.
func toolError(err *messages.Error) *messages.ToolError {
	e := &messages.ToolError{Reason: "failed", Field: err.GetDetails()["field"], Detail: err.GetMessage(), Hint: err.GetHint()}
	switch {
	case err.GetCode() == "unknown_timer":
		e.Reason = "not_found"
	case e.GetField() != "":
		e.Reason = "type"
	}
	return e
}

// toolSuccess is the result of a call. Texts of timers come back with it, and they are only as good as who set them.
func toolSuccess(c *messages.CallTool, v any, taint messages.Taint) *messages.ToolResult {
	b, err := json.Marshal(v)
	if err != nil {
		return toolFailure(c, &messages.ToolError{Reason: "failed", Detail: "The result could not be written as JSON."})
	}
	return &messages.ToolResult{CallId: c.GetCall().GetCallId(), Name: c.GetCall().GetName(), Content: string(b), Taint: taint}
}

// timerJSON is how the model sees a timer.
type timerJSON struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"`
	Text     string `json:"text"`
	When     string `json:"when"`
	Zone     string `json:"zone"`
	Next     string `json:"next,omitempty"`
	Reminder bool   `json:"reminder"`
	Paused   bool   `json:"paused,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Last     string `json:"last,omitempty"`
	Outcome  string `json:"last_outcome,omitempty"`
	Reason   string `json:"last_reason,omitempty"`
}

// asJSON shows times in the zone of the timer. maxText cuts its text, zero does not.
func asJSON(t *messages.Timer, zone *time.Location, maxText int) timerJSON {
	clock := func(us int64) string {
		if us == 0 {
			return ""
		}
		return time.UnixMicro(us).In(zone).Format(time.RFC3339)
	}
	out := timerJSON{
		ID: t.GetTimerId(), Name: t.GetName(), Text: t.GetText(), Zone: zone.String(), Next: clock(t.GetNextUs()), Reminder: t.GetReminder(),
		Paused: t.GetPaused(), Last: clock(t.GetLastUs()), Outcome: t.GetLastOutcome(), Reason: t.GetLastReason(),
	}
	if t.GetAgent() != "main" {
		out.Agent = t.GetAgent()
	}
	if r := []rune(out.Text); maxText > 0 && len(r) > maxText {
		out.Text = string(r[:maxText]) + "…"
	}
	switch t.GetKind() {
	case messages.TimerKind_TIMER_KIND_ONCE:
		out.When = "at " + clock(t.GetAtUs())
	case messages.TimerKind_TIMER_KIND_INTERVAL:
		out.When = "every " + configs.FormatDuration(time.Duration(t.GetEverySeconds())*time.Second)
	case messages.TimerKind_TIMER_KIND_CRON:
		out.When = "cron " + t.GetCron()
	case messages.TimerKind_TIMER_KIND_UNSPECIFIED:
	}
	return out
}

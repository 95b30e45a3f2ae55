package tools

import (
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

const (
	toolNow    = "time_now"
	toolCalls  = "calls_list"
	toolResult = "calls_result"
)

const resultSchema = `{"type":"object","required":["handle"],"additionalProperties":false,"properties":{` +
	`"handle":{"type":"string","description":"Handle of the call."},` +
	`"wait_s":{"type":"integer","minimum":0,"maximum":30,"description":"Seconds to wait for it to end; 0 if absent."}}}`

const emptySchema = `{"type":"object","properties":{},"additionalProperties":false}`

// serve answers a call of a tool that this actor serves itself; the arguments fit.
type serve func(m *machine, e kit.Event, c *messages.CallTool, args []byte)

// coreTools are the tools that this actor serves itself: what they tell is known here.
func coreTools() []*entry {
	tool := func(name, description, schema string, on messages.OnPreempt, do serve) *entry {
		def := &messages.ToolDef{
			Name: name, Description: description, ParametersJson: []byte(schema), Effect: messages.ToolEffect_TOOL_EFFECT_PURE,
			OnPreempt: on, ParallelSafe: true, Provider: "core", ToolClass: messages.ToolClass_TOOL_CLASS_READ,
		}
		s, err := compile(def.GetParametersJson())
		if err != nil {
			panic(err) // the texts above
		}
		return &entry{def: def, schema: s, serve: do}
	}
	return []*entry{
		tool(toolNow, "Tells the time now: in UTC, and in the person's time zone with the day of the week.", emptySchema,
			messages.OnPreempt_ON_PREEMPT_FINISH, (*machine).timeNow),
		tool(toolCalls, "List the calls that went on by themselves, under a handle, and how they stand.", emptySchema,
			messages.OnPreempt_ON_PREEMPT_FINISH, (*machine).callsList),
		tool(toolResult, "Get the result of a call that went on by itself. While it runs, the state running comes back.", resultSchema,
			messages.OnPreempt_ON_PREEMPT_CANCEL, (*machine).callsResult),
	}
}

func (m *machine) timeNow(e kit.Event, c *messages.CallTool, _ []byte) {
	local := m.now.In(m.p.Zone)
	m.served(e, c, jsonText(struct {
		UTC     string `json:"utc"`
		Local   string `json:"local"`
		Weekday string `json:"weekday"`
		Zone    string `json:"zone"`
	}{m.now.UTC().Format(time.RFC3339), local.Format(time.RFC3339), local.Weekday().String(), m.p.Zone.String()}))
}

// served is the result of a tool of this actor.
func (m *machine) served(e kit.Event, c *messages.CallTool, content string) {
	m.answer(e, c.GetCall().GetName(), &messages.ToolResult{
		CallId: c.GetCall().GetCallId(), Name: c.GetCall().GetName(), Content: content, Taint: messages.Taint_TAINT_TRUSTED,
	})
}

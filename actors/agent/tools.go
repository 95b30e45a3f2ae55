package agent

import (
	"encoding/json"

	"homeagent/messages"
)

const (
	toolAgents = "resident_agents"
	toolNotify = "notify_parent"
	toolNote   = "agent_note"
)

const agentsSchema = `{"type":"object","required":["action"],"properties":{
"action":{"type":"string","enum":["list","create","send","inspect","destroy"],"description":"What to do."},
"id":{"type":"string","description":"Name of the resident: lower-case letters, digits and hyphens. Needed for all but list."},
"task_prompt":{"type":"string","description":"create: what the resident is for and its first task; it starts at once."},
"text":{"type":"string","description":"send: what to tell the resident."},
"allowed_outputs":{"type":"string","description":"create: channels it may send to, comma separated; empty means all."},
"capacity":{"type":"integer","description":"create: most tasks that may wait."},
"residual":{"type":"string","enum":["keep","drop"],"description":"destroy: what becomes of unfinished tasks; keep gives them back to you."}}}`

const textSchema = `{"type":"object","required":["text"],"properties":{"text":{"type":"string","description":"What to say."}}}`

// toolDefs are the tools of this package.
func toolDefs() []*messages.ToolDef {
	return []*messages.ToolDef{
		{
			Name: toolAgents, Provider: "agents", MainOnly: true, ParametersJson: []byte(agentsSchema), ToolClass: messages.ToolClass_TOOL_CLASS_WRITE,
			Effect: messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH, TimeoutMs: 30_000,
			Description: "Resident agents work beside you on a long task of their own and report to you when they have something. " +
				"Actions: list; create (id, task_prompt); send (id, text); inspect (id): its progress, without disturbing it; destroy (id).",
		},
		{
			// What it says stays among the agents, like the report that the parent gets anyway.
			Name: toolNotify, Provider: "agents", ResidentOnly: true, ParametersJson: []byte(textSchema), ToolClass: messages.ToolClass_TOOL_CLASS_MEMORY,
			Effect: messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH,
			Description: "Tell the agent that created you something before your task is finished. Your final answer is reported anyway.",
		},
		{
			Name: toolNote, Provider: "agents", ResidentOnly: true, ParametersJson: []byte(textSchema), ParallelSafe: true,
			ToolClass: messages.ToolClass_TOOL_CLASS_MEMORY,
			Effect:    messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH,
			Description: "Write a line into your progress table, which your parent can look at without disturbing you.",
		},
	}
}

// agentsArgs are the arguments of resident_agents.
type agentsArgs struct {
	Action         string `json:"action"`
	ID             string `json:"id"`
	TaskPrompt     string `json:"task_prompt"`
	Text           string `json:"text"`
	AllowedOutputs string `json:"allowed_outputs"`
	Capacity       int32  `json:"capacity"`
	Residual       string `json:"residual"`
}

func toolFailure(call *messages.ToolInvocation, reason, detail, hint string) *messages.ToolResult {
	return &messages.ToolResult{
		CallId: call.GetCallId(), Name: call.GetName(), Taint: messages.Taint_TAINT_TRUSTED,
		Error: &messages.ToolError{Reason: reason, Detail: detail, Hint: hint},
	}
}

func toolSuccess(call *messages.ToolInvocation, v any) *messages.ToolResult {
	b, err := json.Marshal(v)
	if err != nil {
		return toolFailure(call, "failed", "The result could not be written as JSON.", "")
	}
	return &messages.ToolResult{
		CallId: call.GetCallId(), Name: call.GetName(), Content: string(b), Taint: messages.Taint_TAINT_TRUSTED,
	}
}

// viewJSON is how the model sees an agent.
type viewJSON struct {
	ID         string   `json:"id"`
	State      string   `json:"state"`
	TaskPrompt string   `json:"task_prompt,omitempty"`
	Running    string   `json:"running,omitempty"`
	Waiting    int      `json:"waiting"`
	Notes      []string `json:"notes,omitempty"`
	LastReport string   `json:"last_report,omitempty"`
}

func asJSON(v *messages.AgentView) viewJSON {
	return viewJSON{
		ID: nameOf(v.GetSpec().GetAgent()), State: v.GetState(), TaskPrompt: v.GetSpec().GetTaskPrompt(),
		Running: v.GetScheduler().GetRunning().GetText(), Waiting: len(v.GetScheduler().GetQueue()),
		Notes: v.GetNotes(), LastReport: v.GetLastReport(),
	}
}

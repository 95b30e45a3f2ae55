package api

import (
	"encoding/json"
	"time"
)

// Types of events on the stream.
const (
	EventRawInput       = "raw_input"
	EventOutput         = "agent_output"
	EventChain          = "agent_llm_chain"
	EventToolCall       = "tool_call"
	EventReasoning      = "reasoning"
	EventStage          = "stage"
	EventSystem         = "system"
	EventReasoningDelta = "reasoning_delta"
	EventContentDelta   = "content_delta"
	EventSkill          = "skill_detected"
	EventTerminal       = "terminal_output"
	EventError          = "agent_error"
	EventTask           = "task"
	EventApproval       = "approval"
	EventTimer          = "timer"
)

// Frames of the stream that are not events of the node and have no id.
const (
	// FrameReady is the first frame of a connection: the subscription stands; its data is Ready.
	FrameReady = "ready"
	// FrameSync tells of a gap: what the client knows must be read anew; its data is Sync.
	FrameSync = "sync_required"
)

// Ready is the data of FrameReady.
type Ready struct {
	// Epoch of the stream.
	Epoch uint64 `json:"epoch"`
}

// Sync is the data of FrameSync.
type Sync struct {
	Epoch uint64 `json:"epoch"`
	// Reason: gone (too old, or of another boot), slow (the client did not keep up; the connection ends).
	Reason string `json:"reason"`
}

// Event is one entry of the stream; its SSE id is "<epoch>-<sequence>", its SSE event name is Type.
type Event struct {
	// Epoch and Sequence number it; sequences that a filter leaves out are missing.
	Epoch        uint64    `json:"epoch"`
	Sequence     uint64    `json:"sequence"`
	Type         string    `json:"type"`
	At           time.Time `json:"at"`
	TaskID       string    `json:"task_id,omitempty"`
	Agent        string    `json:"agent,omitempty"`
	Channel      string    `json:"channel,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	// Text: of the input, the output, the delta, the message.
	Text string `json:"text,omitempty"`
	// At most one of the following, by type.
	Task   *TaskChange `json:"task,omitempty"`
	Tool   *ToolChange `json:"tool,omitempty"`
	Chain  *Chain      `json:"chain,omitempty"`
	Stage  *StageRun   `json:"stage,omitempty"`
	Error  *Error      `json:"error,omitempty"`
	System *System     `json:"system,omitempty"`
	Output *Output     `json:"output,omitempty"`
	// Approval as it is now.
	Approval *Approval `json:"approval,omitempty"`
	// Timer is what became of a slot of a timer.
	Timer *TimerSlot `json:"timer,omitempty"`
}

// TaskChange tells what became of a task.
type TaskChange struct {
	// Change: accepted, started, steered, queued, requeued, edited, preempting, suspended, parked, resumed, ended.
	Change string `json:"change"`
	// Level in force, 0 to 4.
	Level int `json:"level"`
	// By: for suspended the input that preempts; for steered the task joined; for ended the task that answered it.
	By string `json:"by,omitempty"`
	// Position in the queue.
	Position int `json:"position,omitempty"`
	// Victim is the task that makes place, for preempting.
	Victim string `json:"victim,omitempty"`
	// Reason of the change as a machine code, such as level, interrupt, approval, displaced or turn_lost; of the end, for
	// ended.
	Reason string `json:"reason,omitempty"`
	// End, Text and Usage are set for ended.
	End   string `json:"end,omitempty"`
	Text  string `json:"text,omitempty"`
	Usage *Usage `json:"usage,omitempty"`
	// Approvals that a parked task waits for.
	Approvals []string `json:"approvals,omitempty"`
}

// ToolCall is one call that a model asked for.
type ToolCall struct {
	CallID string `json:"call_id"`
	Name   string `json:"name"`
	// Arguments are the JSON object, or the text as it came when it is not JSON.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Invalid and Denied say why it may not run.
	Invalid string `json:"invalid,omitempty"`
	Denied  string `json:"denied,omitempty"`
}

// ToolChange tells of a tool call: without Result it started, with it it has ended.
type ToolChange struct {
	ToolCall
	Parallel bool        `json:"parallel,omitempty"`
	Result   *ToolResult `json:"result,omitempty"`
}

// ToolResult is how a call ended.
type ToolResult struct {
	Content string     `json:"content,omitempty"`
	Error   *ToolError `json:"error,omitempty"`
	TookMS  int64      `json:"took_ms"`
}

// ToolError says why a call failed.
type ToolError struct {
	Reason string `json:"reason"`
	Field  string `json:"field,omitempty"`
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// Text is what went wrong, for people: the detail where there is one, else the reason.
func (e *ToolError) Text() string {
	if e.Detail != "" {
		return e.Detail
	}
	return e.Reason
}

// Chain is a whole model round.
type Chain struct {
	Round    int           `json:"round"`
	TookMS   int64         `json:"took_ms"`
	Messages []ChatMessage `json:"messages"`
	// Tools offered to the model, by name.
	Tools    []string     `json:"tools,omitempty"`
	Recalled []Recalled   `json:"recalled,omitempty"`
	Result   *ModelAnswer `json:"result,omitempty"`
	Attempts []Attempt    `json:"attempts,omitempty"`
}

// ChatMessage is one message of a model request.
type ChatMessage struct {
	// Role: system, user, assistant, tool.
	Role      string     `json:"role"`
	Content   []Block    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []ToolCall `json:"calls,omitempty"`
	ToolName  string     `json:"tool_name,omitempty"`
	Failed    bool       `json:"failed,omitempty"`
}

// ModelAnswer is what a model said.
type ModelAnswer struct {
	Source    string     `json:"source,omitempty"`
	Model     string     `json:"model,omitempty"`
	Text      string     `json:"text,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []ToolCall `json:"calls,omitempty"`
	// Finish: stop, length, tool_calls, content_filter, pause, error.
	Finish  string   `json:"finish,omitempty"`
	Refusal string   `json:"refusal,omitempty"`
	Usage   *Usage   `json:"usage,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Failure says how a model call failed.
type Failure struct {
	// Kind: auth, quota_exhausted, rate_limit, overloaded, server, timeout, stream_truncated, invalid_request, …
	Kind string `json:"kind"`
	// Status of HTTP; zero when there was none.
	Status int `json:"status,omitempty"`
	Error
}

// Attempt is one try at one source.
type Attempt struct {
	Source  string   `json:"source"`
	TookMS  int64    `json:"took_ms"`
	Failure *Failure `json:"failure,omitempty"`
}

// StageRun tells that a stage ran.
type StageRun struct {
	// Stage: on_input, pre_action, post_action, before_toolcall, after_toolcall, before_output, after_output.
	Stage string `json:"stage"`
	// TookUS is in microseconds.
	TookUS int64        `json:"took_us"`
	Faults []StageFault `json:"faults,omitempty"`
}

// StageFault tells of one handler that failed.
type StageFault struct {
	Handler string `json:"handler"`
	// Reason: panic, timeout, forbidden_write, error.
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// System is a fact about the node.
type System struct {
	Code string `json:"code"`
	Path string `json:"path,omitempty"`
}

// Output is a text that was given to a channel.
type Output struct {
	OutputID     string    `json:"output_id"`
	TaskID       string    `json:"task_id,omitempty"`
	Channel      string    `json:"channel"`
	Conversation string    `json:"conversation,omitempty"`
	Agent        string    `json:"agent,omitempty"`
	Content      []Block   `json:"content"`
	Created      time.Time `json:"created,omitzero"`
}

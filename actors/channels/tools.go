package channels

import (
	"bytes"
	"encoding/json"
	"errors"

	"homeagent/messages"
)

const (
	toolSend = "output_send"
	toolList = "output_list_channels"
)

const sendSchema = `{"type":"object","required":["channel","text"],"additionalProperties":false,"properties":{` +
	`"channel":{"type":"string","description":"Name of the channel, as output_list_channels tells it."},` +
	`"conversation":{"type":"string","description":"Conversation within the channel; absent means this one in this channel, and the main one in any other."},` +
	`"text":{"type":"string","minLength":1,"description":"What to send."}}}`

// toolDefs are the tools of this package. A send changes nothing when it is made again: its output bears the id of its
// call, and what may have gone out already is told instead of sent again.
func toolDefs() []*messages.ToolDef {
	return []*messages.ToolDef{
		{
			Name: toolSend, Provider: "channels", ParametersJson: []byte(sendSchema), ToolClass: messages.ToolClass_TOOL_CLASS_SEND,
			Effect: messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH, ParallelSafe: true,
			TimeoutMs: 90_000, ChannelArgument: "channel",
			Description: "Send a message over a channel now, before your answer. Your answer reaches the person who asked by itself: do not send it with this tool.",
		},
		{
			Name: toolList, Provider: "channels", ParametersJson: []byte(`{"type":"object","properties":{},"additionalProperties":false}`),
			ToolClass: messages.ToolClass_TOOL_CLASS_READ, Effect: messages.ToolEffect_TOOL_EFFECT_PURE,
			OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH, ParallelSafe: true, TimeoutMs: 10_000,
			Description: "List the channels that output_send can send over.",
		},
	}
}

// Reasons of a ToolError, as messages/tool.proto lists them.
const (
	reasonRequired = "required"
	reasonType     = "type"
	reasonNotFound = "not_found"
	reasonDenied   = "denied"
	reasonUnknown  = "unknown_outcome"
	reasonFailed   = "failed"
	reasonCancel   = "cancelled"
)

type sendArgs struct {
	Channel      string  `json:"channel"`
	Conversation *string `json:"conversation"`
	Text         string  `json:"text"`
}

// arguments reads the arguments of a call strictly.
func arguments(c *messages.CallTool, into any) *messages.ToolError {
	raw := c.GetCall().GetArgumentsJson()
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	e := &messages.ToolError{Reason: reasonType, Detail: "The arguments are not those of this tool.", Hint: "Look at its parameters."}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		e.Field = wrong.Field
	}
	return e
}

func failure(c *messages.CallTool, e *messages.ToolError) *messages.ToolResult {
	return &messages.ToolResult{
		CallId: c.GetCall().GetCallId(), Name: c.GetCall().GetName(), Error: e, Taint: messages.Taint_TAINT_TRUSTED,
	}
}

func success(c *messages.CallTool, content string) *messages.ToolResult {
	return &messages.ToolResult{
		CallId: c.GetCall().GetCallId(), Name: c.GetCall().GetName(), Content: content, Taint: messages.Taint_TAINT_TRUSTED,
	}
}

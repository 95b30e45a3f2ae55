package pluginhost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"homeagent/messages"
)

// Reasons of a ToolError that plugins give, as messages/tool.proto lists them.
const (
	ReasonRequired  = "required"
	ReasonType      = "type"
	ReasonNotFound  = "not_found"
	ReasonTimeout   = "timeout"
	ReasonCancelled = "cancelled"
	ReasonDenied    = "denied"
	ReasonUnknown   = "unknown_outcome"
	ReasonFailed    = "failed"
)

// Failed is the result of a call that failed.
func Failed(reason, field, detail, hint string) *messages.ToolResult {
	return &messages.ToolResult{
		Error: &messages.ToolError{Reason: reason, Field: field, Detail: detail, Hint: hint}, Taint: messages.Taint_TAINT_TRUSTED,
	}
}

// Succeeded is a structured result as compact JSON. Characters that only HTML minds are left as they are.
func Succeeded(v any, taint messages.Taint) *messages.ToolResult {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return Failed(ReasonFailed, "", "The result cannot be written as JSON.", "")
	}
	return &messages.ToolResult{Content: string(bytes.TrimRight(b.Bytes(), "\n")), Taint: taint}
}

// Arguments reads the arguments of a call into a struct; nil when all went well. A name that the struct does not have is
// refused, so that nothing is dropped in silence.
func Arguments(c *messages.CallTool, into any) *messages.ToolResult {
	d := json.NewDecoder(bytes.NewReader(c.GetCall().GetArgumentsJson()))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return Failed(ReasonType, wrong.Field, fmt.Sprintf("%s is a %s.", wrong.Field, wrong.Value), "Send it in the type that the tool wants.")
	}
	return Failed(ReasonType, "", "The arguments are not those of this tool: "+err.Error()+".", "Send one JSON object with the tool's own arguments.")
}

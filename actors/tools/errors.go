package tools

import (
	"fmt"

	"homeagent/messages"
)

// Codes of refused registrations.
const (
	// CodeBadTool is a definition that no model or call could be served with.
	CodeBadTool = "bad_tool"
	// CodeToolExists is a name that another owner has registered.
	CodeToolExists = "tool_exists"
)

func errBadTool(name string, err error) *messages.Error {
	return &messages.Error{
		Code: CodeBadTool, Message: fmt.Sprintf("The tool %q cannot be registered: %v.", name, err),
		Hint:    "Put its definition right; none of the list was registered.",
		Details: map[string]string{"tool": name},
	}
}

func errToolExists(name, owner, by string) *messages.Error {
	return &messages.Error{
		Code: CodeToolExists, Message: fmt.Sprintf("The tool %q of %s is registered by %s already.", name, by, owner),
		Hint:    "Give one of the two another name; none of the list was registered.",
		Details: map[string]string{"tool": name, "owner": owner, "by": by},
	}
}

// Reasons of a ToolError, as messages/tool.proto lists them.
const (
	reasonRequired  = "required"
	reasonType      = "type"
	reasonTimeout   = "timeout"
	reasonNotFound  = "not_found"
	reasonCancelled = "cancelled"
	reasonDenied    = "denied"
	reasonUnknown   = "unknown_outcome"
	reasonFailed    = "failed"
)

package pluginhost

import (
	"context"

	"homeagent/messages"
)

// Kind says what a plugin is made of.
type Kind string

// Builtin is a plugin that is part of the program.
const Builtin Kind = "builtin"

// Info says what a plugin is.
type Info struct {
	// Name as in plugin.<name>: lower-case letters, digits, hyphens and underscores.
	Name string
	// Kind of the plugin.
	Kind Kind
	// Version of the plugin; empty for one that has the program's.
	Version string
	// Description is one line for people.
	Description string
}

// Plugin is one plugin. Its proxy actor calls it from workers.
type Plugin interface {
	// Info never changes.
	Info() Info
	// Configure brings the plugin up with its settings, or hands it changed ones while it is up, and returns the tools
	// that it serves from then on, which nobody changes any more. After an error the plugin is down and Configure may be
	// called again. It is not called twice at the same time, but may be while calls run.
	Configure(ctx context.Context, s Settings) ([]*messages.ToolDef, error)
	// Call runs one call of one of its tools; the arguments fit the tool's schema. It is called concurrently and returns
	// soon after ctx ends. The result is never nil; its ids are set by the caller.
	Call(ctx context.Context, c *messages.CallTool) *messages.ToolResult
	// Stop brings the plugin down; calls under way have ended. It may be called on one that is down.
	Stop(ctx context.Context) error
}

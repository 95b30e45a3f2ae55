package plugins

import (
	"fmt"
	"strings"

	"homeagent/configs"
	"homeagent/messages"
)

// Codes of errors.
const (
	// CodeUnknown is a name that no plugin has.
	CodeUnknown = "unknown_plugin"
	// CodeBroken is a plugin that cannot come up.
	CodeBroken = "plugin_broken"
	// CodeEnded is a proxy that failed again and again.
	CodeEnded = "plugin_ended"
)

func errUnknown(name string, known []string) *messages.Error {
	hint := "`waiter plugins` shows all."
	if near := configs.Nearest(name, known, 3); len(near) > 0 {
		hint = "Nearest: " + strings.Join(near, ", ") + ". " + hint
	}
	return &messages.Error{
		Code: CodeUnknown, Message: fmt.Sprintf("There is no plugin %q.", name), Hint: hint, Details: map[string]string{"plugin": name},
	}
}

func errBroken(name string, err error) *messages.Error {
	return &messages.Error{
		Code: CodeBroken, Message: fmt.Sprintf("The plugin %s cannot come up: %v.", name, err),
		Hint: "Put its settings right; `waiter config list " + configs.PluginPrefix(name) + "` shows them.", Details: map[string]string{"plugin": name},
	}
}

func errEnded(name, failure string) *messages.Error {
	return &messages.Error{
		Code: CodeEnded, Message: fmt.Sprintf("The actor of the plugin %s has ended: %s.", name, failure),
		Hint: "The log says more. `waiter plugins enable " + name + "` starts it again.", Details: map[string]string{"plugin": name},
	}
}

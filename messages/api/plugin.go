package api

import "time"

// Plugin shows one plugin.
type Plugin struct {
	Name string `json:"name"`
	// Kind is what it is made of: builtin.
	Kind        string `json:"kind"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	// State: disabled, starting, running, broken.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// Problem says why it is broken.
	Problem *Error   `json:"problem,omitempty"`
	Tools   []string `json:"tools"`
	// Calls since the node started, those of them that failed, and those under way.
	Calls   uint64 `json:"calls"`
	Failed  uint64 `json:"failed"`
	Running int    `json:"running"`
	// Values are its settings, where one plugin is shown.
	Values []Value `json:"values,omitempty"`
}

// Plugins answers GET /api/v1/plugins.
type Plugins struct {
	Plugins []Plugin `json:"plugins"`
}

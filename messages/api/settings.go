package api

import (
	"encoding/json"
	"strings"
	"time"
)

// Value shows one key of the configuration.
type Value struct {
	Key string `json:"key"`
	// Value in force: a number or a boolean where the type is one, else a string; for a secret "set" or "unset".
	Value json.RawMessage `json:"value"`
	// Origin: default, stored, environment.
	Origin string `json:"origin"`
	// Type: string, int, float, bool, duration, size, enum, list, url, text, secret.
	Type    string          `json:"type"`
	Unit    string          `json:"unit,omitempty"`
	Default json.RawMessage `json:"default"`
	// Legal values or range, for people.
	Legal       string `json:"legal,omitempty"`
	Description string `json:"description,omitempty"`
	NameEN      string `json:"name_en,omitempty"`
	NameZH      string `json:"name_zh,omitempty"`
	Category    string `json:"category,omitempty"`
	Secret      bool   `json:"secret,omitempty"`
	// Live says that a change takes effect at once.
	Live bool `json:"live"`
	// Pending is the value that holds from the next start on, where that changes it; for a secret "set" or "unset".
	Pending json.RawMessage `json:"pending,omitempty"`
}

// Plain is the text of a JSON scalar: a string without its quotes, anything else as it stands.
func Plain(v json.RawMessage) string {
	var s string
	if err := json.Unmarshal(v, &s); err == nil {
		return s
	}
	return strings.TrimSpace(string(v))
}

// Values answers GET /api/v1/config.
type Values struct {
	Values []Value `json:"values"`
}

// SetValue is the body of PUT /api/v1/config/{key}.
type SetValue struct {
	// Value: a string, number or boolean; null means back to the default. It must be there.
	Value json.RawMessage `json:"value"`
}

// SetValues is the body of PUT /api/v1/config: all keys are set or none.
type SetValues struct {
	Values map[string]json.RawMessage `json:"values"`
}

// ValuesSet answers both.
type ValuesSet struct {
	Values []Value `json:"values"`
	// Restart lists all keys of which a value waits for a restart of the node, also those that were set before.
	Restart []string `json:"restart"`
}

// Source is a model source, without its key.
type Source struct {
	// Name: lower-case letters, digits, hyphen; at most 32.
	Name    string `json:"name"`
	Adapter string `json:"adapter"`
	BaseURL string `json:"base_url,omitempty"`
	Model   string `json:"model,omitempty"`
	// Priority: lower is asked first.
	Priority int `json:"priority"`
	// MaxConcurrent calls; zero means the default.
	MaxConcurrent int `json:"max_concurrent,omitempty"`
	// ContextWindow in tokens; zero means unknown.
	ContextWindow int  `json:"context_window,omitempty"`
	Enabled       bool `json:"enabled"`
}

// SourceView shows a source with its figures.
type SourceView struct {
	Source
	// State: ready, cooling, disabled, broken.
	State        string    `json:"state"`
	CoolingUntil time.Time `json:"cooling_until,omitzero"`
	LastFailure  *Failure  `json:"last_failure,omitempty"`
	Active       int       `json:"active"`
	Calls        uint64    `json:"calls"`
	Failed       uint64    `json:"failed"`
	HasKey       bool      `json:"has_key"`
	// Keys stand for themselves, where there are several.
	Keys []SourceKey `json:"keys,omitempty"`
	// Vision, Audio and Tools say what it takes.
	Vision bool `json:"vision"`
	Audio  bool `json:"audio"`
	Tools  bool `json:"tools"`
}

// SourceKey shows how one of several keys stands; the key itself is never shown.
type SourceKey struct {
	// Place among the keys, from 1.
	Place int `json:"place"`
	// State: ready, cooling, broken.
	State        string    `json:"state"`
	CoolingUntil time.Time `json:"cooling_until,omitzero"`
	LastFailure  *Failure  `json:"last_failure,omitempty"`
}

// Sources answers GET /api/v1/providers.
type Sources struct {
	// Sources in the order they are asked.
	Sources []SourceView `json:"sources"`
	// Found are model servers on this machine that are not configured.
	Found []Source `json:"found"`
}

// AddSource is the body of POST /api/v1/providers.
type AddSource struct {
	Source
	// Disabled keeps it switched off; Enabled is not read.
	Disabled bool `json:"disabled,omitempty"`
	// APIKey is its secret; it is never shown again.
	APIKey string `json:"api_key,omitempty"`
	// Force keeps it although its test fails.
	Force bool `json:"force,omitempty"`
}

// Tested answers a test of a source. A source that was to be added and does not work is an error instead, of code
// source_test_failed, unless it was forced.
type Tested struct {
	Works   bool     `json:"works"`
	Text    string   `json:"text,omitempty"`
	Model   string   `json:"model,omitempty"`
	TookMS  int64    `json:"took_ms"`
	Failure *Failure `json:"failure,omitempty"`
	Saved   bool     `json:"saved"`
}

package providertest

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Script is what a vendor answers.
type Script struct {
	// Models listed under /models; empty means one, "scripted".
	Models []string `json:"models,omitempty"`
	// Steps; for each request the first that fits and is not used up answers.
	Steps []Step `json:"steps"`
}

// Step answers requests that fit it.
type Step struct {
	// Match is a part of the last user message; empty fits all.
	Match string `json:"match,omitempty"`
	// Model fits requests for that model; empty fits all.
	Model string `json:"model,omitempty"`
	// AfterTool fits requests whose last message is (true) or is not (false) a
	// tool result; absent fits all.
	AfterTool *bool `json:"after_tool,omitempty"`
	// Times is how many requests the step answers; 0 means any number.
	Times int `json:"times,omitempty"`

	// Status of the answer; 0 means 200. Other than 200 sends Body as it is.
	Status int `json:"status,omitempty"`
	// Header is added to the answer.
	Header map[string]string `json:"header,omitempty"`
	// Body is sent as it is, with the content type of Header or JSON.
	Body string `json:"body,omitempty"`

	// Reasoning, Text and Tools make up a streamed or whole answer.
	Reasoning []string `json:"reasoning,omitempty"`
	Text      []string `json:"text,omitempty"`
	Tools     []Tool   `json:"tools,omitempty"`
	// Finish reason; empty means stop, or tool_calls with tools.
	Finish string `json:"finish,omitempty"`
	// Usage is sent at the end; nil means 10 in, 5 out.
	Usage *Usage `json:"usage,omitempty"`
	// Repeat streams Text this many times, for benchmarks.
	Repeat int `json:"repeat,omitempty"`

	// Error is sent as an event after the text instead of the end.
	Error *Error `json:"error,omitempty"`
	// Cut ends a stream early: "empty" after the headers, "text" after the text
	// (clean end without finish), "event" inside an event, "reset" by a TCP reset
	// after the text, "args" inside the first tool's arguments.
	Cut string `json:"cut,omitempty"`
	// Hold names gates: the answer waits until the gate is opened.
	Hold Hold `json:"hold,omitzero"`
	// Delay before the answer begins, for demonstrations; tests use gates.
	Delay Duration `json:"delay,omitempty"`
	// Hang never answers; it waits for the client to go.
	Hang bool `json:"hang,omitempty"`
}

// Hold says where a step waits for which gate; empty names do not wait.
type Hold struct {
	// Headers waits before anything is sent, Start after the headers, Middle
	// after the first piece of text, End before the finish.
	Headers string `json:"headers,omitempty"`
	Start   string `json:"start,omitempty"`
	Middle  string `json:"middle,omitempty"`
	End     string `json:"end,omitempty"`
}

// Tool is one tool call of an answer.
type Tool struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	// Made tells that the wire had no id and the node made this one.
	Made bool `json:"made"`
}

// Usage is the token count of an answer.
type Usage struct {
	In  int `json:"in"`
	Out int `json:"out"`
}

// Error is an error object as the OpenAI family writes it.
type Error struct {
	Message string `json:"message"`
	Type    string `json:"type,omitempty"`
	Code    string `json:"code,omitempty"`
}

// Duration is a time.Duration that JSON writes as text, such as "20ms".
type Duration time.Duration

// UnmarshalJSON reads a duration text.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	*d = Duration(v)
	return err
}

// MarshalJSON writes a duration text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// ParseScript reads a script; unknown fields are errors.
func ParseScript(b []byte) (Script, error) {
	var s Script
	if err := strict(b, &s); err != nil {
		return s, fmt.Errorf("script: %w", err)
	}
	if len(s.Steps) == 0 {
		return s, fmt.Errorf("script: no steps")
	}
	for i, st := range s.Steps {
		switch st.Cut {
		case "", "empty", "text", "event", "reset", "args":
		default:
			return s, fmt.Errorf("script: step %d: cut %q is unknown", i, st.Cut)
		}
	}
	return s, nil
}

// LoadScript reads a script file.
func LoadScript(path string) (Script, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Script{}, err
	}
	return ParseScript(b)
}

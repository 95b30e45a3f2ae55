package api

import (
	"encoding/json"
	"time"
)

// Submit is the body of POST /api/v1/inputs.
type Submit struct {
	// Text of the input. Text or Blocks must say something.
	Text string `json:"text,omitempty"`
	// Blocks are further content, in order after Text.
	Blocks []Block `json:"blocks,omitempty"`
	// Channel is a registered channel; empty means "api".
	Channel string `json:"channel,omitempty"`
	// Conversation within the channel; empty means its default one.
	Conversation string `json:"conversation,omitempty"`
	// Agent path; empty means "main".
	Agent string `json:"agent,omitempty"`
	// Level 0 to 3, a JSON number; absent means the default of the channel.
	Level json.RawMessage `json:"level,omitempty"`
	// Mode: steer, queue or interrupt; empty means the channel's default.
	Mode string `json:"mode,omitempty"`
	// IdempotencyKey makes a repeated request the same input.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Deadline by which its turn must have begun; an input that still waits then ends as expired.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Wait asks for the final answer.
	Wait bool `json:"wait,omitempty"`
	// WaitMS bounds the wait in milliseconds, at most one hour; zero means five minutes. When it is over the answer
	// is that of an input that was not waited for, with TimedOut; the task goes on.
	WaitMS int64 `json:"wait_ms,omitempty"`
}

// Level writes a level for Submit.
func Level(n int) json.RawMessage {
	b, _ := json.Marshal(n) // an int always encodes
	return b
}

// Block is one piece of content.
type Block struct {
	// Type: text, image, audio; in what a node shows also video, file.
	Type string `json:"type"`
	// Text of a text block.
	Text string `json:"text,omitempty"`
	// Data are the bytes of an image or audio block that is sent; JSON has them as base64.
	Data []byte `json:"data,omitempty"`
	// MediaType of Data, such as image/jpeg.
	MediaType string `json:"media_type,omitempty"`
	// ID names a payload of the store, in what a node shows.
	ID string `json:"id,omitempty"`
	// Size of the payload in bytes.
	Size int64 `json:"size,omitempty"`
}

// Submitted answers POST /api/v1/inputs: 202 with the outcome, or 200 with Task when it was waited for.
type Submitted struct {
	// InputID names the input; with a known idempotency key the first one.
	InputID string `json:"input_id"`
	// Outcome: started, steered, queued, preempting, duplicate.
	Outcome string `json:"outcome"`
	// Position in the queue, 1 is next; zero when not queued.
	Position int `json:"position"`
	// Duplicate says that the idempotency key was known.
	Duplicate bool `json:"duplicate,omitempty"`
	// TimedOut says that the wait was over before the task had ended.
	TimedOut bool `json:"timed_out,omitempty"`
	// Task is how it ended, when it was waited for.
	Task *Task `json:"task,omitempty"`
}

// Task tells all that is known of one input.
type Task struct {
	InputID string `json:"input_id"`
	// State: queued, running, suspended, parked, steered, ended.
	State string `json:"state"`
	// End: answered, refused, stopped, failed, duplicate, expired; empty before.
	End string `json:"end,omitempty"`
	// Reason code of the end.
	Reason string `json:"reason,omitempty"`
	// Text of the answer, or what went wrong.
	Text string `json:"text,omitempty"`
	// By is the task that answered it or that it repeats.
	By           string `json:"by,omitempty"`
	Channel      string `json:"channel,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Agent        string `json:"agent,omitempty"`
	// Principal is who asked.
	Principal string    `json:"principal,omitempty"`
	Content   []Block   `json:"content,omitempty"`
	Accepted  time.Time `json:"accepted,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	// Starts counts starts of its turn, Preempted its preemptions.
	Starts    int    `json:"starts"`
	Preempted int    `json:"preempted"`
	Usage     *Usage `json:"usage,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Cached     int64 `json:"cached,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	// Prompt is the whole prompt, normalised over vendors.
	Prompt int64 `json:"prompt,omitempty"`
	// Total as the vendor says it, or the sum of prompt and output.
	Total int64 `json:"total,omitempty"`
}

// Stop is the body of POST /api/v1/stop.
type Stop struct {
	// Conversation to stop; empty means the whole agent.
	Conversation string `json:"conversation,omitempty"`
	// Agent path; empty means "main".
	Agent string `json:"agent,omitempty"`
}

// Stopped answers Stop.
type Stopped struct {
	// Stopped counts turns ended.
	Stopped int `json:"stopped"`
	// Quota counts waiting tasks that end without running.
	Quota int `json:"quota"`
}

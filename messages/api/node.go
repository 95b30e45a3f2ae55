package api

import (
	"encoding/json"
	"time"
)

// Actor is one actor of the live tree.
type Actor struct {
	// Path below the root; empty is the root itself.
	Path string `json:"path"`
	Kind string `json:"kind"`
	Node string `json:"node"`
	// State: starting, running, suspended, paused, restarting, stopping, or the actor's own word.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// Mailbox counts waiting messages per lane.
	Mailbox Mailbox `json:"mailbox"`
	// OldestMS is how long the oldest waiting message has waited.
	OldestMS int64 `json:"oldest_ms"`
	// Handled counts messages since the actor was spawned, restarts included.
	Handled uint64 `json:"handled"`
	// Rate is in messages per second.
	Rate float64 `json:"rate"`
	// MeanUS is the mean handling time in microseconds.
	MeanUS      float64 `json:"mean_us"`
	Restarts    uint64  `json:"restarts"`
	LastFailure string  `json:"last_failure,omitempty"`
	Summary     string  `json:"summary,omitempty"`
	// Current is the type of the message being handled, CurrentMS for how long.
	Current   string `json:"current,omitempty"`
	CurrentMS int64  `json:"current_ms,omitempty"`
	// System actors can not be stopped by people.
	System bool `json:"system,omitempty"`
	// Refused counts messages refused by admission.
	Refused  uint64  `json:"refused,omitempty"`
	Children []Actor `json:"children"`
	// Inner is what the actor shows of its own state; only in the answer for one actor.
	Inner json.RawMessage `json:"inner,omitempty"`
}

// Mailbox counts waiting messages.
type Mailbox struct {
	User    int64 `json:"user"`
	Control int64 `json:"control"`
}

// Scheduler shows one agent's scheduler.
type Scheduler struct {
	Agent   string `json:"agent"`
	Running *Work  `json:"running,omitempty"`
	// Stack holds suspended tasks, top first; Queue waiting ones, next first.
	Stack []Work `json:"stack"`
	Queue []Work `json:"queue"`
	// Parked holds tasks that wait for approvals.
	Parked []Work `json:"parked"`
	// Waiting is how many wait in all, also those that Queue does not list.
	Waiting int `json:"waiting"`
	// StopQuota counts tasks that a stop has ended and whose end is not on disk yet.
	StopQuota int      `json:"stop_quota"`
	Counters  Counters `json:"counters"`
}

// Work is one task as a scheduler sees it.
type Work struct {
	TaskID string `json:"task_id"`
	// Level asked for and Effective level, 0 to 4.
	Level        int       `json:"level"`
	Effective    int       `json:"effective"`
	Channel      string    `json:"channel,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	Text         string    `json:"text,omitempty"`
	Since        time.Time `json:"since,omitzero"`
	Preempted    int       `json:"preempted"`
	// Phase of a running or suspended turn, such as completing or tools.
	Phase string `json:"phase,omitempty"`
	// Principal who asked.
	Principal string `json:"principal,omitempty"`
	// Position in the queue, 1 is next; left out when it does not wait.
	Position int `json:"position,omitempty"`
	// Approvals that a parked one waits for.
	Approvals []string `json:"approvals,omitempty"`
}

// ChangeWaiting is the body of PUT /api/v1/scheduler/{id}: what is left out stays.
type ChangeWaiting struct {
	// Text replaces the texts of the input.
	Text *string `json:"text,omitempty"`
	// Level 0 to 3, a JSON number.
	Level json.RawMessage `json:"level,omitempty"`
}

// Counters count since the process started.
type Counters struct {
	Offered   uint64            `json:"offered"`
	Started   uint64            `json:"started"`
	Suspended uint64            `json:"suspended"`
	Resumed   uint64            `json:"resumed"`
	Steered   uint64            `json:"steered"`
	Ended     map[string]uint64 `json:"ended"`
	// Interrupts by level, "1" to "4".
	Interrupts map[string]uint64 `json:"interrupts"`
	// Preempts by the level that preempted, "1" to "4"; together they are Suspended.
	Preempts map[string]uint64 `json:"preempts"`
	// Parked counts tasks that were parked for an approval.
	Parked    uint64 `json:"parked"`
	MaxDepth  int    `json:"max_depth"`
	Anomalies uint64 `json:"anomalies"`
}

// Agent shows one agent.
type Agent struct {
	// Agent path, such as "main/resident/cook".
	Agent          string    `json:"agent"`
	Parent         string    `json:"parent,omitempty"`
	TaskPrompt     string    `json:"task_prompt,omitempty"`
	AllowedOutputs []string  `json:"allowed_outputs,omitempty"`
	Capacity       int       `json:"capacity,omitempty"`
	Created        time.Time `json:"created,omitzero"`
	// State: idle, working, suspended work, ending.
	State      string     `json:"state,omitempty"`
	LastReport string     `json:"last_report,omitempty"`
	Notes      []string   `json:"notes,omitempty"`
	Scheduler  *Scheduler `json:"scheduler,omitempty"`
	// InputID is the input that carries the first task, in the answer to a creation that gave one.
	InputID string `json:"input_id,omitempty"`
}

// Agents answers GET /api/v1/agents.
type Agents struct {
	Agents []Agent `json:"agents"`
}

// CreateAgent is the body of POST /api/v1/agents.
type CreateAgent struct {
	// Name: lower-case letters, digits, hyphen; at most 32.
	Name string `json:"name"`
	// Parent agent path; empty means "main".
	Parent string `json:"parent,omitempty"`
	// TaskPrompt says what it is for.
	TaskPrompt string `json:"task_prompt"`
	// Task is its first task; empty means that it waits.
	Task           string   `json:"task,omitempty"`
	AllowedOutputs []string `json:"allowed_outputs,omitempty"`
	Capacity       int      `json:"capacity,omitempty"`
}

// Channel is a way in or out.
type Channel struct {
	Name string `json:"name"`
	// Kind: async or interactive.
	Kind string `json:"kind"`
	// Mode: steer, queue, interrupt.
	Mode       string `json:"mode"`
	Idempotent bool   `json:"idempotent,omitempty"`
	// Owner is the actor that sends its outputs; empty means that the event stream is the way out.
	Owner string `json:"owner,omitempty"`
}

// Channels answers GET /api/v1/channels.
type Channels struct {
	Channels []Channel `json:"channels"`
}

// Node is one node of the agent.
type Node struct {
	Name string `json:"name"`
	// Self is the node that answers.
	Self    bool      `json:"self"`
	State   string    `json:"state"`
	Version string    `json:"version"`
	Epoch   uint64    `json:"epoch"`
	Started time.Time `json:"started"`
}

// Nodes answers GET /api/v1/nodes.
type Nodes struct {
	Nodes []Node `json:"nodes"`
}

// Status answers GET /api/v1/status.
type Status struct {
	Node     string `json:"node"`
	Version  string `json:"version"`
	Revision string `json:"revision"`
	// State: ready, starting, draining.
	State string `json:"state"`
	Epoch uint64 `json:"epoch"`
	PID   int    `json:"pid"`
	// UptimeS is in seconds.
	UptimeS float64   `json:"uptime_s"`
	Started time.Time `json:"started"`
	Data    string    `json:"data"`
	HTTP    string    `json:"http"`
	Socket  string    `json:"socket,omitempty"`
	// Goroutines and MemoryBytes are of the process as the Go runtime counts them.
	Goroutines  int    `json:"goroutines"`
	MemoryBytes uint64 `json:"memory_bytes"`
	// Streams counts open event streams.
	Streams int     `json:"streams"`
	Ledger  *Ledger `json:"ledger,omitempty"`
}

// Ledger shows the figures of the store's writer.
type Ledger struct {
	// Open counts inputs accepted and not ended.
	Open     int64  `json:"open"`
	Accepted uint64 `json:"accepted"`
	Ended    uint64 `json:"ended"`
	// Bytes on disk and FreeBytes of the disk.
	Bytes     int64 `json:"bytes"`
	FreeBytes int64 `json:"free_bytes"`
	// DiskLow says that writes are refused for want of space.
	DiskLow bool   `json:"disk_low"`
	Syncs   uint64 `json:"syncs"`
	// Broken says why nothing can be stored any more; the node ends soon after.
	Broken string `json:"broken,omitempty"`
	// BudgetBytes is the most that the store may take, 0 for no limit; Full says that inputs are refused for it, Pressure
	// how many times the times of retention are halved to get below it.
	BudgetBytes int64 `json:"budget_bytes"`
	Full        bool  `json:"full"`
	Pressure    int   `json:"pressure"`
	// Spaces are what the store consists of, largest first; absent before the first look.
	Spaces []Space `json:"spaces,omitempty"`
	// Damage names files of the store that were found damaged while the node runs.
	Damage []string `json:"damage,omitempty"`
}

// Space is what one key space of the store takes.
type Space struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Health answers GET /healthz and /readyz.
type Health struct {
	// Status: ok, starting, draining, unwell, broken.
	Status string `json:"status"`
	// Reason says why it is broken or unwell, where that is known.
	Reason string `json:"reason,omitempty"`
	// TookMS is how long the scheduler took to answer; healthz only.
	TookMS float64 `json:"took_ms,omitempty"`
}

// Tokens counts since the process started.
type Tokens struct {
	Since  time.Time    `json:"since"`
	Models []ModelUsage `json:"models"`
	// Tasks counts tasks ended, by end.
	Tasks map[string]uint64 `json:"tasks"`
}

// ModelUsage counts the rounds and tokens of one model of one source.
type ModelUsage struct {
	Source string `json:"source"`
	Model  string `json:"model"`
	Rounds uint64 `json:"rounds"`
	Failed uint64 `json:"failed"`
	Usage
}

package api

import "time"

// Timer is something that is to happen at given times.
type Timer struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	Agent string `json:"agent"`
	// Kind: once, interval, cron.
	Kind string `json:"kind"`
	// At is the time of once, and the anchor of interval.
	At *time.Time `json:"at,omitempty"`
	// Every is the time between two slots of an interval, as a duration.
	Every string `json:"every,omitempty"`
	Cron  string `json:"cron,omitempty"`
	// Zone that was set; empty follows the node. EffectiveZone is the one in which times are read now.
	Zone          string `json:"zone,omitempty"`
	EffectiveZone string `json:"effective_zone"`
	// Text that the agent is told.
	Text string `json:"text"`
	// Reminder says that people wait for it: level 3, else 0; Level is another one.
	Reminder bool `json:"reminder"`
	Level    *int `json:"level,omitempty"`
	// Missed: skip, run_once. Overlap: skip, queue.
	Missed  string `json:"missed"`
	Overlap string `json:"overlap"`
	// Channel and Conversation that its answers go to; empty stays on the event stream.
	Channel      string `json:"channel,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	// Setter is who set it.
	Setter  string    `json:"setter,omitempty"`
	Created time.Time `json:"created"`
	Paused  bool      `json:"paused"`
	// Next slot; absent when none is left.
	Next *time.Time `json:"next,omitempty"`
	// Last slot that was taken, with what became of it: ran, skipped_missed, skipped_overlap, skipped_paused, refused.
	Last        *time.Time `json:"last,omitempty"`
	LastOutcome string     `json:"last_outcome,omitempty"`
	LastReason  string     `json:"last_reason,omitempty"`
	// LastTask is the input id of the latest task it made.
	LastTask string `json:"last_task,omitempty"`
	Runs     uint64 `json:"runs"`
	Skipped  uint64 `json:"skipped"`
}

// Timers answers GET /api/v1/timers, the next one first.
type Timers struct {
	Timers []Timer `json:"timers"`
}

// AddTimer is the body of POST /api/v1/timers.
type AddTimer struct {
	Text  string `json:"text"`
	Name  string `json:"name,omitempty"`
	Agent string `json:"agent,omitempty"`
	// One of At (RFC 3339, local time or time of day), In (a duration from now), Every (a duration; At or In is then the
	// first slot) and Cron (five fields).
	At    string `json:"at,omitempty"`
	In    string `json:"in,omitempty"`
	Every string `json:"every,omitempty"`
	Cron  string `json:"cron,omitempty"`
	// Zone as an IANA name; empty follows the node.
	Zone         string `json:"zone,omitempty"`
	Reminder     bool   `json:"reminder,omitempty"`
	Level        *int   `json:"level,omitempty"`
	Missed       string `json:"missed,omitempty"`
	Overlap      string `json:"overlap,omitempty"`
	Channel      string `json:"channel,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	// IdempotencyKey makes a request that is sent again set no second timer.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
}

// TimerSlot is the detail of an event of type timer.
type TimerSlot struct {
	ID      string     `json:"id"`
	Name    string     `json:"name,omitempty"`
	Slot    time.Time  `json:"slot"`
	Outcome string     `json:"outcome"`
	Reason  string     `json:"reason,omitempty"`
	Next    *time.Time `json:"next,omitempty"`
	// Passed are slots before this one that passed with it and did not run.
	Passed uint64 `json:"passed,omitempty"`
}

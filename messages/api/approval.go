package api

import (
	"encoding/json"
	"time"
)

// Principal is who asks.
type Principal struct {
	// ID, such as "owner", "person:anna" or "token:cron".
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Kind: owner, person, token, node, agent, system.
	Kind string `json:"kind,omitempty"`
}

// Approval is one question to a person: may this call run.
type Approval struct {
	ID string `json:"id"`
	// State: pending, allowed, denied, expired, released.
	State string `json:"state"`
	// TaskID is the task that waits, Agent the one that it is of.
	TaskID string `json:"task_id"`
	Agent  string `json:"agent"`
	// Tool and Arguments are the whole call, Arguments as text where they are not JSON; Class is read, write, exec, net, send, device or memory.
	Tool      string          `json:"tool"`
	Class     string          `json:"class"`
	CallID    string          `json:"call_id"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Hash of the call; a decision must bring it.
	Hash string `json:"hash"`
	// Principals on whose behalf the call would run.
	Principals   []Principal `json:"principals"`
	Channel      string      `json:"channel,omitempty"`
	Conversation string      `json:"conversation,omitempty"`
	// Taint of the turn: foreign when it has read what nobody vouches for.
	Taint string `json:"taint,omitempty"`
	// Reason why a person is asked.
	Reason  string    `json:"reason,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Expires is when it counts as denied; left out for never.
	Expires time.Time `json:"expires,omitzero"`
	// DecidedBy and Decided are left out while it waits.
	DecidedBy *Principal `json:"decided_by,omitempty"`
	Decided   time.Time  `json:"decided,omitzero"`
	// Note is what the person said to it.
	Note string `json:"note,omitempty"`
	// ReleasedFor: ended, changed, policy.
	ReleasedFor string `json:"released_for,omitempty"`
}

// Approvals answers GET /api/v1/approvals.
type Approvals struct {
	Approvals []Approval `json:"approvals"`
}

// Decide is the body of POST /api/v1/approvals/{id}/allow and …/deny.
type Decide struct {
	// Hash of the call as it was shown.
	Hash string `json:"hash"`
	// Note for the model; may be empty.
	Note string `json:"note,omitempty"`
}

// NamedToken is a token with which a program or a person asks from outside.
type NamedToken struct {
	Name      string    `json:"name"`
	Principal Principal `json:"principal"`
	Created   time.Time `json:"created,omitzero"`
	// Expires is when it stops to work; left out for never.
	Expires time.Time `json:"expires,omitzero"`
	Expired bool      `json:"expired,omitempty"`
	// Token itself, told once when it is made.
	Token string `json:"token,omitempty"`
}

// NamedTokens answers GET /api/v1/tokens.
type NamedTokens struct {
	Tokens []NamedToken `json:"tokens"`
}

// AddToken is the body of POST /api/v1/tokens.
type AddToken struct {
	// Name: 1 to 32 lower-case letters, digits and hyphens.
	Name string `json:"name"`
	// Principal: token (default) or person.
	Principal string `json:"principal,omitempty"`
	// Expires is how long it works, such as "30d"; empty means for ever.
	Expires string `json:"expires,omitempty"`
}

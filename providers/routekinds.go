package providers

import (
	"time"

	"homeagent/messages"
)

// cooldown of a kind: first time, doubling up to cap. With latch it counts as
// broken, and the time is that to the next try of its own.
type cooldown struct {
	first, cap time.Duration
	latch      bool
}

// cooldowns has no entry for kinds that never mark a source down.
var cooldowns = map[messages.ErrorKind]cooldown{
	messages.ErrorKind_ERROR_KIND_UNSPECIFIED:      {first: 5 * time.Second, cap: 2 * time.Minute},
	messages.ErrorKind_ERROR_KIND_AUTH:             {first: time.Hour, cap: 24 * time.Hour, latch: true},
	messages.ErrorKind_ERROR_KIND_ADAPTER:          {first: time.Hour, cap: 24 * time.Hour, latch: true},
	messages.ErrorKind_ERROR_KIND_QUOTA_EXHAUSTED:  {first: time.Hour, cap: 24 * time.Hour},
	messages.ErrorKind_ERROR_KIND_RATE_LIMIT:       {first: 10 * time.Second, cap: 5 * time.Minute},
	messages.ErrorKind_ERROR_KIND_OVERLOADED:       {first: 30 * time.Second, cap: 5 * time.Minute},
	messages.ErrorKind_ERROR_KIND_SERVER:           {first: 5 * time.Second, cap: 2 * time.Minute},
	messages.ErrorKind_ERROR_KIND_TIMEOUT:          {first: 15 * time.Second, cap: 5 * time.Minute},
	messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED: {first: 5 * time.Second, cap: 2 * time.Minute},
	messages.ErrorKind_ERROR_KIND_CONNECT:          {first: 5 * time.Second, cap: time.Minute},
}

// ofKey tells that a failure is that of the key: another key of the source may do.
func ofKey(k messages.ErrorKind) bool {
	switch k {
	case messages.ErrorKind_ERROR_KIND_AUTH, messages.ErrorKind_ERROR_KIND_QUOTA_EXHAUSTED, messages.ErrorKind_ERROR_KIND_RATE_LIMIT:
		return true
	default:
		return false
	}
}

// stops tells that no other source may be asked: the caller ended the call, the
// turn must shorten the prompt, or a filter spoke, which is not to be evaded.
func stops(k messages.ErrorKind) bool {
	switch k {
	case messages.ErrorKind_ERROR_KIND_CANCELLED, messages.ErrorKind_ERROR_KIND_CONTEXT_OVERFLOW, messages.ErrorKind_ERROR_KIND_CONTENT_BLOCKED:
		return true
	default:
		return false
	}
}

// speaks tells that the model spoke wrongly, which it may not do again.
func speaks(k messages.ErrorKind) bool {
	return k == messages.ErrorKind_ERROR_KIND_TOOL_USE_FAILED || k == messages.ErrorKind_ERROR_KIND_MALFORMED_TOOL_CALL
}

// passes tells that a short pause may cure a failure.
func passes(k messages.ErrorKind) bool {
	switch k {
	case messages.ErrorKind_ERROR_KIND_RATE_LIMIT, messages.ErrorKind_ERROR_KIND_OVERLOADED,
		messages.ErrorKind_ERROR_KIND_SERVER, messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED:
		return true
	default:
		return false
	}
}

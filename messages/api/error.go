package api

// Error is the body of every answer that is not a success.
type Error struct {
	// Code for programs, such as "unknown_key".
	Code string `json:"code"`
	// Message is safe text for a person.
	Message string `json:"message"`
	// Hint says what to do about it.
	Hint string `json:"hint,omitempty"`
	// Details are named facts, such as the key; request_id is always among them.
	Details map[string]string `json:"details,omitempty"`
}

// Error makes it an error of Go.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Message
}

// Codes that the HTTP face itself answers with. Those of actors pass through unchanged.
const (
	CodeMalformed    = "malformed"         // 400: the body or a parameter can not be read
	CodeUnauthorized = "unauthorized"      // 401: no or a wrong credential
	CodeOrigin       = "foreign_origin"    // 403: the request comes from a page of another origin
	CodePeer         = "foreign_peer"      // 403: the process at the socket belongs to another user
	CodeLevel        = "level_not_allowed" // 403: the level is above what HTTP may ask for
	CodeNotAllowed   = "not_allowed"       // 403: the credential does not stand for somebody who may
	CodeNotFound     = "not_found"         // 404: there is no such route or thing
	CodeMethod       = "method_not_allowed"
	CodeTooLarge     = "too_large"    // 413: the body is above the cap
	CodeHost         = "foreign_host" // 421: the Host header names another server
	CodeBusy         = "busy"         // 429: try again after Retry-After
	CodeInternal     = "internal"     // 500: a fault of the node, with its request id in the log
	CodeDraining     = "draining"     // 503: the node is stopping
	CodeUnavailable  = "unavailable"  // 503: the actor asked is not there now
	CodeTimeout      = "timeout"      // 504: the actor asked did not answer in time
)

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"homeagent/actors/kit"
	"homeagent/messages"
	"homeagent/messages/api"
)

// refusal is an answer that is not a success.
type refusal struct {
	status int
	// retry is after how many seconds it may go; zero means that nothing is known.
	retry int64
	body  api.Error
}

func refused(status int, code, message, hint string) *refusal {
	return &refusal{status: status, body: api.Error{Code: code, Message: message, Hint: hint}}
}

func malformed(message, hint string) *refusal { return refused(400, api.CodeMalformed, message, hint) }

func drainingRefusal() *refusal {
	r := refused(503, api.CodeDraining, "The node is stopping and takes no new work.", "Try again when it runs again.")
	r.retry = 5
	return r
}

// with adds a detail.
func (r *refusal) with(key, value string) *refusal {
	if r.body.Details == nil {
		r.body.Details = make(map[string]string)
	}
	r.body.Details[key] = value
	return r
}

// statuses are the HTTP statuses of codes that actors answer with; statusOf knows those that follow a pattern.
var statuses = map[string]int{
	"queue_full": 429, "busy": 429, "agent_full": 429, "rate_limited": 429,
	"disk_low": 503, "store_closed": 503, "store_broken": 503, "no_source": 503, "actor_gone": 503, "node_unreachable": 503,
	"draining": 503, "stopping": 503,
	"timeout": 504, "cancelled": 504, "stop_timeout": 504,
	"approval_decided": 409, "approval_changed": 409,
	"conflict": 409, "name_taken": 409, "already_ended": 409, "not_waiting": 409, "not_ready": 409, "built_in": 409,
	"forbidden": 403, "denied": 403, "system_actor": 403, "not_allowed": 403, "read_only": 403, "main_only": 403,
	"not_found": 404, "actor_not_found": 404,
	"malformed": 400, "out_of_range": 400, "restart_only": 400, "dropped_key": 400, "no_content": 400,
	"required": 400, "required_key": 400, "environment_set": 409, "set_by_environment": 409,
	"too_large": 413,
	"internal":  500, "not_shown": 500,
}

// statusOf is the HTTP status of an actor's code.
func statusOf(code string) int {
	if s, ok := statuses[code]; ok {
		return s
	}
	switch {
	case strings.HasPrefix(code, "unknown_"):
		return 404
	case strings.HasSuffix(code, "_exists"):
		return 409
	case strings.HasPrefix(code, "too_many_"), strings.HasSuffix(code, "_full"):
		return 429
	case strings.HasPrefix(code, "bad_"), strings.HasPrefix(code, "invalid_"), strings.HasPrefix(code, "unsupported_"):
		return 400
	case strings.HasSuffix(code, "_too_large"):
		return 413
	}
	return 500
}

// refusalOf turns an actor's error over.
func refusalOf(e *messages.Error) *refusal {
	r := &refusal{status: statusOf(e.GetCode()), body: *plainError(e)}
	r.body.Details = maps.Clone(r.body.Details) // the message is frozen, and the request id is added here
	if ms := e.GetRetryAfterMs(); ms > 0 {
		r.retry = (ms + 999) / 1000
	}
	return r
}

// refusalFrom turns an error of the runtime over. What is not meant for people stays in the log.
func refusalFrom(err error) *refusal {
	var known *kit.Refused
	switch {
	case errors.As(err, &known):
		r := refusalOf(known.Err)
		if r.body.Code == kit.CodeGone {
			r.body.Code = api.CodeUnavailable
		}
		return r
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return refused(504, api.CodeTimeout, "The node did not answer in time.", "Try again; see /api/v1/actors for what it does.")
	}
	return refused(500, api.CodeInternal, "The node could not do this.", "The log tells more, under the request id.").caused(err)
}

// caused keeps the cause for the log under a key that never leaves the node.
func (r *refusal) caused(err error) *refusal { return r.with(causeKey, err.Error()) }

const causeKey = "cause"

// write answers with the refusal.
func (f *face) refuse(w http.ResponseWriter, r *http.Request, no *refusal) {
	id := requestID(r)
	body := no.body
	body.Details = maps.Clone(body.Details)
	if body.Details == nil {
		body.Details = make(map[string]string)
	}
	body.Details["request_id"] = id
	if cause, ok := body.Details[causeKey]; ok {
		delete(body.Details, causeKey)
		f.log().Error("request failed", "request_id", id, "route", r.Pattern, "cause", cause)
	}
	f.retryAfter(w, no)
	if theirs := vendorError(r, no); theirs != nil {
		writeJSON(w, no.status, theirs)
		return
	}
	writeJSON(w, no.status, body)
}

// retryAfter sets the header where a retry makes sense.
func (f *face) retryAfter(w http.ResponseWriter, no *refusal) {
	retry := no.retry
	if retry == 0 && no.status == http.StatusTooManyRequests {
		retry = 1
	}
	if retry > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(retry, 10))
	}
}

// writeJSON answers with a value that encodes. A client that went away is no failure of ours.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = 500, []byte(`{"code":"internal","message":"The answer could not be written."}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

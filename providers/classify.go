package providers

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"homeagent/messages"
)

// kindOfStatus is what an HTTP status means when nobody knows better.
func kindOfStatus(status int) messages.ErrorKind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return messages.ErrorKind_ERROR_KIND_AUTH
	case status == http.StatusPaymentRequired:
		return messages.ErrorKind_ERROR_KIND_QUOTA_EXHAUSTED
	case status == http.StatusTooManyRequests:
		return messages.ErrorKind_ERROR_KIND_RATE_LIMIT
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return messages.ErrorKind_ERROR_KIND_TIMEOUT
	case status == http.StatusServiceUnavailable, status == 529:
		return messages.ErrorKind_ERROR_KIND_OVERLOADED
	case status == http.StatusRequestEntityTooLarge:
		return messages.ErrorKind_ERROR_KIND_CONTEXT_OVERFLOW
	case status == 525, status == 526:
		// The vendor's TLS is configured wrongly: waiting does not help.
		return messages.ErrorKind_ERROR_KIND_CONNECT
	case status >= 500:
		return messages.ErrorKind_ERROR_KIND_SERVER
	case status >= 400:
		return messages.ErrorKind_ERROR_KIND_INVALID_REQUEST
	case status >= 300:
		return messages.ErrorKind_ERROR_KIND_CONNECT
	}
	return messages.ErrorKind_ERROR_KIND_SERVER
}

// maxRetryAfter caps what a vendor may ask for.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads how long a vendor wants to be left alone: retry-after-ms,
// then Retry-After as seconds (whole or not) or as an HTTP date. A date in the
// past is zero, as is what cannot be read.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil && ms > 0 {
		return seconds(ms / 1000)
	}
	text := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		return seconds(s)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}

func seconds(s float64) time.Duration {
	switch {
	case !(s > 0):
		return 0
	case s >= maxRetryAfter.Seconds():
		return maxRetryAfter
	}
	return time.Duration(s * float64(time.Second))
}

// kindOfTransport names what went wrong below HTTP, in words for people.
func kindOfTransport(ctx context.Context, err error) (messages.ErrorKind, string) {
	cause := context.Cause(ctx)
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(cause, errConnectLate):
		return messages.ErrorKind_ERROR_KIND_CONNECT, "no connection to the server in time"
	case errors.Is(cause, errFirstByteLate):
		return messages.ErrorKind_ERROR_KIND_TIMEOUT, "the server did not begin to answer in time"
	case errors.Is(cause, errTotal), errors.Is(cause, context.DeadlineExceeded):
		return messages.ErrorKind_ERROR_KIND_TIMEOUT, "the call took longer than allowed"
	case errors.Is(cause, errIdle):
		return messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED, "the stream stalled"
	case cause != nil:
		return messages.ErrorKind_ERROR_KIND_CANCELLED, "cancelled"
	case errors.As(err, &dns):
		return messages.ErrorKind_ERROR_KIND_CONNECT, "the server's name " + dns.Name + " cannot be resolved"
	case errors.As(err, &op) && op.Op == "dial":
		return messages.ErrorKind_ERROR_KIND_CONNECT, "the server cannot be reached"
	case strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: "):
		return messages.ErrorKind_ERROR_KIND_CONNECT, "no trusted TLS connection to the server"
	}
	return messages.ErrorKind_ERROR_KIND_SERVER, "the connection broke before the answer"
}

// maxShown is how much of a vendor's message is shown.
const maxShown = 400

// shown makes a vendor's message safe: shortened, one line, without the key.
func shown(text, key string) string {
	text = strings.Join(strings.Fields(clean(text)), " ")
	if key != "" {
		text = strings.ReplaceAll(text, key, "[redacted]")
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
)

// Codes of an Error.
const (
	// CodeBadURL: the URL is not one that is fetched; trying it again is of no use.
	CodeBadURL = "bad_url"
	// CodeDenied: the address lies in a network that is not fetched from.
	CodeDenied = "address_denied"
	// CodeRedirects: too many redirects followed one another.
	CodeRedirects = "too_many_redirects"
	// CodeName: the host's name is not known.
	CodeName = "unknown_host"
	// CodeConnect: the host could not be reached; it may be later.
	CodeConnect = "not_reached"
	// CodeTLS: the host did not prove who it is.
	CodeTLS = "not_trusted"
	// CodeTimeout: it took too long.
	CodeTimeout = "timeout"
	// CodeCancelled: the caller gave up.
	CodeCancelled = "cancelled"
	// CodeBroken: the answer broke off or is no HTTP.
	CodeBroken = "broken_answer"
)

// Error is why something was not fetched.
type Error struct {
	// Code is one of the constants above.
	Code string
	// Text says what happened, for people and models.
	Text string
	// Hint says what to do about it; may be empty.
	Hint string
	err  error
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause; it may hold more than people should see.
func (e *Error) Unwrap() error { return e.err }

func badURL(text, hint string) *Error { return &Error{Code: CodeBadURL, Text: text, Hint: hint} }

// explain turns what net/http says into an Error; host is whom it was about.
func explain(err error, host string) *Error {
	var (
		known  *Error
		dns    *net.DNSError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
		auth   x509.UnknownAuthorityError
		name   x509.HostnameError
		op     *net.OpError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled):
		return &Error{Code: CodeCancelled, Text: "The fetch was given up.", err: err}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return &Error{Code: CodeTimeout, Text: host + " took too long.", Hint: "Try again later.", err: err}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &Error{Code: CodeName, Text: "There is no host " + host + ".", Hint: "Check the spelling of the address.", err: err}
	case errors.As(err, &dns):
		return &Error{Code: CodeName, Text: "The name " + host + " could not be looked up.", Hint: "Try again later.", err: err}
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &auth), errors.As(err, &name):
		return &Error{Code: CodeTLS, Text: host + " could not prove by TLS who it is.", Hint: "Do not trust what this address shows.", err: err}
	case errors.As(err, &op) && op.Op == "dial":
		return &Error{Code: CodeConnect, Text: host + " could not be reached.", Hint: "Try again later.", err: err}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &Error{Code: CodeTimeout, Text: host + " took too long.", Hint: "Try again later.", err: err}
	}
	return &Error{Code: CodeBroken, Text: "The answer of " + host + " broke off or is no HTTP.", Hint: "Try again later.", err: err}
}

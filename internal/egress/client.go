package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Options of a Client.
type Options struct {
	// Agent is the User-Agent; empty means "homed".
	Agent string
	// Resolver looks names up; nil means the system's.
	Resolver *net.Resolver
	// Roots are the authorities that TLS trusts; nil means the system's.
	Roots *x509.CertPool
	// Connect is how long a connect, TLS included, may take; zero means 10 s.
	Connect time.Duration
}

// Client fetches. It is safe for concurrent use. Close ends it.
type Client struct {
	agent     string
	allow     atomic.Pointer[Allow]
	transport *http.Transport
	http      *http.Client
}

// New makes a client that lets only ordinary addresses through; see SetAllow.
func New(o Options) *Client {
	if o.Agent == "" {
		o.Agent = "homed"
	}
	if o.Connect <= 0 {
		o.Connect = 10 * time.Second
	}
	c := &Client{agent: o.Agent}
	d := &net.Dialer{Timeout: o.Connect, Resolver: o.Resolver, ControlContext: c.control}
	c.transport = &http.Transport{
		Proxy: nil, // an environment cannot lead around the table
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, d, network, address)
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    o.Connect,
		MaxIdleConns:           16,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
	c.http = &http.Client{Transport: guarded{c}, CheckRedirect: redirect}
	return c
}

// SetAllow replaces what is let through beside ordinary addresses. Connections that are kept are closed, so that what is
// no longer allowed ends with the request under way.
func (c *Client) SetAllow(a *Allow) {
	c.allow.Store(a)
	c.transport.CloseIdleConnections()
}

// Close lets kept connections go.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// HTTP is the client for those who speak HTTP themselves, such as remote tool servers: everything but the bounds of size
// and time holds. Errors come as net/http wraps them; errors.As finds the *Error.
func (c *Client) HTTP() *http.Client { return c.http }

// dialing is about one connect: which host it is for, and what was refused.
type dialing struct {
	host   string
	denied atomic.Pointer[Error]
}

type dialingKey struct{}

// dial connects. Look-up, both families and the time limit are the dialer's; each address it tries passes control.
func dial(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	k := &dialing{host: host}
	conn, err := d.DialContext(context.WithValue(ctx, dialingKey{}, k), network, address)
	if err == nil {
		return conn, nil
	}
	// What was refused says more than what the other addresses of the host said.
	if denied := k.denied.Load(); denied != nil {
		return nil, denied
	}
	return nil, err
}

// control is called for each socket before it connects, with the very address that it connects to.
func (c *Client) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	k, ok := ctx.Value(dialingKey{}).(*dialing)
	to, err := netip.ParseAddrPort(address)
	if !ok || err != nil {
		return &Error{Code: CodeDenied, Text: "The address cannot be checked.", err: err}
	}
	if fault := c.allow.Load().check(k.host, to); fault != nil {
		k.denied.Store(fault)
		return fault
	}
	return nil
}

// guarded checks the URL of each request, the redirected ones too.
type guarded struct{ c *Client }

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if fault := canonical(r.URL); fault != nil {
		if r.Body != nil {
			_ = r.Body.Close() // nothing was read
		}
		return nil, fault
	}
	r.Host = ""
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", g.c.agent)
	}
	return g.c.transport.RoundTrip(r)
}

// maxRedirects that may follow one another.
const maxRedirects = 10

// harmless are the headers that go along to another origin.
var harmless = []string{"Accept", "Accept-Language", "User-Agent"}

// redirect decides about a redirect, via are the requests before it.
func redirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return &Error{Code: CodeRedirects, Text: fmt.Sprintf("More than %d redirects follow one another.", maxRedirects)}
	}
	if fault := canonical(r.URL); fault != nil {
		return fault
	}
	first := origin(via[0].URL)
	if slices.ContainsFunc(append(via[1:len(via):len(via)], r), func(q *http.Request) bool { return origin(q.URL) != first }) {
		if r.Body != nil && r.Body != http.NoBody {
			return &Error{Code: CodeDenied, Text: "A redirect would have sent what was meant for one host to another."}
		}
		for name := range r.Header {
			if !slices.Contains(harmless, name) {
				r.Header.Del(name)
			}
		}
	}
	return nil
}

// origin is scheme, host and port of a URL in one form.
func origin(u *url.URL) string {
	clean := *u
	if canonical(&clean) != nil {
		return ""
	}
	port := clean.Port()
	switch {
	case port != "":
	case clean.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return clean.Scheme + "://" + net.JoinHostPort(clean.Hostname(), port)
}

// Request is one thing to fetch with GET.
type Request struct {
	// URL as ParseURL takes it.
	URL string
	// Header of the request; harmless ones alone go along when a redirect leaves the origin.
	Header http.Header
	// MaxBytes of the decoded body that are read; zero means 1 MiB.
	MaxBytes int64
	// Limit of the whole fetch; zero means 30 s.
	Limit time.Duration
}

// Response is what was fetched.
type Response struct {
	// URL after all redirects.
	URL *url.URL
	// Status is the HTTP status, whatever it is.
	Status int
	// Header of the last answer.
	Header http.Header
	// Body, decoded, at most MaxBytes of it.
	Body []byte
	// Cut says that there is more of the body.
	Cut bool
}

// Get fetches. The error is an *Error.
func (c *Client) Get(ctx context.Context, q Request) (*Response, error) {
	if q.MaxBytes <= 0 {
		q.MaxBytes = 1 << 20
	}
	if q.Limit <= 0 {
		q.Limit = 30 * time.Second
	}
	u, err := ParseURL(q.URL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, q.Limit)
	defer cancel()
	r := (&http.Request{Method: http.MethodGet, URL: u, Header: q.Header.Clone()}).WithContext(ctx)
	if r.Header == nil {
		r.Header = http.Header{}
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, explain(unwrapped(err), hostAt(err, u))
	}
	defer func() { _ = res.Body.Close() }() // what was read of it stands
	at := res.Request.URL
	body, err := io.ReadAll(io.LimitReader(res.Body, q.MaxBytes+1))
	if err != nil {
		return nil, explain(err, at.Hostname())
	}
	out := &Response{URL: at, Status: res.StatusCode, Header: res.Header, Body: body}
	if int64(len(body)) > q.MaxBytes {
		out.Body, out.Cut = body[:q.MaxBytes], true
	}
	return out, nil
}

// hostAt is the host that an error of the client is about.
func hostAt(err error, u *url.URL) string {
	var e *url.Error
	if errors.As(err, &e) {
		if at, parseErr := url.Parse(e.URL); parseErr == nil && at.Hostname() != "" {
			return at.Hostname()
		}
	}
	return u.Hostname()
}

// unwrapped is the error below that of the client, which repeats the URL.
func unwrapped(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"homeagent/configs/paths"
	"homeagent/messages/api"
)

// Options say which node. Node goes before Data.
type Options struct {
	// Data is the data folder of a node on this machine; empty means as for homed: $HOMED_DATA, then the platform's.
	Data string
	// Node is the URL of a node, such as "http://192.168.1.5:8765"; it needs TokenFile.
	Node string
	// TokenFile holds the credential for Node.
	TokenFile string
}

// Client speaks to one node. All methods may be called from any goroutine.
type Client struct {
	http  *http.Client
	base  string
	token string
	where string
	logs  string
}

// maxAnswer bounds an answer that is no stream, in bytes.
const maxAnswer = 256 << 20

// Open finds the node; it does not speak to it yet. In a data folder the socket goes before TCP.
func Open(o Options) (*Client, error) {
	if o.Node != "" {
		return openURL(o.Node, o.TokenFile)
	}
	l, err := paths.Resolve(o.Data, os.Getenv)
	if err != nil {
		return nil, err
	}
	state, err := l.ReadState()
	if errors.Is(err, paths.ErrNotRunning) {
		return nil, &notRunning{data: l.Data()}
	}
	if err != nil {
		return nil, err
	}
	var c *Client
	if _, err := os.Stat(l.Socket()); err == nil {
		c = overSocket(l.Socket())
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("local socket: %w", err)
	} else if c, err = openURL("http://"+dialable(state.HTTP), l.Token()); err != nil {
		return nil, err
	}
	c.logs = logFile(l)
	return c, nil
}

// dialable is an address to reach a listener of this machine by; one on all addresses answers on loopback too.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return addr
	}
	return net.JoinHostPort("127.0.0.1", port)
}

func overSocket(path string) *Client {
	return &Client{
		base: "http://homed", where: path,
		http: &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", path)
			},
			MaxIdleConnsPerHost: 4, IdleConnTimeout: idleTimeout,
		}},
	}
}

const (
	dialTimeout = 5 * time.Second
	idleTimeout = time.Minute
)

func openURL(node, tokenFile string) (*Client, error) {
	u, err := url.Parse(node)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%q is no address of a node: use http://host:port", node)
	}
	if tokenFile == "" {
		return nil, fmt.Errorf("a node at an address needs a token file: name it with --token-file; the node has it in run/admin.token of its data folder")
	}
	b, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	return &Client{
		base: u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/"), where: node, token: strings.TrimSpace(string(b)),
		http: &http.Client{
			Transport: &http.Transport{
				Proxy:       http.ProxyFromEnvironment,
				DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, MaxIdleConnsPerHost: 4, IdleConnTimeout: idleTimeout,
			},
			// The token must not follow a redirect to somebody else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Where is the socket or address of the node, for people.
func (c *Client) Where() string { return c.where }

// LogFile is the path of the log of the node on a data folder, which need not run; empty means as for Options.Data.
func LogFile(data string) (string, error) {
	l, err := paths.Resolve(data, os.Getenv)
	if err != nil {
		return "", err
	}
	return logFile(l), nil
}

func logFile(l paths.Layout) string { return filepath.Join(l.Logs(), "homed.log") }

// Logs is the path of the node's log file; empty when the node is not on this machine's data folder.
func (c *Client) Logs() string { return c.logs }

// Close lets go of idle connections. Streams end with their own context.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request makes a request; body is encoded as JSON unless nil.
func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	q, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		q.Header.Set("Authorization", "Bearer "+c.token)
	}
	return q, nil
}

// do asks and decodes a success into out, which may be nil or a *[]byte for the bytes as they came.
func (c *Client) do(ctx context.Context, method, path string, body, out any) error {
	q, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	res, err := c.http.Do(q)
	if err != nil {
		return c.failed(ctx, err)
	}
	defer func() { _ = res.Body.Close() }() // what it could still say concerns nobody
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return c.failed(ctx, err)
	}
	if res.StatusCode >= 300 {
		return refusalOf(res.StatusCode, b)
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *[]byte:
		*out = b
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}

// failed tells an error of the network from the caller's own wish to end.
func (c *Client) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return unreachable(c.where, err)
}

// refusalOf reads the body of a refusal; a body of another kind comes from something that is no node.
func refusalOf(status int, b []byte) error {
	e := &Error{Status: status}
	if err := json.Unmarshal(b, &e.body); err == nil && e.Code != "" {
		return e
	}
	var chat api.ChatError
	if err := json.Unmarshal(b, &chat); err == nil && chat.Error.Code != "" {
		e.Code, e.Message = chat.Error.Code, chat.Error.Message
		return e
	}
	return fmt.Errorf("%w: HTTP status %d", ErrAnswer, status)
}

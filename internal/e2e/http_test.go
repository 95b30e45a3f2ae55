package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/configs/paths"
)

// state is what the node tells of itself in its data folder.
func (n *node) state() paths.State {
	n.t.Helper()
	l, err := paths.Resolve(n.data, func(string) string { return "" })
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := l.ReadState()
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

// auth is the header with the token of the node.
func (n *node) auth() http.Header {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.data, "run", "admin.token"))
	if err != nil {
		n.t.Fatal(err)
	}
	return http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(b))}}
}

// http makes one request over TCP. The caller closes the body.
func (n *node) http(t testing.TB, method, path, body string, header http.Header) *http.Response {
	t.Helper()
	return n.send(t, method, path, strings.NewReader(body), header)
}

func (n *node) send(t testing.TB, method, path string, body io.Reader, header http.Header) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(bounded(t), method, "http://"+n.state().HTTP+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			q.Host = v[0]
			continue
		}
		q.Header[k] = v
	}
	res, err := plain.Do(q)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return res
}

// plain is a client that keeps no connections.
var plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

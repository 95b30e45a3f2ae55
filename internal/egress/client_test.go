package egress_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"homeagent/internal/egress"
	"homeagent/internal/egress/egresstest"
)

func allow(t testing.TB, entries ...string) *egress.Allow {
	t.Helper()
	a, err := egress.ParseAllow(entries)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// world is a client that may use loopback by the given entries, with names of its own.
func world(t testing.TB, entries ...string) (*egress.Client, *egresstest.Names) {
	t.Helper()
	names := egresstest.New(t)
	c := egress.New(egress.Options{Resolver: names.Resolver(), Connect: 2 * time.Second})
	c.SetAllow(allow(t, entries...))
	t.Cleanup(c.Close)
	return c, names
}

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func portOf(s *httptest.Server) string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var e *egress.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestAllowedLoopback(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.UserAgent(), " ", r.Host) })
	c, names := world(t, "nas.example:"+portOf(s))
	names.Set("nas.example", "127.0.0.1")
	names.Set("other.example", "127.0.0.1")
	got, err := c.Get(t.Context(), egress.Request{URL: "http://NAS.example.:" + portOf(s)})
	if err != nil || string(got.Body) != "homed nas.example:"+portOf(s) {
		t.Fatalf("%+v, %v", got, err)
	}
	t.Log("the same address under another name, or by its number, stays denied")
	for _, host := range []string{"other.example", "127.0.0.1"} {
		_, err = c.Get(t.Context(), egress.Request{URL: "http://" + host + ":" + portOf(s)})
		wantCode(t, err, egress.CodeDenied)
	}
	t.Log("what is taken back ends, kept connections too")
	c.SetAllow(nil)
	_, err = c.Get(t.Context(), egress.Request{URL: "http://nas.example:" + portOf(s)})
	wantCode(t, err, egress.CodeDenied)
	c.SetAllow(allow(t, "127.0.0.0/8"))
	if _, err = c.Get(t.Context(), egress.Request{URL: "http://other.example:" + portOf(s)}); err != nil {
		t.Error(err)
	}
}

// TestNever has the owner allow everything; metadata services and the like stay out.
func TestNever(t *testing.T) {
	c, names := world(t, "0.0.0.0/0", "::/0", "meta.example")
	names.Set("meta.example", "169.254.169.254")
	for _, host := range []string{
		"169.254.169.254", "meta.example", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]", "100.100.100.200", "224.0.0.1", "255.255.255.255",
		"0.0.0.0", "[ff02::1]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[fe80::1]",
	} {
		_, err := c.Get(t.Context(), egress.Request{URL: "http://" + host + ":8080/"})
		wantCode(t, err, egress.CodeDenied)
	}
}

// TestRebinding has a name that shows an ordinary address first: what is dialed is what counts.
func TestRebinding(t *testing.T) {
	var seen atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { seen.Add(1) })
	c, names := world(t)
	names.Set("rebind.example", "203.0.113.7")
	names.Set("rebind.example", "127.0.0.1")
	names.Set("both.example", "127.0.0.1", "::1")
	for range 3 {
		for _, host := range []string{"rebind.example", "both.example"} {
			_, err := c.Get(t.Context(), egress.Request{URL: "http://" + host + ":" + portOf(s)})
			wantCode(t, err, egress.CodeDenied)
		}
	}
	if seen.Load() != 0 {
		t.Error("the server was reached")
	}
}

func TestRedirects(t *testing.T) {
	c, names := world(t, "127.0.0.1")
	names.Set("a.example", "127.0.0.1")
	names.Set("b.example", "127.0.0.1")
	var got []http.Header
	var s *httptest.Server
	s = serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Clone())
		to := map[string]string{
			"/meta": "http://169.254.169.254/latest/meta-data/", "/file": "file:///etc/passwd", "/port": "http://a.example:22/",
			"/loop": "/loop", "/user": "http://u:p@a.example/", "/decimal": "http://2130706433/", "/there": "http://b.example:" + portOf(s) + "/back",
			"/back": "http://a.example:" + portOf(s) + "/end", "/same": "/end",
		}[r.URL.Path]
		if to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
	})
	base := "http://a.example:" + portOf(s)
	for path, code := range map[string]string{
		"/meta": egress.CodeDenied, "/file": egress.CodeBadURL, "/port": egress.CodeBadURL, "/loop": egress.CodeRedirects,
		"/user": egress.CodeBadURL, "/decimal": egress.CodeBadURL,
	} {
		_, err := c.Get(t.Context(), egress.Request{URL: base + path})
		wantCode(t, err, code)
	}
	secret := http.Header{"Authorization": {"Bearer x"}, "X-Api-Key": {"x"}, "Cookie": {"x=y"}, "Accept": {"text/html"}}
	got = nil
	if _, err := c.Get(t.Context(), egress.Request{URL: base + "/same", Header: secret}); err != nil || len(got) != 2 || got[1].Get("X-Api-Key") != "x" {
		t.Errorf("on the same origin: %v, %v", got, err)
	}
	got = nil
	res, err := c.Get(t.Context(), egress.Request{URL: base + "/there", Header: secret})
	if err != nil || len(got) != 3 || res.URL.Path != "/end" {
		t.Fatalf("%d requests, %v", len(got), err)
	}
	for i, h := range got {
		for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
			if (h.Get(name) != "") != (i == 0) {
				t.Errorf("hop %d has %s: %q", i, name, h.Get(name))
			}
		}
		if h.Get("Accept") != "text/html" || i > 0 && h.Get("Referer") != "" {
			t.Errorf("hop %d: %v", i, h)
		}
	}
	t.Log("a body does not go to another origin")
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/there307", strings.NewReader("secret"))
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host[0] == 'b' {
			t.Error("the other origin was reached")
		}
		http.Redirect(w, r, "http://b.example:"+portOf(s)+"/", http.StatusTemporaryRedirect)
	})
	post, err := c.HTTP().Do(r)
	wantCode(t, err, egress.CodeDenied)
	if err == nil {
		_ = post.Body.Close()
	}
}

func TestBounds(t *testing.T) {
	hold := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			zero := make([]byte, 1<<20)
			for range 64 {
				if _, err := z.Write(zero); err != nil {
					return
				}
			}
			_ = z.Close()
		case "/head":
			w.Header().Set("X", strings.Repeat("x", 512<<10))
		case "/slow":
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			<-hold
		case "/broken":
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "a")
		}
	})
	t.Cleanup(func() { close(hold) })
	c, _ := world(t, "127.0.0.1")
	got, err := c.Get(t.Context(), egress.Request{URL: s.URL + "/bomb", MaxBytes: 1000})
	if err != nil || len(got.Body) != 1000 || !got.Cut {
		t.Errorf("bomb: %v", err)
	}
	_, err = c.Get(t.Context(), egress.Request{URL: s.URL + "/head"})
	wantCode(t, err, egress.CodeBroken)
	_, err = c.Get(t.Context(), egress.Request{URL: s.URL + "/broken"})
	wantCode(t, err, egress.CodeBroken)
	_, err = c.Get(t.Context(), egress.Request{URL: s.URL + "/slow", Limit: 100 * time.Millisecond})
	wantCode(t, err, egress.CodeTimeout)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Get(ctx, egress.Request{URL: s.URL + "/slow"})
	wantCode(t, err, egress.CodeCancelled)
}

// TestProxy has an environment that names a proxy: it is not asked.
func TestProxy(t *testing.T) {
	var asked atomic.Int32
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	c, names := world(t)
	names.Set("a.example", "10.0.0.1")
	_, err := c.Get(t.Context(), egress.Request{URL: "http://a.example/"})
	wantCode(t, err, egress.CodeDenied)
	if asked.Load() != 0 {
		t.Error("the proxy was asked")
	}
}

func TestFailures(t *testing.T) {
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tls.Close)
	c, names := world(t, "127.0.0.1")
	names.Set("a.example", "127.0.0.1")
	closed := serve(t, func(http.ResponseWriter, *http.Request) {})
	closed.Close()
	for url, code := range map[string]string{
		tls.URL: egress.CodeTLS, "http://nobody.example/": egress.CodeName, "http://a.example:" + portOf(closed): egress.CodeConnect,
	} {
		_, err := c.Get(t.Context(), egress.Request{URL: url})
		wantCode(t, err, code)
	}
}

func TestAllowEntries(t *testing.T) {
	for _, bad := range []string{
		"", "http://nas.local", "nas.local:0", "nas.local:99999", "1.2.3.4/33", "fe80::1%eth0", "a b", "0x7f.1", "*.local", "[1.2.3.4]", ":80",
	} {
		if _, err := egress.ParseAllow([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	allow(t, "nas.local", "NAS.local.:80", "192.168.1.1", "192.168.1.1:80", "192.168.0.0/16", "fd00::1", "[fd00::1]:80", "fd00::/8", "localhost")
}

func TestOrdinaryAddresses(t *testing.T) {
	for _, a := range []string{"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "198.20.0.1", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8", "2a00:1450::1"} {
		if what := egress.Special(netip.MustParseAddr(a)); what != "" {
			t.Errorf("%s lies in %s", a, what)
		}
	}
}

package admin

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"homeagent/messages/api"
)

// visitor is who is at the other end of a connection; made once per connection.
type visitor struct {
	// local says that it came through the socket; user is then the id of its user, or err says why that is unknown.
	local bool
	user  int
	err   error
	// here is the address of this node that a TCP connection came to.
	here netip.AddrPort
}

type (
	visitorKey struct{}
	requestKey struct{}
)

func newVisitor(c net.Conn, local bool) *visitor {
	v := &visitor{local: local}
	if local {
		v.user, v.err = peerUser(c.(*net.UnixConn))
		return v
	}
	if a, ok := c.LocalAddr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		v.here = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return v
}

// allowed says whether a process at the socket may ask: the node's own user, or root.
func (v *visitor) allowed() bool { return v.err == nil && (v.user == os.Getuid() || v.user == 0) }

func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestKey{}).(string)
	return id
}

// named takes the request id of the client where it is harmless, or makes one.
func (f *face) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if id == "" || len(id) > 64 || strings.ContainsFunc(id, func(c rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", c)
		}) {
			id = f.newID("")
		}
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, id)))
	})
}

// isolated keeps a panic of one request from the others.
func (f *face) isolated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // net/http panics with this very value
				panic(v)
			}
			f.log().Error("request panicked", "request_id", requestID(r), "panic", v, "stack", string(debug.Stack()))
			f.refuse(w, r, refused(500, api.CodeInternal, "The node failed at this request.",
				"The log tells more, under the request id."))
		}()
		next.ServeHTTP(w, r)
	})
}

// open are the routes that answer without a credential.
var open = []string{"/healthz", "/readyz"}

// guarded lets through who may ask, and bounds what they send.
func (f *face) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := r.Context().Value(visitorKey{}).(*visitor)
		if !ok {
			v = &visitor{}
		}
		if origin := r.Header.Get("Origin"); !v.local && f.befriended(origin) {
			if shared(w, r, origin) {
				return
			}
		}
		in, no := f.admit(v, r)
		if no != nil {
			if no.status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="homed"`)
			}
			f.figures.requests.WithLabelValues("guard", strconv.Itoa(no.status)).Inc()
			f.refuse(w, r, no)
			return
		}
		defer in.end()
		r = in.with(r)
		r.Body = http.MaxBytesReader(w, r.Body, f.deps.Body)
		if r.ContentLength != 0 {
			// Not every writer can set it (a recorder in a test); then the header timeout is what is left.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		next.ServeHTTP(w, r)
	})
}

// fits says whether a request was meant for this server, by its Host, and comes from where it may, by its Origin.
func (f *face) fits(v *visitor, r *http.Request) *refusal {
	if !v.local && !f.ours(v, r.Host) {
		return refused(http.StatusMisdirectedRequest, api.CodeHost, "This server is not known by the name in Host.",
			"Use the address that homed printed, or add the name to the allowed hosts.").with("host", r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" && !f.sameOrigin(v, r, origin) && (v.local || !f.befriended(origin)) {
		return refused(403, api.CodeOrigin, "Pages of other origins may not use this node.",
			"Open the node's own pages, or use a client that is not a browser.").with("origin", origin)
	}
	return nil
}

// ours says whether a Host header names this server: a configured name, the address that the connection came to, or a
// name of this machine for itself. A page elsewhere can point a name of its own at this address, but not use these.
func (f *face) ours(v *visitor, host string) bool {
	if host == "" {
		return false
	}
	if slices.ContainsFunc(f.deps.Door.hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	if !v.here.IsValid() {
		return false
	}
	if ap, err := netip.ParseAddrPort(host); err == nil {
		return ap.Port() == v.here.Port() && (ap.Addr().Unmap() == v.here.Addr() || ap.Addr().Unmap().IsLoopback())
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return false
	}
	return strings.EqualFold(name, "localhost") && port == portOf(v.here)
}

// befriended says whether an origin is configured as one whose pages may call.
func (f *face) befriended(origin string) bool {
	return slices.ContainsFunc(f.deps.Door.origins, func(o string) bool {
		return origin != "" && strings.EqualFold(strings.TrimSuffix(o, "/"), origin)
	})
}

// shared lets a browser hand answers to the page of a befriended origin. It reports true when that was all the browser
// asked for: such a question carries no credential, and its answer tells nothing but what everybody can read here.
func shared(w http.ResponseWriter, r *http.Request, origin string) bool {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, X-Conversation, X-Request-Id, Idempotency-Key, "+
		"X-Api-Key, Anthropic-Version")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

func portOf(ap netip.AddrPort) string {
	_, port, _ := net.SplitHostPort(ap.String()) // what netip writes, net reads
	return port
}

// sameOrigin says whether a page's origin is this server under the very name in Host.
func (f *face) sameOrigin(v *visitor, r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || v.local || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return false
	}
	return strings.EqualFold(u.Host, r.Host)
}

package providers

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"homeagent/providers/framing"
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

func newHTTP(dial Dial) *http.Client {
	t := &http.Transport{
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        32,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: time.Minute, // the source's own limit is shorter
		ReadBufferSize:      32 << 10,
		// Headers are bounded too: a hostile server may not fill memory with them.
		MaxResponseHeaderBytes: 256 << 10,
	}
	if dial != nil {
		t.DialContext = dial
	} else {
		t.Proxy = http.ProxyFromEnvironment
		t.DialContext = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	return &http.Client{Transport: t, CheckRedirect: sameOrigin}
}

const maxRedirects = 3

// sameOrigin follows a redirect only where the request stays what it was and
// goes where it was meant to go: a prompt is no less private than a key.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || req.Method != first.Method ||
		req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// watch guards the phases of one call with one timer: connecting, the wait for
// the first byte, and each silence after it. A late phase cancels the call's
// context with its cause.
type watch struct {
	mu      sync.Mutex
	timer   *time.Timer
	why     error
	first   time.Duration
	idle    time.Duration
	stopped bool
	// read counts the bytes of the answer; the reader's own.
	read int64
}

func newWatch(cancel context.CancelCauseFunc, s *Source) *watch {
	w := &watch{why: errConnectLate, first: s.FirstByte, idle: s.Idle}
	w.timer = time.AfterFunc(s.Connect, func() {
		w.mu.Lock()
		why, stopped := w.why, w.stopped
		w.mu.Unlock()
		if !stopped {
			cancel(why)
		}
	})
	return w
}

func (w *watch) phase(why error, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.why = why
		w.timer.Reset(d)
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// trace ends the connecting phase when a connection is there.
func (w *watch) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { w.phase(errFirstByteLate, w.first) }}
}

// maxWire is how many bytes one answer may have as they come: far more than an
// answer of the largest size in the smallest pieces. It ends a server that sends
// comments, or events that say nothing, for ever.
const maxWire = 512 << 20

// body resets the timer with each read that brought any bytes, be they a ping or
// a comment.
type body struct {
	io.ReadCloser
	w *watch
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.w.phase(errIdle, b.w.idle)
	}
	if b.w.read += int64(n); b.w.read > maxWire {
		return n, fmt.Errorf("%w: %d bytes came and it goes on", framing.ErrTooLarge, b.w.read)
	}
	return n, err
}

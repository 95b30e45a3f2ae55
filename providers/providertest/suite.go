package providertest

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"homeagent/messages"
	"homeagent/providers"
)

// bench sends given bytes to a client.
type bench struct {
	srv    *httptest.Server
	serve  atomic.Pointer[http.HandlerFunc]
	client *providers.Client
	read   atomic.Int64
}

func newBench(t testing.TB, adapters providers.Adapters) *bench {
	t.Helper()
	b := &bench{}
	b.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		(*b.serve.Load())(w, r)
	}))
	var d net.Dialer
	b.client = providers.NewClient(providers.Options{Adapters: adapters, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, addr)
		return &piecewise{Conn: c, read: &b.read, rnd: rand.New(rand.NewPCG(1, 2))}, err
	}})
	t.Cleanup(func() {
		b.client.Close()
		b.srv.Close()
	})
	return b
}

// piecewise gives small reads.
type piecewise struct {
	net.Conn
	read *atomic.Int64
	rnd  *rand.Rand
}

func (p *piecewise) Read(b []byte) (int, error) {
	n := int(p.read.Load())
	if n < 0 {
		n = 1 + p.rnd.IntN(40)
	}
	if n > 0 && len(b) > n {
		b = b[:n]
	}
	return p.Conn.Read(b)
}

func (b *bench) source(adapter string) providers.Source {
	return providers.Source{Name: "recorded", Adapter: adapter, BaseURL: b.srv.URL + "/v1", Model: "m", Idle: time.Minute, FirstByte: time.Minute}
}

func (b *bench) send(rec Recording, tr Transform) {
	body := rec.Body
	if tr.Body != nil {
		body = tr.Body(body)
	}
	b.read.Store(int64(tr.Read))
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", rec.ContentType)
		if tr.Encoding != "" {
			w.Header().Set("Content-Encoding", tr.Encoding)
		}
		for name, value := range rec.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(rec.Status)
		_, _ = w.Write(body)
	})
	b.serve.Store(&h)
}

// Ask is a small request for tests.
func Ask(text string) *messages.CompletionRequest {
	return &messages.CompletionRequest{
		CallId: "call-1", TaskId: "task-1", Agent: "main", Question: text,
		Messages: []*messages.ChatMessage{{Role: messages.Role_ROLE_USER, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: text}}}}},
	}
}

// RunRecordings checks an adapter against recordings: each as it was recorded,
// then streams under every transform, then every truncation. It fails when
// there are no recordings.
func RunRecordings(t *testing.T, adapters providers.Adapters, adapter string, recs []Recording) {
	if len(recs) == 0 {
		t.Fatal("no recordings")
	}
	b := newBench(t, adapters)
	for _, rec := range recs {
		t.Run(strings.ReplaceAll(rec.Name, "/", "_"), func(t *testing.T) {
			transforms := Transforms()
			if !rec.Stream {
				transforms = transforms[:3]
			}
			for _, tr := range transforms {
				b.check(t, adapter, rec, tr)
			}
			if rec.Stream && rec.Want.Error == nil && finishAt(rec.Body) >= 0 {
				b.checkCuts(t, adapter, rec)
			}
		})
	}
}

func (b *bench) check(t *testing.T, adapter string, rec Recording, tr Transform) {
	t.Helper()
	if strings.HasPrefix(tr.Name, "T10") && finishAt(rec.Body) < 0 {
		return // without a finish mark, DONE is what ends it
	}
	b.send(rec, tr)
	var shown strings.Builder
	res, err := b.client.Stream(t.Context(), b.source(adapter), Ask("hello"), providers.Hooks{
		Delta: func(d *messages.Delta) { shown.WriteString(d.GetText()) },
	})
	for _, d := range rec.Want.Compare(res, err) {
		t.Errorf("%s: %s", tr.Name, d)
	}
	if shown.String() != res.GetText()+res.GetRefusal() {
		t.Errorf("%s: the deltas say %q, the result %q", tr.Name, shown.String(), res.GetText())
	}
}

func (b *bench) checkCuts(t *testing.T, adapter string, rec Recording) {
	t.Helper()
	cuts := make(map[string][]byte)
	for seed := range uint64(10) {
		for name, body := range Cuts(rec.Body, seed) {
			if name == "C2 anywhere" {
				name += " " + string(rune('a'+seed))
			}
			cuts[name] = body
		}
	}
	if len(cuts) == 0 {
		t.Error("a stream that cannot be cut")
	}
	for name, body := range cuts {
		cut := rec
		cut.Body = body
		b.send(cut, Transform{})
		res, err := b.client.Stream(t.Context(), b.source(adapter), Ask("hello"), providers.Hooks{})
		if err == nil {
			t.Errorf("%s (%d of %d bytes): taken for a whole answer: %v", name, len(body), len(rec.Body), res)
			continue
		}
		if k := providers.KindName(providers.AsFailure(err).Kind); k != "stream_truncated" {
			t.Errorf("%s: kind %s, want stream_truncated", name, k)
		}
		if !strings.HasPrefix(rec.Want.Text, res.GetText()) {
			t.Errorf("%s: the text %q is no beginning of %q", name, res.GetText(), rec.Want.Text)
		}
		for _, c := range res.GetCalls() {
			if c.GetInvalid() == "" {
				t.Errorf("%s: the call %v could run", name, c)
			}
		}
	}
}

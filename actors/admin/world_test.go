package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs/paths"
	"homeagent/internal/obs"
	"homeagent/messages"
	"homeagent/messages/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a node of real actors around the admin actor: everything it asks answers from a table.
type world struct {
	t    *testing.T
	rt   *kit.Runtime
	door *Door
	face *face
	data string

	mu      sync.Mutex
	asked   []proto.Message
	answers map[string]func(proto.Message) proto.Message // by path
	ready   chan struct{}
}

// neighbour answers for one path; the one of events also numbers and hands on what is published.
type neighbour struct {
	w    *world
	path string
	subs []*messages.Subscribe
	who  *messages.Address
	last uint64
}

func (n *neighbour) Step(_ time.Time, e kit.Event) []kit.Effect {
	m, ok := e.Msg.(proto.Message)
	if !ok {
		return nil
	}
	switch v := m.(type) {
	case *messages.Subscribe:
		n.who = e.From
		n.drop(v.GetSubscription())
		n.subs = append(n.subs, v)
		gone := v.GetAfterEpoch() != 0 && v.GetAfterEpoch() != 1000
		return []kit.Effect{e.Reply(&messages.EventBatch{Subscription: v.GetSubscription(), Epoch: 1000, SyncRequired: gone})}
	case *messages.Unsubscribe:
		n.drop(v.GetSubscription())
		return []kit.Effect{e.Reply(&messages.Ok{})}
	case *messages.AgentEvent:
		return n.publish(v)
	}
	n.w.mu.Lock()
	n.w.asked = append(n.w.asked, m)
	answer := n.w.answers[n.path]
	n.w.mu.Unlock()
	if answer == nil {
		return []kit.Effect{e.Reply(&messages.Error{Code: "unknown_thing", Message: "nothing at " + n.path})}
	}
	if a := answer(m); a != nil {
		return []kit.Effect{e.Reply(a)}
	}
	return nil
}

func (n *neighbour) drop(name string) {
	n.subs = slices.DeleteFunc(n.subs, func(s *messages.Subscribe) bool { return s.GetSubscription() == name })
}

func (n *neighbour) publish(e *messages.AgentEvent) []kit.Effect {
	n.last++
	c := proto.Clone(e).(*messages.AgentEvent)
	c.Sequence = n.last
	var out []kit.Effect
	for _, s := range n.subs {
		if (s.GetTaskId() == "" || s.GetTaskId() == c.GetTaskId()) && (len(s.GetTypes()) == 0 || slices.Contains(s.GetTypes(), c.GetType())) {
			out = append(out, kit.Send{To: n.who, Msg: &messages.EventBatch{
				Subscription: s.GetSubscription(), Epoch: 1000, Events: []*messages.AgentEvent{c},
			}})
		}
	}
	return out
}

// options change what a world is made with.
type options struct {
	deps           func(*Deps)
	hosts, origins []string
}

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	w := &world{t: t, data: t.TempDir(), ready: make(chan struct{}, 8)}
	w.answers = map[string]func(proto.Message) proto.Message{
		"channels": func(m proto.Message) proto.Message {
			if s, ok := m.(*messages.SubmitInput); ok {
				return &messages.SubmitResult{InputId: s.GetInput().GetId(), Outcome: messages.Outcome_OUTCOME_STARTED}
			}
			if s, ok := m.(*messages.StopAll); ok { // as the scheduler of the agent would
				if s.GetAgent() == "main" {
					return &messages.Error{Code: "unknown_thing", Message: "nothing at main"}
				}
				return &messages.Error{Code: kit.CodeGone, Message: "no such actor"}
			}
			return &messages.Ok{}
		},
	}
	var err error
	w.rt, err = kit.NewRuntime(kit.Config{
		Node: "test", Epoch: 1000, Logger: slog.New(slog.DiscardHandler),
		Observe: func(f kit.Fact) {
			if f.Code == kit.FactReady && f.Path == "admin" {
				w.ready <- struct{}{}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"events", "channels", "ledger", "config", "memory", "memory/graph", "providers", "guard", "agents/main", "agents/main/scheduler",
	} {
		w.spawn(path, kit.Props{Kind: path, New: func() kit.Machine { return &neighbour{w: w, path: path} }})
	}
	w.door, err = OpenDoor(DoorOptions{Listen: "127.0.0.1:0", Layout: layout(t, w.data), Hosts: o.hosts, Origins: o.origins})
	if err != nil {
		t.Fatal(err)
	}
	d := Deps{
		Runtime: w.rt, Door: w.door, Metrics: obs.NewMetrics(obs.Build{}), Build: obs.Build{Version: "1.2.3"},
		Node: "test", Data: w.data, Started: time.Now(),
	}
	if o.deps != nil {
		o.deps(&d)
	}
	w.face = newFace(d)
	props := w.face.props()
	props.Restart = kit.Restart{Intensity: 5, Backoff: time.Millisecond}
	w.spawn("admin", props)
	<-w.ready
	t.Cleanup(w.close)
	return w
}

// layout makes a data folder.
func layout(t *testing.T, data string) paths.Layout {
	t.Helper()
	l, err := paths.Resolve(data, os.Getenv)
	if err == nil {
		err = l.Create()
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (w *world) spawn(path string, p kit.Props) {
	w.t.Helper()
	if _, err := w.rt.SpawnTop(path, p); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := w.rt.Shutdown(ctx); err != nil {
		w.t.Error(err)
	}
	if err := w.door.Close(); err != nil {
		w.t.Error(err)
	}
}

func (w *world) answer(path string, f func(proto.Message) proto.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[path] = f
}

// last is the last message of type T that was asked.
func last[T proto.Message](w *world) T {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range slices.Backward(w.asked) {
		if v, ok := m.(T); ok {
			return v
		}
	}
	var none T
	w.t.Fatalf("%T was not asked", none)
	return none
}

func (w *world) publish(e *messages.AgentEvent) {
	w.t.Helper()
	if err := w.rt.Tell(kit.Path("events"), e); err != nil {
		w.t.Error(err)
	}
}

// over is a client of the socket or of TCP without anything that the test does not set.
func (w *world) over(local bool) *http.Client {
	tr := &http.Transport{DisableKeepAlives: true}
	if local {
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", w.door.Socket())
		}
	}
	return &http.Client{Transport: tr}
}

// do asks over the socket.
func (w *world) do(method, path, body string) (*http.Response, []byte) {
	w.t.Helper()
	r, err := http.NewRequest(method, "http://homed"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.send(w.over(true), r)
}

func (w *world) send(c *http.Client, r *http.Request) (*http.Response, []byte) {
	w.t.Helper()
	res, err := c.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res, b
}

// get decodes a success.
func get[T any](w *world, method, path, body string) T {
	w.t.Helper()
	res, b := w.do(method, path, body)
	var v T
	if res.StatusCode >= 300 {
		w.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, b)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		w.t.Fatalf("%s %s: %v in %s", method, path, err, b)
	}
	return v
}

// fails checks an error answer.
func (w *world) fails(res *http.Response, b []byte, status int, code string) api.Error {
	w.t.Helper()
	var e api.Error
	if err := json.Unmarshal(b, &e); err != nil {
		w.t.Fatalf("%d is not an error body: %q", res.StatusCode, b)
	}
	if res.StatusCode != status || e.Code != code || e.Message == "" || e.Details["request_id"] == "" {
		w.t.Errorf("got %d %s, want %d %s", res.StatusCode, b, status, code)
	}
	if e.Details["request_id"] != res.Header.Get("X-Request-Id") {
		w.t.Errorf("request ids differ: %s and %s", e.Details["request_id"], res.Header.Get("X-Request-Id"))
	}
	if _, shown := e.Details[causeKey]; shown {
		w.t.Errorf("the cause left the node: %s", b)
	}
	return e
}

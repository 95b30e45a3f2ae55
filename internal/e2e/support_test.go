package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"homeagent/internal/client"
	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// bounded is a context that ends with the test, or when its patience does.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// dial opens a client of the node over its socket.
func (n *node) dial() *client.Client {
	n.t.Helper()
	c, err := client.Open(client.Options{Data: n.data})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(c.Close)
	return c
}

// submit hands over an input and returns what the node made of it.
func (n *node) submit(s api.Submit) *api.Submitted {
	n.t.Helper()
	if s.Channel == "" {
		s.Channel = "cli"
	}
	if s.Conversation == "" {
		s.Conversation = "main"
	}
	got, err := n.dial().Submit(bounded(n.t), s)
	if err != nil {
		n.t.Fatalf("submit %q: %v", s.Text, err)
	}
	return got
}

// say hands over a text of the conversation at the console.
func (n *node) say(text string) string {
	n.t.Helper()
	return n.submit(api.Submit{Text: text}).InputID
}

// ask hands over a text and returns how it ended.
func (n *node) ask(text string) *api.Task {
	n.t.Helper()
	got := n.submit(api.Submit{Text: text, Wait: true, WaitMS: patience.Milliseconds()})
	if got.Task == nil {
		n.t.Fatalf("%q has not ended: %+v", text, got)
	}
	return got.Task
}

// input is what the node knows of an input.
func (n *node) input(id string) *api.Task {
	n.t.Helper()
	got, err := n.dial().Input(bounded(n.t), id)
	if err != nil {
		n.t.Fatalf("input %s: %v", id, err)
	}
	return got
}

// actors are the paths of the tree as `waiter tree --json` shows it.
func (n *node) actors() map[string]api.Actor {
	n.t.Helper()
	var root api.Actor
	decodeJSON(n.t, n.waiter("tree", "--json").must(n.t).stdout, &root)
	all := map[string]api.Actor{}
	var walk func(a api.Actor)
	walk = func(a api.Actor) {
		all[a.Path] = a
		for _, k := range a.Children {
			walk(k)
		}
	}
	walk(root)
	return all
}

func decodeJSON(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// tape records all events of a node from the moment that it is made.
type tape struct {
	t      testing.TB
	mu     sync.Mutex
	events []api.Event
	syncs  []api.Sync
	news   chan struct{}
	err    error
	stop   context.CancelFunc
	over   chan struct{}
	hear   func(e *api.Event)
}

// tape begins to record; after is an event id to replay from, or empty.
func (n *node) tape(after string) *tape {
	n.t.Helper()
	return n.tapeOf(after, nil)
}

// tapeOf records events of some types, all if there are none. hear is called with each, one after another, unless nil.
func (n *node) tapeOf(after string, hear func(e *api.Event), types ...string) *tape {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	st, err := n.dial().Events(ctx, client.StreamOptions{After: after, Once: true, Types: types})
	if err != nil {
		cancel()
		n.t.Fatal(err)
	}
	first, err := st.Next()
	if err != nil || first.Ready == nil {
		cancel()
		n.t.Fatalf("the stream does not begin with ready: %+v %v", first, err)
	}
	r := &tape{t: n.t, news: make(chan struct{}), stop: cancel, over: make(chan struct{}), hear: hear}
	go r.run(st)
	n.t.Cleanup(func() {
		cancel()
		<-r.over
	})
	return r
}

func (r *tape) run(st *client.Stream) {
	defer close(r.over)
	defer st.Close()
	for {
		f, err := st.Next()
		r.mu.Lock()
		switch {
		case err != nil:
			r.err = err
		case f.Event != nil:
			r.events = append(r.events, *f.Event)
		case f.Sync != nil:
			r.syncs = append(r.syncs, *f.Sync)
		}
		close(r.news)
		r.news = make(chan struct{})
		r.mu.Unlock()
		if err != nil {
			return
		}
		if f.Event != nil && r.hear != nil {
			r.hear(f.Event)
		}
	}
}

// await waits for the first event that fits.
func (r *tape) await(what string, fits func(e *api.Event) bool) api.Event {
	r.t.Helper()
	ctx := bounded(r.t)
	for seen := 0; ; {
		r.mu.Lock()
		for ; seen < len(r.events); seen++ {
			if e := r.events[seen]; fits(&e) {
				r.mu.Unlock()
				return e
			}
		}
		err, news := r.err, r.news
		r.mu.Unlock()
		if err != nil {
			r.t.Fatalf("waiting for %s: the stream ended: %v\n%s", what, err, r)
		}
		select {
		case <-news:
		case <-ctx.Done():
			r.t.Fatalf("waiting for %s\n%s", what, r)
		}
	}
}

// change waits until a task changed so, such as "suspended" or "ended".
func (r *tape) change(task, change string) api.Event {
	r.t.Helper()
	return r.await(task+" "+change, func(e *api.Event) bool { return is(e, task, change) })
}

// ended waits for the end of a task, which must be the given one.
func (r *tape) ended(task, end string) api.Event {
	r.t.Helper()
	e := r.change(task, "ended")
	if e.Task.End != end {
		r.t.Fatalf("task %s ended as %s (%s: %s), not %s\n%s", task, e.Task.End, e.Task.Reason, e.Task.Text, end, r)
	}
	return e
}

func is(e *api.Event, task, change string) bool {
	return e.Task != nil && e.TaskID == task && e.Task.Change == change
}

// all are the events recorded so far that fit.
func (r *tape) all(fits func(e *api.Event) bool) []api.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []api.Event
	for i := range r.events {
		if fits(&r.events[i]) {
			out = append(out, r.events[i])
		}
	}
	return out
}

// once fails the test unless a task changed so exactly once.
func (r *tape) once(task, change string) {
	r.t.Helper()
	if n := len(r.all(func(e *api.Event) bool { return is(e, task, change) })); n != 1 {
		r.t.Fatalf("task %s: %d times %s, not once\n%s", task, n, change, r)
	}
}

// String shows what was recorded, deltas left out.
func (r *tape) String() string {
	var b strings.Builder
	for _, e := range r.all(func(e *api.Event) bool { return e.Type != api.EventContentDelta && e.Type != api.EventStage }) {
		line, err := json.Marshal(e)
		if err != nil {
			return err.Error()
		}
		if len(line) > 400 {
			line = append(line[:400], "…"...)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// vendor is the scripted model server, with waits that are bounded.
type vendor struct {
	*providertest.Vendor
	t testing.TB
}

// probe answers the test that a source passes before it is kept.
var probe = providertest.Script{Steps: []providertest.Step{{Text: []string{"ok"}}}}

// newVendor starts a model server that answers the test of a source.
func newVendor(t testing.TB) *vendor {
	t.Helper()
	v, err := providertest.Start("", probe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return &vendor{Vendor: v, t: t}
}

// plays lets the vendor answer by these steps from now on.
func (v *vendor) plays(steps ...providertest.Step) { v.Load(providertest.Script{Steps: steps}) }

// secretKey is what no output may ever show.
const secretKey = "sk-e2e-7c1f0d55a9b34e02"

// addSource adds a vendor as a source of the node, as a person does.
func (n *node) addSource(v *vendor, name string, more ...string) result {
	n.t.Helper()
	args := append([]string{"providers", "add", name, "--url", v.URL(), "--model", "scripted", "--key-stdin"}, more...)
	return n.waiterIn(secretKey+"\n", args...).must(n.t)
}

// withVendor makes a node with one scripted source.
func withVendor(t testing.TB, steps ...providertest.Step) (*node, *vendor) {
	t.Helper()
	n, v := newNode(t), newVendor(t)
	n.start()
	n.addSource(v, "scripted")
	v.plays(steps...)
	return n, v
}

// happens waits for the first event of a kind that fits.
func (v *vendor) happens(kind string, fits func(providertest.Event) bool) providertest.Event {
	v.t.Helper()
	ctx := bounded(v.t)
	for i := 1; ; i++ {
		e, err := v.Await(ctx, kind, i)
		if err != nil {
			v.t.Fatalf("vendor: %v; it saw %+v", err, v.Events())
		}
		if fits(e) {
			return e
		}
	}
}

// held waits until an answer waits at a gate and returns the number of its request.
func (v *vendor) held(gate string) int {
	v.t.Helper()
	return v.happens(providertest.Held, func(e providertest.Event) bool { return e.Gate == gate }).Request
}

// closed waits until the client closed the connection of a request.
func (v *vendor) closed(request int) {
	v.t.Helper()
	v.happens(providertest.Closed, func(e providertest.Event) bool { return e.Request == request })
}

// asked is a request body as far as tests look at it.
type asked struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// bodies are the requests so far, the test of the source left out.
func (v *vendor) bodies() []asked {
	v.t.Helper()
	var out []asked
	for i, q := range v.Requests() {
		if i == 0 {
			continue
		}
		var a asked
		decodeJSON(v.t, string(q.Body), &a)
		out = append(out, a)
	}
	return out
}

// results are the tool results in a request: ids of their calls and contents, in order.
func (a *asked) results() (ids, contents []string) {
	for _, m := range a.Messages {
		if m.Role == "tool" {
			var text string
			if json.Unmarshal(m.Content, &text) != nil {
				text = string(m.Content)
			}
			ids, contents = append(ids, m.ToolCallID), append(contents, text)
		}
	}
	return ids, contents
}

func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Fatalf("%q is not in:\n%s", p, text)
		}
	}
}

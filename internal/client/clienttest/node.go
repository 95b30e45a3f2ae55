// Package clienttest is a scripted node for tests of clients: it speaks the HTTP interface from a table instead of
// having actors behind it. Tests of what a node does use a real one; see internal/e2e.
package clienttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"homeagent/messages/api"
)

// Token is the credential of every scripted node.
const Token = "clienttest-token-of-at-least-32-bytes"

// Epoch is the boot epoch of every scripted node.
const Epoch = 1000

// Script says what happens when an input comes in: the events to send, without task, epoch and sequence, which are
// filled in. The last one is usually the end.
type Script func(in api.Submit, id string) []api.Event

// Request is one request that came in.
type Request struct {
	Method, Path, Query, Body string
}

// Node is a scripted node. Its field may be set before it is used; its methods may be called at any time.
type Node struct {
	// URL of the node.
	URL string
	// Script answers inputs; nil says back what was said.
	Script Script

	answers map[string]reply // by "METHOD /path"

	server *httptest.Server
	mu     sync.Mutex
	seq    uint64
	inputs int
	tasks  map[string]*api.Task
	conns  map[chan api.Event]func() // to the function that ends the connection
	asked  []Request
	lastID []string
}

// reply is the answer of a route.
type reply struct {
	status int
	body   any
}

// Answer lets a route, "METHOD /path", answer with a success.
func (n *Node) Answer(route string, body any) { n.reply(route, reply{200, body}) }

// Refuse lets it answer with an error.
func (n *Node) Refuse(route string, status int, e *api.Error) { n.reply(route, reply{status, e}) }

func (n *Node) reply(route string, r reply) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[route] = r
}

// New starts a node, which ends with the test.
func New(t testing.TB) *Node {
	t.Helper()
	n := Start()
	t.Cleanup(n.Close)
	return n
}

// Start starts a node that the caller closes.
func Start() *Node {
	n := &Node{
		answers: make(map[string]reply), tasks: make(map[string]*api.Task),
		conns: make(map[chan api.Event]func()),
	}
	n.server = httptest.NewServer(http.HandlerFunc(n.serve))
	n.URL = n.server.URL
	return n
}

// Close ends all streams and the node.
func (n *Node) Close() {
	n.Drop()
	n.server.Close()
}

// TokenFile writes the token into a file of the folder and returns its path.
func TokenFile(folder string) (string, error) {
	path := filepath.Join(folder, "token")
	return path, os.WriteFile(path, []byte(Token+"\n"), 0o600)
}

// Drop ends all event streams, as a restart of the node would.
func (n *Node) Drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, end := range n.conns {
		end()
	}
}

// Publish sends an event to all streams.
func (n *Node) Publish(e api.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.publish(e)
}

func (n *Node) publish(e api.Event) {
	n.seq++
	e.Epoch, e.Sequence, e.At = Epoch, n.seq, time.UnixMicro(1_700_000_000_000_000).UTC()
	if e.Task != nil && e.Task.Change == "ended" {
		n.tasks[e.TaskID] = &api.Task{
			InputID: e.TaskID, State: "ended", End: e.Task.End, Reason: e.Task.Reason, Text: e.Task.Text, By: e.Task.By,
		}
	}
	for c := range n.conns {
		c <- e // as deep as a test needs
	}
}

// Asked lists the requests so far.
func (n *Node) Asked() []Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]Request(nil), n.asked...)
}

// LastEventIDs lists what streams asked to go on after; empty for those that did not.
func (n *Node) LastEventIDs() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.lastID...)
}

func (n *Node) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+Token {
		fail(w, 401, &api.Error{Code: api.CodeUnauthorized, Message: "no credential"})
		return
	}
	if r.URL.Path == "/api/v1/events" {
		n.stream(w, r)
		return
	}
	var body strings.Builder
	if r.Body != nil {
		b := make([]byte, 1<<16)
		for {
			k, err := r.Body.Read(b)
			body.Write(b[:k])
			if err != nil {
				break
			}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, Request{r.Method, r.URL.Path, r.URL.RawQuery, body.String()})
	if a, ok := n.answers[r.Method+" "+r.URL.Path]; ok {
		write(w, a.status, a.body)
		return
	}
	switch id, isInput := strings.CutPrefix(r.URL.Path, "/api/v1/inputs/"); {
	case r.Method == "POST" && r.URL.Path == "/api/v1/inputs":
		n.submit(w, body.String())
	case isInput && n.tasks[id] != nil:
		write(w, 200, n.tasks[id])
	default:
		fail(w, 404, &api.Error{Code: api.CodeNotFound, Message: "nothing at " + r.URL.Path})
	}
}

func (n *Node) submit(w http.ResponseWriter, body string) {
	var in api.Submit
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		fail(w, 400, &api.Error{Code: api.CodeMalformed, Message: err.Error()})
		return
	}
	n.inputs++
	id := fmt.Sprintf("in-%d", n.inputs)
	n.tasks[id] = &api.Task{InputID: id, State: "running"}
	script := n.Script
	if script == nil {
		script = Echo
	}
	for _, e := range script(in, id) {
		if e.TaskID == "" {
			e.TaskID = id
		}
		e.Channel, e.Conversation = in.Channel, in.Conversation
		n.publish(e)
	}
	got := api.Submitted{InputID: id, Outcome: "started"}
	if !in.Wait {
		write(w, 202, got)
		return
	}
	got.Task = n.tasks[id]
	write(w, 200, got)
}

func (n *Node) stream(w http.ResponseWriter, r *http.Request) {
	c := make(chan api.Event, 1000)
	over := make(chan struct{})
	n.mu.Lock()
	var once sync.Once
	n.conns[c] = func() { once.Do(func() { close(over) }) }
	n.lastID = append(n.lastID, r.Header.Get("Last-Event-ID"))
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.conns, c)
		n.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	_, _ = fmt.Fprintf(w, ": hello\nretry: 1000\nevent: ready\ndata: {\"epoch\":%d}\n\n", Epoch)
	if flush() != nil {
		return
	}
	types := r.URL.Query().Get("types")
	for {
		select {
		case e := <-c:
			if types != "" && !strings.Contains(","+types+",", ","+e.Type+",") {
				continue
			}
			b, err := json.Marshal(e)
			if err != nil {
				panic(err)
			}
			_, _ = fmt.Fprintf(w, "id: %d-%d\nevent: %s\ndata: %s\n\n", e.Epoch, e.Sequence, e.Type, b)
			if flush() != nil {
				return
			}
		case <-over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func fail(w http.ResponseWriter, status int, e *api.Error) { write(w, status, e) }

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that went away concerns no test
}

// Delta is a piece of an answer.
func Delta(text string) api.Event { return api.Event{Type: api.EventContentDelta, Text: text} }

// Changed is a change of a task.
func Changed(change, by string) api.Event {
	return api.Event{Type: api.EventTask, Task: &api.TaskChange{Change: change, By: by}}
}

// Answered is the end of a task that was answered.
func Answered(text string) api.Event {
	return api.Event{Type: api.EventTask, Task: &api.TaskChange{Change: "ended", End: "answered", Reason: "ok", Text: text}}
}

// Failed is the end of a task that failed.
func Failed(reason, text string) api.Event {
	return api.Event{Type: api.EventTask, Task: &api.TaskChange{Change: "ended", End: "failed", Reason: reason, Text: text}}
}

// Trouble is an error that a person should see.
func Trouble(message, hint string) api.Event {
	return api.Event{Type: api.EventError, Text: message, Error: &api.Error{Code: "auth", Message: message, Hint: hint}}
}

// Tool is the start of a tool call.
func Tool(name string) api.Event {
	return api.Event{Type: api.EventToolCall, Tool: &api.ToolChange{ToolCall: api.ToolCall{CallID: "c", Name: name}}}
}

// Round is the end of a model round.
func Round() api.Event {
	return api.Event{Type: api.EventStage, Stage: &api.StageRun{Stage: "post_action"}}
}

// Echo says back what was said, in two pieces.
func Echo(in api.Submit, _ string) []api.Event {
	return []api.Event{Changed("started", ""), Delta("you said: "), Delta(in.Text), Answered("you said: " + in.Text)}
}

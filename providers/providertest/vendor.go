package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The kinds of events at a vendor.
const (
	// Received: a request has been read.
	Received = "received"
	// Begun: the headers have been sent.
	Begun = "begun"
	// PieceSent: the first piece of text has been sent.
	PieceSent = "piece"
	// Held: the answer waits at a gate.
	Held = "held"
	// Finished: the answer has been sent whole.
	Finished = "finished"
	// Closed: the client closed the connection before the answer was whole.
	Closed = "closed"
)

// Event is something that happened at a vendor.
type Event struct {
	// Kind is one of the constants above; Request counts from 1.
	Kind    string    `json:"kind"`
	Request int       `json:"request"`
	Gate    string    `json:"gate,omitempty"`
	At      time.Time `json:"at"`
}

// Request is a recorded request.
type Request struct {
	// N counts from 1.
	N      int               `json:"n"`
	Path   string            `json:"path"`
	Header map[string]string `json:"header"`
	Body   json.RawMessage   `json:"body"`
	At     time.Time         `json:"at"`
	// Step that answered, from 0; -1 when none fitted.
	Step int `json:"step"`
}

// Vendor is a scripted model server. Safe for concurrent use.
type Vendor struct {
	srv  *http.Server
	ln   net.Listener
	done chan struct{}

	mu       sync.Mutex
	serve    func(Question) Step
	served   int
	script   Script
	used     []int
	requests []Request
	events   []Event
	gates    map[string]bool
	news     chan struct{}
}

// Start serves a script on a free loopback port; addr "" means that. Close ends it.
func Start(addr string, s Script) (*Vendor, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	v := &Vendor{ln: ln, done: make(chan struct{}), gates: make(map[string]bool), news: make(chan struct{})}
	v.Load(s)
	mux := http.NewServeMux()
	v.control(mux)
	mux.HandleFunc("GET /{path...}", v.models)
	mux.HandleFunc("POST /{path...}", v.complete)
	v.srv = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(v.done)
		_ = v.srv.Serve(ln)
	}()
	return v, nil
}

// Load replaces the script and forgets which steps were used; records stay.
func (v *Vendor) Load(s Script) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.script, v.used, v.serve = s, make([]int, len(s.Steps)), nil
}

// Question is a request as a function of Serve sees it.
type Question struct {
	Model string
	// Messages of the prompt, in order.
	Messages []Said
	// Tools that are offered, by their names.
	Tools []string
}

// Said is one message of a prompt.
type Said struct {
	// Role is system, user, assistant or tool.
	Role string
	// Text holds all texts of the message, one after another.
	Text string
	// Calls an assistant asked for; ID is of the call that a tool message answers.
	Calls []Tool
	ID    string
}

// Serve lets a function answer from now on in place of a script. It is called by many goroutines at a time. Requests are
// recorded no more, so that a long run does not grow; events are.
func (v *Vendor) Serve(f func(Question) Step) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.serve = f
}

// URL is the base for a source: http://127.0.0.1:port/v1.
func (v *Vendor) URL() string { return "http://" + v.ln.Addr().String() + "/v1" }

// Close ends the server and all answers under way.
func (v *Vendor) Close() {
	_ = v.srv.Close()
	<-v.done
}

// Open opens a gate for all that wait and will wait at it.
func (v *Vendor) Open(gate string) {
	v.mu.Lock()
	v.gates[gate] = true
	v.wake()
	v.mu.Unlock()
}

// Shut closes a gate again.
func (v *Vendor) Shut(gate string) {
	v.mu.Lock()
	delete(v.gates, gate)
	v.mu.Unlock()
}

// wake tells all waiters to look again; the lock is held.
func (v *Vendor) wake() {
	close(v.news)
	v.news = make(chan struct{})
}

func (v *Vendor) happened(e Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e.At = time.Now()
	v.events = append(v.events, e)
	v.wake()
}

// Await waits until n events of a kind have happened since the start and gives
// the n-th; it ends with ctx.
func (v *Vendor) Await(ctx context.Context, kind string, n int) (Event, error) {
	for {
		v.mu.Lock()
		seen := 0
		for _, e := range v.events {
			if e.Kind == kind {
				if seen++; seen == n {
					v.mu.Unlock()
					return e, nil
				}
			}
		}
		news := v.news
		v.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return Event{}, fmt.Errorf("waiting for event %q number %d, %d seen: %w", kind, n, seen, ctx.Err())
		}
	}
}

// Requests gives the recorded requests in order.
func (v *Vendor) Requests() []Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.requests)
}

// Events gives all events in order.
func (v *Vendor) Events() []Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.events)
}

// pass waits for a gate; false means that the client went.
func (v *Vendor) pass(ctx context.Context, n int, gate string) bool {
	if gate == "" {
		return true
	}
	v.happened(Event{Kind: Held, Request: n, Gate: gate})
	for {
		v.mu.Lock()
		open, news := v.gates[gate], v.news
		v.mu.Unlock()
		if open {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
}

func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (v *Vendor) models(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/models") {
		http.NotFound(w, r)
		return
	}
	v.mu.Lock()
	names := v.script.Models
	v.mu.Unlock()
	if len(names) == 0 {
		names = []string{"scripted"}
	}
	type model struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	list := make([]model, len(names))
	for i, n := range names {
		list[i] = model{n, "model"}
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// asked is what the steps look at in a request.
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

// question is the request for a function of Serve.
func (a *asked) question() Question {
	q := Question{Model: a.Model, Messages: make([]Said, len(a.Messages))}
	for i, m := range a.Messages {
		s := Said{Role: m.Role, Text: plainText(m.Content), ID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			s.Calls = append(s.Calls, Tool{ID: c.ID, Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments)})
		}
		q.Messages[i] = s
	}
	for _, t := range a.Tools {
		q.Tools = append(q.Tools, t.Function.Name)
	}
	return q
}

// plainText is the text of a content, which is a string or a list of parts.
func plainText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		text += p.Text
	}
	return text
}

func (a *asked) lastUser() string {
	for _, m := range slices.Backward(a.Messages) {
		if m.Role == "user" {
			return string(m.Content)
		}
	}
	return ""
}

func (a *asked) afterTool() bool {
	return len(a.Messages) > 0 && a.Messages[len(a.Messages)-1].Role == "tool"
}

// decide has the function of Serve answer, where there is one. The numbers go on after those of what was recorded.
func (v *Vendor) decide(a *asked) (Step, int, bool) {
	v.mu.Lock()
	serve := v.serve
	if serve != nil {
		v.served++
	}
	n := len(v.requests) + v.served
	v.mu.Unlock()
	if serve == nil {
		return Step{}, 0, false
	}
	return serve(a.question()), n, true
}

// choose picks the step for a request and records it.
func (v *Vendor) choose(r *http.Request, body []byte, a *asked) (Step, int, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	header := make(map[string]string)
	for name := range r.Header {
		header[name] = r.Header.Get(name)
	}
	rec := Request{N: len(v.requests) + 1, Path: r.URL.RequestURI(), Header: header, Body: body, At: time.Now(), Step: -1}
	defer func() { v.requests = append(v.requests, rec) }()
	for i, s := range v.script.Steps {
		if s.Times > 0 && v.used[i] >= s.Times || s.Model != "" && s.Model != a.Model ||
			s.Match != "" && !strings.Contains(a.lastUser(), s.Match) ||
			s.AfterTool != nil && *s.AfterTool != a.afterTool() {
			continue
		}
		v.used[i]++
		rec.Step = i
		return s, rec.N, true
	}
	return Step{}, rec.N, false
}

func (v *Vendor) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	var a asked
	if err := json.Unmarshal(body, &a); err != nil {
		body = []byte("null")
	}
	step, n, ok := v.decide(&a)
	if !ok {
		step, n, ok = v.choose(r, body, &a)
	}
	v.happened(Event{Kind: Received, Request: n})
	if !ok {
		reply(w, http.StatusInternalServerError, map[string]any{"error": Error{Message: fmt.Sprintf("no step of the script fits request %d", n), Type: "script_error"}})
		return
	}
	ans := &answer{v: v, w: w, r: r, n: n, step: step, model: a.Model, rc: http.NewResponseController(w)}
	defer func() {
		if ans.whole {
			v.happened(Event{Kind: Finished, Request: n})
		} else if r.Context().Err() != nil {
			v.happened(Event{Kind: Closed, Request: n})
		}
	}()
	ans.send(a.Stream)
}

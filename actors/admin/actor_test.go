package admin

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
	"homeagent/messages/api"
)

func TestWhoMayAsk(t *testing.T) {
	w := newWorld(t, options{hosts: []string{"home.example:8765"}})
	here := w.door.HTTP()
	port := here[strings.LastIndex(here, ":"):]
	good := "Bearer " + w.door.Token()
	for _, c := range []struct {
		name, path, host, origin, auth string
		status                         int
		code                           string
	}{
		{"token", "/api/v1/nodes", here, "", good, 200, ""},
		{"scheme in lower case", "/api/v1/nodes", here, "", "bearer " + w.door.Token(), 200, ""},
		{"localhost", "/api/v1/nodes", "localhost" + port, "", good, 200, ""},
		{"IPv6 loopback", "/api/v1/nodes", "[::1]" + port, "", good, 200, ""},
		{"configured name", "/api/v1/nodes", "Home.Example:8765", "", good, 200, ""},
		{"own page", "/api/v1/nodes", here, "http://" + here, good, 200, ""},
		{"no token", "/api/v1/nodes", here, "", "", 401, "unauthorized"},
		{"no token, unknown route", "/nothing", here, "", "", 401, "unauthorized"},
		{"wrong token", "/api/v1/nodes", here, "", good + "x", 401, "unauthorized"},
		{"another scheme", "/api/v1/nodes", here, "", "Basic " + w.door.Token(), 401, "unauthorized"},
		{"metrics without token", "/metrics", here, "", "", 401, "unauthorized"},
		{"foreign host", "/api/v1/nodes", "evil.example" + port, "", good, 421, "foreign_host"},
		{"foreign host, open route", "/readyz", "evil.example" + port, "", "", 421, "foreign_host"},
		{"localhost on another port", "/api/v1/nodes", "localhost:1", "", good, 421, "foreign_host"},
		{"host without port", "/api/v1/nodes", "127.0.0.1", "", good, 421, "foreign_host"},
		{"a name that begins like ours", "/api/v1/nodes", "127.0.0.1.evil.example" + port, "", good, 421, "foreign_host"},
		{"foreign origin", "/api/v1/nodes", here, "http://evil.example", good, 403, "foreign_origin"},
		{"null origin", "/api/v1/nodes", here, "null", good, 403, "foreign_origin"},
		{"own address under another name", "/api/v1/nodes", here, "http://localhost" + port, good, 403, "foreign_origin"},
		{"ready without token", "/readyz", here, "", "", 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := http.NewRequest("GET", "http://"+here+c.path, nil)
			r.Host = c.host
			for k, v := range map[string]string{"Origin": c.origin, "Authorization": c.auth} {
				if v != "" {
					r.Header.Set(k, v)
				}
			}
			res, b := w.send(w.over(false), r)
			if c.code == "" {
				if res.StatusCode != c.status {
					t.Fatalf("got %d %s", res.StatusCode, b)
				}
				return
			}
			w.fails(res, b, c.status, c.code)
			if c.status == 401 && !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer") {
				t.Error("401 does not say what it wants")
			}
		})
	}
	for header, value := range map[string]string{"X-None": "", "X-Api-Key": w.door.Token() + "x", "Authorization": "Basic " + w.door.Token()} {
		r, _ := http.NewRequest("GET", "http://"+here+"/v1/models", nil)
		r.Header.Set(header, value)
		res, b := w.send(w.over(false), r)
		var e api.ChatError
		if json.Unmarshal(b, &e) != nil || res.StatusCode != 401 || e.Error.Code != "unauthorized" || e.Error.Type != "authentication_error" {
			t.Errorf("completions with %q: %d %s", header, res.StatusCode, b)
		}
	}
	for path, out := range map[string]bool{"/v1/models": false, "/api/v1/nodes": true} { // such a key is for those interfaces alone
		r, _ := http.NewRequest("GET", "http://"+here+path, nil)
		r.Header.Set("X-Api-Key", w.door.Token())
		if res, b := w.send(w.over(false), r); (res.StatusCode == 401) != out {
			t.Errorf("%s with a key: %d %s", path, res.StatusCode, b)
		}
	}
	r, _ := http.NewRequest("GET", "http://homed/api/v1/nodes", nil)
	r.Header.Set("Origin", "http://homed")
	res, b := w.send(w.over(true), r)
	w.fails(res, b, 403, "foreign_origin") // no page can be served from a socket
}

func TestPagesOfOtherOrigins(t *testing.T) {
	w := newWorld(t, options{origins: []string{"https://home.example/"}})
	ask := func(method, origin, auth, host string) *http.Response {
		r, _ := http.NewRequest(method, "http://"+w.door.HTTP()+"/api/v1/nodes", nil)
		r.Header.Set("Origin", origin)
		if host != "" {
			r.Host = host
		}
		if method == "OPTIONS" {
			r.Header.Set("Access-Control-Request-Method", "GET")
		}
		if auth != "" {
			r.Header.Set("Authorization", "Bearer "+auth)
		}
		res, _ := w.send(w.over(false), r)
		return res
	}
	const page = "https://home.example"
	for _, c := range []struct {
		name, method, origin, auth, host string
		status                           int
		allowed                          string
	}{
		{"befriended", "GET", page, w.door.Token(), "", 200, page},
		{"befriended without a credential", "GET", page, "", "", 401, page},
		{"befriended under a foreign host", "GET", page, w.door.Token(), "evil.example", 421, page},
		{"its browser asks first", "OPTIONS", page, "", "", 204, page},
		{"a browser asks for a stranger", "OPTIONS", "https://evil.example", "", "", 403, ""},
		{"a stranger with the credential", "GET", "https://home.example.evil.example", w.door.Token(), "", 403, ""},
		{"the same name without TLS", "GET", "http://home.example", w.door.Token(), "", 403, ""},
	} {
		res := ask(c.method, c.origin, c.auth, c.host)
		if got := res.Header.Get("Access-Control-Allow-Origin"); res.StatusCode != c.status || got != c.allowed {
			t.Errorf("%s: %d, allowed %q", c.name, res.StatusCode, got)
		}
	}
}

func TestForeignPeer(t *testing.T) {
	for _, c := range []struct {
		v    visitor
		want bool
	}{
		{visitor{user: os.Getuid()}, true},
		{visitor{user: 0}, true},
		{visitor{user: os.Getuid() + 1}, false},
		{visitor{user: os.Getuid(), err: ErrNoPeer}, false},
	} {
		if got := c.v.allowed(); got != c.want {
			t.Errorf("%+v: %v", c.v, got)
		}
	}
}

func TestDoor(t *testing.T) {
	w := newWorld(t, options{})
	l := layout(t, w.data)
	for path, mode := range map[string]os.FileMode{l.Token(): 0o600, l.Socket(): 0o600 | os.ModeSocket, l.State(): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, mode %v, want %v", path, err, info.Mode(), mode)
		}
	}
	s, err := l.ReadState()
	if err != nil || s.PID != os.Getpid() || s.HTTP != w.door.HTTP() || s.Socket != w.door.Socket() || s.Node != "test" ||
		s.Version != "1.2.3" || s.StartedAt.IsZero() {
		t.Errorf("run file: %v %+v", err, s)
	}
	if _, err := OpenDoor(DoorOptions{Listen: w.door.HTTP(), Layout: layout(t, t.TempDir())}); err == nil ||
		strings.Count(err.Error(), w.door.HTTP()) != 1 || !strings.Contains(err.Error(), "--listen") {
		t.Error("an address in use must be refused")
	}
}

func TestToken(t *testing.T) {
	l := layout(t, t.TempDir())
	open := func() (*Door, error) {
		d, err := OpenDoor(DoorOptions{Listen: "127.0.0.1:0", Layout: l})
		if err == nil {
			t.Cleanup(func() { _ = d.Close() })
		}
		return d, err
	}
	one, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Token()) < minToken {
		t.Errorf("token %q", one.Token())
	}
	path := l.Token()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	two, err := open()
	if err != nil || two.Token() != one.Token() {
		t.Fatalf("a restart must keep the token: %v", err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	for _, bad := range []string{"", "short", strings.Repeat("two words ", 9)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := open(); err == nil {
			t.Errorf("token %q was taken", bad)
		}
	}
}

// keeper takes every media but what is of three bytes.
func keeper(mediaType string, data []byte) (*messages.PayloadRef, *messages.Error) {
	if len(data) == 3 {
		return nil, &messages.Error{Code: "bad_picture", Message: "no picture"}
	}
	return &messages.PayloadRef{Id: "blk_media_1", MediaType: mediaType, Size: int64(len(data))}, nil
}

// Media is stored first and comes as a reference, in its place among the texts.
func TestMediaInput(t *testing.T) {
	w := newWorld(t, options{deps: func(d *Deps) { d.Keep = keeper }})
	res, b := w.do("POST", "/api/v1/inputs", `{"text":"what is this?","blocks":[{"type":"image","media_type":"image/png","data":"AAAAAAA="},{"type":"text","text":"and that?"}]}`)
	if res.StatusCode != 202 {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	parts := last[*messages.SubmitInput](w).GetInput().GetParts()
	if len(parts) != 3 || parts[1].GetPayload().GetId() != "blk_media_1" || parts[1].GetPayload().GetSize() != 5 || parts[2].GetText() != "and that?" {
		t.Errorf("%v", parts)
	}
	none := newWorld(t, options{})
	res, b = none.do("POST", "/api/v1/inputs", `{"blocks":[{"type":"audio","media_type":"audio/wav","data":"AAAAAAA="}]}`)
	none.fails(res, b, 400, "unsupported_block")
}

func TestBadInput(t *testing.T) {
	w := newWorld(t, options{deps: func(d *Deps) { d.Body, d.Keep = 1000, keeper }})
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/api/v1/inputs", `{`, 400, "malformed"},
		{"POST", "/api/v1/inputs", ``, 400, "malformed"},
		{"POST", "/api/v1/inputs", `[]`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":"a"} {}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":1}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":"a","txet":"b"}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":""}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"blocks":[{"type":"text"}]}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"blocks":[{"type":"video"}]}`, 400, "unsupported_block"},
		{"POST", "/api/v1/inputs", `{"blocks":[{"type":"image","media_type":"image/png"}]}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"blocks":[{"type":"image","media_type":"audio/wav","data":"AAAA"}]}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"blocks":[{"type":"image","media_type":"image/png","data":"!"}]}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"blocks":[{"type":"image","media_type":"image/png","data":"AAAA"}]}`, 400, "bad_picture"},
		{"POST", "/api/v1/inputs", `{"text":"a","mode":"now"}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":"a","level":4}`, 403, "level_not_allowed"},
		{"POST", "/api/v1/inputs", `{"text":"a","level":5}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":"a","level":-1}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":"a","level":"2"}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":"a","level":2.5}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":"a","wait_ms":3600001}`, 400, "malformed"},
		{"POST", "/api/v1/inputs", `{"text":"a","agent":"../x"}`, 400, "bad_agent"},
		{"POST", "/api/v1/inputs", `{"text":"` + strings.Repeat("a", 1000) + `"}`, 413, "too_large"},
		{"GET", "/api/v1/inputs", ``, 405, "method_not_allowed"},
		{"GET", "/api/v2/inputs", ``, 404, "not_found"},
		{"GET", "/", ``, 404, "not_found"},
		{"GET", "/api/v1/inputs/nope", ``, 404, "unknown_thing"},
		{"GET", "/api/v1/events?types=foo", ``, 400, "malformed"},
		{"GET", "/api/v1/events?types=TASK", ``, 400, "malformed"},
		{"GET", "/api/v1/events?after=12", ``, 400, "malformed"},
		{"GET", "/api/v1/events?after=0-1", ``, 400, "malformed"},
		{"GET", "/api/v1/memory?limit=0", ``, 400, "malformed"},
		{"GET", "/api/v1/actors/no/such", ``, 404, "unknown_actor"},
		{"POST", "/api/v1/actors/no/such/stop", ``, 404, "unknown_actor"},
		{"POST", "/api/v1/actors/ledger/explode", ``, 404, "not_found"},
		{"POST", "/api/v1/actors/stop", ``, 404, "not_found"},
		{"POST", "/api/v1/actors/admin/stop", ``, 403, "system_actor"},
		{"GET", "/api/v1/scheduler?agent=cook", ``, 404, "unknown_agent"},
		{"POST", "/api/v1/stop", `{"agent":"cook"}`, 404, "unknown_agent"},
		{"GET", "/api/v1/agents/cook", ``, 404, "unknown_agent"},
		{"DELETE", "/api/v1/agents/main", ``, 403, "not_allowed"},
		{"PUT", "/api/v1/config", `{"values":{}}`, 400, "malformed"},
		{"PUT", "/api/v1/config/a.b", `{}`, 400, "malformed"},
		{"PUT", "/api/v1/config/a.b", `{"value":{"a":1}}`, 400, "malformed"},
		{"POST", "/api/v1/providers", `{"name":"x","priority":99999999999}`, 400, "malformed"},
		{"POST", "/api/v1/memory/facts", `{"facts":[]}`, 400, "malformed"},
	} {
		t.Run(c.method+" "+c.path+" "+c.body[:min(len(c.body), 40)], func(t *testing.T) {
			res, b := w.do(c.method, c.path, c.body)
			w.fails(res, b, c.status, c.code)
		})
	}
}

func TestSubmit(t *testing.T) {
	w := newWorld(t, options{})
	for _, level := range []string{"0", "3", "null"} {
		got := get[api.Submitted](w, "POST", "/api/v1/inputs", `{"text":"hi","channel":"cli","agent":"cook","level":`+level+`,"mode":"interrupt"}`)
		in := last[*messages.SubmitInput](w).GetInput()
		if got.InputID != in.GetId() || got.Outcome != "started" || in.GetAgent() != "main/resident/cook" ||
			!in.GetPersonWaits() || in.GetMode() != messages.Mode_MODE_INTERRUPT || in.GetCreatedUs() == 0 ||
			in.GetPrincipal().GetId() != "owner" || (in.Level == nil) != (level == "null") {
			t.Errorf("got %+v for %v", got, in)
		}
	}
	get[api.Submitted](w, "POST", "/api/v1/inputs", `{"text":"hi"}`)
	if in := last[*messages.SubmitInput](w).GetInput(); in.GetChannel() != "api" || in.GetPersonWaits() {
		t.Errorf("defaults: %v", in)
	}
	w.answer("channels", func(proto.Message) proto.Message {
		return &messages.SubmitResult{Error: &messages.Error{Code: "queue_full", Message: "full", RetryAfterMs: 1500}}
	})
	res, b := w.do("POST", "/api/v1/inputs", `{"text":"hi"}`)
	w.fails(res, b, 429, "queue_full")
	if res.Header.Get("Retry-After") != "2" {
		t.Errorf("Retry-After %q", res.Header.Get("Retry-After"))
	}
}

// answering makes channels publish what a turn would, and the ledger know how it ended.
func (w *world) answering(script func(id string) []*messages.AgentEvent, end *messages.TaskStatus) {
	w.answer("ledger", func(m proto.Message) proto.Message {
		q, ok := m.(*messages.TaskQuery)
		if !ok {
			return &messages.LedgerFigures{Open: 3}
		}
		s := proto.Clone(end).(*messages.TaskStatus)
		s.Input = &messages.Input{Id: q.GetInputId()}
		return s
	})
	w.answer("channels", func(m proto.Message) proto.Message {
		s, ok := m.(*messages.SubmitInput)
		if !ok {
			return &messages.Ok{}
		}
		id := s.GetInput().GetId()
		for _, e := range script(id) {
			e.TaskId = id
			w.publish(e)
		}
		return &messages.SubmitResult{InputId: id, Outcome: messages.Outcome_OUTCOME_STARTED}
	})
}

func said(text string) *messages.AgentEvent {
	return &messages.AgentEvent{Type: messages.EventType_EVENT_TYPE_CONTENT_DELTA, Text: text}
}

func changed(change string) *messages.AgentEvent {
	return &messages.AgentEvent{
		Type:   messages.EventType_EVENT_TYPE_TASK,
		Detail: &messages.AgentEvent_Task{Task: &messages.TaskChange{Change: change}},
	}
}

var answered = &messages.TaskStatus{
	State: messages.TaskState_TASK_STATE_ENDED, End: messages.End_END_ANSWERED, Reason: "ok", Text: "yes it is",
	Usage: &messages.Usage{Input: 7, Output: 3},
}

func TestWait(t *testing.T) {
	w := newWorld(t, options{})
	w.answering(func(id string) []*messages.AgentEvent {
		return []*messages.AgentEvent{said("yes"), ended(id, messages.End_END_ANSWERED)}
	}, answered)
	got := get[api.Submitted](w, "POST", "/api/v1/inputs", `{"text":"is it?","wait":true}`)
	if got.Task == nil || got.Task.Text != "yes it is" || got.Task.End != "answered" || got.TimedOut {
		t.Errorf("got %+v", got)
	}
	if !last[*messages.SubmitInput](w).GetInput().GetPersonWaits() {
		t.Error("a synchronous caller is a person who waits")
	}
	running := &messages.TaskStatus{State: messages.TaskState_TASK_STATE_RUNNING}
	w.answering(func(string) []*messages.AgentEvent { return nil }, running)
	got = get[api.Submitted](w, "POST", "/api/v1/inputs", `{"text":"is it?","wait":true,"wait_ms":1}`)
	if !got.TimedOut || got.Task != nil || got.InputID == "" {
		t.Errorf("got %+v", got)
	}
	w.answering(func(string) []*messages.AgentEvent { return nil }, answered)
	w.answer("channels", func(proto.Message) proto.Message {
		return &messages.SubmitResult{InputId: "first", Duplicate: true, Outcome: messages.Outcome_OUTCOME_DUPLICATE}
	})
	got = get[api.Submitted](w, "POST", "/api/v1/inputs", `{"text":"is it?","wait":true,"idempotency_key":"k"}`)
	if got.InputID != "first" || got.Task == nil || got.Task.InputID != "first" || !got.Duplicate {
		t.Errorf("a repeated key is answered by the first input: %+v", got)
	}
}

// lines reads a stream until want lines that are no comment and not empty have come.
func lines(t *testing.T, res *http.Response, want int) []string {
	t.Helper()
	var out []string
	sc := bufio.NewScanner(res.Body)
	for len(out) < want && sc.Scan() {
		if l := sc.Text(); l != "" && !strings.HasPrefix(l, ":") {
			out = append(out, l)
		}
	}
	if len(out) < want {
		t.Fatalf("the stream ended after %q", out)
	}
	return out
}

func (w *world) stream(path, lastID string) *http.Response {
	w.t.Helper()
	r, _ := http.NewRequest("GET", "http://homed"+path, nil)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	res, err := w.over(true).Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		w.t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	return res
}

func TestStream(t *testing.T) {
	w := newWorld(t, options{})
	res := w.stream("/api/v1/events?types=content_delta,task", "")
	head := lines(t, res, 3)
	if head[0] != "retry: 1000" || head[1] != "event: ready" || head[2] != `data: {"epoch":1000}` {
		t.Fatalf("begins with %q", head)
	}
	e := said("hello\nworld")
	e.TaskId, e.AtUs = "t1", 1_700_000_000_123_456
	w.publish(&messages.AgentEvent{Type: messages.EventType_EVENT_TYPE_RAW_INPUT, Text: "not wanted"})
	w.publish(e)
	got := lines(t, res, 3)
	want := []string{
		"id: 1000-2", "event: content_delta",
		`data: {"epoch":1000,"sequence":2,"type":"content_delta","at":"2023-11-14T22:13:20.123456Z","task_id":"t1","text":"hello\nworld"}`,
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	again := lines(t, w.stream("/api/v1/events?after=1000-1", "999-5"), 5)
	if again[3] != "event: sync_required" || again[4] != `data: {"epoch":1000,"reason":"gone"}` {
		t.Errorf("Last-Event-ID of another boot goes before after: %q", again)
	}
}

func TestHeartbeat(t *testing.T) {
	w := newWorld(t, options{deps: func(d *Deps) { d.Heartbeat = 5 * time.Millisecond }})
	sc := bufio.NewScanner(w.stream("/api/v1/events", "").Body)
	for sc.Scan() {
		if sc.Text() == ": heartbeat" {
			return
		}
	}
	t.Fatal("no heartbeat")
}

func TestSlowClientIsToldAndClosed(t *testing.T) {
	o := &outlet{limit: 3, wake: make(chan struct{}, 1)}
	b := func(n int) portion {
		return portion{batch: &messages.EventBatch{Events: make([]*messages.AgentEvent, n)}}
	}
	o.push(b(5)) // alone it is taken, whatever its size
	if ps, slow, _ := o.take(); len(ps) != 1 || slow {
		t.Fatalf("%d portions, slow %v", len(ps), slow)
	}
	o.push(b(2))
	o.push(b(2))
	o.push(b(1))
	if ps, slow, _ := o.take(); len(ps) != 0 || !slow {
		t.Fatalf("%d portions, slow %v: after a loss nothing may come", len(ps), slow)
	}
}

func TestTooManyStreams(t *testing.T) {
	w := newWorld(t, options{deps: func(d *Deps) { d.Streams = 1 }})
	lines(t, w.stream("/api/v1/events", ""), 3)
	res, b := w.do("GET", "/api/v1/events", "")
	w.fails(res, b, 429, "too_many_streams")
	if res.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestStreamsEndWithTheNode(t *testing.T) {
	w := newWorld(t, options{})
	res := w.stream("/api/v1/events", "")
	lines(t, res, 3)
	if _, err := w.rt.Ask(t.Context(), &messages.Address{Path: "admin"}, &messages.Drain{}); err != nil {
		t.Fatal(err)
	}
	r, b := w.do("POST", "/api/v1/inputs", `{"text":"hi"}`)
	w.fails(r, b, 503, "draining")
	if r, _ := w.do("GET", "/readyz", ""); r.StatusCode != 503 {
		t.Errorf("readyz %d", r.StatusCode)
	}
	// The cleaning up of the world ends the node; a stream that did not end would hold it up and leak.
}

func TestRestartKeepsTheAddress(t *testing.T) {
	w := newWorld(t, options{})
	res := w.stream("/api/v1/events", "")
	lines(t, res, 3)
	w.face.post(failed{Err: ErrSocket})
	for sc := bufio.NewScanner(res.Body); sc.Scan(); { // ends with the incarnation
		if sc.Text() != "" {
			t.Errorf("after the failure came %q", sc.Text())
		}
	}
	get[api.Nodes](w, "GET", "/api/v1/nodes", "") // waits in the backlog rather than being refused
	<-w.ready
	if info, _ := w.rt.Actor("admin"); info.GetRestarts() != 1 {
		t.Errorf("restarts %d", info.GetRestarts())
	}
}

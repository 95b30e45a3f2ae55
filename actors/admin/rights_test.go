package admin

import (
	"bufio"
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
	"homeagent/messages/api"
)

// book holds the tokens of a test.
type book struct {
	mu     sync.Mutex
	tokens map[[32]byte]*messages.TokenRecord
}

func (b *book) add(text, name string, kind messages.PrincipalKind, expires time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	prefix := map[messages.PrincipalKind]string{
		messages.PrincipalKind_PRINCIPAL_KIND_TOKEN: "token:", messages.PrincipalKind_PRINCIPAL_KIND_PERSON: "person:",
		messages.PrincipalKind_PRINCIPAL_KIND_AGENT: "agent:",
	}[kind]
	r := &messages.TokenRecord{Name: name, Principal: &messages.Principal{Id: prefix + name, Kind: kind}}
	if !expires.IsZero() {
		r.ExpiresUs = expires.UnixMicro()
	}
	b.tokens[sha256.Sum256([]byte(text))] = r
}

func (b *book) find(digest [32]byte) (*messages.TokenRecord, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens[digest], nil
}

func (b *book) remove(text string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	digest := sha256.Sum256([]byte(text))
	delete(b.tokens, digest)
	return digest[:]
}

// guarded is a world with tokens: a program, two people of whom one decides, an expired one, and one of a kind that no
// token has.
func guarded(t *testing.T) (*world, *book) {
	b := &book{tokens: map[[32]byte]*messages.TokenRecord{}}
	b.add("t-cron", "cron", messages.PrincipalKind_PRINCIPAL_KIND_TOKEN, time.Time{})
	b.add("t-anna", "anna", messages.PrincipalKind_PRINCIPAL_KIND_PERSON, time.Time{})
	b.add("t-bob", "bob", messages.PrincipalKind_PRINCIPAL_KIND_PERSON, time.Time{})
	b.add("t-old", "old", messages.PrincipalKind_PRINCIPAL_KIND_PERSON, time.Now().Add(-time.Second))
	b.add("t-odd", "odd", messages.PrincipalKind_PRINCIPAL_KIND_AGENT, time.Time{})
	w := newWorld(t, options{deps: func(d *Deps) {
		d.Tokens = b.find
		d.Decides = func(p *messages.Principal) bool { return p.GetId() == "person:anna" }
	}})
	return w, b
}

// as asks over TCP with a token.
func (w *world) as(token, method, path, body string) (*http.Response, []byte) {
	w.t.Helper()
	r := w.request(token, method, path, body)
	return w.send(w.over(false), r)
}

func (w *world) request(token, method, path, body string) *http.Request {
	w.t.Helper()
	r, err := http.NewRequest(method, "http://"+w.door.HTTP()+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// TestRightsOfEveryRoute asks every route as everybody. A route without a row of its own is a failure.
func TestRightsOfEveryRoute(t *testing.T) {
	w, _ := guarded(t)
	var routes []string
	for p := range w.face.plains() {
		routes = append(routes, p)
	}
	for p := range w.face.others() {
		routes = append(routes, p)
	}
	slices.Sort(routes)
	if told := slices.Sorted(maps.Keys(rights)); !slices.Equal(routes, told) {
		t.Fatalf("routes %q\nrights %q", routes, told)
	}
	askers := []struct {
		token  string
		status int // without the right; 0 for one who holds all
		holds  []right
	}{
		{w.door.Token(), 0, []right{forOwner, forDeciders, forAskers}},
		{"t-cron", 403, []right{forAskers}},
		{"t-anna", 403, []right{forAskers, forDeciders}},
		{"t-bob", 403, []right{forAskers}},
		{"t-odd", 403, nil},
		{"t-old", 401, nil},
		{"t-wrong", 401, nil},
		{"", 401, nil},
	}
	for _, pattern := range routes {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{path...}", "nowhere/stop", "{agent...}", "main/resident/x", "{id}", "x", "{key}", "x", "{name}", "x").Replace(path)
		for _, a := range askers {
			// What comes after the right is not the matter here, so no body: a stream would not end.
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			res, err := w.over(false).Do(w.request(a.token, method, path, "").WithContext(ctx))
			if err != nil {
				t.Fatalf("%s as %q: %v", pattern, a.token, err)
			}
			_ = res.Body.Close()
			cancel()
			refusedHere := res.StatusCode == 401 || res.StatusCode == 403
			need := rights[pattern]
			may := need == forAll || slices.Contains(a.holds, need)
			switch {
			case may && refusedHere, !may && res.StatusCode != a.status:
				t.Errorf("%s as %q: %d", pattern, a.token, res.StatusCode)
			}
		}
	}
}

func TestNobodyIsNotTheOwner(t *testing.T) {
	f := &face{}
	for _, p := range []*messages.Principal{
		nil,
		{},
		{Id: "owner"},
		{Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER},
		{Kind: messages.PrincipalKind_PRINCIPAL_KIND_TOKEN},
		{Id: "x", Kind: messages.PrincipalKind_PRINCIPAL_KIND_NODE},
		{Id: "x", Kind: messages.PrincipalKind_PRINCIPAL_KIND_SYSTEM},
	} {
		for _, need := range []right{forOwner, forDeciders, forAskers, right(99)} {
			if f.holds(p, need) {
				t.Errorf("%v holds %d", p, need)
			}
		}
	}
}

func TestATokenAtTheSocketIsNotTheOwner(t *testing.T) {
	w, b := guarded(t)
	ask := func(header string) *http.Response {
		r, err := http.NewRequest("GET", "http://homed/api/v1/config", nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		res, _ := w.send(w.over(true), r)
		return res
	}
	for header, status := range map[string]int{
		"Bearer t-cron": 403, "Bearer t-wrong": 401, "Bearer t-old": 401, "Basic xyz": 401, "Bearer": 401, "Bearer " + w.door.Token(): 404, "": 404,
	} {
		// 404 is what the config actor of this world answers: unknown_thing.
		if got := ask(header).StatusCode; got != status {
			t.Errorf("%q: %d, want %d", header, got, status)
		}
	}
	b.remove("t-cron")
	if got := ask("Bearer t-cron").StatusCode; got != 401 {
		t.Errorf("a removed token: %d", got)
	}
}

func TestInputsOfATokenAreItsOwn(t *testing.T) {
	w, _ := guarded(t)
	w.answer("ledger", func(m proto.Message) proto.Message {
		q := m.(*messages.TaskQuery)
		who, _, _ := strings.Cut(q.GetInputId(), "/")
		return &messages.TaskStatus{Input: &messages.Input{
			Id: q.GetInputId(), Principal: &messages.Principal{Id: who}, Conversation: who + "/home",
		}}
	})
	res, body := w.as("t-anna", "POST", "/api/v1/inputs", `{"text":"hi","conversation":"home","level":2}`)
	if res.StatusCode != 202 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	in := last[*messages.SubmitInput](w).GetInput()
	if in.GetPrincipal().GetId() != "person:anna" || in.GetPrincipal().GetKind() != messages.PrincipalKind_PRINCIPAL_KIND_PERSON ||
		in.GetConversation() != "person:anna/home" {
		t.Errorf("input %v", in)
	}
	for body, code := range map[string]string{
		`{"text":"hi","level":3}`:                 api.CodeLevel,
		`{"text":"hi","mode":"interrupt"}`:        api.CodeLevel,
		`{"text":"hi","channel":"telegram"}`:      api.CodeNotAllowed,
		`{"text":"hi","channel":"agents"}`:        api.CodeNotAllowed,
		`{"text":"hi","agent":"cook"}`:            api.CodeNotAllowed,
		`{"text":"hi","agent":"main/resident/x"}`: api.CodeNotAllowed,
	} {
		res, b := w.as("t-anna", "POST", "/api/v1/inputs", body)
		w.fails(res, b, 403, code)
	}
	res, body = w.as("t-anna", "GET", "/api/v1/inputs/person:anna%2F1", "")
	if res.StatusCode != 200 || !strings.Contains(string(body), `"conversation":"home"`) {
		t.Errorf("its own: %d %s", res.StatusCode, body)
	}
	res, body = w.as("t-anna", "GET", "/api/v1/inputs/owner%2F1", "")
	w.fails(res, body, 404, "unknown_input")
	if res, _ := w.as(w.door.Token(), "GET", "/api/v1/inputs/person:anna%2F1", ""); res.StatusCode != 200 {
		t.Errorf("the owner sees %d", res.StatusCode)
	}
	res, body = w.as("t-anna", "POST", "/api/v1/stop", `{"conversation":"home"}`)
	w.fails(res, body, 404, "unknown_thing") // what this world's actors answer
	if s := last[*messages.StopAll](w); s.GetConversation() != "person:anna/home" || s.GetPrincipal().GetId() != "person:anna" {
		t.Errorf("stop %v", s)
	}
	w.as("t-anna", "POST", "/api/v1/stop", "")
	if s := last[*messages.StopAll](w); s.GetConversation() != "person:anna" {
		t.Errorf("a stop without a name reaches %v", s)
	}
	res, body = w.as("t-anna", "POST", "/api/v1/stop", `{"agent":"cook"}`)
	w.fails(res, body, 403, api.CodeNotAllowed)
}

// dataLines reads the data lines of a stream until it ends.
func dataLines(t *testing.T, res *http.Response) <-chan string {
	t.Helper()
	out := make(chan string, 64)
	go func() {
		defer close(out)
		s := bufio.NewScanner(res.Body)
		for s.Scan() {
			if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
				out <- data
			}
		}
	}()
	return out
}

func TestStreamsOfAToken(t *testing.T) {
	w, b := guarded(t)
	w.answer("ledger", func(m proto.Message) proto.Message {
		who, _, _ := strings.Cut(m.(*messages.TaskQuery).GetInputId(), "/")
		return &messages.TaskStatus{Input: &messages.Input{Principal: &messages.Principal{Id: who}}}
	})
	res, body := w.as("t-cron", "GET", "/api/v1/events?types=tool_call", "")
	w.fails(res, body, 403, api.CodeNotAllowed)
	res, body = w.as("t-cron", "GET", "/api/v1/events?task=owner%2F1", "")
	w.fails(res, body, 404, "unknown_input")

	res, err := w.over(false).Do(w.request("t-cron", "GET", "/api/v1/events", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got := dataLines(t, res)
	if first := <-got; !strings.Contains(first, "epoch") {
		t.Fatalf("the stream begins with %s", first)
	}
	w.publish(&messages.AgentEvent{Type: messages.EventType_EVENT_TYPE_TASK, TaskId: "owner/1", Text: "not yours"})
	w.publish(&messages.AgentEvent{Type: messages.EventType_EVENT_TYPE_AGENT_ERROR, Text: "of nobody"})
	w.publish(&messages.AgentEvent{Type: messages.EventType_EVENT_TYPE_TOOL_CALL, TaskId: "token:cron/1", Text: "a call"})
	w.publish(&messages.AgentEvent{Type: messages.EventType_EVENT_TYPE_TASK, TaskId: "token:cron/1", Conversation: "token:cron/home", Text: "yours"})
	if line := <-got; !strings.Contains(line, `"text":"yours"`) || !strings.Contains(line, `"conversation":"home"`) {
		t.Errorf("got %s", line)
	}
	if err := w.face.holders.end(b.remove("t-cron")); err != nil {
		t.Fatal(err)
	}
	for line := range got { // it ends: a stream that went on would hang here
		t.Errorf("after the token was removed: %s", line)
	}
	if res, _ := w.as("t-cron", "GET", "/v1/models", ""); res.StatusCode != 401 {
		t.Errorf("a removed token asks: %d", res.StatusCode)
	}
}

func TestApprovalsOverHTTP(t *testing.T) {
	w, _ := guarded(t)
	a := &messages.Approval{
		ApprovalId: "ap-1", TaskId: "T1", Agent: "main", Hash: "abc", ToolClass: messages.ToolClass_TOOL_CLASS_EXEC,
		Call:       &messages.ToolInvocation{CallId: "T1/1/c0", Name: "shell", ArgumentsJson: []byte(`{"argv":["rm", "-rf","/"]}`)},
		Principals: []*messages.Principal{owner()}, State: messages.ApprovalState_APPROVAL_STATE_PENDING, CreatedUs: 1,
	}
	w.answer("guard", func(m proto.Message) proto.Message {
		switch m := m.(type) {
		case *messages.ListApprovals:
			if id := m.GetApprovalId(); id != "" && id != "ap-1" {
				return &messages.ApprovalList{}
			}
			return &messages.ApprovalList{Approvals: []*messages.Approval{a}}
		case *messages.DecideApproval:
			if m.GetHash() != "abc" {
				return &messages.Error{Code: "approval_changed", Message: "changed"}
			}
			done := proto.CloneOf(a)
			done.State, done.DecidedBy, done.DecidedUs, done.Note = messages.ApprovalState_APPROVAL_STATE_ALLOWED, m.GetPrincipal(), 2, m.GetNote()
			return done
		}
		return nil
	})
	l := get[api.Approvals](w, "GET", "/api/v1/approvals", "")
	if len(l.Approvals) != 1 || string(l.Approvals[0].Arguments) != `{"argv":["rm","-rf","/"]}` || l.Approvals[0].Class != "exec" || l.Approvals[0].State != "pending" {
		t.Errorf("list %+v", l)
	}
	if one := get[api.Approval](w, "GET", "/api/v1/approvals/ap-1", ""); one.Tool != "shell" || one.DecidedBy != nil {
		t.Errorf("one %+v", one)
	}
	res, b := w.do("GET", "/api/v1/approvals/ap-2", "")
	w.fails(res, b, 404, "unknown_approval")
	res, b = w.do("POST", "/api/v1/approvals/ap-1/allow", `{}`)
	w.fails(res, b, 400, "malformed")
	res, b = w.do("POST", "/api/v1/approvals/ap-1/deny", `{"hash":"abd"}`)
	w.fails(res, b, 409, "approval_changed")
	res, b = w.as("t-anna", "POST", "/api/v1/approvals/ap-1/allow", `{"hash":"abc","note":"go"}`)
	if d := last[*messages.DecideApproval](w); res.StatusCode != 200 || !d.GetAllow() || d.GetPrincipal().GetId() != "person:anna" || d.GetNote() != "go" {
		t.Errorf("%d %s, decided %v", res.StatusCode, b, d)
	}
}

func TestTokensOverHTTP(t *testing.T) {
	w, _ := guarded(t)
	w.answer("guard", func(m proto.Message) proto.Message {
		switch m := m.(type) {
		case *messages.AddToken:
			return m.GetToken()
		case *messages.RemoveToken:
			digest := sha256.Sum256([]byte("t-cron"))
			return &messages.NamedToken{Name: m.GetName(), Digest: digest[:]}
		}
		return &messages.TokenList{Tokens: []*messages.NamedToken{{Name: "cron", ExpiresUs: 1}}}
	})
	made := get[api.NamedToken](w, "POST", "/api/v1/tokens", `{"name":"cron","expires":"30d"}`)
	sent := last[*messages.AddToken](w).GetToken()
	digest := sha256.Sum256([]byte(made.Token))
	if !strings.HasPrefix(made.Token, tokenPrefix) || string(sent.GetDigest()) != string(digest[:]) || sent.GetPrincipal().GetId() != "token:cron" {
		t.Errorf("made %+v, sent %v", made, sent)
	}
	if again := get[api.NamedToken](w, "POST", "/api/v1/tokens", `{"name":"anna","principal":"person"}`); again.Token == made.Token || again.Principal.ID != "person:anna" {
		t.Errorf("again %+v", again)
	}
	if l := get[api.NamedTokens](w, "GET", "/api/v1/tokens", ""); len(l.Tokens) != 1 || !l.Tokens[0].Expired || l.Tokens[0].Token != "" {
		t.Errorf("list %+v", l)
	}
	for _, body := range []string{`{"name":"a","principal":"owner"}`, `{"name":"a","expires":"0"}`, `{"name":"a","expires":"soon"}`} {
		res, b := w.do("POST", "/api/v1/tokens", body)
		w.fails(res, b, 400, "malformed")
	}
	get[api.NamedToken](w, "DELETE", "/api/v1/tokens/cron", "")
}

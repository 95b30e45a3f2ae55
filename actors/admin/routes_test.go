package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/internal/obs"
	"homeagent/messages"
	"homeagent/messages/api"
)

// chunks reads a streamed completion: the pieces of text joined, and the last data lines as they are.
func chunks(t *testing.T, b []byte) (text string, tail []string) {
	t.Helper()
	for line := range strings.SplitSeq(string(b), "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var c api.ChatChunk
		if json.Unmarshal([]byte(data), &c) == nil && len(c.Choices) == 1 && c.Choices[0].FinishReason == nil && c.Object != "" {
			text += c.Choices[0].Delta.Content
			continue
		}
		tail = append(tail, data)
	}
	return text, tail
}

const question = `"messages":[{"role":"system","content":"s"},{"role":"user","content":"old"},{"role":"assistant","content":"a"},` +
	`{"role":"user","content":[{"type":"text","text":"is"},{"type":"text","text":"it?"}]}],"temperature":0.2`

func TestCompletions(t *testing.T) {
	w := newWorld(t, options{})
	round := &messages.AgentEvent{
		Type:   messages.EventType_EVENT_TYPE_STAGE,
		Detail: &messages.AgentEvent_Stage{Stage: &messages.StageRun{Stage: messages.Stage_STAGE_POST_ACTION}},
	}
	for _, c := range []struct {
		name   string
		script []*messages.AgentEvent
		want   string
	}{
		{"plain", []*messages.AgentEvent{said("yes "), said("it is")}, "yes it is"},
		{"made again", []*messages.AgentEvent{said("yes"), changed("suspended"), changed("resumed"), said("yes it"), said(" is")}, "yes it is"},
		{"different", []*messages.AgentEvent{said("no"), changed("suspended"), said("yes it is")}, "no\n\nyes it is"},
		{"rounds", []*messages.AgentEvent{said("I look"), round, said("yes it is"), round}, "I look\n\nyes it is"},
		{"not streamed", nil, "yes it is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.answering(func(id string) []*messages.AgentEvent {
				var out []*messages.AgentEvent
				for _, e := range c.script {
					out = append(out, proto.Clone(e).(*messages.AgentEvent))
				}
				return append(out, ended(id, messages.End_END_ANSWERED))
			}, answered)
			res, b := w.do("POST", "/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true},"user":"u1",`+question+`}`)
			text, tail := chunks(t, b)
			if res.StatusCode != 200 || text != c.want {
				t.Errorf("%d, text %q, want %q", res.StatusCode, text, c.want)
			}
			if len(tail) != 3 || !strings.Contains(tail[0], `"finish_reason":"stop"`) ||
				!strings.Contains(tail[1], `"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}`) || tail[2] != "[DONE]" {
				t.Errorf("ends with %q", tail)
			}
			in := last[*messages.SubmitInput](w).GetInput()
			if in.GetParts()[0].GetText() != "is\nit?" || in.GetConversation() != "u1" || in.GetMode() != messages.Mode_MODE_QUEUE ||
				!in.GetPersonWaits() || in.GetChannel() != "api" || in.GetAgent() != "main" {
				t.Errorf("input %v", in)
			}
		})
	}
	got := get[api.ChatResponse](w, "POST", "/v1/chat/completions", `{"model":"homeagent",`+question+`}`)
	if len(got.Choices) != 1 || got.Choices[0].Message.Content != "yes it is" || got.Choices[0].FinishReason != "stop" ||
		got.Usage.TotalTokens != 10 || got.Object != "chat.completion" || got.Model != "homeagent" {
		t.Errorf("got %+v", got)
	}
}

func TestCompletionsThatFail(t *testing.T) {
	w := newWorld(t, options{})
	w.answering(func(id string) []*messages.AgentEvent {
		return []*messages.AgentEvent{said("half"), ended(id, messages.End_END_FAILED)}
	}, &messages.TaskStatus{State: messages.TaskState_TASK_STATE_ENDED, End: messages.End_END_FAILED, Reason: "stream_truncated", Text: "cut"})
	_, b := w.do("POST", "/v1/chat/completions", `{"stream":true,`+question+`}`)
	text, tail := chunks(t, b)
	if text != "half" || len(tail) != 2 || !strings.Contains(tail[0], `"code":"stream_truncated"`) || tail[1] != "[DONE]" {
		t.Errorf("text %q, tail %q", text, tail)
	}
	for _, c := range []struct {
		body   string
		status int
		code   string
	}{
		{`{` + question + `}`, 502, "stream_truncated"},
		{`{}`, 400, "malformed"},
		{`{"messages":[{"role":"user","content":5}]}`, 400, "malformed"},
		{`{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, "unsupported_block"},
		{`{"model":"gpt-4",` + question + `}`, 503, "unavailable"},
		{`{"model":"../x",` + question + `}`, 404, "model_not_found"},
	} {
		if c.status == 503 {
			w.answer("channels", func(proto.Message) proto.Message {
				return &messages.SubmitResult{Error: &messages.Error{Code: "actor_gone", Message: "no such agent"}}
			})
			c.code = "actor_gone"
		}
		res, b := w.do("POST", "/v1/chat/completions", c.body)
		var e api.ChatError
		if json.Unmarshal(b, &e) != nil || res.StatusCode != c.status || e.Error.Code != c.code || e.Error.Message == "" || e.Error.Type == "" {
			t.Errorf("%s: %d %s", c.body[:min(len(c.body), 50)], res.StatusCode, b)
		}
	}
}

func TestTree(t *testing.T) {
	w := newWorld(t, options{})
	root := get[api.Actor](w, "GET", "/api/v1/actors", "")
	var paths []string
	var walk func(api.Actor)
	walk = func(a api.Actor) {
		paths = append(paths, a.Path)
		for _, c := range a.Children {
			walk(c)
		}
	}
	walk(root)
	if !strings.Contains(strings.Join(paths, " "), "admin") || len(paths) < 10 {
		t.Errorf("paths %q", paths)
	}
	a := get[api.Actor](w, "GET", "/api/v1/actors/admin", "")
	var inner struct {
		Machine struct {
			Phase    string          `json:"phase"`
			Channels map[string]bool `json:"channels"`
		} `json:"machine"`
	}
	if json.Unmarshal(a.Inner, &inner) != nil || inner.Machine.Phase != "running" || !inner.Machine.Channels["web"] || !a.System || a.Kind != "admin" {
		t.Errorf("got %+v %s", a, a.Inner)
	}
	if a := get[api.Actor](w, "POST", "/api/v1/actors/agents/main/scheduler/pause", ""); a.Path != "agents/main/scheduler" || a.State != "paused" {
		t.Errorf("got %+v", a)
	}
	get[api.Actor](w, "POST", "/api/v1/actors/agents/main/scheduler/resume", "")
	if a := get[api.Actor](w, "POST", "/api/v1/actors/agents/main/scheduler/stop", ""); a.State != "stopped" {
		t.Errorf("got %+v", a)
	}
	res, b := w.do("GET", "/api/v1/scheduler", "")
	w.fails(res, b, 503, "unavailable")
	if res, _ := w.do("GET", "/healthz", ""); res.StatusCode != 503 {
		t.Errorf("healthz of a node without scheduler: %d", res.StatusCode)
	}
}

func TestHealth(t *testing.T) {
	w := newWorld(t, options{})
	w.answer("agents/main/scheduler", func(proto.Message) proto.Message {
		return &messages.SchedulerState{Agent: "main", Running: &messages.TaskView{TaskId: "t", Phase: messages.Phase_PHASE_TOOLS}}
	})
	if h := get[api.Health](w, "GET", "/healthz", ""); h.Status != "ok" || h.TookMS <= 0 {
		t.Errorf("got %+v", h)
	}
	s := get[api.Scheduler](w, "GET", "/api/v1/scheduler", "")
	if s.Running.Phase != "tools" || s.Queue == nil {
		t.Errorf("got %+v", s)
	}
}

func TestAgents(t *testing.T) {
	w := newWorld(t, options{})
	view := func(path string) *messages.AgentView {
		return &messages.AgentView{Spec: &messages.AgentSpec{Agent: path, CreatedUs: 1}, State: "idle"}
	}
	w.answer("agents/main", func(m proto.Message) proto.Message {
		switch v := m.(type) {
		case *messages.CreateAgent:
			return view("main/resident/" + v.GetName())
		case *messages.DestroyAgent:
			return view("main/resident/" + v.GetName())
		}
		return &messages.AgentList{Agents: []*messages.AgentView{view("main"), view("main/resident/cook"), view("main/resident/gone")}}
	})
	w.spawn("agents/main/resident/cook", kit.Props{Kind: "agent", New: func() kit.Machine {
		return &neighbour{w: w, path: "agents/main/resident/cook"}
	}})
	w.answer("agents/main/resident/cook", func(proto.Message) proto.Message {
		return &messages.AgentList{Agents: []*messages.AgentView{view("main/resident/cook")}}
	})
	got := get[api.Agents](w, "GET", "/api/v1/agents", "")
	if len(got.Agents) != 2 || got.Agents[1].Agent != "main/resident/cook" {
		t.Errorf("got %+v: each agent once, one that ended meanwhile left out", got)
	}
	a := get[api.Agent](w, "POST", "/api/v1/agents", `{"name":"cook","task_prompt":"cooks","task":"make tea"}`)
	c := last[*messages.CreateAgent](w)
	if a.Agent != "main/resident/cook" || a.InputID == "" || a.InputID != c.GetInputId() || c.GetSpec().GetTaskPrompt() != "cooks" {
		t.Errorf("got %+v of %v", a, c)
	}
	get[api.Agent](w, "DELETE", "/api/v1/agents/cook?drop=true", "")
	if d := last[*messages.DestroyAgent](w); d.GetName() != "cook" || !d.GetDrop() {
		t.Errorf("got %v", d)
	}
	if m := get[api.Models](w, "GET", "/v1/models", ""); len(m.Data) != 3 || m.Data[0].ID != "homeagent" {
		t.Errorf("got %+v", m)
	}
}

func TestConfigRoutes(t *testing.T) {
	w := newWorld(t, options{})
	w.answer("config", func(m proto.Message) proto.Message {
		switch v := m.(type) {
		case *messages.ConfigSet:
			if v.GetEntries()[0].GetKey() == "core.bad" {
				return &messages.ConfigSetResult{Error: &messages.Error{Code: "bad_value", Message: "no"}}
			}
			return &messages.ConfigSetResult{Restart: []string{"core.r"}}
		case *messages.ConfigGet:
			return &messages.ConfigValues{Error: &messages.Error{Code: "unknown_key", Message: "no", Hint: "core.a?"}}
		}
		return &messages.ConfigValues{Values: []*messages.ConfigValue{
			{Key: "i", Type: "int", Value: "1000000", Default: "5"},
			{Key: "f", Type: "float", Value: "0.5", Default: "NaN"},
			{Key: "b", Type: "bool", Value: "true"},
			{Key: "d", Type: "duration", Value: "5m"},
			{Key: "s", Type: "secret", Value: "set", Secret: true},
		}}
	})
	_, b := w.do("GET", "/api/v1/config?prefix=core", "")
	for _, want := range []string{`"value":1000000`, `"default":5`, `"value":0.5`, `"default":"NaN"`, `"value":true`, `"value":"5m"`, `"value":"set"`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("%s is missing in %s", want, b)
		}
	}
	if last[*messages.ConfigList](w).GetPrefix() != "core" {
		t.Error("the prefix was not passed on")
	}
	get[api.ValuesSet](w, "PUT", "/api/v1/config", `{"values":{"c":null,"a":5,"b":true,"d":"x"}}`)
	var got []string
	for _, e := range last[*messages.ConfigSet](w).GetEntries() {
		v := "default"
		if e.Value != nil {
			v = e.GetValue()
		}
		got = append(got, e.GetKey()+"="+v)
	}
	if strings.Join(got, " ") != "a=5 b=true c=default d=x" {
		t.Errorf("got %q", got)
	}
	res, b := w.do("PUT", "/api/v1/config/core.bad", `{"value":"x"}`)
	w.fails(res, b, 400, "bad_value")
	res, b = w.do("GET", "/api/v1/config/core.x", "")
	w.fails(res, b, 404, "unknown_key")
}

func TestProviderRoutes(t *testing.T) {
	w := newWorld(t, options{})
	broken := &messages.CompletionFailure{
		Kind: messages.ErrorKind_ERROR_KIND_AUTH, Status: 401, Error: &messages.Error{Code: "auth", Message: "wrong key", Hint: "set another"},
	}
	w.answer("providers", func(m proto.Message) proto.Message {
		switch v := m.(type) {
		case *messages.AddSource:
			return &messages.SourceTested{Works: v.GetApiKey() == "good", Saved: v.GetApiKey() == "good" || v.GetForce(), Failure: broken}
		case *messages.TestSource:
			return &messages.SourceTested{Failure: broken}
		case *messages.RemoveSource:
			return &messages.Error{Code: "unknown_source", Message: "no"}
		case *messages.ResetSource, *messages.UseSource:
			return &messages.Ok{}
		}
		return &messages.SourceList{
			Sources: []*messages.SourceView{{Spec: &messages.SourceSpec{Name: "x"}, State: "cooling", LastFailure: broken}},
			Found:   []*messages.SourceSpec{{Name: "ollama"}},
		}
	})
	s := get[api.Sources](w, "GET", "/api/v1/providers", "")
	if s.Sources[0].LastFailure.Kind != "auth" || s.Sources[0].LastFailure.Code != "auth" || s.Found[0].Name != "ollama" {
		t.Errorf("got %+v", s)
	}
	if res, b := w.do("POST", "/api/v1/providers", `{"name":"x","api_key":"good"}`); res.StatusCode != 201 || bytes.Contains(b, []byte("good")) {
		t.Errorf("%d %s", res.StatusCode, b)
	}
	res, b := w.do("POST", "/api/v1/providers", `{"name":"x","api_key":"bad"}`)
	e := w.fails(res, b, 422, "source_test_failed")
	if e.Details["kind"] != "auth" || e.Details["reason"] != "wrong key" || e.Hint != "set another" {
		t.Errorf("got %+v", e)
	}
	if v := get[api.Tested](w, "POST", "/api/v1/providers", `{"name":"x","api_key":"bad","force":true}`); v.Works || !v.Saved {
		t.Errorf("got %+v", v)
	}
	if v := get[api.Tested](w, "POST", "/api/v1/providers/x/test", ""); v.Works || v.Failure.Status != 401 {
		t.Errorf("got %+v", v)
	}
	get[api.Sources](w, "POST", "/api/v1/providers/x/reset", "")
	get[api.Sources](w, "POST", "/api/v1/providers/x/use", "")
	if u := last[*messages.UseSource](w); u.GetName() != "x" {
		t.Errorf("used %v", u)
	}
	res, b = w.do("DELETE", "/api/v1/providers/x", "")
	w.fails(res, b, 404, "unknown_source")
	res, b = w.do("GET", "/api/v1/providers/y", "")
	w.fails(res, b, 404, "unknown_source")
}

func TestMemoryRoutes(t *testing.T) {
	w := newWorld(t, options{})
	w.answer("memory", func(proto.Message) proto.Message {
		return &messages.MemoryAnswer{
			Items:   []*messages.RecalledItem{{Id: "1", Text: "tea", AtUs: 1_000_000}},
			Events:  []*messages.Event{{EventId: "e", Kind: messages.EventKind_EVENT_KIND_INPUT, Blocks: []*messages.Block{{Content: &messages.Part{Content: &messages.Part_Text{Text: "hi"}}}}}},
			Figures: &messages.MemoryFigures{Events: 2},
		}
	})
	w.answer("memory/graph", func(proto.Message) proto.Message { return &messages.CommitFactsResult{FactIds: []string{"f1"}} })
	m := get[api.Memory](w, "GET", "/api/v1/memory?text=tea&entity=cup&limit=3", "")
	q := last[*messages.MemoryQuery](w)
	if m.Items[0].Text != "tea" || m.Events[0].Kind != "input" || m.Events[0].Content[0].Text != "hi" || m.Facts == nil || m.Figures.Events != 2 ||
		q.GetText() != "tea" || q.GetEntity() != "cup" || q.GetLimit() != 3 || q.GetAgent() != "main" {
		t.Errorf("got %+v of %v", m, q)
	}
	f := get[api.FactsWritten](w, "POST", "/api/v1/memory/facts", `{"facts":[{"subject":"a","predicate":"b","object":"c","valid_from":"2026-01-01T00:00:00Z"}]}`)
	c := last[*messages.CommitFacts](w)
	if f.FactIDs[0] != "f1" || c.GetKey() == "" || c.GetFacts()[0].GetValidFromUs() != 1767225600000000 || c.GetFacts()[0].GetValidToUs() != 0 {
		t.Errorf("got %+v of %v", f, c)
	}
}

func TestStatusAndUsage(t *testing.T) {
	w := newWorld(t, options{})
	s := get[api.Status](w, "GET", "/api/v1/status", "")
	if s.State != "ready" || s.Epoch != 1000 || s.Ledger != nil || s.Version != "1.2.3" || s.MemoryBytes == 0 || s.Data != w.data {
		t.Errorf("got %+v", s)
	}
	w.answering(func(string) []*messages.AgentEvent { return nil }, answered)
	if s := get[api.Status](w, "GET", "/api/v1/status", ""); s.Ledger == nil || s.Ledger.Open != 3 {
		t.Errorf("got %+v", s)
	}
	w.answer("providers", func(m proto.Message) proto.Message {
		row := &messages.UsageRow{Source: "s", Calls: 2, CostMicros: 1_500_000, Usage: &messages.Usage{Input: 5, Output: 2}}
		return &messages.UsageAnswer{
			From: "2026-03-01", To: "2026-03-02", Currency: "EUR", Rows: []*messages.UsageRow{row}, Total: row,
			Budgets: []*messages.Budget{{Period: "day", LimitMicros: 2_000_000, SpentMicros: 1_500_000, EndsUs: 1}},
		}
	})
	u := get[api.UsageReport](w, "GET", "/api/v1/usage?by=source,day&from=2026-03-01", "")
	q := last[*messages.QueryUsage](w)
	if u.Models == nil || u.Since.IsZero() || u.Rows[0].Cost != 1.5 || u.Total.Prompt != 5 || u.Budgets[0].Limit != 2 || u.Currency != "EUR" {
		t.Errorf("got %+v", u)
	}
	if q.GetFrom() != "2026-03-01" || q.GetTo() != "" || len(q.GetBy()) != 2 {
		t.Errorf("asked %v", q)
	}
	w.answer("channels", func(proto.Message) proto.Message {
		return &messages.ChannelList{Channels: []*messages.RegisterChannel{{Name: "cli", Kind: messages.ChannelKind_CHANNEL_KIND_INTERACTIVE}}}
	})
	if c := get[api.Channels](w, "GET", "/api/v1/channels", ""); c.Channels[0].Kind != "interactive" || c.Channels[0].Mode != "steer" {
		t.Errorf("got %+v", c)
	}
}

func TestMetrics(t *testing.T) {
	w := newWorld(t, options{})
	w.answering(func(string) []*messages.AgentEvent { return nil }, answered)
	w.do("GET", "/nothing", "")
	_, b := w.do("GET", "/metrics", "")
	for _, want := range []string{
		`homeagent_actor_live_items{kind="admin"} 1`, `homeagent_actor_mailbox_messages{kind="channels",lane="user"} 0`,
		`homeagent_ledger_open_items 3`, `homeagent_ledger_answered_info 1`,
		`homeagent_http_requests_total{route="other",status="404"} 1`, `homeagent_http_streams_items 0`,
		`homeagent_build_info{`, `go_goroutines `,
	} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("%q is missing", want)
		}
	}
	if !regexp.MustCompile(`homeagent_actor_handled_messages_total\{kind="channels"\} [3-9]`).Match(b) {
		t.Error("the registrations were not counted")
	}
	w.answer("ledger", nil)
	res, b := w.do("GET", "/metrics", "")
	if res.StatusCode != 200 || !bytes.Contains(b, []byte("homeagent_ledger_answered_info 0")) || bytes.Contains(b, []byte("homeagent_ledger_open_items")) {
		t.Errorf("%d: figures that nobody gave must be missing", res.StatusCode)
	}
}

// A total of a kind must not fall when one of its actors ends.
func TestTotalsNeverFall(t *testing.T) {
	g := &figures{seen: map[string]seen{}, base: map[string]*messages.ActorInfo{}}
	tree := func(handled ...uint64) *messages.ActorInfo {
		root := &messages.ActorInfo{Kind: "root"}
		for i, h := range handled {
			root.Children = append(root.Children, &messages.ActorInfo{Kind: "turn", Path: "turn/" + string(rune('a'+i)), Handled: h})
		}
		return root
	}
	for i, c := range []struct {
		handled []uint64
		want    uint64
	}{
		{[]uint64{5, 3}, 8}, {[]uint64{6}, 9}, {nil, 9}, {[]uint64{1}, 10}, {[]uint64{1, 1}, 11},
	} {
		if got := g.sum(tree(c.handled...))["turn"].info.GetHandled(); got != c.want {
			t.Errorf("look %d: %d, want %d", i, got, c.want)
		}
	}
}

// faulty panics where a real runtime would answer.
type faulty struct{ Runtime }

func (faulty) Tree() *messages.ActorInfo { panic("broken") }

func TestAPanicStaysInItsRequest(t *testing.T) {
	w := newWorld(t, options{deps: func(d *Deps) { d.Runtime = faulty{d.Runtime} }})
	res, b := w.do("GET", "/api/v1/actors", "")
	e := w.fails(res, b, 500, "internal")
	if strings.Contains(e.Message+e.Hint, "broken") {
		t.Errorf("internals reached a person: %+v", e)
	}
	get[api.Nodes](w, "GET", "/api/v1/nodes", "")
}

// Each route has its place in the document, and the document names no other.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	f := &face{deps: Deps{Metrics: obs.NewMetrics(obs.Build{})}}
	var have, told []string
	for p := range f.plains() {
		have = append(have, p)
	}
	for p := range f.others() {
		have = append(have, p)
	}
	for _, m := range regexp.MustCompile("(?m)^### `([^`]+)`").FindAllStringSubmatch(string(b), -1) {
		told = append(told, m[1])
	}
	slices.Sort(have)
	slices.Sort(told)
	if !slices.Equal(have, told) {
		t.Errorf("routes %q\ntold   %q", have, told)
	}
}

func TestStatusOfCodes(t *testing.T) {
	for code, want := range map[string]int{
		"queue_full": 429, "agent_exists": 409, "unknown_source": 404, "bad_name": 400, "too_many_agents": 429, "disk_low": 503,
		"system_actor": 403, "timeout": 504, "never_seen": 500, "input_too_large": 413, "unsupported_block": 400,
	} {
		if got := statusOf(code); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	w := newWorld(t, options{})
	for given, kept := range map[string]bool{"": false, "abc-1.2_3": true, "with space": false, strings.Repeat("a", 65): false} {
		r, _ := http.NewRequest("GET", "http://homed/readyz", nil)
		if given != "" {
			r.Header.Set("X-Request-Id", given)
		}
		res, _ := w.send(w.over(true), r)
		if got := res.Header.Get("X-Request-Id"); got == "" || (got == given) != kept {
			t.Errorf("%q became %q", given, got)
		}
	}
}

func TestAskSaysWhatWentWrong(t *testing.T) {
	w := newWorld(t, options{})
	for name, c := range map[string]struct {
		answer proto.Message
		status int
		code   string
	}{
		"error":         {&messages.Error{Code: "disk_low", Message: "no room"}, 503, "disk_low"},
		"busy":          {&messages.Busy{Depth: 3}, 429, "busy"},
		"another thing": {&messages.Ok{}, 500, "internal"},
	} {
		w.answer("ledger", func(proto.Message) proto.Message { return c.answer })
		_, no := ask[*messages.TaskStatus](w.face, t.Context(), askLimit, "ledger", &messages.TaskQuery{})
		if no == nil || no.status != c.status || no.body.Code != c.code {
			t.Errorf("%s: %+v", name, no)
		}
	}
	w.answer("ledger", func(proto.Message) proto.Message { return &messages.Ok{} })
	res, b := w.do("GET", "/api/v1/inputs/x", "")
	w.fails(res, b, 500, "internal") // with its cause in the log, not in the answer
	w.answer("ledger", func(proto.Message) proto.Message { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, no := ask[*messages.TaskStatus](w.face, ctx, askLimit, "ledger", &messages.TaskQuery{}); no == nil || no.status != 504 {
		t.Errorf("%+v", no)
	}
}

func FuzzBodies(f *testing.F) {
	for _, s := range []string{`{"text":"a","level":1}`, `{`, `{"blocks":[{"type":"text","text":"x"}]}`, `{"messages":[{"role":"user","content":[]}]}`} {
		f.Add(s)
	}
	fc := &face{deps: Deps{Body: 1 << 20, Keep: keeper}}
	f.Fuzz(func(t *testing.T, body string) {
		r := func() *http.Request { return httptest.NewRequest("POST", "/", strings.NewReader(body)) }
		var s api.Submit
		if decode(httptest.NewRecorder(), r(), &s, true) == nil {
			if in, no := fc.inputOf(owner(), &s); no == nil && (len(in.GetParts()) == 0 || in.GetLevel() > 3 || in.GetLevel() < 0) {
				t.Fatalf("%q became %v", body, in)
			}
		}
		if q, in, no := fc.chatOf(httptest.NewRecorder(), r()); no == nil && (q == nil || in.GetParts()[0].GetText() == "") {
			t.Fatalf("%q became %v", body, in)
		}
	})
}

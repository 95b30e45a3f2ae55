package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// TestRefusedRequests goes through what a node must refuse over TCP: each with its status, its code and a hint.
func TestRefusedRequests(t *testing.T) {
	n := newNode(t)
	n.start()
	token := n.auth()
	with := func(k, v string) http.Header {
		h := token.Clone()
		h.Set(k, v)
		return h
	}
	host := n.state().HTTP
	for name, c := range map[string]struct {
		method, path, body string
		header             http.Header
		status             int
		code               string
	}{
		"no token":            {"GET", "/api/v1/status", "", nil, 401, "unauthorized"},
		"no token, metrics":   {"GET", "/metrics", "", nil, 401, "unauthorized"},
		"no token, no route":  {"GET", "/nosuch", "", nil, 401, "unauthorized"},
		"wrong token":         {"GET", "/api/v1/status", "", http.Header{"Authorization": {"Bearer nonsense"}}, 401, "unauthorized"},
		"empty token":         {"GET", "/api/v1/status", "", http.Header{"Authorization": {"Bearer "}}, 401, "unauthorized"},
		"basic":               {"GET", "/api/v1/status", "", http.Header{"Authorization": {"Basic " + token.Get("Authorization")[7:]}}, 401, "unauthorized"},
		"token in the query":  {"GET", "/api/v1/status?token=" + token.Get("Authorization")[7:], "", nil, 401, "unauthorized"},
		"foreign host":        {"GET", "/api/v1/status", "", with("Host", "evil.example"), 421, "foreign_host"},
		"foreign host, open":  {"GET", "/healthz", "", http.Header{"Host": {"evil.example"}}, 421, "foreign_host"},
		"rebound host":        {"GET", "/api/v1/status", "", with("Host", "127.0.0.1.evil.example:80"), 421, "foreign_host"},
		"foreign origin":      {"GET", "/api/v1/status", "", with("Origin", "http://evil.example"), 403, "foreign_origin"},
		"null origin":         {"POST", "/api/v1/stop", "", with("Origin", "null"), 403, "foreign_origin"},
		"own origin":          {"GET", "/api/v1/status", "", with("Origin", "http://"+host), 200, ""},
		"localhost":           {"GET", "/api/v1/status", "", with("Host", "localhost"+host[strings.LastIndexByte(host, ':'):]), 200, ""},
		"malformed":           {"POST", "/api/v1/inputs", `{"text":`, token, 400, "malformed"},
		"not an object":       {"POST", "/api/v1/inputs", `[1]`, token, 400, "malformed"},
		"two values":          {"POST", "/api/v1/inputs", `{"text":"a"}{"text":"b"}`, token, 400, "malformed"},
		"empty body":          {"POST", "/api/v1/inputs", "", token, 400, "malformed"},
		"unknown field":       {"POST", "/api/v1/inputs", `{"text":"a","colour":"red"}`, token, 400, "malformed"},
		"wrong type":          {"POST", "/api/v1/inputs", `{"text":7}`, token, 400, "malformed"},
		"no text":             {"POST", "/api/v1/inputs", `{"text":""}`, token, 400, "malformed"},
		"blank text":          {"POST", "/api/v1/inputs", `{"text":" \n\t "}`, token, 400, "bad_input"},
		"foreign block":       {"POST", "/api/v1/inputs", `{"blocks":[{"type":"hologram"}]}`, token, 400, "unsupported_block"},
		"level 9":             {"POST", "/api/v1/inputs", `{"text":"a","level":9}`, token, 400, "malformed"},
		"level 4":             {"POST", "/api/v1/inputs", `{"text":"a","level":4}`, token, 403, "level_not_allowed"},
		"level -1":            {"POST", "/api/v1/inputs", `{"text":"a","level":-1}`, token, 400, "malformed"},
		"level 1.5":           {"POST", "/api/v1/inputs", `{"text":"a","level":1.5}`, token, 400, "malformed"},
		"level word":          {"POST", "/api/v1/inputs", `{"text":"a","level":"high"}`, token, 400, "malformed"},
		"unknown mode":        {"POST", "/api/v1/inputs", `{"text":"a","mode":"shout"}`, token, 400, "malformed"},
		"unknown channel":     {"POST", "/api/v1/inputs", `{"text":"a","channel":"fax"}`, token, 404, "unknown_channel"},
		"unknown agent":       {"POST", "/api/v1/inputs", `{"text":"a","agent":"nobody"}`, token, 404, "unknown_agent"},
		"endless wait":        {"POST", "/api/v1/inputs", `{"text":"a","wait":true,"wait_ms":99999999}`, token, 400, "malformed"},
		"unknown input":       {"GET", "/api/v1/inputs/01ARZ3NDEKTSV4RRFFQ69G5FAV", "", token, 404, "unknown_input"},
		"unknown route":       {"GET", "/api/v1/nosuch", "", token, 404, "not_found"},
		"unknown method":      {"PATCH", "/api/v1/inputs", "", token, 405, "method_not_allowed"},
		"unknown key":         {"PUT", "/api/v1/config/core.agent.max_tool_turn", `{"value":3}`, token, 404, "unknown_key"},
		"bad value":           {"PUT", "/api/v1/config/core.agent.max_tool_turns", `{"value":"many"}`, token, 400, "bad_value"},
		"value out of range":  {"PUT", "/api/v1/config/core.agent.max_tool_turns", `{"value":9999}`, token, 400, "bad_value"},
		"unknown actor":       {"GET", "/api/v1/actors/nosuch", "", token, 404, "unknown_actor"},
		"unknown order":       {"POST", "/api/v1/actors/ledger/explode", "", token, 404, "not_found"},
		"unknown event type":  {"GET", "/api/v1/events?types=nosuch", "", token, 400, "malformed"},
		"no place in events":  {"GET", "/api/v1/events?after=zzz", "", token, 400, "malformed"},
		"path out of the API": {"GET", "/api/v1/actors/../../../etc/passwd", "", token, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			res := n.http(t, c.method, c.path, c.body, c.header)
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status {
				t.Fatalf("%s: %s", res.Status, b)
			}
			if c.code == "" {
				return
			}
			var no api.Error
			decodeJSON(t, string(b), &no)
			if no.Code != c.code || no.Message == "" || no.Details["request_id"] == "" {
				t.Errorf("%s", b)
			}
			if no.Hint == "" && name != "endless wait" {
				t.Errorf("no hint: %s", b)
			}
		})
	}
	res := n.http(t, "PUT", "/api/v1/config/core.agent.max_tool_turn", `{"value":3}`, token)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	contains(t, string(b), "core.agent.max_tool_turns?")
	if err != nil {
		t.Error(err)
	}
}

// endless is a JSON string that goes on for n bytes.
func endless(n int64) io.Reader {
	return io.MultiReader(strings.NewReader(`{"text":"`), io.LimitReader(letters{}, n), strings.NewReader(`"}`))
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// TestLargeBody sends 100 MB: it is refused, and the node goes on.
func TestLargeBody(t *testing.T) {
	n := newNode(t)
	n.start()
	q, err := http.NewRequestWithContext(bounded(t), "POST", "http://"+n.state().HTTP+"/api/v1/inputs", endless(100<<20))
	if err != nil {
		t.Fatal(err)
	}
	q.Header = n.auth()
	res, err := plain.Do(q)
	if err != nil {
		t.Fatalf("no answer to a large body: %v", err)
	}
	defer res.Body.Close()
	var no api.Error
	if err := json.NewDecoder(res.Body).Decode(&no); err != nil || res.StatusCode != 413 || no.Code != "too_large" {
		t.Errorf("%s %+v %v", res.Status, no, err)
	}
	if got := n.ask("still there?"); got.End != "answered" {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestExitCodes goes through what the client says when it was asked for something that is not so.
func TestExitCodes(t *testing.T) {
	n := newNode(t)
	n.start()
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"status":                              {0, "ready"},
		"nosuch":                              {2, "waiter --help"},
		"chat --nosuch":                       {2, "unknown flag"},
		"chat /nosuch":                        {2, "is a command of the conversation"},
		"config get core.agent.max_tool_turn": {1, "core.agent.max_tool_turns?"},
		"config set core.agent.max_tool_turns many": {1, "from 1 to 500"},
		"config set core.nosuch=1":                  {1, "waiter config list"},
		"inspect nosuch":                            {1, "no actor at this path"},
		"tree nosuch":                               {1, "no actor nosuch"},
		"kill nosuch":                               {1, "no actor at this path"},
		"send hello --level 9":                      {2, "from 0 to 3"},
		"send hello --channel fax":                  {1, "Known channels"},
		"send hello --agent nobody":                 {1, "no agent"},
		"providers test nosuch":                     {1, "no model source"},
		"providers add UPPER --no-key --url http://127.0.0.1:1 --model m":      {1, "UPPER"},
		"providers add dead --no-key --url http://127.0.0.1:1 --model m":       {1, "not kept"},
		"providers add odd --adapter nosuch --no-key --url http://127.0.0.1:1": {1, "openai"},
		"agents destroy nosuch":            {1, "no resident"},
		"events --types nosuch":            {1, "Types are"},
		"--node http://127.0.0.1:1 status": {2, "token file"},
		"--node http://127.0.0.1:1 --token-file " + filepath.Join(n.data, "run", "admin.token") + " status": {2, "can not be reached"},
	} {
		t.Run(line, func(t *testing.T) {
			got := n.waiter(strings.Fields(line)...)
			if got.code != want.code {
				t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			contains(t, got.stdout+got.stderr, want.says)
		})
	}
	remote := command(t, "", "waiter", "--node", "http://"+n.state().HTTP, "--token-file", filepath.Join(n.data, "run", "admin.token"), "chat", "hello")
	contains(t, remote.must(t).stdout, "No model is configured")
	asJSON := n.waiter("config", "get", "core.nosuch", "--json")
	var no api.Error
	decodeJSON(t, asJSON.stderr, &no)
	if asJSON.code != 1 || no.Code != "unknown_key" {
		t.Errorf("exit %d: %s", asJSON.code, asJSON.stderr)
	}
	n.stop()
	got := n.waiter("status")
	if got.code != 2 {
		t.Errorf("no node: exit %d", got.code)
	}
	contains(t, got.stderr, "no node runs on the data folder", "start homed on it")
	for line, code := range map[string]int{
		"run --nosuch": 2, "nosuch": 2, "run --profile toaster": 2, "run --data x --listen nowhere": 1, "version": 0,
	} {
		args := strings.Fields(strings.Replace(line, "--data x", "--data "+n.data, 1))
		if got := command(t, "", "homed", args...); got.code != code || code != 0 && got.stderr == "" {
			t.Errorf("homed %s: exit %d\n%s%s", line, got.code, got.stdout, got.stderr)
		}
	}
}

// TestModelsThatCallBadly gives the model an error for a tool that is not there and for arguments that are not JSON, and
// the turn goes on.
func TestModelsThatCallBadly(t *testing.T) {
	n, v := withVendor(t,
		providertest.Step{AfterTool: &no, Tools: []providertest.Tool{
			{ID: "c0", Name: "launch_rocket", Args: json.RawMessage(`{"to":"moon"}`)},
			{ID: "c1", Name: "memory_recall", Args: json.RawMessage(`{"query": "Lena`)},
			{ID: "c2", Name: "memory_recall", Args: json.RawMessage(`{"query":7}`)},
			{ID: "c3", Name: "time_now", Args: json.RawMessage(``)},
		}},
		providertest.Step{AfterTool: &yes, Text: []string{"I could not."}},
	)
	tape := n.tape("")
	task := n.say("go to the moon")
	if got := tape.ended(task, "answered"); got.Task.Text != "I could not." {
		t.Errorf("ended as %+v", got.Task)
	}
	asks := v.bodies()
	if len(asks) != 2 {
		t.Fatalf("%d requests reached the vendor", len(asks))
	}
	ids, results := asks[1].results()
	if strings.Join(ids, " ") != "c0 c1 c2 c3" {
		t.Fatalf("results for %v: %v", ids, results)
	}
	contains(t, results[0], "error", "launch_rocket")
	contains(t, results[1], "error", "JSON")
	contains(t, results[2], "error", "query")
	contains(t, results[3], `"utc"`)
	if got := tape.all(func(e *api.Event) bool {
		return e.Tool != nil && e.Tool.Result != nil && e.Tool.Result.Error != nil && e.Tool.Result.Error.Reason != ""
	}); len(got) != 3 {
		t.Errorf("%d failed calls were shown\n%s", len(got), tape)
	}
}

// TestBrokenAdapters puts adapters into the data folder that do not compile, never end, or are not adapters.
func TestBrokenAdapters(t *testing.T) {
	n := newNode(t)
	folder := filepath.Join(n.data, "adapters")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"syntax.lua":  "return {\n  contract = 1,\n  name = = \"syntax\",\n}\n",
		"forever.lua": "while true do end\nreturn {}\n",
		"loop.lua": "return {\n  contract = 1, name = \"loop\", version = \"1\", capabilities = {},\n" +
			"  respond = function(req)\n    while true do end\n  end,\n}\n",
		"other.lua": "return 7\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n.start() // none of them keeps the node from its work
	contains(t, n.waiter("chat", "hello").must(t).stdout, "No model is configured")
	for _, name := range []string{"syntax", "forever", "loop", "other"} {
		got := n.waiter("providers", "add", name, "--adapter", name, "--no-key", "--model", "m", "--force")
		if got.code != 1 {
			t.Errorf("adding %s: exit %d\n%s%s", name, got.code, got.stdout, got.stderr)
		}
	}
	all := n.waiter("chat", "still there?")
	if all.code != 1 {
		t.Errorf("nothing but broken adapters: exit %d\n%s", all.code, all.stdout)
	}
	contains(t, all.stderr, "failed (adapter)", ".lua:")
	v := newVendor(t)
	n.addSource(v, "sound", "--priority", "9")
	v.plays(providertest.Step{Text: []string{"Here I am."}})
	contains(t, n.waiter("chat", "and now?").must(t).stdout, "Here I am.")
	contains(t, n.waiter("providers", "list").must(t).stdout, "syntax.lua:3", "broken")
	var list api.Sources
	decodeJSON(t, n.waiter("providers", "list", "--json").must(t).stdout, &list)
	seen := map[string]api.SourceView{}
	for _, s := range list.Sources {
		seen[s.Name] = s
	}
	for name, part := range map[string]string{"syntax": "syntax.lua:3", "forever": "forever.lua", "loop": "loop", "other": "other.lua"} {
		s := seen[name]
		if s.State != "broken" || s.LastFailure == nil {
			t.Errorf("%s is shown as %+v", name, s)
			continue
		}
		contains(t, s.LastFailure.Message, part)
	}
	if got := n.waiter("status"); got.code != 0 {
		t.Errorf("afterwards: exit %d\n%s", got.code, got.stdout)
	}
}

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/providertest"
	"homeagent/providers/worker"
)

// good is an adapter like those that people write.
const good = `
local get = json.get
local calls = 0
return {
  contract = 1, name = "acme", version = "1.0.0", endpoint = "/v1/say", framing = "sse",
  capabilities = { stream = true, tools = true, vision = false, audio = false },
  options = { shape = "round" },
  headers = function() return { Authorization = "Bearer {{api_key}}" } end,
  transform_request = function(req, source)
    log("info", "asked by " .. source.name)
    return { model = source.model, shape = source.options.shape, key = source.has_key, text = req.messages[#req.messages].text, big = json.raw("9007199254740993") }
  end,
  transform_response = function(body) return { text = get(body, "text"), finish = "stop", done = true } end,
  transform_stream_chunk = function(event, state)
    if event.event == "@end" then return nil end
    state.n = (state.n or 0) + 1
    local e = event.json
    if get(e, "tool") then
      return { tools = { { index = 0, id = "c", name = "f", args = json.raw('{"a":9007199254740993}') } },
        usage = { input = 3, output = 0 }, replay = { { type = "thing", n = state.n } } }
    end
    return { text = get(e, "text"), finish = get(e, "end") and "stop" or nil }
  end,
  classify_error = function(status) if status == 418 then return { kind = "quota_exhausted", message = "tea is out" } end end,
}`

// attack is an adapter whose transform_request does what a body says.
func attack(body string) string {
	return `
return {
  contract = 1, name = "evil", version = "1", endpoint = "/x", framing = "sse", base_url = "http://127.0.0.1:1",
  capabilities = { stream = true, tools = false, vision = false, audio = false },
  transform_request = function(req, source) ` + body + ` end,
  transform_response = function() return {} end,
  transform_stream_chunk = function() return {} end,
}`
}

// rules let nothing run in this process, and everything in workers.
func rules(t *testing.T, log *slog.Logger) *lua.Rules {
	t.Helper()
	var mu sync.Mutex
	var all []*worker.Adapter
	t.Cleanup(func() {
		for _, a := range all {
			a.Close()
			a.Wait()
		}
	})
	return &lua.Rules{
		Trusted: func(string, string) bool { return false },
		Print:   func() string { return "" },
		Apart: func(name string, files map[string][]byte) (lua.Apart, error) {
			a, err := worker.New(start, name, "adapters/"+name+".lua", files, log)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			all = append(all, a)
			mu.Unlock()
			return a, nil
		},
	}
}

// folder writes adapter files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// client makes a client over adapters of a folder that all run in workers.
func client(t *testing.T, files map[string]string) (*providers.Client, *lua.Engine, *lines) {
	t.Helper()
	out := &lines{}
	log := slog.New(slog.NewTextHandler(out, nil))
	engine, err := lua.Guarded(folder(t, files), log, rules(t, log))
	if err != nil {
		t.Fatal(err)
	}
	c := providers.NewClient(providers.Options{Adapters: engine})
	t.Cleanup(func() {
		c.Close()
		engine.Close()
	})
	return c, engine, out
}

func kind(t *testing.T, err error) string {
	t.Helper()
	var f *providers.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is no failure", err)
	}
	return providers.KindName(f.Kind)
}

// TestWorkerSpeaksLikeTheNode runs a whole call in a worker: request, stream, tools, reply material, log, errors.
func TestWorkerSpeaksLikeTheNode(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(b)
		mu.Lock()
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(b))
		mu.Unlock()
		if strings.Contains(string(b), "tea") {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "data: {\"text\":\"Hel\"}\n\ndata: {\"text\":\"lo\"}\n\ndata: {\"tool\":true}\n\ndata: {\"end\":true}\n\n")
	}))
	defer srv.Close()
	c, engine, out := client(t, map[string]string{"acme.lua": good})
	info := engine.Info("acme")
	if info.Name != "acme" || !info.Streams || !info.Tools || info.File != "adapters/acme.lua" || info.Version != "1.0.0" {
		t.Errorf("%+v", info)
	}
	src := providers.Source{
		Name: "s", Adapter: "acme", BaseURL: srv.URL, Model: "m", Options: []byte(`{"shape":"square"}`),
		APIKey: func() configs.Secret { return configs.NewSecret("sk-very-secret") },
	}
	var deltas []string
	res, err := c.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{Delta: func(d *messages.Delta) { deltas = append(deltas, d.GetText()) }})
	if err != nil || res.GetText() != "Hello" || len(deltas) < 2 || len(res.GetCalls()) != 1 || res.GetUsage().GetInput() != 3 {
		t.Fatalf("%v %v %q", res, err, deltas)
	}
	if got := string(res.GetCalls()[0].GetArgumentsJson()); got != `{"a":9007199254740993}` {
		t.Errorf("arguments %s", got)
	}
	if got := string(res.GetReplay()); got != `[{"type":"thing","n":3}]` {
		t.Errorf("replay %s", got)
	}
	want := `/v1/say Bearer sk-very-secret {"model":"m","shape":"square","key":true,"text":"hello","big":9007199254740993}`
	if asked[0] != want {
		t.Errorf("asked %s\nwant  %s", asked[0], want)
	}
	if !strings.Contains(out.String(), "asked by s") {
		t.Errorf("the log has %s", out)
	}
	_, err = c.Stream(t.Context(), src, providertest.Ask("tea"), providers.Hooks{})
	if kind(t, err) != "quota_exhausted" || !strings.Contains(err.Error(), "tea is out") {
		t.Error(err)
	}
	// Several at a time, each with a state of its own.
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			if res, err := c.Stream(context.Background(), src, providertest.Ask("hello"), providers.Hooks{}); err != nil || res.GetText() != "Hello" ||
				string(res.GetReplay()) != `[{"type":"thing","n":3}]` {
				t.Errorf("%v %v", res, err)
			}
		})
	}
	all.Wait()
}

// TestWorkerAttacks lets scripts do what they should not: each is a failure of that call, and the next call to a good adapter
// works.
func TestWorkerAttacks(t *testing.T) {
	for name, body := range map[string]string{
		"loops":                    `while true do end`,
		"loops over errors":        `while true do pcall(function() while true do end end) end`,
		"allocates tables":         `local t = {} while true do t[#t+1] = {1,2,3,4,5,6,7,8} end`,
		"allocates text":           `local s = "x" while true do s = s .. s end`,
		"allocates by rep":         `local t = {} for i = 1, 1e9 do t[i] = ("x"):rep(60000000) end`,
		"allocates by format":      `local t = {} for i = 1, 1e9 do t[i] = ("%099999999d"):format(1) end`,
		"recurses":                 `local function f() return 1 + f() end f()`,
		"matches for ever":         `return { x = ("a"):rep(50000):match((".-"):rep(30) .. "b") }`,
		"returns a number":         `return 5`,
		"returns nothing":          `return nil`,
		"returns itself":           `local t = {} t.t = t return t`,
		"returns a function":       `return { f = function() end }`,
		"calls os":                 `return { x = os.time() }`,
		"calls io":                 `return { x = io.open("/etc/passwd"):read("*a") }`,
		"calls debug":              `return { x = debug.getregistry() }`,
		"calls load":               `return { x = load("return 1")() }`,
		"calls loadstring":         `return { x = loadstring("return 1")() }`,
		"calls require":            `return require("os")`,
		"calls getfenv":            `return getfenv(0)`,
		"calls string.dump":        `return { x = string.dump(function() end) }`,
		"calls collectgarbage":     `collectgarbage("stop")`,
		"prints for ever":          `while true do print(("x"):rep(4000)) end`,
		"logs for ever":            `while true do log("error", ("x"):rep(4000)) end`,
		"raises a table":           `error({ nested = { 1, 2 } })`,
		"asks elsewhere":           `local r, why = http_get("http://169.254.169.254/latest") error(tostring(why))`,
		"changes the string table": `string.rep = nil string.format = nil return {}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, _ := client(t, map[string]string{"evil.lua": attack(body), "acme.lua": good})
			src := providers.Source{Name: "s", Adapter: "evil", BaseURL: "http://127.0.0.1:1", Model: "m", Total: time.Minute}
			_, err := c.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{})
			if got := kind(t, err); got != "adapter" && (got != "connect" || name != "changes the string table") {
				t.Errorf("%s: %v", got, err)
			}
			src.Adapter = "acme"
			if _, err := c.Stream(t.Context(), src, providertest.Ask("hello"), providers.Hooks{}); kind(t, err) != "connect" {
				t.Errorf("after it: %v", err)
			}
		})
	}
}

// TestBrokenFilesInWorkers are errors of their adapters, with file and line.
func TestBrokenFilesInWorkers(t *testing.T) {
	_, engine, _ := client(t, map[string]string{
		"syntax.lua": "return {\n  contract = = 1\n}", "loop.lua": "while true do end", "other.lua": strings.Replace(good, `"acme"`, `"elsewhere"`, 1),
		"deep.lua": "return " + strings.Repeat("(", 400_000) + "1" + strings.Repeat(")", 400_000), "acme.lua": good,
		"_errors.lua": "error('taken over')",
	})
	for name, want := range map[string]string{
		"syntax": "syntax.lua:2", "loop": "loop.lua:1", "other": `name must be "other"`, "deep": "deep",
		// An embedded adapter that builds on a part of the folder runs apart as well.
		"anthropic": "taken over",
	} {
		_, err := engine.Adapter(name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for _, name := range []string{"acme", "offline"} {
		if _, err := engine.Adapter(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTrustIsBoundToTheBytes moves an adapter into this process by its sum, and out of it by an edit.
func TestTrustIsBoundToTheBytes(t *testing.T) {
	dir := folder(t, map[string]string{"acme.lua": good})
	trusted := map[string]bool{}
	var mu sync.Mutex
	apart := 0
	r := rules(t, slog.New(slog.DiscardHandler))
	inner := r.Apart
	r.Trusted = func(name, sum string) bool { mu.Lock(); defer mu.Unlock(); return trusted[name+" "+sum] }
	r.Apart = func(name string, files map[string][]byte) (lua.Apart, error) { apart++; return inner(name, files) }
	engine, err := lua.Guarded(dir, nil, r)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	in := func(want int) {
		t.Helper()
		if err := engine.Reload(); err != nil {
			t.Fatal(err)
		}
		apart = 0
		if _, err := engine.Adapter("acme"); err != nil {
			t.Fatal(err)
		}
		if apart != want {
			t.Errorf("%d workers, want %d", apart, want)
		}
	}
	in(1)
	mu.Lock()
	trusted["acme.lua "+lua.Sum([]byte(good))] = true
	mu.Unlock()
	in(0)
	if err := os.WriteFile(filepath.Join(dir, "acme.lua"), []byte(good+"\n-- edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	in(1)
	if err := os.WriteFile(filepath.Join(dir, "acme.lua"), []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	in(0)
}

// TestCancelKillsTheWorker ends a call in the middle of a script at once.
func TestCancelKillsTheWorker(t *testing.T) {
	c, _, _ := client(t, map[string]string{"evil.lua": attack(`for i = 1, 1e9 do local x = ("y"):rep(1000) end`)})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Stream(ctx, providers.Source{Name: "s", Adapter: "evil", BaseURL: "http://127.0.0.1:1"}, providertest.Ask("x"), providers.Hooks{})
	if k := kind(t, err); k != "timeout" && k != "cancelled" && k != "adapter" {
		t.Error(err)
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("HOMEAGENT_WORKER") != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

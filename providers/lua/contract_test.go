package lua_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/lua"
	"homeagent/providers/providertest"
	"homeagent/providers/replay"
)

// plain is an adapter of an imaginary vendor. Its parts show what the contract
// can say; %s takes the place of further fields.
const plain = `
local part = use("_part")
local function transform_request(req, source)
  return { model = source.model, who = part.who, region = source.options.region, deep = { a = 1, b = { 1, 2 }, c = json.empty_array, d = json.empty_object } }
end
local function transform_response(body, state, source, text)
  return { text = body.text, finish = "stop", replay = { { type = "thing", item = json.pick(text, "opaque") }, json.pick(text, "list", 2) } }
end
local function transform_stream_chunk(event, state, source)
  if event.exception then return { error = { kind = "overloaded", code = 7, message = event.event .. event.data } } end
  if event.event == "@end" then return { server_blocks = { "x" } } end
  return { text = event.json and event.json.text, finish = event.json and json.get(event.json, "end") and "stop" or nil }
end
return {
  contract = 1, name = "NAME", version = "1", base_url = "https://{region}.model.invalid", endpoint = "/x/" .. escape("a:b/c d"), framing = "aws-eventstream",
  capabilities = { stream = true, tools = true, thinking = true }, options = { region = "eu-north-1", other = "o" },
  headers = function(source, req) return { ["x-key"] = "{{api_key}}", ["x-think"] = req.thinking or "none" } end,
  transform_request = transform_request, transform_response = transform_response, transform_stream_chunk = transform_stream_chunk,
%s
}`

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, src := range files {
		src = strings.ReplaceAll(src, "NAME", strings.TrimSuffix(name, ".lua"))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestProfilesAndParts(t *testing.T) {
	dir := folder(t, map[string]string{
		"_part.lua":  `return { who = "part" }`,
		"plain.lua":  fmt.Sprintf(plain, ""),
		"other.lua":  `return { contract = 1, name = "NAME", version = "2", extends = "plain", options = { other = json.null, region = "us-west-2" }, capabilities = { tools = false } }`,
		"again.lua":  `return { contract = 1, name = "NAME", version = "2", extends = "other" }`,
		"itself.lua": `return use("itself")`,
		"round.lua":  `return use("trip")`,
		"trip.lua":   `return use("round")`,
		"late.lua":   fmt.Sprintf(plain, `classify_error = function() return use("_part") end,`),
	})
	e := engine(t, dir)
	for name, want := range map[string]string{
		"again":  "again.lua: extends: other is a profile itself; extend plain",
		"itself": "itself uses itself",
		"round":  "round uses itself",
		"_part":  "unknown adapter",
	} {
		if _, err := e.Adapter(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if err := e.Try(t.Context(), "late"); err == nil || !strings.Contains(err.Error(), "late.lua") || !strings.Contains(err.Error(), "only while the file is loaded") {
		t.Errorf("use in a call: %v", err)
	}
	for _, c := range []struct{ adapter, options, base, body string }{
		{"plain", "", "https://eu-north-1.model.invalid", `{"model":"m","who":"part","region":"eu-north-1","deep":{"a":1,"b":[1,2],"c":[],"d":{}}}`},
		{"other", "", "https://us-west-2.model.invalid", `{"model":"m","who":"part","region":"us-west-2","deep":{"a":1,"b":[1,2],"c":[],"d":{}}}`},
		{"other", `{"region":"x1"}`, "https://x1.model.invalid", `{"model":"m","who":"part","region":"x1","deep":{"a":1,"b":[1,2],"c":[],"d":{}}}`},
	} {
		src := providers.Source{Name: "s", Model: "m", Options: []byte(c.options), Thinking: "low"}
		p, err := prepare(t, e, c.adapter, src, &providers.Request{CompletionRequest: providertest.Ask("x")})
		if err != nil {
			t.Fatal(err)
		}
		if p.Base != c.base || string(p.Body) != c.body || p.Endpoint != "/x/a%3Ab%2Fc%20d" || p.Headers["x-think"] != "low" {
			t.Errorf("%s %s: %+v, body %s", c.adapter, c.options, p, p.Body)
		}
	}
	src := providers.Source{Name: "s", Model: "m", Extra: []byte(`{"deep":{"a":null,"b":[3],"z":{"y":1}},"who":null}`)}
	p, err := prepare(t, e, "plain", src, &providers.Request{CompletionRequest: providertest.Ask("x")})
	if want := `{"model":"m","region":"eu-north-1","deep":{"b":[3],"c":[],"d":{},"z":{"y":1}}}`; err != nil || string(p.Body) != want {
		t.Errorf("extra: %s, %v", p.Body, err)
	}
	for _, region := range []string{`"a/b"`, `"evil.example/"`, `"a@b"`, `null`, `5`} {
		src := providers.Source{Name: "s", Model: "m", Options: []byte(`{"region":` + region + `}`)}
		if p, err := prepare(t, e, "plain", src, &providers.Request{CompletionRequest: providertest.Ask("x")}); err == nil {
			t.Errorf("region %s leads to %s", region, p.Base)
		}
	}
}

func TestReplayKeepsBytes(t *testing.T) {
	e := engine(t, folder(t, map[string]string{"_part.lua": `return {}`, "plain.lua": fmt.Sprintf(plain, "")}))
	rec := replay.Recording{
		Status: 200, ContentType: "application/json",
		Body: []byte(`{"text":"t","opaque":{"s":"\u0041\/\ud83d", "n": 1.50e3, "a" :[ ]},"list":[1,{"type":"thought_signature","big":123456789012345678901}]}`),
	}
	res, err := replay.Run(t.Context(), e, "plain", rec, replay.Delivery{}, providers.Hooks{})
	const want = `[{"type":"thing","item":{"s":"\u0041\/\ud83d", "n": 1.50e3, "a" :[ ]}},{"type":"thought_signature","big":123456789012345678901}]`
	if err != nil || string(res.GetReplay()) != want {
		t.Errorf("%s, %v", res.GetReplay(), err)
	}
	if u := providers.Unify(res, err); len(u.Replay) != 1 || u.ThoughtSignatures != 1 {
		t.Errorf("%+v", u)
	}
}

func TestAWSExceptionEndsTheCall(t *testing.T) {
	e := engine(t, folder(t, map[string]string{"_part.lua": `return {}`, "plain.lua": fmt.Sprintf(plain, "")}))
	head := func(kind, name string) []byte {
		return append(replay.TextHeader(":message-type", kind), replay.TextHeader(":"+kind+"-type", name)...)
	}
	body := replay.Message(head("event", "text"), []byte(`{"text":"hi"}`))
	body = append(body, replay.Message(head("exception", "throttled"), []byte(`{}`))...)
	res, err := replay.Run(t.Context(), e, "plain", replay.Recording{Status: 200, ContentType: "application/vnd.amazon.eventstream", Body: body}, replay.Delivery{}, providers.Hooks{})
	f := providers.AsFailure(err)
	if res.GetText() != "hi" || f.Kind != messages.ErrorKind_ERROR_KIND_OVERLOADED || f.Code != "7" || !f.Numeric || f.Message != "throttled{}" {
		t.Errorf("%v, %+v", res, f)
	}
}

func TestAdapterAsksItsOwnServerOnly(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Key"))
		switch r.URL.Path {
		case "/token":
			fmt.Fprint(w, `{"token":"tok"}`)
		case "/far":
			http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
		default:
			fmt.Fprintf(w, `{"text":%q}`, r.Header.Get("X-Token"))
		}
	}))
	defer srv.Close()
	const src = `
local function token(source)
  local got, why = http_post("/token", { a = 1 }, { ["X-Key"] = "{{api_key}}" })
  if not got then error(why, 0) end
  local far = http_get("/far")
  for _, url in ipairs({ "http://elsewhere.invalid/x", "//elsewhere.invalid/x", "file:///x", "http://user@" .. source.base_url:sub(8) }) do
    local there, no = http_get(url)
    if there or not no:find("only the source's own server", 1, true) then error(url .. " was asked", 0) end
  end
  return got.json.token .. " " .. got.status .. " " .. far.status
end
return {
  contract = 1, name = "NAME", version = "1", endpoint = "/call", framing = "json", capabilities = {},
  headers = function(source) return { ["X-Token"] = token(source) } end,
  transform_request = function() return { model = "m" } end,
  transform_response = function(body) return { text = body.text, finish = "stop" } end,
}`
	c := providers.NewClient(providers.Options{Adapters: engine(t, folder(t, map[string]string{"asks.lua": src}))})
	defer c.Close()
	key := configs.NewSecret("secret-key")
	s := providers.Source{Name: "s", Adapter: "asks", BaseURL: srv.URL, Model: "m", APIKey: func() configs.Secret { return key }}
	res, err := c.Stream(t.Context(), s, providertest.Ask("x"), providers.Hooks{})
	if err != nil || res.GetText() != "tok 200 302" {
		t.Errorf("%v, %v", res, err)
	}
	if want := "[POST /token secret-key GET /far  POST /call ]"; fmt.Sprint(asked) != want {
		t.Errorf("asked %v, want %s", asked, want)
	}
}

func TestCheck(t *testing.T) {
	dir := folder(t, map[string]string{
		"_part.lua": `return { who = "p" }`,
		"good.lua":  fmt.Sprintf(plain, ""),
		"wrong.lua": fmt.Sprintf(plain, `classify_error = function() return { kind = "nope" } end,`),
		"types.lua": strings.Replace(fmt.Sprintf(plain, ""), "return { model = source.model", "if true then return 5 end return { model = source.model", 1),
	})
	e, err := lua.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if info, err := e.Check(t.Context(), filepath.Join(dir, "good.lua")); err != nil || info.Name != "good" || info.Version != "1" {
		t.Errorf("%+v, %v", info, err)
	}
	for name, want := range map[string]string{
		"wrong.lua": `classify_error: kind "nope" is unknown`, "types.lua": "transform_request: must return a table", "none.lua": "none.lua", "good.txt": "ends in .lua",
	} {
		if _, err := e.Check(t.Context(), filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// The requests that an adapter makes of its own are bounded for a call, not only
// each by itself.
func TestAdapterAsksBounded(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		fmt.Fprint(w, `{"text":"ok"}`)
	}))
	defer srv.Close()
	const src = `
return {
  contract = 1, name = "NAME", version = "1", endpoint = "/call", framing = "json", capabilities = {},
  headers = function()
    for i = 1, 100 do
      local got, why = http_get("/x")
      if not got then return { ["X-Why"] = i .. " " .. why } end
    end
  end,
  transform_request = function() return { model = "m" } end,
  transform_response = function(body) return { text = body.text, finish = "stop" } end,
}`
	e := engine(t, folder(t, map[string]string{"asks.lua": src}))
	c := providers.NewClient(providers.Options{Adapters: e})
	defer c.Close()
	for range 2 { // each call has its own
		asked = 0
		res, err := c.Stream(t.Context(), providers.Source{Name: "s", Adapter: "asks", BaseURL: srv.URL, Model: "m"}, providertest.Ask("x"), providers.Hooks{})
		if err != nil || res.GetText() != "ok" || asked != 16+1 {
			t.Errorf("%v, %v, asked %d times", res, err, asked)
		}
	}
}

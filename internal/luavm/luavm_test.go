package luavm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"homeagent/internal/luavm"
)

func load(t testing.TB, src string, o luavm.Options) *luavm.State {
	t.Helper()
	p, err := luavm.Compile("test.lua", []byte(src))
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	s, err := luavm.New(context.Background(), p, o)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// eval runs a body as a function and gives the JSON text of its result.
func eval(t testing.TB, body string) (string, error) {
	t.Helper()
	s := load(t, "return function(...) "+body+"\nend", luavm.Options{})
	v, err := s.Call(context.Background(), s.Exports())
	if err != nil {
		return "", err
	}
	b, err := s.Encode(v)
	return string(b), err
}

func TestLibrary(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`return "a" .. 1 .. "b" .. 2.5`, `"a1b2.5"`},
		{`local function f() return "x", "y" end return "a" .. f()`, `"ax"`},
		{`local function f(...) return "a" .. ... end return f("p", "q")`, `"ap"`},
		{`local t = {1, 2} return {n = #t .. "!", m = (1 + 2) .. ""}`, `{"n":"2!","m":"3"}`},
		{`return string.rep("ab", 3)`, `"ababab"`},
		{`return string.rep("ab", -3)`, `""`},
		{`return ("x"):rep(2) .. ("y"):upper()`, `"xxY"`},
		{`return ("ÄB"):lower()`, `"Äb"`},
		{`return string.format("%5.2f|%-4d|%s|%q|%%|%x", 3.14159, 7, "hi", 'a"b', 255)`, `" 3.14|7   |hi|\"a\\\"b\"|%|ff"`},
		{`return table.concat({1, "b", 3}, ",")`, `"1,b,3"`},
		{`return table.concat({}, ",")`, `""`},
		{`return {("hello world"):find("o w")}`, `[5,7]`},
		{`return {("hello world"):find("(o)%s(w)")}`, `[5,7,"o","w"]`},
		{`return {("a.b"):find(".", 1, true)}`, `[2,2]`},
		{`return {("key = value"):match("^(%w+)%s*=%s*(%w+)$")}`, `["key","value"]`},
		{`return ("abc"):match("()b()") `, `2`},
		{`return ("f(a(b)c)d"):match("%b()")`, `"(a(b)c)"`},
		{`return ("THE (quick) fox"):find("%f[%a]%a+%f[%A]")`, `1`},
		{`return ("aXbXc"):gsub("X", "%%0")`, `"a%0b%0c"`},
		{`return ("hello"):gsub("l", {l = "L"})`, `"heLLo"`},
		{`return ("hello"):gsub("(l)(l)", "%2-%1-%0")`, `"hel-l-llo"`},
		{`return ("abc"):gsub("%w", function(c) if c ~= "b" then return c .. c end end)`, `"aabcc"`},
		{`return ("abc"):gsub("", "-")`, `"-a-b-c-"`},
		{`return ("aaa"):gsub("^a", "b")`, `"baa"`},
		{`return ("aaa"):gsub("a", "b", 2)`, `"bba"`},
		{`local t = {} for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do t[#t+1] = k .. v end return t`, `["a1","b2"]`},
		{`return ("x"):match("y") == nil`, `true`},
		{`return ("0x1F"):match("^0[xX](%x+)$")`, `"1F"`},
		{`return ("[]]"):match("[]]+")`, `"]]"`},
		{`return ("2024-11"):gsub("%-", "/")`, `"2024/11"`},
		{`return tostring(json.decode("12345678901234567890")) .. tostring(json.null) .. tostring(1e15)`, `"12345678901234567890null1000000000000000"`},
		{`return math.max(1, 3) + select("#", 1, 2)`, `5`},
		{`local ok, e = pcall(function() error("no", 0) end) return {ok, e}`, `[false,"no"]`},
		{`return os == nil and io == nil and debug == nil and load == nil and require == nil and loadstring == nil and dofile == nil and coroutine == nil and collectgarbage == nil`, `true`},
	} {
		got, err := eval(t, c.body)
		if err != nil || got != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.body, got, err, c.want)
		}
	}
}

func TestJSON(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{}`, `{}`},
		{`[]`, `[]`},
		{`{"a":[],"b":{},"c":null,"d":""}`, `{"a":[],"b":{},"c":null,"d":""}`},
		{`{"z":1,"a":2,"m":3}`, `{"z":1,"a":2,"m":3}`},
		{`[1e6,1e+06,0.1,-0.5,1e300]`, `[1000000,1000000,0.1,-0.5,1e+300]`},
		{`9007199254740993`, `9007199254740993`},
		{`{"id":12345678901234567890123}`, `{"id":12345678901234567890123}`},
		{`-9007199254740991`, `-9007199254740991`},
		{`[null,true,false]`, `[null,true,false]`},
		{`"\u00e4\ud83d\ude00\ud83d\n\/"`, "\"ä😀\uFFFD\\n/\""},
		{"\"\xff\"", "\"\uFFFD\""},
		{"\"a\\u0001\"", "\"a\\u0001\""},
		{`{"a":1,"a":2}`, `{"a":2}`},
		{` [ 1 , { "x" : [ ] } ] `, `[1,{"x":[]}]`},
	} {
		s := load(t, "return {}", luavm.Options{})
		v, err := s.Decode([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got, err := s.Encode(v); err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.in, got, err, c.want)
		}
		if err := luavm.Valid([]byte(c.in)); err != nil {
			t.Errorf("Valid(%s): %v", c.in, err)
		}
	}
	for _, bad := range []string{``, `{`, `[1,]`, `{"a"}`, `{"a":}`, `{a:1}`, `01`, `1.`, `1e`, `-`, `tru`, `"a`, `"\x"`, `"\u12"`, "\"\n\"", `1 2`, `[1}`, strings.Repeat("[", 500)} {
		s := load(t, "return {}", luavm.Options{})
		if _, err := s.Decode([]byte(bad)); !errors.Is(err, luavm.ErrJSON) {
			t.Errorf("Decode(%.20q) = %v, want ErrJSON", bad, err)
		}
		if err := luavm.Valid([]byte(bad)); !errors.Is(err, luavm.ErrJSON) {
			t.Errorf("Valid(%.20q) = %v, want ErrJSON", bad, err)
		}
	}
}

func TestJSONFromScript(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`return {b = 1, a = {}, c = json.array()}`, `{"b":1,"a":{},"c":[]}`},
		{`return json.array({})`, `[]`},
		{`return {x = json.null}`, `{"x":null}`},
		{`return {schema = json.raw('{"b": 1, "a": 1.0}')}`, `{"schema":{"b": 1, "a": 1.0}}`},
		{`local t = {b = 1, a = 2} t.b = nil t.c = 3 return t`, `{"a":2,"c":3}`},
		{`return json.decode('{"a":{"b":[10,20]}}').a.b[2]`, `20`},
		{`return json.get(json.decode('{"a":[{"b":null}]}'), "a", 1, "b") == nil`, `true`},
		{`return json.get(json.decode('{"a":[{"b":5}]}'), "a", 1, "b")`, `5`},
		{`return json.get(nil, "a") == nil`, `true`},
		{`local v, e = json.decode("{") return {v == nil, type(e)}`, `[true,"string"]`},
		{`return json.encode({1, {a = "b"}})`, `"[1,{\"a\":\"b\"}]"`},
		{`return json.decode('null') == json.null`, `true`},
	} {
		if got, err := eval(t, c.body); err != nil || got != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.body, got, err, c.want)
		}
	}
	for _, c := range []struct{ body, part string }{
		{`return {1, nil, 3, x = 1}`, "array"},
		{`return {a = function() end}`, "value.a: a function has no JSON form"},
		{`return {a = {b = 0/0}}`, "value.a.b"},
		{`local t = {} t.t = t return t`, "a cycle"},
		{`return {[{}] = 1}`, "no string"},
		{`return json.raw("{")`, "test.lua:1:"},
	} {
		if got, err := eval(t, c.body); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: got %s, %v; want an error with %q", c.body, got, err, c.part)
		}
	}
}

func TestErrorsNamePlace(t *testing.T) {
	for _, c := range []struct {
		src  string
		line int
		part string
	}{
		{"local a = \nlocal b", 2, "near"},
		{"x = = 1", 1, "near"},
		{"return {\n  a = 1,\n  b = \n}", 4, "near"},
		{"function f(\n", 1, "end of the file"},
		{"local x = 'abc", 1, ""},
	} {
		_, err := luavm.Compile("adapters/bad.lua", []byte(c.src))
		var e *luavm.Error
		if !errors.As(err, &e) || !errors.Is(err, luavm.ErrSyntax) {
			t.Errorf("%q: %v is no syntax *Error", c.src, err)
			continue
		}
		if e.File != "adapters/bad.lua" || e.Line != c.line || !strings.Contains(e.Message, c.part) {
			t.Errorf("%q: got %v, want line %d and %q", c.src, e, c.line, c.part)
		}
	}
	p, err := luavm.Compile("run.lua", []byte("local t = {}\n\nlocal x = t.a.b\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = luavm.New(context.Background(), p, luavm.Options{})
	var e *luavm.Error
	if !errors.As(err, &e) || e.File != "run.lua" || e.Line != 3 || !errors.Is(err, luavm.ErrRuntime) {
		t.Errorf("run time: %v", err)
	}
}

func TestBudgets(t *testing.T) {
	small := luavm.Limits{Instructions: 200_000, String: 1 << 20}
	for _, c := range []struct {
		name, body string
		want       error
	}{
		{"endless", `while true do end`, luavm.ErrBudget},
		{"endless in pcall", `while true do pcall(function() while true do end end) end`, luavm.ErrBudget},
		{"caught and returned", `pcall(function() while true do end end) return 1`, luavm.ErrBudget},
		{"recursion", `local function f() return 1 + f() end return f()`, luavm.ErrRuntime},
		{"rep", `return string.rep("x", 1073741824)`, luavm.ErrLimit},
		{"rep of rep", `return ("x"):rep(1000000):rep(1000000)`, luavm.ErrLimit},
		{"doubling", `local s = "x" for i = 1, 40 do s = s .. s end return s`, luavm.ErrLimit},
		{"many strings", `local t = {} for i = 1, 1000 do t[i] = ("x"):rep(1000000) end`, luavm.ErrBudget},
		{"table.concat", `local t, s = {}, ("x"):rep(100000) for i = 1, 100 do t[i] = s end return table.concat(t)`, luavm.ErrLimit},
		{"format width", `return string.format("%999d", 1)`, luavm.ErrRuntime},
		{"backtracking", `return (("a"):rep(22)):find(("a?"):rep(22) .. ("a"):rep(22))`, luavm.ErrBudget},
		{"lazy", `return (("x"):rep(300)):match(".-.-.-.-.-.-y")`, luavm.ErrBudget},
		{"gsub callback", `return (("x"):rep(1000000)):gsub(".", function(c) return c .. c end)`, luavm.ErrBudget},
		{"gsub growth", `return (("x"):rep(1000)):gsub(".", ("y"):rep(10000))`, luavm.ErrLimit},
		{"far index", `local t = {} t[50000000] = 1 return #t`, nil},
		{"pattern depth", `return (("a"):rep(5000)):match(("(a)"):rep(40))`, luavm.ErrLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := load(t, "return function() "+c.body+" end", luavm.Options{Limits: small})
			_, err := s.Call(context.Background(), s.Exports())
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			var e *luavm.Error
			if err != nil && (!errors.As(err, &e) || e.File != "test.lua") {
				t.Fatalf("error without a file: %v", err)
			}
			// An overflow of the call stack is a crash of the interpreter.
			if s.Broken() != (errors.Is(err, luavm.ErrBudget) || c.name == "recursion") {
				t.Errorf("broken = %v after %v", s.Broken(), err)
			}
		})
	}
}

func TestCancelAndDeadline(t *testing.T) {
	s := load(t, "return function() while true do end end", luavm.Options{Limits: luavm.Limits{Instructions: 1 << 60}})
	why := errors.New("preempted")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if _, err := s.Call(ctx, s.Exports()); !errors.Is(err, why) {
		t.Errorf("cancelled call: %v", err)
	}
	s = load(t, "return function() while true do end end", luavm.Options{Limits: luavm.Limits{Instructions: 1 << 60, Time: time.Millisecond}})
	if _, err := s.Call(context.Background(), s.Exports()); !errors.Is(err, luavm.ErrDeadline) {
		t.Errorf("late call: %v", err)
	}
}

func TestGlobalsAreReadOnly(t *testing.T) {
	s := load(t, "limit = 7\nfunction helper() return limit end\nreturn {get = function() return helper() end, set = function() count = (count or 0) + 1 end}", luavm.Options{})
	v, err := s.Call(context.Background(), s.Exports().Get("get"))
	if n, ok := v.Int(); err != nil || !ok || n != 7 {
		t.Errorf("helper: %v %v", v, err)
	}
	if _, err := s.Call(context.Background(), s.Exports().Get("set")); err == nil || !strings.Contains(err.Error(), `test.lua:3: global "count"`) {
		t.Errorf("setting a global: %v", err)
	}
}

func TestHostsAndPrint(t *testing.T) {
	var lines []string
	s := load(t, `return function(a) print("got", a, json.null, 2^53) return host.add(a, 2) end`, luavm.Options{
		Print: func(l string) { lines = append(lines, l) },
		Hosts: map[string]map[string]luavm.Host{"host": {"add": func(_ *luavm.State, args []luavm.Value) ([]luavm.Value, error) {
			a, ok := args[0].Float()
			b, _ := args[1].Float()
			if !ok {
				return nil, fmt.Errorf("number expected")
			}
			return []luavm.Value{luavm.Num(a + b)}, nil
		}}},
	})
	v, err := s.Call(context.Background(), s.Exports(), luavm.Num(40))
	if n, _ := v.Int(); err != nil || n != 42 {
		t.Errorf("host call: %v, %v", n, err)
	}
	if _, err := s.Call(context.Background(), s.Exports(), luavm.Str("x")); err == nil || !strings.Contains(err.Error(), "test.lua:1: number expected") {
		t.Errorf("host error: %v", err)
	}
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "got\t40\tnull\t9.00") {
		t.Errorf("printed %q", lines)
	}
}

func TestPool(t *testing.T) {
	p, err := luavm.Compile("p.lua", []byte("return {bad = function() while true do end end, ok = function() return 1 end}"))
	if err != nil {
		t.Fatal(err)
	}
	pool := luavm.NewPool(p, luavm.Options{Limits: luavm.Limits{Instructions: 1000}}, 1)
	ctx := context.Background()
	a, err := pool.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b, err := pool.Get(ctx)
	if err != nil || a == b {
		t.Fatalf("two owners of one state, %v", err)
	}
	pool.Put(a)
	pool.Put(b)
	c, _ := pool.Get(ctx)
	if c != a {
		t.Error("the idle state was not reused")
	}
	if _, err := c.Call(ctx, c.Exports().Get("bad")); !errors.Is(err, luavm.ErrBudget) {
		t.Fatal(err)
	}
	pool.Put(c)
	d, _ := pool.Get(ctx)
	if d == c {
		t.Error("a broken state came back")
	}
	pool.Close()
	pool.Close()
	pool.Put(d)
	if _, err := pool.Get(ctx); !errors.Is(err, luavm.ErrClosed) {
		t.Errorf("Get after Close: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2,{"b":null}]}`, `"\ud83d\ude00"`, `[1e5,-0.1]`, `{`, `12345678901234567890`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	s := load(f, "return {}", luavm.Options{})
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := s.Decode(in)
		if valid := luavm.Valid(in); (err == nil) != (valid == nil) {
			t.Fatalf("Decode says %v, Valid says %v", err, valid)
		}
		if err != nil {
			return
		}
		once, err := s.Encode(v)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		again, err := s.Decode(once)
		if err != nil {
			t.Fatalf("decode what was encoded: %v (%s)", err, once)
		}
		twice, err := s.Encode(again)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%s then %s, %v", once, twice, err)
		}
	})
}

func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{{"hello", "l+"}, {"a(b)c", "%b()"}, {"x", "[^%]"}, {"aa", "(a)%1"}, {"x", "%f[a]"}} {
		f.Add(seed[0], seed[1])
	}
	s := load(f, "return function(s, p) return {s:gsub(p, '%0'), s:find(p)} end", luavm.Options{Limits: luavm.Limits{Instructions: 100_000}})
	f.Fuzz(func(t *testing.T, src, pat string) {
		v, err := s.Call(context.Background(), s.Exports(), luavm.Str(src), luavm.Str(pat))
		if err == nil && v.At(1).Text() != src {
			t.Fatalf("replacing matches by themselves changed %q with %q to %q", src, pat, v.At(1).Text())
		}
		if s.Broken() && !errors.Is(err, luavm.ErrBudget) {
			t.Fatalf("the interpreter broke: %v", err)
		}
	})
}

func BenchmarkChunk(b *testing.B) {
	s := load(b, `return function(e, st) local c = json.get(e, "choices", 1, "delta") if c then return {text = c.content} end end`, luavm.Options{})
	data := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x","service_tier":"default","system_fingerprint":"fp_x","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aaaaaaaa"}`)
	ctx := context.Background()
	st := s.Object()
	b.ReportAllocs()
	for b.Loop() {
		v, err := s.Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		out, err := s.Call(ctx, s.Exports(), v, st)
		if err != nil || out.Get("text").Text() != " word" {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	p, err := luavm.Compile("x.lua", []byte("return {}"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := luavm.New(context.Background(), p, luavm.Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

package tools

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	start  = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	memory = &messages.Address{Path: "memory", Epoch: 7}
	home   = &messages.Address{Path: "plugins/home", Epoch: 7}
	turn   = &messages.Address{Path: "agents/main/turn/T1", Epoch: 7}
)

func def(name string) *messages.ToolDef {
	return &messages.ToolDef{
		Name: name, ParametersJson: []byte(`{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}`),
		Effect: messages.ToolEffect_TOOL_EFFECT_PURE,
	}
}

func register(owner *messages.Address, names ...string) kit.Event {
	r := &messages.RegisterTools{Owner: owner}
	for _, n := range names {
		r.Tools = append(r.Tools, def(n))
	}
	return kit.Event{From: owner, Corr: "reg", Msg: r}
}

func callOf(id, name, args string) kit.Event {
	return kit.Event{From: turn, Corr: id + "#1", Msg: &messages.CallTool{
		Agent: "main", TaskId: "T1",
		Call: &messages.ToolInvocation{CallId: id, Name: name, ArgumentsJson: []byte(args)},
	}}
}

func script(t *testing.T, name string, p Params) *kittest.Script {
	s := kittest.New(t, name, New(p), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("tools")}})
	return s
}

// TestListAfterTheStart asks for the list before the owners of a node's own tools have registered.
func TestListAfterTheStart(t *testing.T) {
	list := func(corr string) kit.Event {
		return kit.Event{From: turn, Corr: corr, Msg: &messages.ListTools{Agent: "main"}}
	}
	s := script(t, "start", Params{Owners: []string{"memory", "timers"}})
	s.Step(0, list("l1"))
	s.Step(0, register(memory, "recall"))
	s.Step(0, list("l2"))
	s.Step(0, register(&messages.Address{Path: "timers", Epoch: 7}, "timer_set"))
	s.Step(0, list("l3"))
	s.Note("another start, and one owner does not come")
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("tools"), Restarts: 1}})
	s.Step(0, register(memory, "recall"))
	s.Step(0, list("l4"))
	s.Step(ownersWait, kit.Event{Msg: settled{}})
	s.Step(0, list("l5"))
	s.Done()
}

func TestRegister(t *testing.T) {
	s := script(t, "register", Params{})
	s.Step(time.Second, register(memory, "memory_recall", "memory_commit"))
	s.Step(time.Second, register(home, "lamp"))
	s.Note("a name that another owner has: nothing of the list is taken")
	s.Step(time.Second, register(home, "door", "memory_recall"))
	s.Step(time.Second, register(home, "door", "door"))
	s.Step(time.Second, register(home, "time_now"))
	s.Step(time.Second, register(home, "no spaces"))
	bad := register(home, "door")
	bad.Msg.(*messages.RegisterTools).Tools[0].ParametersJson = []byte(`{"type":"string"}`)
	s.Step(time.Second, bad)
	s.Step(time.Second, kit.Event{From: turn, Corr: "l", Msg: &messages.ListTools{Agent: "main"}})
	s.Note("the same owner replaces its list")
	s.Step(time.Second, register(home, "door"))
	s.Step(time.Second, kit.Event{From: turn, Corr: "l", Msg: &messages.ListTools{Agent: "main"}})
	s.Note("an owner that ends loses it")
	s.Step(time.Second, kit.Event{Msg: kit.Ended{Who: memory}})
	s.Step(time.Second, register(home))
	s.Show()
	s.Done()
}

func TestCall(t *testing.T) {
	s := script(t, "call", Params{})
	s.Step(time.Second, register(home, "lamp", "door"))
	s.Step(time.Second, callOf("c1", "lamp", `{"x":1}`))
	s.Step(20*time.Millisecond, kit.Event{From: home, Corr: "call/1", Msg: &messages.ToolResult{Content: "on"}})
	s.Note("a second result is late")
	s.Step(time.Second, kit.Event{From: home, Corr: "call/1", Msg: &messages.ToolResult{Content: "off"}})
	s.Note("arguments put right, and refused")
	s.Step(time.Second, callOf("c2", "lamp", `{"x":"5"}`))
	s.Step(time.Second, callOf("c3", "lamp", `{"x":"five"}`))
	s.Step(time.Second, callOf("c4", "lamp", ``))
	s.Note("no such tool")
	s.Step(time.Second, callOf("c5", "lampp", `{}`))
	s.Note("the node's own tool")
	s.Step(time.Second, callOf("c6", "time_now", `{}`))
	s.Note("the owner's Error and Busy, and an owner that cannot be reached")
	s.Step(time.Second, kit.Event{From: home, Corr: "call/2", Msg: &messages.Error{Code: "x", Message: "The lamp is unplugged.", Hint: "Plug it in."}})
	s.Step(time.Second, callOf("c7", "door", `{"x":1}`))
	s.Step(time.Second, kit.Event{From: home, Corr: "call/3", Msg: &messages.Busy{}})
	sent := s.Step(time.Second, callOf("c8", "door", `{"x":1}`))
	s.Step(time.Second, kit.Event{Msg: kit.Fault{Effect: sent[0], Err: &messages.Error{Code: "actor_gone", Message: "The actor is gone."}}})
	s.Show()
	s.Done()
}

func TestTimeAndCancel(t *testing.T) {
	s := script(t, "time", Params{})
	r := register(home, "lamp")
	r.Msg.(*messages.RegisterTools).Tools[0].TimeoutMs = 1500
	s.Step(time.Second, r)
	s.Note("too late: the text names the real limit")
	s.Step(time.Second, callOf("c1", "lamp", `{"x":1}`))
	s.Step(1500*time.Millisecond, kit.Event{Msg: late{"call/1"}})
	s.Note("the deadline of the turn is nearer")
	c := callOf("c2", "lamp", `{"x":1}`)
	c.Msg.(*messages.CallTool).DeadlineUs = s.Now().Add(2 * time.Second).UnixMicro()
	s.Step(time.Second, c)
	s.Step(time.Second, kit.Event{Msg: late{"call/2"}})
	c = callOf("c3", "lamp", `{"x":1}`)
	c.Msg.(*messages.CallTool).DeadlineUs = s.Now().UnixMicro()
	s.Step(time.Second, c)
	s.Note("a cancel that the owner confirms, and one that it does not")
	s.Step(time.Second, callOf("c4", "lamp", `{"x":1}`))
	s.Step(0, kit.Event{From: turn, Msg: &messages.CancelTool{CallId: "c4", Reason: "preempt"}})
	s.Step(0, kit.Event{From: home, Corr: "call/3", Msg: &messages.ToolResult{Error: &messages.ToolError{Reason: "cancelled"}}})
	s.Step(time.Second, callOf("c5", "lamp", `{"x":1}`))
	s.Step(0, kit.Event{From: turn, Msg: &messages.CancelTool{CallId: "c5", Reason: "stop"}})
	s.Step(5*time.Second, kit.Event{Msg: late{"call/4"}})
	s.Step(0, kit.Event{From: turn, Msg: &messages.CancelTool{CallId: "unknown", Reason: "stop"}})
	s.Note("the same for a call that may not run twice")
	r = register(home, "lamp")
	r.Msg.(*messages.RegisterTools).Tools[0].Effect = messages.ToolEffect_TOOL_EFFECT_ONCE
	s.Step(time.Second, r)
	s.Step(time.Second, callOf("c6", "lamp", `{"x":1}`))
	s.Step(0, kit.Event{From: turn, Msg: &messages.CancelTool{CallId: "c6", Reason: "preempt"}})
	s.Step(5*time.Second, kit.Event{Msg: late{"call/5"}})
	s.Done()
}

func TestOwnerEnds(t *testing.T) {
	s := script(t, "owner_ends", Params{})
	r := register(home, "lamp", "door")
	r.Msg.(*messages.RegisterTools).Tools[1].Effect = messages.ToolEffect_TOOL_EFFECT_UNSPECIFIED
	s.Step(time.Second, r)
	s.Step(time.Second, callOf("c1", "lamp", `{"x":1}`))
	s.Step(time.Second, callOf("c2", "door", `{"x":1}`))
	s.Note("of an earlier boot: nothing")
	s.Step(time.Second, kit.Event{Msg: kit.Ended{Who: &messages.Address{Path: "plugins/home", Epoch: 6}}})
	s.Step(time.Second, kit.Event{Msg: kit.Ended{Who: home, Failure: "killed"}})
	s.Step(time.Second, callOf("c3", "lamp", `{"x":1}`))
	s.Done()
}

func TestUsable(t *testing.T) {
	m := New(Params{})
	r := register(home, "lamp")
	r.Msg.(*messages.RegisterTools).Tools[0].MainOnly = true
	m.Step(start, r)
	for name, change := range map[string]func(*messages.CallTool){
		reasonNotFound: func(c *messages.CallTool) { c.Agent = "main/resident/cook" },
		reasonDenied:   func(c *messages.CallTool) { c.Call.Denied = "no" },
		reasonType:     func(c *messages.CallTool) { c.Call.Invalid = "truncated" },
	} {
		e := callOf("c1", "lamp", `{"x":1}`)
		change(e.Msg.(*messages.CallTool))
		out := m.Step(start, e)
		got, ok := out[0].(kit.Reply)
		if len(out) != 1 || !ok || got.Msg.(*messages.ToolResult).GetError().GetReason() != name {
			t.Errorf("%s: got %v", name, out)
		}
	}
}

func TestResultCap(t *testing.T) {
	m := New(Params{ResultCap: 10})
	m.Step(start, register(home, "lamp"))
	m.Step(start, callOf("c1", "lamp", `{"x":1}`))
	given := &messages.ToolResult{Content: strings.Repeat("灯", 5)}
	before := proto.Clone(given)
	out := m.Step(start, kit.Event{Corr: "call/1", Msg: given})
	r := out[len(out)-1].(kit.Reply).Msg.(*messages.ToolResult)
	if want := "灯灯灯\n[cut: this is the first 9 of 15 bytes]"; r.GetContent() != want || !utf8.ValidString(r.GetContent()) {
		t.Errorf("got %q, want %q", r.GetContent(), want)
	}
	if r.GetTaint() != messages.Taint_TAINT_FOREIGN || r.GetCallId() != "c1" || r.GetName() != "lamp" {
		t.Errorf("result %v", r)
	}
	if !proto.Equal(given, before) {
		t.Error("the owner's message changed")
	}
	if capped("1234567890", 10) != "1234567890" {
		t.Error("a result at the limit was cut")
	}
}

// The whole actor under the runtime: a call through it to an owner, and an owner that is stopped while a call runs.
func TestActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, err := kit.NewRuntime(kit.Config{Node: "n", Epoch: 7, Seed: 1, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		tools, err := rt.SpawnTop("tools", Props(Params{}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = rt.SpawnTop("owner", kit.Props{Kind: "owner", New: func() kit.Machine { return owner{} }}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ask := func(x string) *messages.ToolResult {
			m, err := rt.Ask(t.Context(), tools, callOf("c1", "lamp", `{"x":`+x+`}`).Msg.(proto.Message))
			if err != nil {
				t.Fatal(err)
			}
			return m.(*messages.ToolResult)
		}
		if got := ask("1"); got.GetContent() != "on" {
			t.Errorf("result %v", got)
		}
		done := make(chan *messages.ToolResult)
		go func() { done <- ask("2") }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := rt.Stop(ctx, "owner"); err != nil {
			t.Error(err)
		}
		if got := <-done; got.GetError().GetReason() != reasonFailed {
			t.Errorf("result %v", got)
		}
		if got := ask("1"); got.GetError().GetReason() != reasonNotFound {
			t.Errorf("result %v", got)
		}
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// owner serves lamp: it answers x=1 and never x=2.
type owner struct{}

func (owner) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case kit.Started:
		return []kit.Effect{kit.Send{To: kit.Path("tools"), Corr: "r", Msg: &messages.RegisterTools{Owner: m.Self, Tools: []*messages.ToolDef{def("lamp")}}}}
	case *messages.CallTool:
		if strings.Contains(string(m.GetCall().GetArgumentsJson()), "1") {
			return []kit.Effect{e.Reply(&messages.ToolResult{CallId: m.GetCall().GetCallId(), Name: "lamp", Content: "on"})}
		}
	}
	return nil
}

func TestTimeoutsAreSettings(t *testing.T) {
	m := New(Params{}).(*machine)
	own := &messages.ToolDef{Name: "lamp", TimeoutMs: 5000}
	none := &messages.ToolDef{Name: "bell"}
	if m.timed(own) != own || m.timed(none).GetTimeoutMs() != 60_000 {
		t.Errorf("before any setting: %v, %v", m.timed(own), m.timed(none))
	}
	m.Step(time.Time{}, kit.Event{Msg: &messages.ConfigChanged{Values: []*messages.ConfigValue{
		{Key: "core.agent.tool_timeout", Value: "2m"}, {Key: "core.tools.timeout.lamp", Value: "9s"},
	}}})
	if m.timed(own).GetTimeoutMs() != 9000 || m.timed(none).GetTimeoutMs() != 120_000 || own.GetTimeoutMs() != 5000 {
		t.Errorf("after: %v, %v; the definition itself: %v", m.timed(own), m.timed(none), own)
	}
}

func TestDeniedTools(t *testing.T) {
	m := New(Params{}).(*machine)
	offered := func() bool {
		return slices.ContainsFunc(m.list("main").GetTools(), func(d *messages.ToolDef) bool { return d.GetName() == "time_now" })
	}
	refused := func() bool {
		out := m.Step(time.Time{}, kit.Event{Corr: "c", Msg: &messages.CallTool{
			Agent: "main", Call: &messages.ToolInvocation{CallId: "c", Name: "time_now", ArgumentsJson: []byte("{}")},
		}})
		for _, e := range out {
			if s, ok := e.(kit.Reply); ok {
				if r, ok := s.Msg.(*messages.ToolResult); ok {
					return r.GetError().GetReason() == "denied"
				}
			}
		}
		t.Fatalf("no result: %v", out)
		return false
	}
	for _, c := range []struct {
		value  string
		denied bool
	}{{"", false}, {"time_now", true}, {"lamp,time_*", true}, {"lamp", false}} {
		m.Step(time.Time{}, kit.Event{Msg: &messages.ConfigChanged{Values: []*messages.ConfigValue{{Key: "core.tools.denied", Value: c.value}}}})
		if offered() == c.denied || refused() != c.denied {
			t.Errorf("%q: offered %v, refused %v", c.value, offered(), refused())
		}
	}
}

func TestDetach(t *testing.T) {
	s := script(t, "detach", Params{})
	r := register(home, "lamp", "door")
	r.Msg.(*messages.RegisterTools).Tools[0].TimeoutMs = 600_000
	s.Step(time.Second, r)
	begin := func(id, tool string) {
		c := callOf(id, tool, `{"x":1}`)
		m := c.Msg.(*messages.CallTool)
		m.Channel, m.Conversation, m.PersonWaits, m.DeadlineUs = "cli", "main", true, s.Now().Add(time.Minute).UnixMicro()
		m.Principal = &messages.Principal{Id: "owner"}
		s.Step(time.Second, c)
	}
	detach := func(id string) { s.Step(0, kit.Event{From: turn, Msg: &messages.DetachCall{CallId: id}}) }
	ends := func(corr string, r *messages.ToolResult) {
		s.Step(time.Minute, kit.Event{From: home, Corr: corr, Msg: r})
	}
	begin("c1", "lamp")
	detach("c1")
	s.Note("again, and a call that is not there")
	detach("c1")
	detach("c9")
	s.Step(0, callOf("l1", "calls_list", `{}`))
	s.Step(0, callOf("r1", "calls_result", `{"handle":"c1"}`))
	s.Note("it ends: the agent is told by an input")
	ends("call/1", &messages.ToolResult{Content: "{ \"on\": true }"})
	s.Step(0, kit.Event{Corr: "notice/c1", Msg: &messages.Busy{}})
	s.Step(10*time.Second, kit.Event{Msg: notice{"c1"}})
	s.Step(0, kit.Event{Corr: "notice/c1", Msg: &messages.SubmitResult{InputId: "i"}})
	s.Step(0, callOf("r2", "calls_result", `{"handle":"c1","wait_s":"5"}`))
	s.Note("somebody waits: no input")
	begin("c2", "lamp")
	detach("c2")
	s.Step(0, callOf("r3", "calls_result", `{"handle":"c2","wait_s":30}`))
	s.Step(0, callOf("r4", "calls_result", `{"handle":"c2","wait_s":30}`))
	s.Step(0, kit.Event{From: turn, Msg: &messages.CancelTool{CallId: "r4", Reason: "preempt"}})
	ends("call/2", &messages.ToolResult{Error: &messages.ToolError{Reason: "failed", Detail: "The bulb is broken."}})
	s.Note("a wait that is over, and a call that is")
	begin("c3", "lamp")
	detach("c3")
	s.Step(0, callOf("r5", "calls_result", `{"handle":"c3","wait_s":30}`))
	s.Step(30*time.Second, kit.Event{Msg: enough{"r5"}})
	s.Step(570*time.Second, kit.Event{Msg: late{"call/3"}})
	s.Step(0, kit.Event{Corr: "notice/c3", Msg: &messages.SubmitResult{Error: &messages.Error{Code: "unknown_channel", Message: "There is no channel."}}})
	s.Note("of another agent, never there, and too old")
	other := callOf("r6", "calls_result", `{"handle":"c1"}`)
	other.Msg.(*messages.CallTool).Agent = "main/resident/cook"
	s.Step(0, other)
	s.Step(0, callOf("r7", "calls_result", `{"handle":"c8"}`))
	s.Step(keptFor, callOf("r8", "calls_result", `{"handle":"c1"}`))
	s.Note("the node stops")
	begin("c4", "lamp")
	detach("c4")
	s.Step(0, kit.Event{Msg: kit.Stopping{}})
	s.Show()
	s.Done()
}

// TestKept bounds what is kept of detached calls.
func TestKept(t *testing.T) {
	m := New(Params{})
	now := start
	step := func(e kit.Event) []kit.Effect {
		now = now.Add(time.Second)
		return m.Step(now, e)
	}
	step(register(home, "lamp"))
	for i := range 100 {
		id := fmt.Sprint("c", i)
		step(callOf(id, "lamp", `{"x":1}`))
		step(kit.Event{Msg: &messages.DetachCall{CallId: id}})
		step(kit.Event{Corr: fmt.Sprint("call/", i+1), Msg: &messages.ToolResult{Content: id}})
	}
	reply := func(handle string) *messages.ToolResult {
		out := step(callOf("r"+handle, "calls_result", `{"handle":"`+handle+`"}`))
		return out[len(out)-1].(kit.Reply).Msg.(*messages.ToolResult)
	}
	if r := reply("c35"); r.GetError().GetReason() != "unknown_outcome" {
		t.Errorf("the 36th: %v", r)
	}
	if r := reply("c36"); r.GetContent() != "c36" {
		t.Errorf("the 37th: %v", r)
	}
}

func TestNormal(t *testing.T) {
	for _, c := range []struct{ in, content, fails string }{
		{"plain", "plain", ""},
		{"  padded ", "  padded ", ""},
		{"{ \"a\": [1, 2],\n \"b\": \"c d\" }", `{"a":[1,2],"b":"c d"}`, ""},
		{"[ 1 ]", "[1]", ""},
		{"{not json", "{not json", ""},
		{`{"error":""}`, `{"error":""}`, ""},
		{`{"error":null,"x":1}`, `{"error":null,"x":1}`, ""},
		{`{"error":false}`, `{"error":false}`, ""},
		{`{"error":0}`, `{"error":0}`, ""},
		{`{"error":{}}`, `{"error":{}}`, ""},
		{`{"errors":["x"]}`, `{"errors":["x"]}`, ""},
		{`{"ok":true,"error":"none"}`, `{"ok":true,"error":"none"}`, ""},
		{`{"isError":false,"content":[{"text":"x"}]}`, `{"isError":false,"content":[{"text":"x"}]}`, ""},
		{`{"text":"an error occurred"}`, `{"text":"an error occurred"}`, ""},
		{`"error"`, `"error"`, ""},
		{`{"error":"no lamp"}`, "", "no lamp"},
		{`{"error":"no lamp","content":5}`, "", "no lamp"},
		{`{"error":{"message":"no lamp","code":5}}`, "", "no lamp"},
		{`{"error":{"code":5}}`, "", `{"code":5}`},
		{`{"isError":true,"content":[{"type":"text","text":"no"},{"text":"lamp"}]}`, "", "no\nlamp"},
		{`{"ok":false,"message":"no lamp"}`, "", "no lamp"},
		{`{"success":false}`, "", `{"success":false}`},
	} {
		got := normal(&messages.ToolResult{Content: c.in}, 1000)
		if got.GetContent() != c.content || got.GetError().GetDetail() != c.fails || (got.GetError() == nil) != (c.fails == "") {
			t.Errorf("%s: %q %v, want %q %q", c.in, got.GetContent(), got.GetError(), c.content, c.fails)
		}
		if got.GetTaint() != messages.Taint_TAINT_FOREIGN {
			t.Errorf("%s: taint %v", c.in, got.GetTaint())
		}
	}
	long := normal(&messages.ToolResult{Content: `{"error":"` + strings.Repeat("é", 5000) + `"}`}, 1000)
	if d := long.GetError().GetDetail(); len(d) > 3000 || !utf8.ValidString(d) {
		t.Errorf("%d bytes", len(d))
	}
}

func FuzzNormal(f *testing.F) {
	for _, s := range []string{`{"error":"x"}`, `{"isError":true}`, "[1", `{"content":[{"text":1}]}`, "{\"a\":\"\u00ff\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := normal(&messages.ToolResult{Content: s}, 100)
		if (got.GetContent() == "") != (s == "" || got.GetError() != nil) {
			t.Fatalf("%q: %v", s, got)
		}
	})
}

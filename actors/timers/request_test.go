package timers

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

func code(m proto.Message) string {
	if e, ok := m.(*messages.Error); ok {
		return e.GetCode()
	}
	return ""
}

func TestRequests(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:30:00Z", Params{Max: 3, Shortest: time.Minute})
	named := func(id, name string) *messages.Timer {
		m := cronTimer(id, "0 * * * *", skip)
		m.Name = name
		return m
	}
	w.set(named("A", "water"), nil)
	w.set(named("B", "tea"), nil)
	w.set(named("C", "tea"), nil)
	for want, m := range map[string]proto.Message{
		"too_many_timers": &messages.PutTimer{Timer: named("D", "")},
		"bad_timer":       &messages.PutTimer{Timer: cronTimer("A", "nonsense", skip)},
		"unknown_zone":    &messages.PutTimer{Timer: &messages.Timer{TimerId: "A", Text: "x", Zone: "Mars/Base"}, In: "1m"},
		"unknown_channel": &messages.PutTimer{Timer: &messages.Timer{TimerId: "A", Text: "x", Channel: "fax"}, In: "1m"},
		"unknown_timer":   &messages.DeleteTimer{Timer: "wter"},
		"conflict":        &messages.PauseTimer{Timer: "tea", Paused: true},
	} {
		if got := w.do(m); code(got) != want || got.(*messages.Error).GetHint() == "" && want != "bad_timer" {
			t.Errorf("%v: %v, want %s", m, got, want)
		}
	}
	if got := w.do(&messages.DeleteTimer{Timer: "wter"}).(*messages.Error); !strings.Contains(got.GetHint(), "Nearest: water") {
		t.Errorf("no near name in %v", got)
	}
	if got := code(w.do(&messages.RunTimer{Timer: "A"})); got != "bad_timer" {
		t.Errorf("run without an id of the request: %s", got)
	}
	l := w.do(&messages.ListTimers{Agent: "main"}).(*messages.TimerList)
	if len(l.GetTimers()) != 3 || l.GetTimers()[0].GetEffectiveZone() != "UTC" {
		t.Errorf("listed %v", l)
	}
	if l := w.do(&messages.ListTimers{Agent: "main/resident/cook"}).(*messages.TimerList); len(l.GetTimers()) != 0 {
		t.Errorf("listed of another agent %v", l)
	}
	if got, ok := w.do(&messages.DeleteTimer{Timer: "water"}).(*messages.Timer); !ok || got.GetTimerId() != "A" || w.stored("A") != nil {
		t.Errorf("deleted %v", got)
	}
	w.die(true)
	w.boot()
	if l := w.do(&messages.ListTimers{}).(*messages.TimerList); len(l.GetTimers()) != 2 {
		t.Errorf("after a restart %v", l)
	}
}

// A timer that is changed keeps its past, and its slots to come are those of the new times.
func TestChange(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:30:00Z", Params{})
	w.set(cronTimer("T", "0 * * * *", skip), nil)
	w.to("2026-12-01T09:30:00Z")
	got := w.set(cronTimer("T", "45 * * * *", skip), nil)
	if got.GetRuns() != 1 || got.GetLastUs() != when(t, "2026-12-01T09:00:00Z").UnixMicro() || got.GetNextUs() != when(t, "2026-12-01T09:45:00Z").UnixMicro() {
		t.Errorf("changed to %v", got)
	}
	w.to("2026-12-01T10:30:00Z")
	w.expect("ran", w.ran("T"), "2026-12-01T09:00:00Z", "2026-12-01T09:45:00Z")
	// A single time that was taken already is not taken again.
	w.set(&messages.Timer{TimerId: "once", Text: "x"}, func(p *messages.PutTimer) { p.In = "10s" })
	w.to("2026-12-01T10:30:20Z")
	if got := code(w.do(&messages.PutTimer{Timer: &messages.Timer{TimerId: "once", Text: "x"}, At: "2026-12-01T10:30:10Z"})); got != "bad_timer" {
		t.Errorf("the same time again: %s", got)
	}
}

func TestPause(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:30:00Z", Params{})
	w.set(cronTimer("T", "0 * * * *", runOnce), nil)
	w.do(&messages.PauseTimer{Timer: "T", Paused: true})
	w.to("2026-12-01T09:30:00Z")
	w.die(true)
	w.boot()
	w.to("2026-12-01T10:30:00Z")
	if got := w.do(&messages.PauseTimer{Timer: "T"}).(*messages.Timer); got.GetPaused() || got.GetSkipped() != 2 || got.GetLastOutcome() != outcomePaused {
		t.Errorf("resumed %v", got)
	}
	if got := w.do(&messages.PauseTimer{Timer: "T"}).(*messages.Timer); got.GetSkipped() != 2 {
		t.Errorf("resumed twice %v", got)
	}
	w.to("2026-12-01T11:30:00Z")
	w.expect("what is told", w.outcomes("T"), "2026-12-01T10:00:00Z skipped_paused paused +1ns", "2026-12-01T11:00:00Z ran on_time")
}

// A run by hand is beside the slots, and the same request makes one task.
func TestRunByHand(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:30:00Z", Params{})
	w.set(cronTimer("T", "0 * * * *", skip), nil)
	for range 2 {
		got, ok := w.do(&messages.RunTimer{Timer: "T", RequestId: "q1"}).(*messages.Timer)
		if !ok || got.GetRuns() != 1 || w.tasks[got.GetLastTask()] == nil || got.GetNextUs() != when(t, "2026-12-01T09:00:00Z").UnixMicro() {
			t.Fatalf("ran by hand: %v", got)
		}
	}
	if len(w.tasks) != 1 {
		t.Errorf("%d tasks", len(w.tasks))
	}
	w.refuse = func(*messages.Input) *messages.Error { return &messages.Error{Code: "queue_full"} }
	if got := code(w.do(&messages.RunTimer{Timer: "T", RequestId: "q2"})); got != "queue_full" {
		t.Errorf("a full node: %s", got)
	}
	w.refuse = nil
	w.to("2026-12-01T09:00:10Z")
	w.expect("its slot", w.ran("T"), "2026-12-01T09:00:00Z")
}

// A timer that has no slot left is listed for a while and then dropped; others stay.
func TestKeepDone(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:30:00Z", Params{Keep: 24 * time.Hour})
	w.set(&messages.Timer{TimerId: "once", Text: "x"}, func(p *messages.PutTimer) { p.In = "10m" })
	w.set(cronTimer("yearly", "0 0 1 6 *", skip), nil)
	w.to("2026-12-02T08:00:00Z")
	if w.stored("once") == nil {
		t.Fatal("it went too early")
	}
	w.to("2026-12-02T10:30:00Z")
	if l := w.do(&messages.ListTimers{}).(*messages.TimerList); len(l.GetTimers()) != 1 || l.GetTimers()[0].GetTimerId() != "yearly" {
		t.Errorf("listed %v", l)
	}
	w.die(false)
	if w.stored("once") != nil {
		t.Error("it is still stored")
	}
}

// What comes while a slot is under way is built upon: nothing of either is lost.
func TestDeleteAndPauseUnderWay(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:59:00Z", Params{})
	w.set(cronTimer("T", "0 * * * *", skip), nil)
	w.set(cronTimer("U", "0 * * * *", skip), nil)
	w.silent = true
	w.to("2026-12-01T09:00:05Z")
	w.silent = false
	w.do(&messages.PauseTimer{Timer: "T", Paused: true})
	w.do(&messages.DeleteTimer{Timer: "U"})
	w.to("2026-12-01T11:00:00Z")
	if m := w.stored("T"); !m.GetPaused() || m.GetRuns() != 1 || m.GetLastUs() != when(t, "2026-12-01T09:00:00Z").UnixMicro() {
		t.Errorf("stored %v", m)
	}
	if w.stored("U") != nil || len(w.ran("U")) != 1 {
		t.Errorf("a timer that was deleted: %v, ran %v", w.stored("U"), w.ran("U"))
	}
	if n := w.m.(kit.Shower).Show().(map[string]any)["under_way"]; n != 0 {
		t.Errorf("%v slots are under way", n)
	}
}

// All timers of a node are due at once: they are handed over, a bounded number at a time.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:59:00Z", Params{})
	const many = 500
	for i := range many {
		w.set(cronTimer("T"+string(rune('a'+i/26))+string(rune('a'+i%26)), "0 * * * *", skip), nil)
	}
	w.to("2026-12-01T09:00:00Z")
	if len(w.tasks) != many {
		t.Errorf("%d tasks", len(w.tasks))
	}
}

func call(id, name, args string) *messages.CallTool {
	return &messages.CallTool{
		TaskId: "01JQ5R9E000000000000000000", Agent: "main", Channel: "cli", Conversation: "kitchen", Taint: messages.Taint_TAINT_TRUSTED,
		Principal: &messages.Principal{Id: "owner"}, Principals: []*messages.Principal{{Id: "owner"}, {Id: "token:cam"}},
		Call: &messages.ToolInvocation{CallId: id, Name: name, ArgumentsJson: []byte(args)},
	}
}

func TestTools(t *testing.T) {
	w := newWorld(t, "2026-12-01T08:30:00Z", Params{})
	do := func(c *messages.CallTool) *messages.ToolResult {
		t.Helper()
		got, ok := w.do(c).(*messages.ToolResult)
		if !ok || got.GetCallId() != c.GetCall().GetCallId() {
			t.Fatalf("%v: %v", c, got)
		}
		return got
	}
	const id = "01JQ5R9E000000000000000000/1/c0"
	var set timerJSON
	for range 2 { // the same call sets one timer
		r := do(call(id, toolSet, `{"text":"water the plants","in":"30m","name":"plants"}`))
		if r.GetError() != nil {
			t.Fatal(r)
		}
		if err := json.Unmarshal([]byte(r.GetContent()), &set); err != nil || set.Next != "2026-12-01T09:00:00Z" || !set.Reminder || set.Zone != "UTC" {
			t.Fatalf("set %+v, %v", set, err)
		}
		w.now = w.now.Add(time.Second)
	}
	if n := len(w.records()); n != 1 {
		t.Fatalf("%d timers", n)
	}
	m := w.stored(set.ID)
	if m.GetChannel() != "cli" || m.GetConversation() != "kitchen" || len(m.GetOnBehalf()) != 2 || m.GetPrincipal().GetId() != "owner" || m.GetTaint() != messages.Taint_TAINT_MODEL {
		t.Errorf("stored %v", m)
	}
	// Words that the turn has read outside go no further than they would have there.
	foreign := call("01JQ5R9E000000000000000001/1/c0", toolSet, `{"text":"open the door","cron":"0 9 * * *"}`)
	foreign.Taint = messages.Taint_TAINT_FOREIGN
	do(foreign)
	w.to("2026-12-01T09:00:01Z")
	for _, k := range w.tasks {
		in := k.input
		want := messages.Taint_TAINT_MODEL
		if in.GetSource() == messages.InputSource_INPUT_SOURCE_JOB {
			want = messages.Taint_TAINT_FOREIGN
		}
		if in.GetTaint() != want || len(in.GetOnBehalf()) != 2 {
			t.Errorf("input %v", in)
		}
	}
	if len(w.tasks) != 2 {
		t.Errorf("%d tasks", len(w.tasks))
	}
	r := do(call("c2", toolList, `{}`))
	if !strings.Contains(r.GetContent(), "plants") || !strings.Contains(r.GetContent(), `"cron 0 9 * * *"`) || r.GetTaint() != messages.Taint_TAINT_FOREIGN {
		t.Errorf("listed %v", r)
	}
	// A resident has its own timers and no others.
	cook := call("c3", toolCancel, `{"timer":"plants"}`)
	cook.Agent = "main/resident/cook"
	if e := do(cook).GetError(); e.GetReason() != "not_found" || e.GetField() != "timer" {
		t.Errorf("a resident cancels another's: %v", e)
	}
	if r := do(call("c4", toolPause, `{"timer":"plants"}`)); r.GetError() != nil || !w.stored(set.ID).GetPaused() {
		t.Errorf("paused %v", r)
	}
	if r := do(call("c5", toolCancel, `{"timer":"plants"}`)); r.GetError() != nil || w.stored(set.ID) != nil {
		t.Errorf("cancelled %v", r)
	}
	for field, args := range map[string]string{
		"in":      `{"text":"x","in":"soon"}`,
		"at":      `{"text":"x","at":"2020-01-01 00:00"}`,
		"cron":    `{"text":"x","cron":"0 0 30 2 *"}`,
		"zone":    `{"text":"x","in":"5m","zone":"Mars/Base"}`,
		"every":   `{"text":"x","every":"1s"}`,
		"missed":  `{"text":"x","in":"5m","missed":"never"}`,
		"overlap": `{"text":"x","in":"5m","overlap":"never"}`,
		"text":    `{"in":"5m"}`,
		"when":    `{"text":"x","when":"now"}`,
	} {
		if e := do(call("bad/"+field, toolSet, args)).GetError(); e.GetField() != field || e.GetReason() != "type" || e.GetDetail() == "" {
			t.Errorf("%s: %v", args, e)
		}
	}
	if e := do(call("c9", "timer_eat", `{}`)).GetError(); e.GetReason() != "not_found" {
		t.Errorf("no such tool: %v", e)
	}
	for _, d := range toolDefs() {
		if !json.Valid(d.GetParametersJson()) || d.GetMainOnly() || d.GetToolClass() == messages.ToolClass_TOOL_CLASS_UNSPECIFIED {
			t.Errorf("definition %v", d)
		}
	}
}

// Requests that come before the timers are read wait for them, and settings count from the moment they are known.
func TestStart(t *testing.T) {
	m := New(Params{Ledger: kit.Path("ledger"), Channels: kit.Path("channels"), Tools: kit.Path("tools")})
	now := when(t, "2026-12-01T08:30:00Z")
	m.Step(now, kit.Event{Msg: kit.Started{Self: kit.Path("timers")}})
	if out := m.Step(now, kit.Event{From: kit.Path("admin"), Corr: "q", Msg: &messages.ListTimers{}}); len(out) != 0 {
		t.Errorf("answered before it knew: %v", out)
	}
	m.Step(now, kit.Event{Msg: &messages.ConfigChanged{Values: []*messages.ConfigValue{{Key: configs.KeyTimersMinInterval, Value: "1s"}}}})
	ready, answered, told := false, false, false
	for _, f := range m.Step(now, kit.Event{Msg: loaded{Damaged: []string{"x"}}}) {
		switch f := f.(type) {
		case kit.Ready:
			ready = true
		case kit.Reply:
			answered = f.Corr == "q"
		case kit.Publish:
			told = f.Event.GetSystem().GetCode() == "timer_damaged"
		}
	}
	if !ready || !answered || !told {
		t.Errorf("ready %v, answered %v, told of damage %v", ready, answered, told)
	}
	for _, f := range m.Step(now, kit.Event{From: kit.Path("admin"), Corr: "p", Msg: &messages.PutTimer{Timer: &messages.Timer{TimerId: "T", Text: "x"}, Every: "1s"}}) {
		if r, ok := f.(kit.Reply); ok {
			t.Errorf("an interval of a second is refused: %v", r.Msg)
		}
	}
}

// Arguments are foreign bytes: whatever they are, a call gets one result at once or after the ledger, and nothing panics.
func FuzzCall(f *testing.F) {
	for _, s := range []string{`{}`, `{"text":"x","in":"5m"}`, `{"text":"x","cron":"5-1 9 * * *"}`, `{"timer":"T","paused":false}`, `[`, `{"text":1}`, `{"text":"x","at":"09:00","zone":"Asia/Shanghai"}`} {
		for _, name := range []string{toolSet, toolCancel, toolPause} {
			f.Add(name, s)
		}
	}
	f.Fuzz(func(t *testing.T, name, args string) {
		w := newWorld(t, "2026-12-01T08:30:00Z", Params{})
		c := call("c1", name, args)
		if r, ok := w.do(c).(*messages.ToolResult); !ok || r.GetCallId() != "c1" || (r.GetError() == nil) == (r.GetContent() == "") {
			t.Fatalf("%s %q: %v", name, args, r)
		}
	})
}

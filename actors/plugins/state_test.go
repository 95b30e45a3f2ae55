package plugins

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
	"homeagent/pluginhost"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	info  = pluginhost.Info{Name: "lamp", Kind: pluginhost.Builtin, Description: "Turns a lamp."}
	tools = kit.Path("tools")
	defs  = []*messages.ToolDef{
		{Name: "lamp_see", Effect: messages.ToolEffect_TOOL_EFFECT_PURE}, {Name: "lamp_turn", Effect: messages.ToolEffect_TOOL_EFFECT_ONCE},
	}
)

func script(t *testing.T, name string) *kittest.Script {
	s := kittest.New(t, name, New(Params{Info: info, Tools: tools}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("plugins/lamp")}})
	return s
}

func set(pairs ...string) kit.Event {
	c := &messages.ConfigChanged{}
	for i := 0; i < len(pairs); i += 2 {
		c.Values = append(c.Values, &messages.ConfigValue{Key: "plugin.lamp." + pairs[i], Value: pairs[i+1]})
	}
	return kit.Event{Corr: "config", Msg: c}
}

func callOf(id, name string) kit.Event {
	return kit.Event{From: tools, Corr: "call/" + id, Msg: &messages.CallTool{Call: &messages.ToolInvocation{CallId: id, Name: name}}}
}

var registered = kit.Event{From: tools, Corr: "register", Msg: &messages.Ok{}}

func running(s *kittest.Script) {
	s.Step(0, set("enabled", "true", "power", "5"))
	s.Step(0, kit.Event{Msg: configured{Tools: defs}})
	s.Step(0, registered)
}

func TestLife(t *testing.T) {
	s := script(t, "life")
	running(s)
	s.Note("the same values again: nothing to do")
	s.Step(time.Second, set("enabled", "true"))
	s.Note("a key changes, and again while the change is under way")
	s.Step(time.Second, set("power", "6"))
	s.Step(0, set("power", "7"))
	s.Step(0, kit.Event{Msg: configured{Tools: defs}})
	s.Step(0, kit.Event{Msg: configured{Tools: defs[:1]}})
	s.Step(0, registered)
	s.Note("turned off while a call runs, and on again before it is down")
	s.Step(time.Second, callOf("c1", "lamp_see"))
	s.Step(0, set("enabled", "false"))
	s.Step(0, kit.Event{Msg: ran{Job: 1, Result: &messages.ToolResult{Content: "late"}}})
	s.Step(0, set("enabled", "true"))
	s.Step(0, kit.Event{Msg: halted{}})
	s.Step(0, kit.Event{Msg: configured{Tools: defs}})
	s.Step(0, registered)
	s.Note("off")
	s.Step(time.Second, set("enabled", "false"))
	s.Step(0, kit.Event{Msg: halted{Err: errors.New("it hung")}})
	s.Step(0, callOf("c2", "lamp_see"))
	s.Note("tools was restarted: there is nothing to offer")
	s.Step(time.Second, kit.Event{Msg: &messages.PluginSpec{Name: "lamp"}})
	s.Show()
	s.Done()
}

func TestBroken(t *testing.T) {
	s := script(t, "broken")
	s.Step(0, set("enabled", "true"))
	s.Step(0, kit.Event{Msg: configured{Err: errors.New("no such port")}})
	s.Step(0, callOf("c1", "lamp_see"))
	s.Note("other settings")
	s.Step(time.Second, set("port", "3"))
	s.Step(0, kit.Event{Msg: configured{Tools: defs}})
	s.Note("tools is not there yet, is busy, and refuses")
	s.Step(0, kit.Event{Msg: kit.Fault{Effect: kit.Send{Corr: "register"}, Err: &messages.Error{Code: kit.CodeGone}}})
	s.Step(time.Second, kit.Event{Msg: again{}})
	s.Step(0, kit.Event{From: tools, Corr: "register", Msg: &messages.Busy{}})
	s.Step(time.Second, kit.Event{Msg: again{}})
	s.Step(0, kit.Event{From: tools, Corr: "register", Msg: &messages.Error{Code: "tool_exists", Message: "The tool is taken."}})
	s.Show()
	s.Done()
}

func TestCalls(t *testing.T) {
	s := script(t, "calls")
	running(s)
	s.Step(time.Second, callOf("c1", "lamp_see"))
	s.Step(250*time.Millisecond, kit.Event{Msg: ran{Job: 1, Result: &messages.ToolResult{Content: "on"}}})
	s.Step(0, callOf("c2", "lamp_sea"))
	c := callOf("c3", "lamp_turn")
	c.Msg.(*messages.CallTool).DeadlineUs = s.Now().Add(time.Second).UnixMicro()
	s.Step(0, c)
	s.Step(0, kit.Event{Msg: ran{Job: 2}})
	c = callOf("c4", "lamp_turn")
	c.Msg.(*messages.CallTool).DeadlineUs = s.Now().UnixMicro()
	s.Step(0, c)
	s.Step(250*time.Millisecond, kit.Event{Msg: tell{}})
	s.Note("cancels: of a call that may run again, of one that may not, and of none")
	s.Step(0, callOf("c5", "lamp_see"))
	s.Step(0, callOf("c6", "lamp_turn"))
	for _, id := range []string{"c5", "c6", "c7"} {
		s.Step(0, kit.Event{From: tools, Msg: &messages.CancelTool{CallId: id, Reason: "stop"}})
	}
	s.Step(0, kit.Event{Msg: ran{Job: 4, Result: &messages.ToolResult{Content: "late"}}})
	s.Done()
}

func TestRoot(t *testing.T) {
	s := kittest.New(t, "root", NewRoot([]pluginhost.Info{info, {Name: "door"}}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("plugins")}})
	view := func(name string, st messages.PluginState) kit.Event {
		return kit.Event{From: kit.Path("plugins/" + name), Msg: &messages.PluginView{Name: name, State: st}}
	}
	s.Step(0, view("lamp", messages.PluginState_PLUGIN_STATE_RUNNING))
	s.Step(0, view("door", messages.PluginState_PLUGIN_STATE_BROKEN))
	s.Step(0, kit.Event{From: kit.Path("admin"), Corr: "l", Msg: &messages.ListPlugins{}})
	s.Step(0, kit.Event{From: kit.Path("admin"), Corr: "l", Msg: &messages.ListPlugins{Name: "lamp"}})
	s.Step(0, kit.Event{From: kit.Path("admin"), Corr: "l", Msg: &messages.ListPlugins{Name: "lam"}})
	s.Note("a proxy that was restarted tells for itself; tools that was restarted is told on")
	s.Step(0, kit.Event{Msg: kit.Restarted{Who: kit.Path("plugins/lamp"), Name: "lamp"}})
	s.Step(0, kit.Event{Msg: kit.Restarted{Who: tools}})
	s.Step(time.Second, kit.Event{Msg: kit.Ended{Who: kit.Path("plugins/lamp"), Name: "lamp", Failure: "it panicked"}})
	s.Note("it is started again; one that stands is left alone")
	for _, name := range []string{"lamp", "lamp", "lam"} {
		s.Step(0, kit.Event{From: kit.Path("admin"), Corr: "s", Msg: &messages.PluginSpec{Name: name}})
	}
	s.Step(0, kit.Event{From: kit.Path("admin"), Corr: "d", Msg: &messages.Drain{}})
	s.Show()
	s.Done()
}

// TestRootLate is ready although a plugin says nothing.
func TestRootLate(t *testing.T) {
	s := kittest.New(t, "root_late", NewRoot([]pluginhost.Info{info}), start)
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("plugins")}})
	s.Step(startLimit, kit.Event{Msg: late{}})
	s.Step(time.Second, kit.Event{Msg: &messages.PluginView{Name: "lamp", State: messages.PluginState_PLUGIN_STATE_RUNNING}})
	s.Done()
}

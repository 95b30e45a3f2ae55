package plugins

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
	"homeagent/pluginhost"
)

// faulty is a plugin whose tools misbehave.
type faulty struct{ stopped chan struct{} }

func (*faulty) Info() pluginhost.Info { return pluginhost.Info{Name: "lamp", Kind: pluginhost.Builtin} }

func (*faulty) Configure(_ context.Context, s pluginhost.Settings) ([]*messages.ToolDef, error) {
	if s["plugin.lamp.mode"] == "panic" {
		panic("configure")
	}
	return []*messages.ToolDef{{Name: "panics"}, {Name: "waits", Effect: messages.ToolEffect_TOOL_EFFECT_PURE}, {Name: "nothing"}}, nil
}

func (*faulty) Call(ctx context.Context, c *messages.CallTool) *messages.ToolResult {
	switch c.GetCall().GetName() {
	case "panics":
		panic("call")
	case "waits":
		<-ctx.Done()
		return pluginhost.Failed(pluginhost.ReasonTimeout, "", context.Cause(ctx).Error(), "")
	}
	return nil
}

func (f *faulty) Stop(context.Context) error {
	f.stopped <- struct{}{}
	return errors.New("it does not want to")
}

// desk stands for tools and config: it answers registrations and shows what it was told.
type desk struct{ seen chan proto.Message }

func (d desk) Step(_ time.Time, e kit.Event) []kit.Effect {
	if _, ok := e.Msg.(kit.Started); ok {
		return []kit.Effect{kit.Ready{}}
	}
	m, ok := e.Msg.(proto.Message)
	if !ok {
		return nil
	}
	d.seen <- m
	if _, ok := m.(*messages.RegisterTools); ok {
		return []kit.Effect{e.Reply(&messages.Ok{})}
	}
	return nil
}

func TestFaultyPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, err := kit.NewRuntime(kit.Config{Node: "home", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		f := &faulty{stopped: make(chan struct{}, 4)}
		d := Deps{Plugins: map[string]pluginhost.Plugin{"lamp": f}, Tools: kit.Path("tools")}
		rt.Register(ProxyKind, d.ProxyProps)
		seen := make(chan proto.Message, 64)
		for _, path := range []string{"tools", "config"} {
			if _, err := rt.SpawnTop(path, kit.Props{Kind: path, New: func() kit.Machine { return desk{seen} }}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := rt.SpawnTop("plugins", d.Props()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		set := func(pairs ...string) {
			c := &messages.ConfigChanged{}
			for i := 0; i < len(pairs); i += 2 {
				c.Values = append(c.Values, &messages.ConfigValue{Key: "plugin.lamp." + pairs[i], Value: pairs[i+1]})
			}
			if err := rt.Tell(kit.Path("plugins/lamp"), c); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		state := func() messages.PluginState {
			got, err := rt.Ask(t.Context(), kit.Path("plugins"), &messages.ListPlugins{Name: "lamp"})
			if err != nil {
				t.Fatal(err)
			}
			return got.(*messages.PluginList).GetPlugins()[0].GetState()
		}
		call := func(name string, limit time.Duration) *messages.ToolResult {
			got, err := rt.Ask(t.Context(), kit.Path("plugins/lamp"), &messages.CallTool{
				Call: &messages.ToolInvocation{CallId: "c", Name: name}, DeadlineUs: time.Now().Add(limit).UnixMicro(),
			})
			if err != nil {
				t.Fatal(err)
			}
			return got.(*messages.ToolResult)
		}
		set("enabled", "true", "mode", "panic")
		if got := state(); got != messages.PluginState_PLUGIN_STATE_BROKEN {
			t.Errorf("a plugin that panics is %v", got)
		}
		set("mode", "well")
		if got := state(); got != messages.PluginState_PLUGIN_STATE_RUNNING {
			t.Errorf("a plugin is %v", got)
		}
		for range 3 {
			if r := call("panics", time.Minute); r.GetError().GetReason() != "failed" || r.GetCallId() != "c" || r.GetName() != "panics" {
				t.Errorf("a panic: %v", r)
			}
		}
		if r := call("waits", time.Second); r.GetError().GetReason() != "timeout" {
			t.Errorf("a deadline: %v", r)
		}
		if r := call("nothing", time.Minute); r.GetError().GetReason() != "failed" {
			t.Errorf("no result: %v", r)
		}
		set("enabled", "false")
		<-f.stopped
		synctest.Wait()
		if got := state(); got != messages.PluginState_PLUGIN_STATE_DISABLED {
			t.Errorf("turned off it is %v", got)
		}
		if err := rt.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		<-f.stopped // the proxy lets go of its plugin when it ends
	})
}

package plugins

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
	"homeagent/pluginhost"
)

// startLimit is how long the root waits for its proxies before it is ready without them.
const startLimit = 10 * time.Second

// root is the machine of plugins.
type root struct {
	self  *messages.Address
	names []string // sorted
	views map[string]*messages.PluginView
	ended map[string]bool
	ready bool
}

// NewRoot makes the machine of the root.
func NewRoot(infos []pluginhost.Info) kit.Machine {
	r := &root{views: map[string]*messages.PluginView{}, ended: map[string]bool{}}
	for _, i := range infos {
		r.names = append(r.names, i.Name)
		r.views[i.Name] = view(i)
	}
	slices.Sort(r.names)
	return r
}

// view is what is known of a plugin from the start.
func view(i pluginhost.Info) *messages.PluginView {
	return &messages.PluginView{
		Name: i.Name, Kind: string(i.Kind), Version: i.Version, Description: i.Description,
		State: messages.PluginState_PLUGIN_STATE_STARTING,
	}
}

// Step implements kit.Machine.
func (r *root) Step(now time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case kit.Started:
		r.self = m.Self
		out := []kit.Effect{kit.After{Key: "late", D: startLimit, Msg: late{}}}
		for _, n := range r.names {
			out = append(out, kit.Spawn{Kind: ProxyKind, Name: n, Params: &messages.PluginSpec{Name: n}, Watch: true})
		}
		return append(out, r.settle()...)
	case kit.Restarted:
		return r.onRestarted(m)
	case kit.Ended:
		return r.onEnded(m, now)
	case kit.Fault:
		return r.onFault(m, now)
	case *messages.PluginView:
		if r.views[m.GetName()] != nil {
			r.views[m.GetName()] = m
		}
		return r.settle()
	case *messages.ListPlugins:
		return []kit.Effect{e.Reply(r.list(m.GetName()))}
	case *messages.PluginSpec:
		return r.stand(e, m)
	case late:
		r.ready = true
		return []kit.Effect{kit.Ready{}, r.state()}
	case *messages.Drain:
		return []kit.Effect{e.Reply(&messages.Ok{})}
	}
	return nil
}

// settle is ready once nothing starts any more.
func (r *root) settle() []kit.Effect {
	if r.ready {
		return []kit.Effect{r.state()}
	}
	for _, v := range r.views {
		if v.GetState() == messages.PluginState_PLUGIN_STATE_STARTING {
			return []kit.Effect{r.state()}
		}
	}
	r.ready = true
	return []kit.Effect{r.state(), kit.CancelAfter{Key: "late"}, kit.Ready{}}
}

func (r *root) state() kit.State {
	counts := map[messages.PluginState]int{}
	for _, v := range r.views {
		counts[v.GetState()]++
	}
	text := fmt.Sprintf("%d of %d running", counts[messages.PluginState_PLUGIN_STATE_RUNNING], len(r.names))
	if n := counts[messages.PluginState_PLUGIN_STATE_BROKEN]; n > 0 {
		text += fmt.Sprintf(", %d broken", n)
	}
	word := "ready"
	if !r.ready {
		word = "starting"
	}
	return kit.State{Word: word, Summary: text}
}

// onRestarted tells the proxies of a restart of what they need. That of a proxy is its own matter.
func (r *root) onRestarted(m kit.Restarted) []kit.Effect {
	if m.Name != "" {
		return nil
	}
	var out []kit.Effect
	for _, n := range r.names {
		out = append(out, kit.Send{To: r.proxy(n), Msg: &messages.PluginSpec{Name: n}})
	}
	return out
}

func (r *root) proxy(name string) *messages.Address {
	return &messages.Address{Node: r.self.GetNode(), Path: r.self.GetPath() + "/" + name, Epoch: r.self.GetEpoch()}
}

func (r *root) onEnded(m kit.Ended, now time.Time) []kit.Effect {
	if m.Failure == "" { // a person, or the node that ends
		return r.broken(m.Name, "it was stopped", kit.Info, now)
	}
	return r.broken(m.Name, m.Failure, kit.Error, now)
}

// onFault is a proxy that could not be spawned.
func (r *root) onFault(f kit.Fault, now time.Time) []kit.Effect {
	if s, ok := f.Effect.(kit.Spawn); ok {
		return r.broken(s.Name, f.Err.GetMessage(), kit.Error, now)
	}
	return nil
}

// stand starts a proxy again that has ended.
func (r *root) stand(e kit.Event, m *messages.PluginSpec) []kit.Effect {
	name := m.GetName()
	old := r.views[name]
	switch {
	case old == nil:
		return []kit.Effect{e.Reply(errUnknown(name, r.names))}
	case !r.ended[name]:
		return []kit.Effect{e.Reply(&messages.Ok{})}
	}
	delete(r.ended, name)
	v := proto.CloneOf(old)
	v.State, v.Problem = messages.PluginState_PLUGIN_STATE_STARTING, nil
	r.views[name] = v
	return []kit.Effect{kit.Spawn{Kind: ProxyKind, Name: name, Params: m, Watch: true}, r.state(), e.Reply(&messages.Ok{})}
}

func (r *root) broken(name, failure string, level kit.LogLevel, now time.Time) []kit.Effect {
	old := r.views[name]
	if old == nil {
		return nil
	}
	r.ended[name] = true
	r.views[name] = &messages.PluginView{
		Name: name, Kind: old.GetKind(), Version: old.GetVersion(), Description: old.GetDescription(),
		State: messages.PluginState_PLUGIN_STATE_BROKEN, Problem: errEnded(name, failure), SinceUs: now.UnixMicro(),
		Calls: old.GetCalls(), Failed: old.GetFailed(),
	}
	return append(r.settle(), kit.Log{Level: level, Text: "plugin has ended", Attrs: []any{"plugin", name, "failure", failure}})
}

func (r *root) list(name string) proto.Message {
	if name != "" && r.views[name] == nil {
		return errUnknown(name, r.names)
	}
	l := &messages.PluginList{}
	for _, n := range r.names {
		if name == "" || n == name {
			l.Plugins = append(l.Plugins, r.views[n])
		}
	}
	return l
}

// Show implements kit.Shower.
func (r *root) Show() any {
	out := map[string]string{}
	for _, n := range r.names {
		out[n] = stateWord(r.views[n].GetState())
	}
	return map[string]any{"plugins": out}
}

func stateWord(s messages.PluginState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "PLUGIN_STATE_"))
}

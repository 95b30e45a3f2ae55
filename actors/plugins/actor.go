package plugins

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
	"homeagent/pluginhost"
)

// Rows of this package in the kernel's table.
const (
	// Kind is the root, at plugins.
	Kind = "plugins"
	// ProxyKind is the proxy of one plugin, at plugins/<name>; spawned with its PluginSpec.
	ProxyKind = "plugin"
)

// Deps are what the kernel gives the actors of this package.
type Deps struct {
	// Plugins are all of the node, by name; they are used by their proxy alone.
	Plugins map[string]pluginhost.Plugin
	// Tools is the registry of tools.
	Tools *messages.Address
}

// Props makes the root.
func (d Deps) Props() kit.Props {
	infos := make([]pluginhost.Info, 0, len(d.Plugins))
	for _, p := range d.Plugins {
		infos = append(infos, p.Info())
	}
	return kit.Props{Kind: Kind, New: func() kit.Machine { return NewRoot(infos) }}
}

// limits of what a plugin does beside its calls.
const (
	configureLimit = 30 * time.Second
	haltLimit      = 5 * time.Second
)

// ProxyProps makes a proxy from its PluginSpec.
func (d Deps) ProxyProps(params proto.Message) (kit.Props, error) {
	spec, ok := params.(*messages.PluginSpec)
	if !ok {
		return kit.Props{}, fmt.Errorf("a proxy is made from a PluginSpec, not from %T", params)
	}
	p := d.Plugins[spec.GetName()]
	if p == nil {
		return kit.Props{}, fmt.Errorf("there is no plugin %q", spec.GetName())
	}
	return kit.Props{
		Kind:    ProxyKind,
		New:     func() kit.Machine { return New(Params{Info: p.Info(), Tools: d.Tools}) },
		Perform: func(sh kit.Shell, e kit.Effect) { perform(p, sh, e) },
		Close: func() {
			ctx, cancel := context.WithTimeout(context.Background(), haltLimit)
			defer cancel()
			_ = stop(ctx, p) // the actor has ended: there is nobody to tell
		},
	}, nil
}

func perform(p pluginhost.Plugin, sh kit.Shell, e kit.Effect) {
	switch e := e.(effect).(type) {
	case configure:
		sh.Go("life", configureLimit, func(ctx context.Context, _ func(any)) any { return bringUp(ctx, p, e.Settings) })
	case halt:
		sh.Go("life", haltLimit, func(ctx context.Context, _ func(any)) any { return halted{stop(ctx, p)} })
	case run:
		log := sh.Log()
		sh.Go(workKey(e.Job), e.Limit, func(ctx context.Context, _ func(any)) (out any) {
			defer func() {
				if r := recover(); r != nil {
					log.Error("plugin panicked", "tool", e.Call.GetCall().GetName(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
					out = ran{e.Job, pluginhost.Failed(pluginhost.ReasonFailed, "", "The tool failed by a fault of its own.", "Calling it again in the same way is of no use.")}
				}
			}()
			return ran{e.Job, p.Call(ctx, e.Call)}
		})
	}
}

// errPanic is a plugin that panicked outside of a call.
type errPanic struct{ reason any }

func (e errPanic) Error() string { return fmt.Sprintf("it panicked: %v", e.reason) }

func bringUp(ctx context.Context, p pluginhost.Plugin, s pluginhost.Settings) (out configured) {
	defer func() {
		if r := recover(); r != nil {
			out = configured{Err: errPanic{r}}
		}
	}()
	tools, err := p.Configure(ctx, s)
	return configured{tools, err}
}

func stop(ctx context.Context, p pluginhost.Plugin) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errPanic{r}
		}
	}()
	return p.Stop(ctx)
}

func workKey(job uint64) string { return fmt.Sprint("job/", job) }

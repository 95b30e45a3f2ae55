package admin

import (
	"context"
	"net/http"
	"strings"
	"time"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/messages/api"
)

func (f *face) pluginsOf(ctx context.Context, name string) (*messages.PluginList, *refusal) {
	return ask[*messages.PluginList](f, ctx, askLimit, "plugins", &messages.ListPlugins{Name: name})
}

// plugins is GET /api/v1/plugins.
func (f *face) plugins(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	l, no := f.pluginsOf(r.Context(), "")
	if no != nil {
		return nil, no
	}
	return api.Plugins{Plugins: list(l.GetPlugins(), plugin)}, nil
}

// plugin is GET /api/v1/plugins/{name}, with its settings.
func (f *face) plugin(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.knownPlugin(r.Context(), r.PathValue("name"))
}

func (f *face) shownPlugin(ctx context.Context, p *messages.PluginView) (any, *refusal) {
	v, no := ask[*messages.ConfigValues](f, ctx, askLimit, "config", &messages.ConfigList{Prefix: configs.PluginPrefix(p.GetName())})
	if no != nil {
		return nil, no
	}
	out := plugin(p)
	out.Values = list(v.GetValues(), value)
	return out, nil
}

func (f *face) onePlugin(ctx context.Context, name string) (*messages.PluginView, *refusal) {
	if name == "" {
		return nil, malformed("The name of the plugin is missing.", "")
	}
	l, no := f.pluginsOf(ctx, name)
	if no != nil {
		return nil, no
	}
	if len(l.GetPlugins()) != 1 {
		return nil, refused(http.StatusNotFound, "unknown_plugin", "There is no such plugin.", "GET /api/v1/plugins shows all.").with("plugin", name)
	}
	return l.GetPlugins()[0], nil
}

// enablePlugin is POST /api/v1/plugins/{name}/enable.
func (f *face) enablePlugin(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.turnPlugin(r.Context(), r.PathValue("name"), true)
}

// disablePlugin is POST /api/v1/plugins/{name}/disable.
func (f *face) disablePlugin(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.turnPlugin(r.Context(), r.PathValue("name"), false)
}

const (
	// turnLimit is how long a plugin may take to follow its key before it is shown as it is.
	turnLimit = 5 * time.Second
	turnLook  = 20 * time.Millisecond
)

// turnPlugin sets the key and shows the plugin once it has followed.
func (f *face) turnPlugin(ctx context.Context, name string, on bool) (any, *refusal) {
	if _, no := f.onePlugin(ctx, name); no != nil {
		return nil, no
	}
	word := "false"
	if on {
		word = "true"
	}
	got, no := ask[*messages.ConfigSetResult](f, context.WithoutCancel(ctx), submitLimit, "config", &messages.ConfigSet{
		Principal: owner(), Entries: []*messages.ConfigEntry{{Key: configs.PluginEnabled(name), Value: &word}},
	})
	if no != nil {
		return nil, no
	}
	if got.GetError() != nil {
		return nil, refusalOf(got.GetError())
	}
	if on { // its proxy may have ended
		if _, no := ask[*messages.Ok](f, ctx, askLimit, "plugins", &messages.PluginSpec{Name: name}); no != nil {
			return nil, no
		}
	}
	limit, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	look := time.NewTicker(turnLook)
	defer look.Stop()
	for {
		// The proxy itself has heard of the key by now; plugins may not have heard of it from the proxy.
		l, no := ask[*messages.PluginList](f, ctx, askLimit, "plugins/"+name, &messages.ListPlugins{})
		if no != nil && no.body.Code == api.CodeUnavailable {
			return f.knownPlugin(ctx, name)
		}
		if no != nil {
			return nil, no
		}
		p := l.GetPlugins()[0]
		off := p.GetState() == messages.PluginState_PLUGIN_STATE_DISABLED
		if p.GetState() != messages.PluginState_PLUGIN_STATE_STARTING && off != on || limit.Err() != nil {
			return f.shownPlugin(ctx, p)
		}
		select {
		case <-look.C:
		case <-limit.Done():
		}
	}
}

// knownPlugin shows a plugin as plugins knows it, also when its proxy is not there.
func (f *face) knownPlugin(ctx context.Context, name string) (any, *refusal) {
	p, no := f.onePlugin(ctx, name)
	if no != nil {
		return nil, no
	}
	return f.shownPlugin(ctx, p)
}

func plugin(p *messages.PluginView) api.Plugin {
	out := api.Plugin{
		Name: p.GetName(), Kind: p.GetKind(), Version: p.GetVersion(), Description: p.GetDescription(),
		State: strings.ToLower(strings.TrimPrefix(p.GetState().String(), "PLUGIN_STATE_")), Since: moment(p.GetSinceUs()),
		Problem: plainError(p.GetProblem()), Tools: p.GetTools(), Calls: p.GetCalls(), Failed: p.GetFailed(), Running: int(p.GetRunning()),
	}
	if out.Tools == nil {
		out.Tools = []string{}
	}
	return out
}

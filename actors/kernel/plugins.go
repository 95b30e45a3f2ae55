package kernel

import (
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/actors/plugins"
	"homeagent/configs"
	"homeagent/internal/egress"
	"homeagent/pluginhost"
	"homeagent/pluginhost/builtin/files"
	"homeagent/pluginhost/builtin/web"
)

// openPlugins makes the built-in plugins and declares their keys. They come up when their proxies do.
func (w *world) openPlugins() error {
	for _, b := range configs.Builtins() {
		if _, err := w.registry.Register(b.Plugin, b.Keys); err != nil {
			return err
		}
	}
	w.egress = egress.New(egress.Options{Agent: "homed/" + w.build.Version})
	w.onClose("egress", func() error { w.egress.Close(); return nil })
	w.allowEgress(w.settings())
	w.plugins = map[string]pluginhost.Plugin{}
	for _, p := range []pluginhost.Plugin{files.New(w.layout.Data()), web.New(w.egress)} {
		w.plugins[p.Info().Name] = p
	}
	return nil
}

// allowEgress puts core.egress.allow in force. What cannot be read lets nothing through.
func (w *world) allowEgress(s *configs.Snapshot) {
	if w.egress == nil {
		return // it is made after the first settings were read
	}
	a, err := egress.ParseAllow(s.List(configs.KeyEgressAllow))
	if err != nil {
		w.logger.Warn("allowed home addresses cannot be read; none is allowed", "key", configs.KeyEgressAllow, "error", err)
	}
	w.egress.SetAllow(a)
}

func pluginRows() []Row {
	deps := func(w *world) plugins.Deps { return plugins.Deps{Plugins: w.plugins, Tools: kit.Path("tools")} }
	return []Row{
		{
			Kind: plugins.Kind, Paths: []string{"plugins"}, Restart: part, System: true,
			Requires: []kit.Facility{kit.FacilityConfig, kit.FacilityTools}, Provides: []kit.Facility{kit.FacilityPlugins},
			Make: func(w *world, _ string, _ proto.Message) (kit.Props, error) { return deps(w).Props(), nil },
		},
		{
			Kind: plugins.ProxyKind, Restart: part,
			Make: func(w *world, _ string, params proto.Message) (kit.Props, error) { return deps(w).ProxyProps(params) },
		},
	}
}

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/pluginhost"
)

// settings are what the plugin was configured with last.
type settings struct {
	folders    []folder
	maxRead    int64
	maxWrite   int64
	maxEntries int
}

// Plugin is the engine; it keeps nothing open between calls.
type Plugin struct {
	data string
	now  atomic.Pointer[settings]
}

// New makes the plugin of a node with the given data folder.
func New(data string) *Plugin { return &Plugin{data: data} }

// Info implements pluginhost.Plugin.
func (*Plugin) Info() pluginhost.Info {
	return pluginhost.Info{Name: "files", Kind: pluginhost.Builtin, Description: "Lists, reads and writes files in folders that the owner named."}
}

// Configure implements pluginhost.Plugin. A folder that is not there is no error: it may come with its disk.
func (p *Plugin) Configure(_ context.Context, s pluginhost.Settings) ([]*messages.ToolDef, error) {
	all, err := folders(s.List(configs.KeyFilesRoots), filepath.Join(p.data, "files"))
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		root, err := f.open(p.data)
		if errors.Is(err, errOwnData) {
			return nil, fmt.Errorf("%s holds %q, and %w; name another folder", configs.KeyFilesRoots, f.dir, err)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the folder %s cannot be used: %w", f.dir, err)
		}
		if err == nil {
			_ = root.Close() // nothing was done with it
		}
	}
	p.now.Store(&settings{
		folders: all, maxRead: s.Size(configs.KeyFilesMaxRead), maxWrite: s.Size(configs.KeyFilesMaxWrite),
		maxEntries: s.Int(configs.KeyFilesMaxEntries),
	})
	return defs(all), nil
}

// Stop implements pluginhost.Plugin.
func (*Plugin) Stop(context.Context) error { return nil }

// Call implements pluginhost.Plugin.
func (p *Plugin) Call(ctx context.Context, c *messages.CallTool) *messages.ToolResult {
	set := p.now.Load()
	if set == nil {
		return pluginhost.Failed(pluginhost.ReasonFailed, "", "The plugin is down.", "")
	}
	r := &run{ctx: ctx, set: set, data: p.data, call: c}
	switch c.GetCall().GetName() {
	case toolList:
		return r.list()
	case toolRead:
		return r.read()
	case toolWrite:
		return r.write()
	case toolAppend:
		return r.append()
	}
	return pluginhost.Failed(pluginhost.ReasonNotFound, "", "This plugin has no tool "+c.GetCall().GetName()+".", "")
}

// run is one call.
type run struct {
	ctx  context.Context //nolint:containedctx // it lives as long as the call
	set  *settings
	data string
	call *messages.CallTool
}

// given up tells that the call was cancelled; nothing of it is done from here on.
func (r *run) givenUp() *messages.ToolResult {
	switch {
	case r.ctx.Err() == nil:
		return nil
	case errors.Is(r.ctx.Err(), context.DeadlineExceeded):
		return pluginhost.Failed(pluginhost.ReasonTimeout, "", "The time of the call is over; nothing was changed.", "")
	}
	return pluginhost.Failed(pluginhost.ReasonCancelled, "", "The call was cancelled; nothing was changed.", "")
}

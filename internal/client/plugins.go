package client

import (
	"context"
	"net/url"
)

// Plugins lists the plugins of the node.
func (c *Client) Plugins(ctx context.Context) (*Plugins, error) {
	return call[Plugins](ctx, c, "GET", root+"/plugins", nil)
}

// Plugin shows one plugin with its settings.
func (c *Client) Plugin(ctx context.Context, name string) (*Plugin, error) {
	return call[Plugin](ctx, c, "GET", root+"/plugins/"+url.PathEscape(name), nil)
}

// TurnPlugin turns a plugin on or off and shows it as it is then.
func (c *Client) TurnPlugin(ctx context.Context, name string, on bool) (*Plugin, error) {
	verb := "/disable"
	if on {
		verb = "/enable"
	}
	return call[Plugin](ctx, c, "POST", root+"/plugins/"+url.PathEscape(name)+verb, nil)
}

package client

import (
	"context"
	"net/url"
)

// Timers lists the timers of an agent, the next one first; empty means those of all agents.
func (c *Client) Timers(ctx context.Context, agent string) (*Timers, error) {
	return call[Timers](ctx, c, "GET", query(root+"/timers", "agent", agent), nil)
}

// AddTimer sets a timer.
func (c *Client) AddTimer(ctx context.Context, t AddTimer) (*Timer, error) {
	return call[Timer](ctx, c, "POST", root+"/timers", t)
}

// RemoveTimer removes a timer by its id, or by a name that only one has, and returns it as it was.
func (c *Client) RemoveTimer(ctx context.Context, id string) (*Timer, error) {
	return call[Timer](ctx, c, "DELETE", root+"/timers/"+url.PathEscape(id), nil)
}

// OrderTimer pauses, resumes or runs a timer.
func (c *Client) OrderTimer(ctx context.Context, id, verb string) (*Timer, error) {
	return call[Timer](ctx, c, "POST", root+"/timers/"+url.PathEscape(id)+"/"+verb, nil)
}

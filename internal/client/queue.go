package client

import (
	"context"
	"net/url"
	"strconv"
)

// Scheduler shows the queue of an agent, empty meaning main, with the first most of what waits; zero leaves that to the node.
func (c *Client) Scheduler(ctx context.Context, agent string, most int) (*Scheduler, error) {
	n := ""
	if most != 0 {
		n = strconv.Itoa(most)
	}
	return call[Scheduler](ctx, c, "GET", query(root+"/scheduler", "agent", agent, "most", n), nil)
}

// Promote puts a waiting input at the head of its level.
func (c *Client) Promote(ctx context.Context, id string) (*Work, error) {
	return call[Work](ctx, c, "POST", root+"/scheduler/"+url.PathEscape(id)+"/promote", nil)
}

// CancelWaiting ends a waiting or parked input without running it, and returns it as it was.
func (c *Client) CancelWaiting(ctx context.Context, id string) (*Work, error) {
	return call[Work](ctx, c, "POST", root+"/scheduler/"+url.PathEscape(id)+"/cancel", nil)
}

// ChangeWaiting gives a waiting input another text, another level, or both.
func (c *Client) ChangeWaiting(ctx context.Context, id string, change ChangeWaiting) (*Work, error) {
	return call[Work](ctx, c, "PUT", root+"/scheduler/"+url.PathEscape(id), change)
}

package client

import (
	"context"
	"net/url"

	"homeagent/messages/api"
)

// The structs of approvals and tokens; see messages/api for what they hold.
type (
	Approval    = api.Approval
	Approvals   = api.Approvals
	Principal   = api.Principal
	NamedToken  = api.NamedToken
	NamedTokens = api.NamedTokens
	AddToken    = api.AddToken
)

// Approvals lists the calls that wait for a person's word, oldest first; with all also those that were decided. A task
// limits the list to that one.
func (c *Client) Approvals(ctx context.Context, all bool, task string) (*Approvals, error) {
	flag := ""
	if all {
		flag = "true"
	}
	return call[Approvals](ctx, c, "GET", query(root+"/approvals", "all", flag, "task", task), nil)
}

// Approval shows one, decided or not.
func (c *Client) Approval(ctx context.Context, id string) (*Approval, error) {
	return call[Approval](ctx, c, "GET", root+"/approvals/"+url.PathEscape(id), nil)
}

// Decide allows or denies the call that was shown with this hash. note is a word to the model and may be empty.
func (c *Client) Decide(ctx context.Context, id, hash string, allow bool, note string) (*Approval, error) {
	verb := "/deny"
	if allow {
		verb = "/allow"
	}
	return call[Approval](ctx, c, "POST", root+"/approvals/"+url.PathEscape(id)+verb, api.Decide{Hash: hash, Note: note})
}

// NamedTokens lists the tokens, without the tokens themselves.
func (c *Client) NamedTokens(ctx context.Context) (*NamedTokens, error) {
	return call[NamedTokens](ctx, c, "GET", root+"/tokens", nil)
}

// AddToken makes a token; only this answer holds it.
func (c *Client) AddToken(ctx context.Context, t AddToken) (*NamedToken, error) {
	return call[NamedToken](ctx, c, "POST", root+"/tokens", t)
}

// RemoveToken takes a token back; it works no more when this returns.
func (c *Client) RemoveToken(ctx context.Context, name string) (*NamedToken, error) {
	return call[NamedToken](ctx, c, "DELETE", root+"/tokens/"+url.PathEscape(name), nil)
}

// Pending lists the approvals that tasks of this conversation wait for.
func (s *Session) Pending(ctx context.Context) ([]Approval, error) {
	l, err := s.c.Approvals(ctx, false, "")
	if err != nil {
		return nil, err
	}
	var out []Approval
	for _, a := range l.Approvals {
		if a.Channel == s.o.Channel && a.Conversation == s.o.Conversation {
			out = append(out, a)
		}
	}
	return out, nil
}

// approval shows that a call waits for a person, or waits no more.
func (s *Session) approval(e *Event, to Screen) {
	if e.Approval == nil {
		return
	}
	kind := "approval_over"
	if e.Approval.State == "pending" {
		kind = "approval"
	}
	to.Note(Note{Kind: kind, Task: e.TaskID, Text: e.Approval.State, Approval: e.Approval})
}

package admin

import (
	"context"
	"net/http"

	"homeagent/messages"
	"homeagent/messages/api"
)

// approvals is GET /api/v1/approvals?all=&task=.
func (f *face) approvals(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	all, no := flag(r, "all")
	if no != nil {
		return nil, no
	}
	l, no := f.approvalsOf(r.Context(), &messages.ListApprovals{All: all, TaskId: r.URL.Query().Get("task")})
	if no != nil {
		return nil, no
	}
	return api.Approvals{Approvals: list(l.GetApprovals(), approval)}, nil
}

func (f *face) approvalsOf(ctx context.Context, q *messages.ListApprovals) (*messages.ApprovalList, *refusal) {
	return ask[*messages.ApprovalList](f, ctx, askLimit, "guard", q)
}

// approval is GET /api/v1/approvals/{id}, decided or not.
func (f *face) approval(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	id := r.PathValue("id")
	l, no := f.approvalsOf(r.Context(), &messages.ListApprovals{All: true, ApprovalId: id})
	switch {
	case no != nil:
		return nil, no
	case len(l.GetApprovals()) == 0:
		return nil, refused(404, "unknown_approval", "There is no such approval.", "`waiter approvals`, or GET /api/v1/approvals, shows those that wait.").
			with("approval", id)
	}
	return approval(l.GetApprovals()[0]), nil
}

// allow is POST /api/v1/approvals/{id}/allow, deny is …/deny.
func (f *face) allow(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.decide(w, r, true)
}

func (f *face) deny(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	return f.decide(w, r, false)
}

// decide hands a decision over. The hash of what was shown must come with it: nobody decides about what they have not
// seen.
func (f *face) decide(w http.ResponseWriter, r *http.Request, allow bool) (any, *refusal) {
	var d api.Decide
	if no := decode(w, r, &d, true); no != nil {
		return nil, no
	}
	if d.Hash == "" {
		return nil, malformed("The decision lacks the hash of the call.", "Send the hash that GET /api/v1/approvals shows.").with("field", "hash")
	}
	got, no := ask[*messages.Approval](f, context.WithoutCancel(r.Context()), askLimit, "guard", &messages.DecideApproval{
		ApprovalId: r.PathValue("id"), Hash: d.Hash, Allow: allow, Principal: asker(r), Note: d.Note,
	})
	if no != nil {
		return nil, no
	}
	return approval(got), nil
}

func principal(p *messages.Principal) api.Principal {
	return api.Principal{ID: p.GetId(), Name: p.GetName(), Kind: word(p.GetKind(), "PRINCIPAL_KIND_")}
}

func approval(a *messages.Approval) api.Approval {
	call := call(a.GetCall())
	out := api.Approval{
		ID: a.GetApprovalId(), State: word(a.GetState(), "APPROVAL_STATE_"), TaskID: a.GetTaskId(), Agent: a.GetAgent(),
		Tool: call.Name, Class: word(a.GetToolClass(), "TOOL_CLASS_"), CallID: call.CallID, Arguments: call.Arguments, Hash: a.GetHash(),
		Principals: list(a.GetPrincipals(), principal), Channel: a.GetChannel(), Conversation: a.GetConversation(),
		Taint: word(a.GetTaint(), "TAINT_"), Reason: a.GetReason(), Created: moment(a.GetCreatedUs()), Expires: moment(a.GetExpiresUs()),
		Decided: moment(a.GetDecidedUs()), Note: a.GetNote(), ReleasedFor: a.GetReleasedFor(),
	}
	if a.GetDecidedBy() != nil {
		by := principal(a.GetDecidedBy())
		out.DecidedBy = &by
	}
	return out
}

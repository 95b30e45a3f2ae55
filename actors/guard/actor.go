package guard

import (
	"context"
	"errors"
	"time"

	"homeagent/actors/kit"
	"homeagent/memory/approvals"
	"homeagent/messages"
)

// Kind of guard in the kernel's table.
const Kind = "guard"

// Engine is what the actor needs of the engine; memory/approvals has it. It is called by several workers at a time.
type Engine interface {
	List(want func(*messages.Approval) bool) (list []*messages.Approval, damaged []string, err error)
	Get(id string) (*messages.Approval, error)
	Tokens() (list []approvals.Token, damaged int, err error)
}

var _ Engine = (*approvals.Engine)(nil)

// Deps of the actor.
type Deps struct {
	// Engine is owned by the caller.
	Engine Engine
	// Ledger is the only writer of the store.
	Ledger *messages.Address
}

// readLimit is how long the store may take to answer a question.
const readLimit = 10 * time.Second

// Props makes the actor.
func Props(d Deps) kit.Props {
	return kit.Props{
		Kind:    Kind,
		New:     func() kit.Machine { return New(d.Ledger) },
		Perform: func(sh kit.Shell, e kit.Effect) { perform(d, sh, e) },
	}
}

func perform(d Deps, sh kit.Shell, e kit.Effect) {
	switch e := e.(effect).(type) {
	case load:
		sh.Go("load", 0, func(context.Context, func(any)) any { return loadAll(d.Engine) })
	case read:
		sh.Go("read", readLimit, func(context.Context, func(any)) any { return find(d.Engine, e) })
	}
}

// loadAll reads everything; of what is decided only what a verdict needs is kept.
func loadAll(en Engine) loaded {
	var out loaded
	pending, damaged, err := en.List(func(a *messages.Approval) bool {
		if a.GetState() == messages.ApprovalState_APPROVAL_STATE_PENDING {
			return true
		}
		out.List = append(out.List, slim(a))
		return false
	})
	out.List, out.Damaged, out.Err = append(out.List, pending...), damaged, err
	tokens, spoilt, err := en.Tokens()
	for _, t := range tokens {
		out.Tokens = append(out.Tokens, named(t))
	}
	out.Spoilt, out.Err = spoilt, errors.Join(out.Err, err)
	return out
}

func find(en Engine, r read) found {
	out := found{Ask: r.Ask, One: r.One, ID: r.Query.GetApprovalId()}
	q := r.Query
	if id := q.GetApprovalId(); id != "" {
		a, err := en.Get(id)
		switch {
		case errors.Is(err, approvals.ErrNotFound):
		case err != nil:
			out.Err = err
		case q.GetTaskId() == "" || q.GetTaskId() == a.GetTaskId():
			out.List = []*messages.Approval{a}
		}
		return out
	}
	out.List, _, out.Err = en.List(func(a *messages.Approval) bool {
		return (q.GetAll() || a.GetState() == messages.ApprovalState_APPROVAL_STATE_PENDING) &&
			(q.GetTaskId() == "" || q.GetTaskId() == a.GetTaskId())
	})
	return out
}

package main

import (
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// permit answers for guard: all that turns ask may run.
type permit struct{}

// Step implements kit.Machine.
func (permit) Step(_ time.Time, e kit.Event) []kit.Effect {
	switch m := e.Msg.(type) {
	case kit.Started:
		return []kit.Effect{kit.Ready{}}
	case *messages.CheckCalls:
		v := &messages.CallVerdicts{}
		for _, c := range m.GetCalls() {
			v.Verdicts = append(v.Verdicts, &messages.CallVerdict{CallId: c.GetCallId(), Verdict: messages.Verdict_VERDICT_ALLOW})
		}
		return []kit.Effect{e.Reply(v)}
	case *messages.ListApprovals:
		return []kit.Effect{e.Reply(&messages.ApprovalList{})}
	case *messages.ReleaseApprovals:
		return []kit.Effect{e.Reply(&messages.Ok{})}
	}
	return nil
}

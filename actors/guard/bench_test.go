package guard

import (
	"fmt"
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// BenchmarkCheck is the step for a call that may run, beside many kept approvals.
func BenchmarkCheck(b *testing.B) {
	m := New(ledger)
	var held []*messages.Approval
	for i := range keepDecided {
		c := &messages.CheckCalls{TaskId: fmt.Sprint(i), Agent: "main", Principals: []*messages.Principal{owner}}
		a := question(c, call(fmt.Sprintf("%d/1/c0", i), "shell", "{}"), shell, "", start, time.Hour)
		if i >= 50 {
			a.State, a.DecidedUs = messages.ApprovalState_APPROVAL_STATE_ALLOWED, start.UnixMicro()
		}
		held = append(held, a)
	}
	for _, e := range []any{kit.Started{Self: kit.Path("guard")}, loaded{List: held}, policy()} {
		m.Step(start, kit.Event{Msg: e})
	}
	e := asking("c", note, call("T1/1/c0", "note", `{"text":"hello"}`))
	b.ReportAllocs()
	for b.Loop() {
		if len(m.Step(start, e)) != 1 {
			b.Fatal("more than an answer")
		}
	}
}

package guard

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/messages"
)

// kept makes an approval as the store holds it.
func kept(t *testing.T, task, callID string, state messages.ApprovalState) *messages.Approval {
	t.Helper()
	c := &messages.CheckCalls{
		TaskId: task, Agent: "main", Principals: []*messages.Principal{owner}, Channel: "cli", Conversation: "home", Taint: messages.Taint_TAINT_TRUSTED,
	}
	a := question(c, call(callID, "shell", `{"argv":["ls"]}`), shell, "why", start.Add(-time.Hour), 7*24*time.Hour)
	if state != messages.ApprovalState_APPROVAL_STATE_PENDING {
		a.State, a.DecidedUs, a.DecidedBy = state, start.Add(-time.Minute).UnixMicro(), owner
		return slim(a)
	}
	return a
}

// verdicts are the answers to the last check among effects.
func verdicts(t *testing.T, out []kit.Effect) []*messages.CallVerdict {
	t.Helper()
	v, _ := sent[*messages.CallVerdicts](t, out)
	return v.GetVerdicts()
}

func none[T any](t *testing.T, out []kit.Effect) {
	t.Helper()
	for _, e := range out {
		var m any
		switch e := e.(type) {
		case kit.Send:
			m = e.Msg
		case kit.Reply:
			m = e.Msg
		}
		if x, is := m.(T); is {
			t.Errorf("%v came, and should not", x)
		}
	}
}

func TestStart(t *testing.T) {
	s := script(t, "begin", policy())
	s.Note("what comes before the approvals and the policy are known waits: see the next machine")
	s.Step(time.Second, asking("c1", note, call("T1/1/c0", "note", `{}`)))
	s.Done()

	m := New(ledger)
	m.Step(start, kit.Event{Msg: kit.Started{Self: kit.Path("guard")}})
	for _, e := range []kit.Event{asking("c1", note, call("T1/1/c0", "note", `{}`)), {Msg: policy(configs.GuardKey("owner", "write"), "deny")}} {
		none[*messages.CallVerdicts](t, m.Step(start, e))
	}
	out := m.Step(start, kit.Event{Msg: loaded{}})
	if v := verdicts(t, out); v[0].GetVerdict() != deny || !hasReady(out) {
		t.Errorf("answered %v", v)
	}
}

// TestRestart gives a machine what an earlier one had decided and asked.
func TestRestart(t *testing.T) {
	allowed := kept(t, "T1", "T1/1/c0", messages.ApprovalState_APPROVAL_STATE_ALLOWED)
	pending := kept(t, "T2", "T2/1/c0", messages.ApprovalState_APPROVAL_STATE_PENDING)
	orphan := kept(t, "T3", "T3/1/c0", messages.ApprovalState_APPROVAL_STATE_PENDING)
	s := script(t, "restart", policy(), allowed, pending, orphan)
	s.Note("ledger was asked what became of the tasks: T1 is parked, T2 too, T3 has ended")
	out := s.Step(0, kit.Event{From: ledger, Corr: "task/T1", Msg: &messages.TaskStatus{State: messages.TaskState_TASK_STATE_PARKED}})
	if m, _ := sent[*messages.ApprovalsDecided](t, out); m.GetTaskId() != "T1" {
		t.Errorf("told %v", m)
	}
	out = s.Step(0, kit.Event{From: ledger, Corr: "task/T2", Msg: &messages.TaskStatus{State: messages.TaskState_TASK_STATE_PARKED}})
	none[*messages.ApprovalsDecided](t, out)
	written(t, s, s.Step(0, kit.Event{From: ledger, Corr: "task/T3", Msg: &messages.TaskStatus{State: messages.TaskState_TASK_STATE_ENDED}}))
	s.Note("the scheduler was not there yet; it is told again")
	s.Step(0, kit.Event{Msg: kit.Fault{Effect: kit.Send{To: sched, Msg: &messages.ApprovalsDecided{TaskId: "T1"}}, Err: &messages.Error{Code: "actor_gone"}}})
	s.Step(tellAfter, kit.Event{Msg: tell{}})
	s.Step(tellAfter, kit.Event{Msg: tell{}})
	s.Note("both turns ask again")
	if v := verdicts(t, s.Step(0, asking("c1", shell, call("T1/1/c0", "shell", `{"argv":["ls"]}`)))); v[0].GetVerdict() != allow {
		t.Errorf("the decision is lost: %v", v)
	}
	e := asking("c2", shell, call("T2/1/c0", "shell", `{"argv":["ls"]}`))
	e.Msg.(*messages.CheckCalls).TaskId = "T2"
	if v := verdicts(t, s.Step(0, e)); v[0].GetVerdict() != ask || v[0].GetApprovalId() != pending.GetApprovalId() {
		t.Errorf("the question is another: %v", v)
	}
	s.Show()
	s.Done()
}

func TestExpiry(t *testing.T) {
	s := script(t, "expiry", policy(configs.KeyGuardExpiry, "1h"))
	out := written(t, s, s.Step(time.Second, asking("c1", shell, call("T1/1/c0", "shell", `{"argv":["ls"]}`))))
	id := verdicts(t, out)[0].GetApprovalId()
	s.Step(10*time.Minute, kit.Event{Msg: tick{}})
	s.Note("another expiry holds for what is asked about from now on; zero is never")
	s.Step(0, set(configs.KeyGuardExpiry, "0"))
	written(t, s, s.Step(0, asking("c2", shell, call("T1/1/c1", "shell", `{}`))))
	s.Note("a click that comes too late, before the timer has")
	out = s.Step(time.Hour, decision("d1", id, "", true, owner))
	none[*messages.Approval](t, out)
	written(t, s, out)
	s.Note("the call is answered; the other one still waits, for ever")
	s.Step(8*24*time.Hour, kit.Event{Msg: tick{}})
	v := verdicts(t, s.Step(0, asking("c3", shell, call("T1/1/c0", "shell", `{"argv":["ls"]}`), call("T1/1/c1", "shell", `{}`))))
	if v[0].GetVerdict() != deny || v[1].GetVerdict() != ask {
		t.Errorf("verdicts %v", v)
	}
	s.Done()
}

func TestExpiryByTheTimer(t *testing.T) {
	s := script(t, "expiry_timer", policy(configs.KeyGuardExpiry, "1h"), kept(t, "T1", "T1/1/c0", messages.ApprovalState_APPROVAL_STATE_PENDING))
	s.Note("its time was given when it was made; the task is told when it is over, and the record goes after its retention")
	out := written(t, s, s.Step(7*24*time.Hour, kit.Event{Msg: tick{}}))
	sent[*messages.ApprovalsDecided](t, out)
	s.Step(29*24*time.Hour, kit.Event{Msg: tick{}})
	written(t, s, s.Step(2*24*time.Hour, kit.Event{Msg: tick{}}))
	s.Show()
	s.Done()
}

func TestRelease(t *testing.T) {
	s := script(t, "release", policy())
	out := written(t, s, s.Step(time.Second, asking("c1", shell, call("T1/1/c0", "shell", `{}`), call("T1/1/c1", "shell", `{"a":1}`))))
	id := verdicts(t, out)[0].GetApprovalId()
	release := kit.Event{From: sched, Corr: "r1", Msg: &messages.ReleaseApprovals{TaskIds: []string{"T1", "T9"}}}
	s.Note("stop: what waits is released, and told when that is on disk")
	out = s.Step(time.Second, release)
	none[*messages.Ok](t, out)
	out = written(t, s, out)
	sent[*messages.Ok](t, out)
	none[*messages.ApprovalsDecided](t, out)
	s.Note("a click after it, and a turn that still asks")
	s.Step(0, decision("d1", id, "", true, owner))
	v := verdicts(t, s.Step(0, asking("c2", shell, call("T1/1/c0", "shell", `{}`), call("T1/2/c0", "shell", `{}`))))
	if v[0].GetVerdict() != deny || v[1].GetVerdict() != deny {
		t.Errorf("a call of an ended task: %v", v)
	}
	s.Note("the same again")
	release.Corr = "r2"
	sent[*messages.Ok](t, s.Step(0, release))
	s.Done()
}

// TestReleaseDuringTheWrite lets the end of a task meet a question that is not on disk yet.
func TestReleaseDuringTheWrite(t *testing.T) {
	s := script(t, "release_early", policy())
	out := s.Step(time.Second, asking("c1", shell, call("T1/1/c0", "shell", `{}`)))
	s.Step(0, kit.Event{From: sched, Corr: "r1", Msg: &messages.ReleaseApprovals{TaskIds: []string{"T1"}}})
	out = written(t, s, out)
	sent[*messages.Ok](t, written(t, s, out))
	s.Show()
	s.Done()
}

// TestTwoDecisions lets two people decide at the same moment: the first one counts.
func TestTwoDecisions(t *testing.T) {
	s := script(t, "race", policy(configs.KeyGuardDeciders, "person:anna"))
	out := written(t, s, s.Step(time.Second, asking("c1", shell, call("T1/1/c0", "shell", `{}`))))
	id := verdicts(t, out)[0].GetApprovalId()
	out = s.Step(0, decision("d1", id, "", false, guest))
	s.Step(0, decision("d2", id, "", true, owner))
	s.Step(0, asking("c2", shell, call("T1/1/c0", "shell", `{}`)))
	out = written(t, s, out)
	if e, corr := sent[*messages.Error](t, out); e.GetCode() != CodeDecided || corr != "d2" {
		t.Errorf("the second got %v", e)
	}
	if v := verdicts(t, out); v[0].GetVerdict() != deny {
		t.Errorf("verdict %v", v)
	}
	s.Done()
}

func TestPolicyChanges(t *testing.T) {
	s := script(t, "policy", policy())
	written(t, s, s.Step(time.Second, asking("c1", shell, call("T1/1/c0", "shell", `{}`))))
	s.Note("the owner lets programs run from now on: the question is not needed any more")
	s.Step(0, set(configs.GuardKey("owner", "exec"), "allow"))
	out := written(t, s, s.Step(0, asking("c2", shell, call("T1/1/c0", "shell", `{}`))))
	if v := verdicts(t, out); v[0].GetVerdict() != allow {
		t.Errorf("verdict %v", v)
	}
	s.Note("and asks again: it is the same question once more")
	s.Step(0, set(configs.GuardKey("owner", "exec"), "ask"))
	out = written(t, s, s.Step(0, asking("c3", shell, call("T1/1/c0", "shell", `{}`))))
	id := verdicts(t, out)[0].GetApprovalId()
	s.Note("an allowed call does not run when the policy denies it by then")
	written(t, s, s.Step(0, decision("d1", id, "", true, owner)))
	s.Step(0, set(configs.GuardKey("owner", "exec"), "deny"))
	if v := verdicts(t, s.Step(0, asking("c4", shell, call("T1/1/c0", "shell", `{}`)))); v[0].GetVerdict() != deny {
		t.Errorf("verdict %v", v)
	}
	s.Done()
}

func TestBounds(t *testing.T) {
	s := script(t, "bounds", policy(configs.KeyGuardLimit, "1"))
	written(t, s, s.Step(time.Second, asking("c1", shell, call("T1/1/c0", "shell", `{}`))))
	s.Note("the next one of this agent is denied, the one of another agent is not")
	if v := verdicts(t, s.Step(0, asking("c2", shell, call("T1/1/c1", "shell", `{}`)))); v[0].GetVerdict() != deny || !strings.Contains(v[0].GetReason(), configs.KeyGuardLimit) {
		t.Errorf("verdict %v", v)
	}
	e := asking("c3", shell, call("T2/1/c0", "shell", `{}`))
	e.Msg.(*messages.CheckCalls).Agent = "main/resident/cook"
	if v := verdicts(t, written(t, s, s.Step(0, e))); v[0].GetVerdict() != ask {
		t.Errorf("verdict %v", v)
	}
	s.Done()

	m := New(ledger)
	for _, e := range []any{kit.Started{Self: kit.Path("guard")}, loaded{}, policy()} {
		m.Step(start, kit.Event{Msg: e})
	}
	large := verdicts(t, m.Step(start, asking("c4", shell, call("T1/1/c2", "shell", `{"a":"`+strings.Repeat("x", maxCall)+`"}`))))
	if large[0].GetVerdict() != deny || !strings.Contains(large[0].GetReason(), "256 KiB") {
		t.Errorf("a call that nobody can read: %v", large)
	}
	long := decision("d", "ap-x", "", true, owner)
	long.Msg.(*messages.DecideApproval).Note = strings.Repeat("x", maxNote+1)
	if err, _ := sent[*messages.Error](t, m.Step(start, long)); err.GetCode() != CodeBadNote {
		t.Errorf("a long note: %v", err)
	}
	for i := range maxLater + 1 { // nothing is written meanwhile
		out := m.Step(start, asking("c", shell, call("T1/1/c9", "shell", `{}`)))
		if i == maxLater {
			sent[*messages.Busy](t, out)
		} else {
			none[*messages.Busy](t, out)
		}
	}
}

func TestStoreTrouble(t *testing.T) {
	s := script(t, "trouble", policy())
	out := s.Step(time.Second, asking("c1", shell, call("T1/1/c0", "shell", `{}`)))
	_, corr := sent[*messages.LedgerExecute](t, out)
	s.Note("ledger is full: the same group again; then it restarts and has lost it: once more")
	s.Step(0, kit.Event{From: ledger, Corr: corr, Msg: &messages.Busy{}})
	s.Step(againAfter, kit.Event{Msg: again{}})
	out = s.Step(0, kit.Event{Msg: kit.Restarted{Who: ledger}})
	if _, same := sent[*messages.LedgerExecute](t, out); same != corr {
		t.Errorf("another group: %s", same)
	}
	s.Note("the store refuses: nothing runs that nobody was asked about")
	out = s.Step(0, kit.Event{From: ledger, Corr: corr, Msg: &messages.LedgerDone{Error: &messages.Error{Code: "store_broken", Message: "The store is broken."}}})
	if v := verdicts(t, out); v[0].GetVerdict() != deny {
		t.Errorf("verdict %v", v)
	}
	s.Note("a late answer to the group is nobody's; the next check asks anew")
	s.Step(0, kit.Event{From: ledger, Corr: corr, Msg: &messages.LedgerDone{}})
	out = written(t, s, s.Step(0, asking("c2", shell, call("T1/1/c0", "shell", `{}`))))
	id := verdicts(t, out)[0].GetApprovalId()
	s.Note("a decision that is not kept is no decision")
	out = s.Step(0, decision("d1", id, "", true, owner))
	_, corr = sent[*messages.LedgerExecute](t, out)
	s.Step(0, kit.Event{From: ledger, Corr: corr, Msg: &messages.LedgerDone{Error: &messages.Error{Code: "store_broken", Message: "The store is broken."}}})
	if v := verdicts(t, s.Step(0, asking("c3", shell, call("T1/1/c0", "shell", `{}`)))); v[0].GetVerdict() != ask {
		t.Errorf("verdict %v", v)
	}
	s.Done()
}

func TestTokens(t *testing.T) {
	s := script(t, "tokens", policy())
	add := func(corr, name string, change func(*messages.NamedToken)) kit.Event {
		tok := &messages.NamedToken{
			Name: name, Digest: []byte(strings.Repeat(name[:1], 32)),
			Principal: &messages.Principal{Id: "token:" + name, Kind: messages.PrincipalKind_PRINCIPAL_KIND_TOKEN},
		}
		if change != nil {
			change(tok)
		}
		return kit.Event{From: admin, Corr: corr, Msg: &messages.AddToken{Token: tok}}
	}
	out := s.Step(time.Second, add("a1", "cron", nil))
	none[*messages.NamedToken](t, out)
	s.Note("two of one name at once: the second is refused when the first is on disk")
	s.Step(0, add("a2", "cron", func(t *messages.NamedToken) { t.Digest = []byte(strings.Repeat("z", 32)) }))
	out = written(t, s, out)
	if e, corr := sent[*messages.Error](t, out); e.GetCode() != CodeTokenExists || corr != "a2" {
		t.Errorf("the second got %v", e)
	}
	s.Note("what no token may be")
	for name, change := range map[string]func(*messages.NamedToken){
		"owner":        func(t *messages.NamedToken) { t.Principal = owner },
		"anothers":     func(t *messages.NamedToken) { t.Principal.Id = "token:cron" },
		"noone":        func(t *messages.NamedToken) { t.Principal = nil },
		"Capital":      func(*messages.NamedToken) {},
		"without-hash": func(t *messages.NamedToken) { t.Digest = nil },
		"past":         func(t *messages.NamedToken) { t.ExpiresUs = start.UnixMicro() },
	} {
		m := New(ledger)
		for _, e := range []any{kit.Started{Self: kit.Path("guard")}, loaded{}, policy()} {
			m.Step(start, kit.Event{Msg: e})
		}
		if e, _ := sent[*messages.Error](t, m.Step(start, add("b", name, change))); e.GetCode() != CodeBadToken {
			t.Errorf("%s: %v", name, e)
		}
	}
	s.Step(0, kit.Event{From: admin, Corr: "l1", Msg: &messages.ListTokens{}})
	s.Note("removed: told when it works no more")
	out = s.Step(0, kit.Event{From: admin, Corr: "r1", Msg: &messages.RemoveToken{Name: "cron"}})
	none[*messages.NamedToken](t, out)
	sent[*messages.NamedToken](t, written(t, s, out))
	s.Step(0, kit.Event{From: admin, Corr: "r2", Msg: &messages.RemoveToken{Name: "cron"}})
	s.Show()
	s.Done()
}

// TestMessagesAreFrozen decides over what the machine was given: its own record must not be the message.
func TestMessagesAreFrozen(t *testing.T) {
	m := New(ledger)
	for _, e := range []any{kit.Started{Self: kit.Path("guard")}, loaded{}, policy()} {
		m.Step(start, kit.Event{Msg: e})
	}
	e := asking("c", shell, call("T1/1/c0", "shell", `{}`))
	before := proto.CloneOf(e.Msg.(*messages.CheckCalls))
	_, corr := sent[*messages.LedgerExecute](t, m.Step(start, e))
	a, _ := sent[*messages.Approval](t, m.Step(start, kit.Event{From: ledger, Corr: corr, Msg: &messages.LedgerDone{}}))
	shown := proto.CloneOf(a)
	_, corr = sent[*messages.LedgerExecute](t, m.Step(start, decision("d", a.GetApprovalId(), "", true, owner)))
	m.Step(start, kit.Event{From: ledger, Corr: corr, Msg: &messages.LedgerDone{}})
	if !proto.Equal(before, e.Msg.(*messages.CheckCalls)) || !proto.Equal(shown, a) {
		t.Error("a message was changed after it was sent or received")
	}
}

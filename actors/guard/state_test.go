package guard

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/configs"
	"homeagent/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	start  = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	turn   = &messages.Address{Path: "agents/main/turn/T1", Epoch: 7}
	admin  = &messages.Address{Path: "admin", Epoch: 7}
	sched  = &messages.Address{Path: "agents/main/scheduler", Epoch: 7}
	ledger = kit.Path("ledger")

	owner  = &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER}
	guest  = &messages.Principal{Id: "person:anna", Kind: messages.PrincipalKind_PRINCIPAL_KIND_PERSON}
	robot  = &messages.Principal{Id: "token:cron", Kind: messages.PrincipalKind_PRINCIPAL_KIND_TOKEN}
	cook   = &messages.Principal{Id: "agent:main/resident/cook", Kind: messages.PrincipalKind_PRINCIPAL_KIND_AGENT}
	nobody = &messages.Principal{}
)

// policy is what config tells: every rule by its default, then the pairs.
func policy(pairs ...string) *messages.ConfigChanged {
	m := &messages.ConfigChanged{}
	for _, k := range configs.Keys() {
		if strings.HasPrefix(k.Name, configs.GuardPrefix) && !strings.Contains(k.Name, "<") {
			m.Values = append(m.Values, &messages.ConfigValue{Key: k.Name, Value: k.Default})
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		m.Values = append(m.Values, &messages.ConfigValue{Key: pairs[i], Value: pairs[i+1]})
	}
	return m
}

func set(pairs ...string) kit.Event {
	m := &messages.ConfigChanged{}
	for i := 0; i < len(pairs); i += 2 {
		m.Values = append(m.Values, &messages.ConfigValue{Key: pairs[i], Value: pairs[i+1]})
	}
	return kit.Event{Msg: m}
}

func tool(name string, class messages.ToolClass) *messages.ToolDef {
	return &messages.ToolDef{Name: name, ToolClass: class}
}

func call(id, name, args string) *messages.ToolInvocation {
	return &messages.ToolInvocation{CallId: id, Name: name, ArgumentsJson: []byte(args)}
}

// asking makes a check of calls that all run the same tool.
func asking(corr string, def *messages.ToolDef, calls ...*messages.ToolInvocation) kit.Event {
	c := &messages.CheckCalls{
		TaskId: "T1", Agent: "main", Principals: []*messages.Principal{owner}, Channel: "cli", Conversation: "home",
		Taint: messages.Taint_TAINT_TRUSTED, Calls: calls,
	}
	for range calls {
		c.Defs = append(c.Defs, def)
	}
	return kit.Event{From: turn, Corr: corr, Msg: c}
}

var (
	shell = tool("shell", messages.ToolClass_TOOL_CLASS_EXEC)
	note  = tool("note", messages.ToolClass_TOOL_CLASS_WRITE)
)

// script is a machine that serves, with what the store held; how it begins is not in the transcript.
func script(t *testing.T, name string, p *messages.ConfigChanged, held ...*messages.Approval) *kittest.Script {
	t.Helper()
	m := New(ledger)
	m.Step(start, kit.Event{Msg: kit.Started{Self: kit.Path("guard")}})
	m.Step(start, kit.Event{Msg: loaded{List: held}})
	if !hasReady(m.Step(start, kit.Event{Msg: p})) {
		t.Fatal("it does not serve")
	}
	return kittest.New(t, name, m, start)
}

func hasReady(out []kit.Effect) bool {
	for _, e := range out {
		if _, ok := e.(kit.Ready); ok {
			return true
		}
	}
	return false
}

// sent finds the message of a type that was sent, and its correlation.
func sent[T any](t *testing.T, out []kit.Effect) (T, string) {
	t.Helper()
	for _, e := range out {
		switch e := e.(type) {
		case kit.Send:
			if m, ok := e.Msg.(T); ok {
				return m, e.Corr
			}
		case kit.Reply:
			if m, ok := e.Msg.(T); ok {
				return m, e.Corr
			}
		case kit.Publish:
			if m, ok := any(e.Event.GetApproval()).(T); ok {
				return m, ""
			}
		}
	}
	var none T
	t.Fatalf("no %T among %d effects", none, len(out))
	return none, ""
}

// written lets ledger take the group under way.
func written(t *testing.T, s *kittest.Script, out []kit.Effect) []kit.Effect {
	t.Helper()
	_, corr := sent[*messages.LedgerExecute](t, out)
	return s.Step(10*time.Millisecond, kit.Event{From: ledger, Corr: corr, Msg: &messages.LedgerDone{}})
}

func decision(corr, id, hash string, allow bool, who *messages.Principal) kit.Event {
	return kit.Event{From: admin, Corr: corr, Msg: &messages.DecideApproval{ApprovalId: id, Hash: hash, Allow: allow, Principal: who}}
}

func TestAsk(t *testing.T) {
	s := script(t, "ask", policy())
	s.Note("one may run, one must be asked about: the answer comes when the question is on disk")
	e := asking("c1", shell, call("T1/1/c0", "shell", `{"argv":["ls"]}`))
	e.Msg.(*messages.CheckCalls).Calls = append(e.Msg.(*messages.CheckCalls).Calls, call("T1/1/c1", "note", `{}`))
	e.Msg.(*messages.CheckCalls).Defs = append(e.Msg.(*messages.CheckCalls).Defs, note)
	out := written(t, s, s.Step(time.Second, e))
	a, _ := sent[*messages.Approval](t, out)
	s.Note("asked again: the same answer, at once")
	s.Step(time.Second, asking("c2", shell, call("T1/1/c0", "shell", `{"argv":["ls"]}`)))
	s.Note("a wrong hash, somebody else, an approval that there is not")
	s.Step(time.Second, decision("d1", a.GetApprovalId(), "0000", true, owner))
	s.Step(time.Second, decision("d2", a.GetApprovalId(), a.GetHash(), true, guest))
	s.Step(time.Second, decision("d3", "ap-none", "", true, owner))
	s.Note("allowed: the person hears it when it is on disk, and the scheduler of the parked task")
	out = s.Step(time.Second, decision("d4", a.GetApprovalId(), a.GetHash(), true, owner))
	written(t, s, out)
	s.Step(0, kit.Event{Msg: found{Ask: kit.Event{From: admin, Corr: "d4"}, One: true, ID: a.GetApprovalId(), List: []*messages.Approval{a}}})
	s.Note("the same again, and another one")
	s.Step(time.Second, decision("d5", a.GetApprovalId(), "", true, owner))
	s.Step(time.Second, decision("d6", a.GetApprovalId(), "", false, owner))
	s.Note("the turn asks again")
	s.Step(time.Second, asking("c3", shell, call("T1/1/c0", "shell", `{"argv":["ls"]}`)))
	s.Show()
	s.Done()
}

func TestTwoPendingAndChanges(t *testing.T) {
	s := script(t, "two", policy())
	out := written(t, s, s.Step(time.Second, asking("c1", shell, call("T1/1/c0", "shell", `{"argv":["ls"]}`), call("T1/1/c1", "shell", `{"argv":["rm","x"]}`))))
	v, _ := sent[*messages.CallVerdicts](t, out)
	first, second := v.GetVerdicts()[0].GetApprovalId(), v.GetVerdicts()[1].GetApprovalId()
	if first == second || first == "" || second == "" {
		t.Fatalf("ids %q and %q", first, second)
	}
	s.Note("between render and click the second call changes: it is another question, and the old one is released")
	out = written(t, s, s.Step(time.Second, asking("c2", shell, call("T1/1/c1", "shell", `{"argv":["rm","-rf","/"]}`))))
	out = written(t, s, out)
	v, _ = sent[*messages.CallVerdicts](t, out)
	third := v.GetVerdicts()[0].GetApprovalId()
	if third == second || third == first || v.GetVerdicts()[0].GetVerdict() != messages.Verdict_VERDICT_ASK {
		t.Fatalf("the changed call got %v", v)
	}
	s.Note("the click on what was shown decides nothing")
	s.Step(time.Second, decision("d1", second, "", true, owner))
	s.Note("the first is denied with a word; the task still waits for the third")
	d := decision("d2", first, "", false, owner)
	d.Msg.(*messages.DecideApproval).Note = "not now"
	out = written(t, s, s.Step(time.Second, d))
	for _, e := range out {
		if x, ok := e.(kit.Send); ok {
			if _, woken := x.Msg.(*messages.ApprovalsDecided); woken {
				t.Error("the task was woken too early")
			}
		}
	}
	out = written(t, s, s.Step(time.Second, decision("d3", third, "", true, owner)))
	sent[*messages.ApprovalsDecided](t, out)
	s.Note("all of them asked again")
	s.Step(time.Second, asking("c3", shell, call("T1/1/c0", "shell", `{"argv":["ls"]}`), call("T1/1/c1", "shell", `{"argv":["rm","-rf","/"]}`)))
	s.Done()
}

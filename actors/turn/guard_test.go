package turn

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func allow() *messages.CallVerdict {
	return &messages.CallVerdict{Verdict: messages.Verdict_VERDICT_ALLOW}
}

func deny(reason string) *messages.CallVerdict {
	return &messages.CallVerdict{Verdict: messages.Verdict_VERDICT_DENY, Reason: reason}
}

// asks is guard that asks people about the calls of some tools until they have decided.
type asks struct {
	tools   string // names with a space after each
	decided *messages.CallVerdict
}

func (a *asks) verdict(_ *messages.CheckCalls, inv *messages.ToolInvocation) *messages.CallVerdict {
	switch {
	case !strings.Contains(a.tools, inv.GetName()+" "):
		return allow()
	case a.decided != nil:
		return proto.CloneOf(a.decided)
	default:
		return &messages.CallVerdict{
			Verdict: messages.Verdict_VERDICT_ASK, Reason: "Tools of class write need a word.", ApprovalId: "ap-" + inv.GetCallId(),
		}
	}
}

// asking makes a world whose guard asks about tools.
func asking(t *testing.T, tools string) (*world, *asks) {
	w, a := newWorld(t), &asks{tools: tools}
	w.verdict = a.verdict
	return w, a
}

func (w *world) wantParked(approvals ...string) {
	w.t.Helper()
	if len(w.parked) != 1 || len(w.finished) != 0 || !w.ended {
		w.t.Fatalf("parked %d times, finished %d times, actor ended %v", len(w.parked), len(w.finished), w.ended)
	}
	p := w.parked[0]
	if fmt.Sprint(p.GetApprovals()) != fmt.Sprint(approvals) || p.GetTaskId() != "T1" || p.GetGeneration() != 5 {
		w.t.Fatalf("parked %v, want for %v", p, approvals)
	}
	last := w.journal[len(w.journal)-1]
	if last.GetKind() != messages.JournalKind_JOURNAL_KIND_PARKED || fmt.Sprint(last.GetApprovals()) != fmt.Sprint(approvals) {
		w.t.Fatalf("the journal ends with %v", last)
	}
	if w.synced != len(w.journal) {
		w.t.Fatal("parked before it was on disk")
	}
}

func TestApproval(t *testing.T) {
	for _, c := range []struct {
		name    string
		decided *messages.CallVerdict
		runs    int
		told    string
	}{
		{"approval_allowed", allow(), 1, "a done"},
		{"approval_denied", deny(`A person has denied this call. They say: "use b"`), 0, `They say: \"use b\"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a := asking(t, "a ")
			w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
			w.model = byRound([]string{"a"}, "Done.")
			w.begin(c.name+"_parks", nil)
			w.all()
			w.script.Done()
			w.wantParked("ap-T1/1/c0")
			if len(w.runs) != 0 {
				t.Fatalf("runs %v before anybody decided", w.runs)
			}
			a.decided = c.decided
			w.begin(c.name, nil)
			w.all()
			w.script.Done()
			w.wantEnd(answered, "ok", "Done.")
			if w.runs["a T1/1/c0"] != c.runs {
				t.Errorf("runs %v, want %d", w.runs, c.runs)
			}
			last := w.requests[len(w.requests)-1]
			if got := toolTexts(last)[0]; !strings.Contains(got, c.told) {
				t.Errorf("the model was told %s", got)
			}
			if len(last.GetTools()) != 1 {
				t.Error("a person's word took the tools away")
			}
			if len(w.requests) != 2 {
				t.Errorf("%d requests: what the model had said was asked for again", len(w.requests))
			}
		})
	}
}

// Entered too early, or after a restart of the node, the turn asks again and parks again.
func TestParkedAgain(t *testing.T) {
	w, a := asking(t, "a ")
	w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
	w.model = byRound([]string{"a"}, "Done.")
	w.begin("", nil)
	w.all()
	for range 3 {
		w.begin("", nil)
		w.all()
		w.wantParked("ap-T1/1/c0")
	}
	a.decided = allow()
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "ok", "Done.")
	if w.runs["a T1/1/c0"] != 1 {
		t.Errorf("runs %v", w.runs)
	}
}

// In a parallel batch what may run runs first; in a serial one nothing overtakes what waits.
func TestApprovalInBatch(t *testing.T) {
	for _, c := range []struct {
		name     string
		parallel bool
		before   int // runs of b before the decision
	}{{"approval_parallel", true, 1}, {"approval_serial", false, 0}} {
		t.Run(c.name, func(t *testing.T) {
			w, a := asking(t, "a ")
			w.tools = []*messages.ToolDef{tool("a", once, finishes, c.parallel), tool("b", once, finishes, c.parallel)}
			w.model = byRound([]string{"a", "b"}, "Done.")
			w.begin(c.name, nil)
			w.all()
			w.script.Done()
			w.wantParked("ap-T1/1/c0")
			if w.runs["b T1/1/c1"] != c.before || w.runs["a T1/1/c0"] != 0 {
				t.Fatalf("runs %v before the decision", w.runs)
			}
			a.decided = allow()
			w.begin("", nil)
			w.all()
			w.wantEnd(answered, "ok", "Done.")
			if w.runs["a T1/1/c0"] != 1 || w.runs["b T1/1/c1"] != 1 {
				t.Errorf("runs %v", w.runs)
			}
			if got := strings.Join(toolTexts(w.requests[1]), ","); got != "a done,b done" {
				t.Errorf("results %q", got)
			}
		})
	}
}

// What guard does not allow in so many words does not run.
func TestGuardFailsClosed(t *testing.T) {
	broken := &messages.Error{Code: "not_found", Message: "Nobody is at guard.", Hint: "See the tree."}
	for name, c := range map[string]func(*world){
		"error":       func(w *world) { w.guardE = broken },
		"unspecified": func(w *world) { w.verdict = of(&messages.CallVerdict{}) },
		"unknown":     func(w *world) { w.verdict = of(&messages.CallVerdict{Verdict: 99, Reason: "?"}) },
		"no approval": func(w *world) {
			w.verdict = of(&messages.CallVerdict{Verdict: messages.Verdict_VERDICT_ASK, Reason: "?"})
		},
		"no verdict": func(w *world) {
			w.hold = func(s kit.Send) bool {
				_, ok := s.Msg.(*messages.CheckCalls)
				return ok
			}
		},
		"absent": func(w *world) { w.absent = "guard" },
		"late":   func(w *world) { w.absent = "guard" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
			w.model = byRound([]string{"a"}, "I may not.")
			c(w)
			w.begin("", nil)
			w.all()
			switch name {
			case "no verdict":
				w.held[0].Msg = &messages.CallVerdicts{}
				w.release()
			case "late":
				w.step(kit.Event{Msg: askLate{w.machine.(*machine).question.corr}})
				w.all()
			case "absent":
				q := w.machine.(*machine).question
				w.step(kit.Event{Msg: kit.Fault{Effect: q.send, Err: broken}})
				w.all()
			}
			w.wantEnd(answered, "tools_denied", "I may not.")
			if len(w.runs) != 0 {
				t.Errorf("runs %v", w.runs)
			}
			if got := toolTexts(w.requests[1]); len(got) != 1 || !strings.Contains(got[0], `"reason":"denied"`) {
				t.Errorf("the model was told %v", got)
			}
		})
	}
}

func of(v *messages.CallVerdict) func(*messages.CheckCalls, *messages.ToolInvocation) *messages.CallVerdict {
	return func(*messages.CheckCalls, *messages.ToolInvocation) *messages.CallVerdict { return proto.CloneOf(v) }
}

// One of two calls is denied: the other one runs, and the model keeps its tools.
func TestGuardDeniesOne(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", once, finishes, true), tool("b", once, finishes, true)}
	w.model = byRound([]string{"a", "b"}, "Half done.")
	w.verdict = func(_ *messages.CheckCalls, inv *messages.ToolInvocation) *messages.CallVerdict {
		if inv.GetName() == "a" {
			return deny("Tools of class exec are denied.")
		}
		return allow()
	}
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "ok", "Half done.")
	if w.runs["a T1/1/c0"] != 0 || w.runs["b T1/1/c1"] != 1 {
		t.Errorf("runs %v", w.runs)
	}
	if got := toolTexts(w.requests[1]); !strings.Contains(got[0], "class exec") || got[1] != "b done" {
		t.Errorf("the model was told %v", got)
	}
}

// New input before a call that waits for people: the call does not run and nobody is asked about it any more.
func TestSteerInsteadOfParking(t *testing.T) {
	isCheck := func(s kit.Send) bool { _, ok := s.Msg.(*messages.CheckCalls); return ok }
	isPark := func(s kit.Send) bool {
		x, ok := s.Msg.(*messages.LedgerExecute)
		return ok && x.GetOps()[0].GetJournal().GetKind() == messages.JournalKind_JOURNAL_KIND_PARKED
	}
	for name, hold := range map[string]func(kit.Send) bool{"checking": isCheck, "parking": isPark} {
		t.Run(name, func(t *testing.T) {
			w, _ := asking(t, "a ")
			w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
			w.model = byRound([]string{"a"}, "As you wish.")
			w.hold = hold
			w.begin("", nil)
			w.all()
			w.step(kit.Event{From: schedAddr, Msg: &messages.Steer{Generation: 5, Input: testInput("T3", "no, do not")}})
			w.release()
			w.wantEnd(answered, "ok", "As you wish.")
			if len(w.parked) != 0 || len(w.runs) != 0 {
				t.Errorf("parked %v, runs %v", w.parked, w.runs)
			}
			last := w.checks[len(w.checks)-1]
			if last.GetCalls()[0].GetCallId() != "T1/1/c0" || last.GetCalls()[0].GetDenied() == "" {
				t.Errorf("guard was not told that the call is not wanted any more: %v", last)
			}
			if got := lastText(w.requests[1]); got != "no, do not" {
				t.Errorf("the next request ends with %q", got)
			}
		})
	}
}

// A turn that ends while one of its calls waits for people has them released; a stop while the parking is written is a stop.
func TestStopReleases(t *testing.T) {
	for _, name := range []string{"running", "parking"} {
		t.Run(name, func(t *testing.T) {
			w, _ := asking(t, "a ")
			w.tools = []*messages.ToolDef{tool("a", once, finishes, true), tool("b", once, finishes, true)}
			w.model = byRound([]string{"a", "b"}, "Done.")
			w.hold = isCall
			w.begin("", nil)
			w.all()
			if name == "parking" {
				w.hold = func(s kit.Send) bool { _, ok := s.Msg.(*messages.LedgerExecute); return ok && s.Corr != "" }
				w.queue, w.held = w.held, nil
				w.all()
				w.hold = nil
			}
			w.step(kit.Event{From: schedAddr, Msg: &messages.Cancel{Generation: 5, End: stopped, Reason: "stop"}})
			w.release()
			w.wantEnd(stopped, "stop", "Stopped.")
			if len(w.released) != 1 || w.released[0] != "T1" || len(w.parked) != 0 || w.runs["a T1/1/c0"] != 0 {
				t.Errorf("released %v, parked %v, runs %v", w.released, w.parked, w.runs)
			}
		})
	}
}

// A turn that was preempted while a call waited asks again when it goes on: people may have decided.
func TestPreemptWhileAsking(t *testing.T) {
	w, a := asking(t, "a ")
	w.tools = []*messages.ToolDef{tool("a", once, finishes, true), tool("b", once, finishes, true)}
	w.model = byRound([]string{"a", "b"}, "Done.")
	w.hold = isCall
	w.begin("", nil)
	w.all()
	w.step(kit.Event{From: schedAddr, Msg: &messages.Preempt{Generation: 5, ByLevel: 3}})
	w.release()
	if len(w.parked)+len(w.finished) != 0 || strings.Join(w.answers, ",") != "Suspended" {
		t.Fatalf("parked %v, answers %v", w.parked, w.answers)
	}
	a.decided = allow()
	w.step(kit.Event{From: schedAddr, Msg: &messages.Resume{Generation: 5}})
	w.all()
	w.wantEnd(answered, "ok", "Done.")
	if w.runs["a T1/1/c0"] != 1 || w.runs["b T1/1/c1"] != 1 {
		t.Errorf("runs %v", w.runs)
	}
}

func TestPrincipals(t *testing.T) {
	person := func(id string, k messages.PrincipalKind) *messages.Principal {
		return &messages.Principal{Id: id, Kind: k}
	}
	owner := person("owner", messages.PrincipalKind_PRINCIPAL_KIND_OWNER)
	guest := person("chat:7", messages.PrincipalKind_PRINCIPAL_KIND_PERSON)
	timer := person("timer", messages.PrincipalKind_PRINCIPAL_KIND_SYSTEM)
	for _, c := range []struct {
		name   string
		change func(*messages.StartTurn)
		steer  *messages.Principal
		want   string
	}{
		{"plain", func(*messages.StartTurn) {}, nil, "owner"},
		{"nobody", func(s *messages.StartTurn) { s.Task.Input.Principal = nil }, nil, "?"},
		{"timer", func(s *messages.StartTurn) {
			s.Task.Input.Principal, s.Task.Input.OnBehalf = timer, []*messages.Principal{owner, guest, owner}
		}, nil, "timer owner chat:7"},
		{"merged", func(*messages.StartTurn) {}, guest, "owner chat:7"},
		{"merged with the same", func(*messages.StartTurn) {}, owner, "owner"},
		{"resident", func(s *messages.StartTurn) {
			s.Agent.Agent, s.Agent.Principal = "main/resident/cook", guest
		}, nil, "owner chat:7"},
		{"main is nobody's", func(s *messages.StartTurn) { s.Agent.Principal = guest }, nil, "owner"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
			w.model = byRound([]string{"a"}, "Done.")
			w.hold = func(s kit.Send) bool { _, ok := s.Msg.(*messages.Recall); return ok && c.steer != nil }
			w.begin("", c.change)
			w.all()
			if c.steer != nil {
				in := testInput("T3", "and me")
				in.Principal = c.steer
				w.step(kit.Event{From: schedAddr, Msg: &messages.Steer{Generation: 5, Input: in}})
				w.release()
			}
			w.wantEnd(answered, "ok", "Done.")
			show := func(ps []*messages.Principal) string {
				var ids []string
				for _, p := range ps {
					if p.GetId() == "" {
						p = &messages.Principal{Id: "?"}
					}
					ids = append(ids, p.GetId())
				}
				return strings.Join(ids, " ")
			}
			if got := show(w.checks[0].GetPrincipals()); got != c.want {
				t.Errorf("guard was told %q, want %q", got, c.want)
			}
			if got := show(w.calls[0].GetPrincipals()); got != c.want {
				t.Errorf("the tool was told %q, want %q", got, c.want)
			}
		})
	}
}

// Whatever foreign the turn has read makes it tainted, also after a restart that reads nothing of it again.
func TestTaint(t *testing.T) {
	foreign, trusted, model := messages.Taint_TAINT_FOREIGN, messages.Taint_TAINT_TRUSTED, messages.Taint_TAINT_MODEL
	recalled := messages.Taint_TAINT_RECALLED
	event := func(e, b messages.Taint) *messages.Event {
		block := &messages.Block{Content: textParts("before")[0], Taint: b}
		return &messages.Event{EventId: "E", Kind: messages.EventKind_EVENT_KIND_INPUT, Taint: e, Blocks: []*messages.Block{block}}
	}
	for _, c := range []struct {
		name   string
		set    func(*world)
		input  messages.Taint
		want   messages.Taint
		answer messages.Taint
	}{
		{"trusted", func(*world) {}, trusted, trusted, model},
		{"input", func(*world) {}, foreign, foreign, foreign},
		{"not said", func(*world) {}, 0, foreign, foreign},
		{"window", func(w *world) { w.past = []*messages.Event{event(foreign, trusted)} }, trusted, foreign, foreign},
		{"block", func(w *world) { w.past = []*messages.Event{event(trusted, foreign)} }, trusted, foreign, foreign},
		{"model", func(w *world) { w.past = []*messages.Event{event(model, model)} }, trusted, model, model},
		{"recalled", func(w *world) {
			w.recall = &messages.RecallResult{Items: []*messages.RecalledItem{{Text: "x", Taint: recalled}}}
		}, trusted, recalled, model},
		{"recalled foreign", func(w *world) {
			w.recall = &messages.RecallResult{Items: []*messages.RecalledItem{{Text: "x", Taint: foreign}}}
		}, trusted, foreign, foreign},
		{"result", func(w *world) { w.taint = foreign }, trusted, trusted, foreign},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a := asking(t, "a ")
			w.tools = []*messages.ToolDef{tool("a", once, finishes, false)}
			w.model = byRound([]string{"a"}, "Done.")
			w.taint = trusted
			c.set(w)
			change := func(s *messages.StartTurn) { s.Task.Input.Taint = c.input }
			w.begin("", change)
			w.all()
			w.past, w.recall = nil, &messages.RecallResult{None: true}
			w.begin("", change)
			w.all()
			a.decided = allow()
			w.begin("", change)
			w.all()
			w.wantEnd(answered, "ok", "Done.")
			for i, check := range w.checks {
				if check.GetTaint() != c.want {
					t.Errorf("check %d: %v, want %v", i, check.GetTaint(), c.want)
				}
			}
			if len(w.checks) != 3 || w.calls[0].GetTaint() != c.want {
				t.Errorf("%d checks, the tool was told %v", len(w.checks), w.calls[0].GetTaint())
			}
			if got := w.events[1].GetTaint(); got != c.answer {
				t.Errorf("the answer is kept as %v, want %v", got, c.answer)
			}
		})
	}
}

// A result that is foreign taints the calls that follow it.
func TestTaintOfResult(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("fetch", pure, finishes, false), tool("run", once, finishes, false)}
	w.model = func(r *messages.CompletionRequest) *messages.CompletionResult {
		switch len(toolTexts(r)) {
		case 0:
			return callsFor("", "fetch")
		case 1:
			return callsFor("", "run")
		}
		return says("Done.")
	}
	w.taint = messages.Taint_TAINT_FOREIGN
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "ok", "Done.")
	if a, b := w.checks[0].GetTaint(), w.checks[1].GetTaint(); a != messages.Taint_TAINT_TRUSTED || b != messages.Taint_TAINT_FOREIGN {
		t.Errorf("taints %v, %v", a, b)
	}
}

// A handler of before_toolcall changes what guard is asked about; a call that a handler has denied is not asked about.
func TestGuardSeesWhatRuns(t *testing.T) {
	w := newWorld(t)
	w.tools = []*messages.ToolDef{tool("a", once, finishes, true), tool("b", once, finishes, true)}
	w.model = byRound([]string{"a", "b"}, "Done.")
	w.stage = func(m *messages.RunStage) *messages.StageContext {
		if m.GetStage() != messages.Stage_STAGE_BEFORE_TOOLCALL {
			return nil
		}
		c := proto.CloneOf(m.GetContext())
		c.Calls[0].ArgumentsJson = []byte(`{"path":"/x"}`)
		c.Calls[1].Denied = "no"
		return c
	}
	w.begin("", nil)
	w.all()
	w.wantEnd(answered, "ok", "Done.")
	c := w.checks[0]
	if len(w.checks) != 1 || len(c.GetCalls()) != 1 || string(c.GetCalls()[0].GetArgumentsJson()) != `{"path":"/x"}` || c.GetDefs()[0].GetName() != "a" {
		t.Errorf("checks %v", w.checks)
	}
}

// A tool that is not there when guard is asked does not run, though it may be there a moment later.
func TestUnknownToolIsNotRun(t *testing.T) {
	w := newWorld(t)
	w.model = byRound([]string{"a"}, "Done.")
	w.begin("", nil)
	w.all()
	if len(w.checks) != 0 || len(w.calls) != 1 || w.calls[0].GetCall().GetDenied() == "" {
		t.Errorf("checks %v, calls %v", w.checks, w.calls)
	}
}

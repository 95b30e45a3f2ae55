package turn

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/messages"
)

var (
	start0    = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	selfAddr  = &messages.Address{Path: "agents/main/turn/T1", Epoch: 7}
	schedAddr = kit.Path("agents/main/scheduler")
	testDeps  = Deps{
		Ledger: kit.Path("ledger"), Memory: kit.Path("memory"), Context: kit.Path("memory/context"),
		Providers: kit.Path("providers"), Tools: kit.Path("tools"), Channels: kit.Path("channels"), Stages: "stages",
	}
)

// world plays everybody a turn talks to. What it holds outlives the turn, as the store and the world do.
type world struct {
	t       testing.TB
	script  *kittest.Script
	machine kit.Machine
	now     time.Time
	queue   []kit.Event

	settings Settings

	model     func(*messages.CompletionRequest) *messages.CompletionResult
	tools     []*messages.ToolDef
	past      []*messages.Event
	recall    *messages.RecallResult
	stage     func(*messages.RunStage) *messages.StageContext
	hold      func(kit.Send) bool // true: the answer is kept back
	held      []kit.Event
	verdict   func(*messages.CheckCalls, *messages.ToolInvocation) *messages.CallVerdict // nil: all may run
	guardE    *messages.Error
	decide    func() // what people do once the turn has parked; then it is entered again. nil: nobody decides
	watch     func(*messages.SteerTaken)
	published func(*messages.AgentEvent)
	absent    string         // nobody is at this path
	result    string         // of tools; empty: what they have done
	obeys     bool           // the owners of tools cancel and detach calls whose results are on their way
	taint     messages.Taint // of tool results; unspecified: trusted
	ledgerE   *messages.Error
	sendE     *messages.Error

	journal  []*messages.JournalEntry
	synced   int // entries that a crash cannot lose
	commits  int
	events   []*messages.Event
	sends    []*messages.SendOutput
	receipts int
	requests []*messages.CompletionRequest
	runs     map[string]int // executions by tool name and call id
	cancels  []string
	finished []*messages.Finished
	parked   []*messages.Parked
	checks   []*messages.CheckCalls
	calls    []*messages.CallTool
	released []string
	answers  []string // Suspended, Resumed, SteerTaken
	ended    bool
	steps    int
}

func newWorld(t testing.TB) *world {
	return &world{
		t: t, now: start0, runs: map[string]int{}, recall: &messages.RecallResult{None: true},
		model: func(*messages.CompletionRequest) *messages.CompletionResult { return says("Hello.") },
	}
}

func says(text string) *messages.CompletionResult {
	return &messages.CompletionResult{
		Text: text, Finish: messages.Finish_FINISH_STOP, Source: "fake", Model: "fake-1",
		Usage: &messages.Usage{Input: 10, Output: 2, Total: 12},
	}
}

func callsFor(text string, calls ...string) *messages.CompletionResult {
	r := says(text)
	r.Finish = messages.Finish_FINISH_TOOL_CALLS
	for i, name := range calls {
		r.Calls = append(r.Calls, &messages.ToolInvocation{
			VendorId: fmt.Sprintf("v%d", i), Name: name, ArgumentsJson: []byte(`{}`), Index: int32(i),
		})
	}
	return r
}

func tool(name string, e messages.ToolEffect, p messages.OnPreempt, parallel bool) *messages.ToolDef {
	return &messages.ToolDef{
		Name: name, Description: "does " + name, ParametersJson: []byte(`{"type":"object"}`), Effect: e, OnPreempt: p,
		ParallelSafe: parallel,
	}
}

const (
	pure       = messages.ToolEffect_TOOL_EFFECT_PURE
	idempotent = messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT
	once       = messages.ToolEffect_TOOL_EFFECT_ONCE
	finishes   = messages.OnPreempt_ON_PREEMPT_FINISH
	cancels    = messages.OnPreempt_ON_PREEMPT_CANCEL
	detaches   = messages.OnPreempt_ON_PREEMPT_DETACH
)

func textParts(s string) []*messages.Part {
	return []*messages.Part{{Content: &messages.Part_Text{Text: s}}}
}

func testInput(id, text string) *messages.Input {
	return &messages.Input{
		Id: id, Principal: &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER},
		Channel: "cli", Conversation: "c", Agent: "main", Source: messages.InputSource_INPUT_SOURCE_PERSON,
		Parts: textParts(text), Taint: messages.Taint_TAINT_TRUSTED, CreatedUs: start0.Add(-time.Second).UnixMicro(), PersonWaits: true,
	}
}

func (w *world) startTurn() *messages.StartTurn {
	journal := make([]*messages.JournalEntry, len(w.journal))
	for i, e := range w.journal {
		journal[i] = proto.CloneOf(e)
		journal[i].Sequence = uint64(i + 1)
	}
	return &messages.StartTurn{
		Task:  &messages.PendingTask{Input: testInput("T1", "Hi"), Sequence: 1, Starts: 1, Journal: journal},
		Agent: &messages.AgentSpec{Agent: "main"}, Level: 2, Generation: 5, Scheduler: schedAddr,
	}
}

// begin starts a turn from the journal as it is. With a name its transcript is compared.
func (w *world) begin(name string, change func(*messages.StartTurn)) {
	s := w.startTurn()
	if change != nil {
		change(s)
	}
	set := w.settings
	set.Persona = "You are Ada."
	w.machine, w.script = New(testDeps, set, s), nil
	w.queue, w.held, w.ended, w.finished, w.parked = nil, nil, false, nil, nil
	if name != "" {
		w.script = kittest.New(w.t, name, w.machine, w.now)
	}
	w.step(kit.Event{Msg: kit.Started{Self: selfAddr}})
}

// step gives the turn one event and takes what it wants.
func (w *world) step(e kit.Event) {
	if w.steps++; w.steps > 5000 {
		w.t.Fatal("the turn does not come to an end")
	}
	w.now = w.now.Add(time.Millisecond)
	var effects []kit.Effect
	if w.script != nil {
		effects = w.script.Step(time.Millisecond, e)
	} else {
		effects = w.machine.Step(w.now, e)
	}
	for _, f := range effects {
		switch f := f.(type) {
		case kit.Send:
			w.receive(f)
		case kit.Publish:
			if w.published != nil {
				w.published(f.Event)
			}
		case kit.Reply:
			w.answers = append(w.answers, fmt.Sprintf("%T", f.Msg))
		case kit.Stop:
			w.ended = true
		}
	}
}

// run delivers answers until none is left, or until n were delivered.
func (w *world) run(n int) bool {
	for ; len(w.queue) > 0 || w.reenter(); n-- {
		if n == 0 {
			return false
		}
		e := w.queue[0]
		w.queue = w.queue[1:]
		w.step(e)
	}
	return true
}

func (w *world) all() { w.run(-1) }

// reenter is the scheduler that starts a parked turn again when people have decided; false when there is nothing to do.
func (w *world) reenter() bool {
	if len(w.parked) == 0 || w.decide == nil {
		return false
	}
	w.decide()
	w.begin("", nil)
	return len(w.queue) > 0
}

// release lets the answers go that were kept back.
func (w *world) release() {
	w.queue = append(w.queue, w.held...)
	w.held, w.hold = nil, nil
	w.all()
}

func (w *world) receive(s kit.Send) {
	answers := w.reply(s)
	if w.hold != nil && w.hold(s) {
		w.held = append(w.held, answers...)
		return
	}
	w.queue = append(w.queue, answers...)
}

// reply is what the receiver of a message does and answers.
func (w *world) reply(s kit.Send) []kit.Event {
	answer := func(m proto.Message) []kit.Event {
		return []kit.Event{{From: s.To, Corr: s.Corr, Msg: m}}
	}
	if w.absent != "" && s.To.GetPath() == w.absent {
		return nil
	}
	switch m := s.Msg.(type) {
	case *messages.LedgerExecute:
		return w.execute(s, m)
	case *messages.RunStage:
		if s.Corr == "" {
			return nil
		}
		c := proto.CloneOf(m.GetContext())
		if w.stage != nil {
			if changed := w.stage(m); changed != nil {
				c = changed
			}
		}
		return answer(&messages.StageDone{Stage: m.GetStage(), Context: c})
	case *messages.ContextWindow:
		return answer(&messages.ContextEvents{Events: w.past})
	case *messages.Recall:
		return answer(w.recall)
	case *messages.ListTools:
		return answer(&messages.ToolList{Tools: w.tools})
	case *messages.Complete:
		return w.complete(m)
	case *messages.CheckCalls:
		w.checks = append(w.checks, m)
		if w.guardE != nil {
			return answer(w.guardE)
		}
		return answer(w.judge(m))
	case *messages.ReleaseApprovals:
		w.released = append(w.released, m.GetTaskIds()...)
	case *messages.CallTool:
		w.calls = append(w.calls, m)
		w.runs[m.GetCall().GetName()+" "+m.GetCall().GetCallId()]++
		return answer(&messages.ToolResult{
			CallId: m.GetCall().GetCallId(), Name: m.GetCall().GetName(), Content: cmp.Or(w.result, m.GetCall().GetName()+" done"), TookMs: 3,
			Taint: max(w.taint, messages.Taint_TAINT_TRUSTED),
		})
	case *messages.SendOutput:
		w.sends = append(w.sends, m)
		if w.sendE != nil {
			return answer(&messages.OutputSent{Error: w.sendE})
		}
		return answer(&messages.OutputSent{Receipt: &messages.OutputReceipt{OutputId: m.GetOutput().GetOutputId(), Receipt: "r"}})
	case *messages.Finished:
		w.finished = append(w.finished, m)
	case *messages.Parked:
		w.parked = append(w.parked, m)
	case *messages.CancelTool:
		w.cancels = append(w.cancels, "tool "+m.GetCallId()+" "+m.GetReason())
		w.replace(m.GetCallId(), &messages.ToolResult{Error: &messages.ToolError{Reason: "cancelled"}})
	case *messages.DetachCall:
		w.cancels = append(w.cancels, "detach "+m.GetCallId())
		w.replace(m.GetCallId(), &messages.ToolResult{
			Content: `{"handle":"` + m.GetCallId() + `","state":"running"}`, Taint: messages.Taint_TAINT_TRUSTED,
		})
	case *messages.CancelCompletion:
		w.cancels = append(w.cancels, "completion "+m.GetCallId()+" "+m.GetReason())
	case *messages.Suspended, *messages.Resumed, *messages.SteerTaken:
		if taken, ok := m.(*messages.SteerTaken); ok && w.watch != nil {
			w.watch(taken)
		}
		w.answers = append(w.answers, string(m.ProtoReflect().Descriptor().Name()))
	default:
		w.t.Fatalf("nobody knows %T", s.Msg)
	}
	return nil
}

// replace lets a result that is on its way be another one: its owner has heard of the preemption first.
func (w *world) replace(call string, r *messages.ToolResult) {
	for i, e := range w.queue {
		old, ok := e.Msg.(*messages.ToolResult)
		if !ok || old.GetCallId() != call || !w.obeys {
			continue
		}
		r.CallId, r.Name = old.GetCallId(), old.GetName()
		w.queue[i].Msg = r
	}
}

// judge is guard's answer.
func (w *world) judge(c *messages.CheckCalls) *messages.CallVerdicts {
	v := &messages.CallVerdicts{}
	for _, inv := range c.GetCalls() {
		one := &messages.CallVerdict{Verdict: messages.Verdict_VERDICT_ALLOW}
		if inv.GetDenied() != "" {
			one = &messages.CallVerdict{Verdict: messages.Verdict_VERDICT_DENY, Reason: inv.GetDenied()}
		} else if w.verdict != nil {
			one = w.verdict(c, inv)
		}
		one.CallId = inv.GetCallId()
		v.Verdicts = append(v.Verdicts, one)
	}
	return v
}

func (w *world) execute(s kit.Send, m *messages.LedgerExecute) []kit.Event {
	if w.ledgerE != nil {
		return []kit.Event{{From: s.To, Corr: s.Corr, Msg: &messages.LedgerDone{Error: w.ledgerE}}}
	}
	for _, op := range m.GetOps() {
		switch {
		case op.GetJournal() != nil:
			w.journal = append(w.journal, op.GetJournal())
		case op.GetEvents() != nil:
			w.commits++
			w.events = append(w.events, op.GetEvents().GetEvents()...)
		case op.GetSent() != nil:
			w.receipts++
		}
	}
	if m.GetSync() {
		w.synced = len(w.journal)
	}
	if m.GetSilent() {
		return nil
	}
	return []kit.Event{{From: s.To, Corr: s.Corr, Msg: &messages.LedgerDone{}}}
}

func (w *world) complete(m *messages.Complete) []kit.Event {
	req := m.GetRequest()
	w.requests = append(w.requests, req)
	id := req.GetCallId()
	res := w.model(req)
	out := []kit.Event{{Msg: &messages.RequestSent{
		CallId: id, Source: "fake", Model: "fake-1", Attempt: 1,
		RequestHash: fmt.Sprintf("%x", sha256.Sum256([]byte(id)))[:16],
	}}}
	if t := res.GetText(); t != "" {
		half := len(t) / 2
		out = append(out, kit.Event{Msg: &messages.Delta{CallId: id, Text: t[:half]}}, kit.Event{Msg: &messages.Delta{CallId: id, Text: t[half:]}})
	}
	return append(out, kit.Event{Msg: &messages.CompletionDone{
		CallId: id, Result: res, Attempts: []*messages.CompletionAttempt{{Source: "fake"}},
	}})
}

func (w *world) end() *messages.Finished {
	w.t.Helper()
	if len(w.finished) != 1 || !w.ended {
		w.t.Fatalf("finished %d times, actor ended %v; want once and true", len(w.finished), w.ended)
	}
	return w.finished[0]
}

func (w *world) wantEnd(end messages.End, reason, text string) {
	w.t.Helper()
	f := w.end()
	if f.GetEnd() != end || f.GetReason() != reason || f.GetText() != text {
		w.t.Errorf("ended %v %q %q, want %v %q %q", f.GetEnd(), f.GetReason(), f.GetText(), end, reason, text)
	}
}

// toolTexts are the results of tools that a request holds.
func toolTexts(req *messages.CompletionRequest) []string {
	var out []string
	for _, msg := range req.GetMessages() {
		if msg.GetRole() == messages.Role_ROLE_TOOL {
			out = append(out, plainText(msg.GetParts()))
		}
	}
	return out
}

// lastText is the text of a request's last message.
func lastText(req *messages.CompletionRequest) string {
	return plainText(req.GetMessages()[len(req.GetMessages())-1].GetParts())
}

func isComplete(s kit.Send) bool { _, ok := s.Msg.(*messages.Complete); return ok }

func isCall(s kit.Send) bool { _, ok := s.Msg.(*messages.CallTool); return ok }

package turn

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// Short names of the phases.
const (
	admitted     = messages.Phase_PHASE_ADMITTED
	onInput      = messages.Phase_PHASE_ON_INPUT
	recalling    = messages.Phase_PHASE_RECALLING
	preAction    = messages.Phase_PHASE_PRE_ACTION
	prompting    = messages.Phase_PHASE_PROMPTING
	completing   = messages.Phase_PHASE_COMPLETING
	postAction   = messages.Phase_PHASE_POST_ACTION
	inTools      = messages.Phase_PHASE_TOOLS
	beforeOutput = messages.Phase_PHASE_BEFORE_OUTPUT
	committing   = messages.Phase_PHASE_COMMITTING
	sending      = messages.Phase_PHASE_SENDING
	afterOutput  = messages.Phase_PHASE_AFTER_OUTPUT
	ended        = messages.Phase_PHASE_ENDED
)

// legal lists what may follow each phase; ended may follow all.
var legal = map[messages.Phase][]messages.Phase{
	admitted:     {onInput, recalling, postAction, inTools, sending, afterOutput},
	onInput:      {recalling, committing},
	recalling:    {recalling, preAction},
	preAction:    {prompting, committing},
	prompting:    {completing, recalling},
	completing:   {postAction, prompting, recalling},
	postAction:   {inTools, beforeOutput, prompting, recalling, committing},
	inTools:      {inTools, prompting, recalling, committing},
	beforeOutput: {committing},
	committing:   {sending, afterOutput},
	sending:      {afterOutput},
	afterOutput:  {},
}

// machine is the state of one turn.
type machine struct {
	deps  Deps
	set   Settings
	start *messages.StartTurn
	input *messages.Input // as on_input left it
	self  *messages.Address
	now   time.Time
	out   []kit.Effect

	phase     messages.Phase
	suspended bool
	preempt   *messages.Preempt
	taint     messages.Taint   // the worst of what was read
	cancel    *messages.Cancel // came after the commit had begun

	question question // the outstanding question that the phase waits for, outside of tool calls
	beside   question // another one at the same time
	asked    int      // questions so far

	extra     map[string]string // notes of stage handlers
	stageFrom time.Time

	prefix    []*messages.ChatMessage // nil: must be built
	tail      []*messages.ChatMessage
	window    []*messages.Event // answered by ContextWindow
	windowed  bool
	gathered  bool // memory has said all it has to
	listed    bool // the tools of the next request are known
	recalled  *messages.RecallResult
	asides    []string // what the prompt must say about memory that failed
	budget    int      // estimated tokens
	sizes     gauge
	toolSizes map[sizedTool]int

	round     int // model round, from 1; zero before the first
	attempt   int // attempt of the round
	toolless  bool
	limit     string // why toolless: tool_cap, tools_denied
	model     stream // the completion under way
	overflows int
	until     int64 // while it is being parked for want of a budget: when it goes on, Unix microseconds

	response *messages.CompletionResult // of the round, as post_action left it
	said     string                     // final texts of rounds that a steered input followed
	text     string                     // what goes out
	used     []string                   // names of the tools that ran, in order
	usage    *messages.Usage
	reason   string // of an answered turn

	defs  map[string]*messages.ToolDef // nil: must be asked
	list  []*messages.ToolDef
	batch batch

	steers []steer

	output   *messages.OutputIntent
	repeated bool
	unknown  map[string]bool
}

// New makes the machine of a turn. start is kept and never changed.
func New(deps Deps, settings Settings, start *messages.StartTurn) kit.Machine {
	settings = settings.withDefaults()
	if deps.Guard == nil {
		deps.Guard = kit.Path(string(kit.FacilityGuard))
	}
	m := &machine{
		deps: deps, set: settings, start: start,
		input:     start.GetTask().GetInput(),
		phase:     admitted,
		taint:     messages.Taint_TAINT_TRUSTED,
		budget:    settings.PromptTokens,
		sizes:     gauge{},
		toolSizes: map[sizedTool]int{},
		usage:     &messages.Usage{},
		reason:    "ok",
		unknown:   map[string]bool{},
	}
	return m
}

// Step implements kit.Machine.
func (m *machine) Step(now time.Time, e kit.Event) []kit.Effect {
	m.now = now
	if m.phase != ended {
		m.receive(e)
	}
	out := m.out
	m.out = nil
	return out
}

func (m *machine) receive(e kit.Event) {
	switch msg := e.Msg.(type) {
	case kit.Started:
		m.onStarted(msg)
	case kit.Stopping:
		m.cutWork("shutdown")
	case kit.Fault:
		m.onFault(msg)
	case *messages.Preempt:
		m.onPreempt(msg)
	case *messages.Resume:
		m.onResume(msg)
	case *messages.Cancel:
		m.onCancel(msg)
	case *messages.Steer:
		m.onSteer(e, msg)
	case *messages.RequestSent:
		m.onRequestSent(msg)
	case *messages.Delta:
		m.onDelta(msg)
	case *messages.CompletionDone:
		m.onCompletionDone(msg)
	case *messages.ToolResult:
		m.onToolResult(e.Corr, msg)
	case *messages.Busy:
		m.onBusy(e.Corr)
	case *messages.Error:
		m.onError(e.Corr, msg)
	case *messages.LedgerDone:
		m.onLedgerDone(e.Corr, msg)
	case *messages.StageDone, *messages.ContextEvents, *messages.RecallResult, *messages.ToolList, *messages.OutputSent,
		*messages.CallVerdicts:
		m.onAnswer(e.Corr, e.Msg)
	case askAgain:
		m.onAskAgain(msg)
	case askLate:
		if q := m.outstanding(msg.corr); q != nil {
			m.onError(msg.corr, errLate(q.what, q.limit))
		}
	case callLate:
		m.onCallLate(msg)
	case silent:
		m.onSilent(msg)
	case deadline:
		m.onDeadline()
	default:
		m.onUnknown(e.Msg)
	}
}

// onStarted begins, or goes on from what the journal holds.
func (m *machine) onStarted(s kit.Started) {
	m.self = s.Self
	if s.Restarts > 0 {
		m.add(kit.Log{Level: kit.Warn, Text: "turn does not restart in place", Attrs: []any{"failure", s.Failure}})
		m.phase = ended
		m.add(kit.Stop{Who: m.self})
		return
	}
	if m.start.GetDeadlineUs() < 0 {
		m.fail(errBadDeadline)
		return
	}
	m.armDeadline()
	m.recover()
}

// become enters a phase, or remembers it when the turn is suspended or is to be.
func (m *machine) become(p messages.Phase) {
	if !isLegal(m.phase, p) {
		panic(fmt.Sprintf("turn: %v cannot follow %v", p, m.phase))
	}
	m.phase = p
	if m.suspended {
		return
	}
	if m.preempt != nil && mayPause(p) {
		m.suspend()
		return
	}
	m.enter()
}

// enter does what the phase begins with. It is also how a suspended turn goes on.
func (m *machine) enter() {
	m.add(kit.State{Word: word(m.phase), Summary: m.summary()})
	switch m.phase {
	case onInput:
		m.becomeOnInput()
	case recalling:
		m.becomeRecalling()
	case preAction:
		m.becomePreAction()
	case prompting:
		m.becomePrompting()
	case completing:
		m.becomeCompleting()
	case postAction:
		m.becomePostAction()
	case inTools:
		m.becomeTools()
	case beforeOutput:
		m.becomeBeforeOutput()
	case committing:
		m.becomeCommitting()
	case sending:
		m.becomeSending()
	case afterOutput:
		m.becomeAfterOutput()
	default:
		panic(fmt.Sprintf("turn: %v cannot be entered", m.phase))
	}
}

func isLegal(from, to messages.Phase) bool {
	for _, p := range legal[from] {
		if p == to {
			return true
		}
	}
	return false
}

// mayPause tells whether a turn may be suspended at the beginning of a phase. What is decided is committed first, and
// what is committed is sent first.
func mayPause(p messages.Phase) bool { return p != committing && p != sending }

func (m *machine) add(e kit.Effect) { m.out = append(m.out, e) }

func (m *machine) task() string { return m.start.GetTask().GetInput().GetId() }

func (m *machine) agent() string { return m.start.GetAgent().GetAgent() }

// publish sends an event of this task to the stream.
func (m *machine) publish(e *messages.AgentEvent) {
	e.AtUs = m.now.UnixMicro()
	e.TaskId = m.task()
	e.Agent = m.agent()
	e.Channel = m.input.GetChannel()
	e.Conversation = m.input.GetConversation()
	m.add(kit.Publish{Event: e})
}

// question is a request to another actor whose answer the phase waits for.
type question struct {
	corr  string
	what  string // who is asked, for people
	send  kit.Send
	limit time.Duration
	tries int
}

type (
	askLate  struct{ corr string }
	askAgain struct{ corr string }
	deadline struct{}
)

// ask sends a request and waits for its answer for at most limit.
func (m *machine) ask(what string, to *messages.Address, msg proto.Message, limit time.Duration) {
	m.question = m.put("ask", what, to, msg, limit)
}

// askBeside asks a second thing while the phase waits for another one.
func (m *machine) askBeside(what string, to *messages.Address, msg proto.Message, limit time.Duration) {
	m.beside = m.put("beside", what, to, msg, limit)
}

func (m *machine) put(key, what string, to *messages.Address, msg proto.Message, limit time.Duration) question {
	m.asked++
	corr := what + "/" + strconv.Itoa(m.asked)
	q := question{corr: corr, what: what, send: kit.Send{To: to, Msg: msg, Corr: corr}, limit: limit}
	m.add(q.send)
	m.add(kit.After{Key: key, D: limit, Msg: askLate{corr}})
	return q
}

// outstanding is the question with this correlation, or nil.
func (m *machine) outstanding(corr string) *question {
	if corr == "" {
		return nil
	}
	switch corr {
	case m.question.corr:
		return &m.question
	case m.beside.corr:
		return &m.beside
	}
	return nil
}

// answered takes an outstanding question if this is its answer.
func (m *machine) answered(corr string) bool {
	q := m.outstanding(corr)
	if q == nil {
		return false
	}
	*q = question{}
	return true
}

// forget drops the outstanding questions: their answers will be late.
func (m *machine) forget() { m.question, m.beside = question{}, question{} }

// onBusy asks a busy receiver again, a little later each time.
func (m *machine) onBusy(corr string) {
	q := m.outstanding(corr)
	if q == nil {
		m.onError(corr, errBusy)
		return
	}
	q.tries++
	d := 20 * time.Millisecond << min(q.tries, 6)
	m.add(kit.After{Key: "again/" + q.what, D: d, Msg: askAgain{corr}})
}

func (m *machine) onAskAgain(a askAgain) {
	if q := m.outstanding(a.corr); q != nil {
		m.add(q.send)
	}
}

// onAnswer gives the answer of the outstanding question to the phase that waits for it.
func (m *machine) onAnswer(corr string, msg any) {
	if !m.answered(corr) {
		return
	}
	switch msg := msg.(type) {
	case *messages.StageDone:
		m.onStageDone(msg)
	case *messages.ContextEvents:
		m.onContext(msg)
	case *messages.RecallResult:
		m.onRecall(msg)
	case *messages.ToolList:
		m.onToolList(msg)
	case *messages.OutputSent:
		m.onOutputSent(msg)
	case *messages.CallVerdicts:
		m.onVerdicts(msg)
	}
}

// onError is an answer of any question that could not be answered.
func (m *machine) onError(corr string, err *messages.Error) {
	switch {
	case corr == "":
		return
	case m.model.id == corr:
		m.onCompletionDone(failedCompletion(corr, err))
	case m.batch.running(corr) != nil:
		m.onToolResult(corr, failedCall(m.batch.running(corr).inv, "failed", err))
	default:
		if q := m.outstanding(corr); q != nil {
			what := q.what
			*q = question{}
			m.onUnanswered(what, err)
		}
	}
}

// onUnanswered goes on without an answer where that is honest, and fails where it is not.
func (m *machine) onUnanswered(what string, err *messages.Error) {
	switch {
	case what == askedGuard:
		m.onGuardFailed(err)
	case m.phase == recalling && what != "tools":
		m.onMemoryFailed(err)
	case m.phase == committing:
		m.onCommitFailed(err)
	case m.phase == sending:
		m.onSendFailed(err)
	case m.phase == afterOutput:
		m.log("after_output was not run", err)
		m.finishAnswered()
	default:
		m.fail(err)
	}
}

// onFault is an effect of this turn that could not be performed.
func (m *machine) onFault(f kit.Fault) {
	send, ok := f.Effect.(kit.Send)
	if !ok {
		m.log("effect failed", f.Err)
		return
	}
	if _, write := send.Msg.(*messages.LedgerExecute); write && send.Corr == "" {
		m.onWriteFailed(f.Err)
		return
	}
	if send.Corr == "" {
		m.log("message not delivered", f.Err)
		return
	}
	m.onError(send.Corr, f.Err)
}

func (m *machine) log(text string, err *messages.Error) {
	m.add(kit.Log{Level: kit.Warn, Text: text, Attrs: []any{"code", err.GetCode(), "error", err.GetMessage()}})
}

func (m *machine) onUnknown(msg any) {
	name := fmt.Sprintf("%T", msg)
	if m.unknown[name] {
		return
	}
	m.unknown[name] = true
	m.add(kit.Log{Level: kit.Warn, Text: "unknown message", Attrs: []any{"type", name}})
}

// armDeadline sets the turn's timer; a deadline that is over fires at once.
func (m *machine) armDeadline() {
	if us := m.start.GetDeadlineUs(); us != 0 {
		m.add(kit.After{Key: "deadline", D: max(0, time.UnixMicro(us).Sub(m.now)), Msg: deadline{}})
	}
}

func (m *machine) onDeadline() {
	if m.suspended || m.phase >= committing {
		return // looked at again on resume; what is committed is finished
	}
	m.cutWork("deadline")
	m.fail(errDeadline)
}

// Show implements kit.Shower.
func (m *machine) Show() any {
	deadline := ""
	if us := m.start.GetDeadlineUs(); us > 0 {
		deadline = time.UnixMicro(us).UTC().Format(time.RFC3339)
	}
	return map[string]any{
		"task": m.task(), "phase": word(m.phase), "suspended": m.suspended, "round": m.round, "attempt": m.attempt,
		"source": m.model.source, "streamed_bytes": m.model.text.Len(), "calls": m.showCalls(), "deadline": deadline, "taint": strings.ToLower(strings.TrimPrefix(m.taint.String(), "TAINT_")),
		"steered": len(m.steers), "tools_used": m.used, "prompt_budget": m.budget,
	}
}

package turn

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// maxOverflows is how often a turn shortens its prompt because the vendor found it too long.
const maxOverflows = 2

// stream is the completion under way; an empty id means none.
type stream struct {
	id      string
	request *messages.CompletionRequest
	source  string
	text    strings.Builder
	from    time.Time
	last    time.Time // when something came
}

type silent struct{ id string }

func (m *machine) becomePrompting() {
	if m.toolless || m.listed {
		m.listed = false
		m.become(completing)
		return
	}
	m.askTools()
}

func (m *machine) askTools() {
	m.ask("tools", m.deps.Tools, &messages.ListTools{Agent: m.agent()}, m.set.Ask)
}

func (m *machine) onToolList(l *messages.ToolList) {
	m.defs = make(map[string]*messages.ToolDef, len(l.GetTools()))
	for _, d := range l.GetTools() {
		m.defs[d.GetName()] = d
	}
	if m.phase == inTools {
		m.become(inTools)
		return
	}
	m.list = l.GetTools()
	if m.phase == recalling {
		m.listed = true
		m.prefixReady()
		return
	}
	m.become(completing)
}

// becomeCompleting makes one attempt of the round.
func (m *machine) becomeCompleting() {
	m.joinSteers()
	if total := m.fit(); total > m.set.Window {
		m.fail(m.errTooLong(total, fmt.Sprintf("The prompt does not fit into the %d tokens that the model can read.", m.set.Window)))
		return
	}
	m.attempt++
	id := fmt.Sprintf("%s/%d/%d", m.task(), m.round, m.attempt)
	req := m.request(id)
	m.model = stream{id: id, request: req, from: m.now, last: m.now}
	m.add(kit.Send{To: m.deps.Providers, Corr: id, Msg: &messages.Complete{
		Request: req, ReplyTo: m.self, DeadlineUs: m.start.GetDeadlineUs(), Background: m.background(),
		Channel: m.input.GetChannel(), Conversation: m.input.GetConversation(),
	}})
	m.add(kit.After{Key: "silence", D: m.set.Silence, Msg: silent{id}})
}

// request builds the request of an attempt.
func (m *machine) request(id string) *messages.CompletionRequest {
	msgs := make([]*messages.ChatMessage, 0, len(m.prefix)+len(m.tail)+1)
	msgs = append(msgs, m.prefix...)
	if m.toolless {
		msgs = insertSystem(msgs, m.lastWord())
	}
	return &messages.CompletionRequest{
		CallId: id, TaskId: m.task(), Agent: m.agent(),
		Messages: append(msgs, m.tail...), Tools: m.list, MaxTokens: int32(m.set.MaxTokens),
		Recalled: m.recalled.GetItems(), MemoryNone: m.recalled.GetNone(), Question: m.lastQuestion(),
	}
}

// lastQuestion is the text of the person's last word: the input, or the last text that joined the turn.
func (m *machine) lastQuestion() string {
	for i := len(m.steers) - 1; i >= 0; i-- {
		if m.steers[i].joined {
			return plainText(m.steers[i].input.GetParts())
		}
	}
	return plainText(m.input.GetParts())
}

// lastWord tells the model why it has no tools any more.
func (m *machine) lastWord() string {
	if m.limit == "tools_denied" {
		return "# This answer\nNone of the calls you asked for may run, and there are no further calls in this turn. " +
			"Answer with what you have and say what you could not do."
	}
	return "# This answer\nThe rounds of this turn are used up: there are no further calls. " +
		"Answer with what you have and say what is missing."
}

// insertSystem puts a system message behind the others, which come first.
func insertSystem(msgs []*messages.ChatMessage, text string) []*messages.ChatMessage {
	at := 0
	for at < len(msgs) && msgs[at].GetRole() == messages.Role_ROLE_SYSTEM {
		at++
	}
	msgs = append(msgs, nil)
	copy(msgs[at+1:], msgs[at:])
	msgs[at] = textMessage(messages.Role_ROLE_SYSTEM, text)
	return msgs
}

func (m *machine) onRequestSent(r *messages.RequestSent) {
	if r.GetCallId() != m.model.id {
		return
	}
	m.model.last = m.now
	m.model.source = r.GetSource()
	m.journal(&messages.JournalEntry{
		Kind: messages.JournalKind_JOURNAL_KIND_REQUEST, Attempt: int32(m.attempt), Round: int32(m.round),
		RequestHash: r.GetRequestHash(),
	})
}

func (m *machine) onDelta(d *messages.Delta) {
	if d.GetCallId() != m.model.id {
		return
	}
	m.model.last = m.now
	if t := d.GetReasoning(); t != "" {
		m.publish(&messages.AgentEvent{Type: messages.EventType_EVENT_TYPE_REASONING_DELTA, Text: t})
	}
	if t := d.GetText(); t != "" {
		m.model.text.WriteString(t)
		m.publish(&messages.AgentEvent{Type: messages.EventType_EVENT_TYPE_CONTENT_DELTA, Text: t})
	}
}

// onSilent gives a completion up that has sent nothing for too long.
func (m *machine) onSilent(s silent) {
	if s.id != m.model.id {
		return
	}
	if rest := m.set.Silence - m.now.Sub(m.model.last); rest > 0 {
		m.add(kit.After{Key: "silence", D: rest, Msg: s})
		return
	}
	m.add(kit.Send{To: m.deps.Providers, Msg: &messages.CancelCompletion{CallId: s.id, Reason: "timeout"}})
	done := failedCompletion(s.id, errSilent(m.set.Silence))
	done.Result.Text = m.model.text.String()
	m.onCompletionDone(done)
}

// onCompletionDone takes the answer of the attempt under way; any other is late.
func (m *machine) onCompletionDone(d *messages.CompletionDone) {
	if d.GetCallId() != m.model.id || m.model.id == "" {
		return
	}
	r := d.GetResult()
	took := m.now.Sub(m.model.from)
	m.publish(&messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_AGENT_LLM_CHAIN, Text: r.GetText(),
		Detail: &messages.AgentEvent_Chain{Chain: &messages.Chain{
			Request: m.model.request, Result: r, Attempts: d.GetAttempts(), Round: int32(m.round), TookMs: took.Milliseconds(),
		}},
	})
	if r.GetReasoning() != "" {
		m.publish(&messages.AgentEvent{Type: messages.EventType_EVENT_TYPE_REASONING, Text: r.GetReasoning()})
	}
	m.model = stream{}
	m.add(kit.CancelAfter{Key: "silence"})
	m.count(r.GetUsage())
	if err := completionError(r); err != nil {
		m.onCompletionFailed(r, err)
		return
	}
	r = proto.CloneOf(r)
	m.nameCalls(r)
	m.response = r
	m.sawSteers()
	m.journal(&messages.JournalEntry{
		Kind: messages.JournalKind_JOURNAL_KIND_RESPONSE, Attempt: int32(m.attempt), Round: int32(m.round), Response: r,
		Taint: m.taint,
	})
	m.become(postAction)
}

// completionError is nil for a whole answer.
func completionError(r *messages.CompletionResult) *messages.Error {
	switch {
	case r == nil:
		return errContract
	case r.GetFailure() != nil || r.GetFinish() == messages.Finish_FINISH_ERROR:
		return failureError(r)
	case r.GetFinish() == messages.Finish_FINISH_CONTENT_FILTER:
		return errFilter
	case r.GetFinish() == messages.Finish_FINISH_UNSPECIFIED:
		return errContract
	default:
		return nil
	}
}

// onCompletionFailed shortens a prompt that was too long and tries again; everything else ends the turn.
func (m *machine) onCompletionFailed(r *messages.CompletionResult, err *messages.Error) {
	switch kind := r.GetFailure().GetKind(); {
	case kind == messages.ErrorKind_ERROR_KIND_CONTEXT_OVERFLOW:
		m.onOverflow(err)
	case kind == messages.ErrorKind_ERROR_KIND_BUDGET && m.background():
		m.parkForBudget(err.GetRetryAfterMs())
	default:
		m.fail(err)
	}
}

// background tells whether no person waits for this turn.
func (m *machine) background() bool { return !m.input.GetPersonWaits() && m.start.GetLevel() < 2 }

// budgetWait is the longest time until a turn that waits for a budget asks again: a person may raise it before the next
// one begins.
const budgetWait = time.Hour

// parkForBudget lets the turn wait, off the stack, until there is a budget again. People are told by providers, once, that
// the budget is spent, and by the scheduler that the task is parked.
func (m *machine) parkForBudget(retryMs int64) {
	wait := budgetWait
	if retryMs > 0 {
		wait = min(wait, time.Duration(retryMs)*time.Millisecond)
	}
	m.until = m.now.Add(wait).UnixMicro()
	m.write(&messages.JournalEntry{
		Kind: messages.JournalKind_JOURNAL_KIND_PARKED, Attempt: int32(m.attempt), Round: int32(m.round),
	})
}

func (m *machine) count(u *messages.Usage) {
	m.usage.Input += u.GetInput()
	m.usage.Output += u.GetOutput()
	m.usage.Cached += u.GetCached()
	m.usage.Reasoning += u.GetReasoning()
	m.usage.CacheWrite += u.GetCacheWrite()
	m.usage.PromptTotal += u.GetPromptTotal()
	m.usage.Total += u.GetTotal()
}

// nameCalls gives the calls of a round the ids of this node, by their place.
func (m *machine) nameCalls(r *messages.CompletionResult) {
	for i, inv := range r.GetCalls() {
		inv.CallId = fmt.Sprintf("%s/%d/c%d", m.task(), m.round, i)
		inv.Index = int32(i)
	}
}

// decide says what follows a response.
func (m *machine) decide() {
	r := m.response
	switch {
	case len(r.GetCalls()) > 0 && !m.toolless:
		m.batch = newBatch(r.GetCalls())
		m.batch.asked = len(m.start.GetTask().GetJournal()) > 0 // an earlier process may have got as far as this
		m.become(inTools)
	case r.GetFinish() == messages.Finish_FINISH_PAUSE:
		m.tail = append(m.tail, assistantMessage(r))
		m.said += answerText(r)
		m.nextRound()
	case m.steerWaits() && !m.toolless:
		m.tail = append(m.tail, assistantMessage(r))
		m.said = joinSaid(m.said, answerText(r))
		m.nextRound()
	default:
		m.answer(r)
	}
}

// answer ends the rounds with the model's last text.
func (m *machine) answer(r *messages.CompletionResult) {
	m.text = m.said + answerText(r)
	if m.text == "" {
		m.fail(m.errNoAnswer())
		return
	}
	switch {
	case m.toolless:
		m.reason = m.limit
	case r.GetFinish() == messages.Finish_FINISH_LENGTH:
		m.reason = "length"
	case r.GetText() == "" && r.GetRefusal() != "":
		m.reason = "model_refused"
	}
	m.become(beforeOutput)
}

func (m *machine) errNoAnswer() *messages.Error {
	if !m.toolless {
		return errEmpty
	}
	return &messages.Error{Code: m.limit, Message: errRounds.Message, Hint: errRounds.Hint}
}

// joinSaid keeps a whole answer that another one will follow.
func joinSaid(said, text string) string {
	if text == "" {
		return said
	}
	return said + text + "\n\n"
}

// nextRound makes another request, without tools when the rounds are used up.
func (m *machine) nextRound() {
	m.round++
	m.attempt = 0
	m.response = nil
	m.batch = batch{}
	m.capRounds()
	if m.round > m.maxRounds()+pauses {
		m.fail(errRounds)
		return
	}
	if m.prefix == nil {
		m.become(recalling)
		return
	}
	m.become(prompting)
}

// pauses is how many requests beyond the cap a vendor may take to bring its last answer to an end.
const pauses = 3

func (m *machine) capRounds() {
	if m.round > m.maxRounds() && !m.toolless {
		m.becomeToolless("tool_cap")
	}
}

// becomeToolless makes the next request the last one.
func (m *machine) becomeToolless(limit string) { m.toolless, m.limit, m.list = true, limit, nil }

func (m *machine) maxRounds() int {
	if n := int(m.start.GetMaxRounds()); n > 0 {
		return n
	}
	return m.set.Rounds
}

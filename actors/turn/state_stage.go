package turn

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// stageName is the last path segment of a stage's actor: "on_input".
func stageName(s messages.Stage) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STAGE_"))
}

// runStage asks a stage's actor; its answer comes to onStageDone. c is completed with what all stages see. A stage without
// handlers answers with what it was given, so that it need not be asked.
func (m *machine) runStage(s messages.Stage, c *messages.StageContext) {
	m.fillContext(c)
	m.stageFrom = m.now
	if m.set.Idle[s] {
		m.onStageDone(&messages.StageDone{Stage: s, Context: c})
		return
	}
	m.ask(stageName(s), m.stageAddress(s), &messages.RunStage{Stage: s, Context: c}, m.set.StageAsk)
}

func (m *machine) stageAddress(s messages.Stage) *messages.Address {
	return kit.Path(m.deps.Stages + "/" + stageName(s))
}

func (m *machine) fillContext(c *messages.StageContext) {
	c.TaskId = m.task()
	c.Agent = m.agent()
	c.Input = m.input
	c.InputText = plainText(m.input.GetParts())
	c.Round = int32(m.round)
	c.Usage = proto.CloneOf(m.usage)
	c.Extra = m.extra
}

// onStageDone hands the context of a stage to the phase that waits for it. A response set by a handler ends the turn
// with that response, whatever the stage.
func (m *machine) onStageDone(d *messages.StageDone) {
	c := d.GetContext()
	m.extra = c.GetExtra()
	m.publish(&messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_STAGE,
		Text: stageName(d.GetStage()),
		Detail: &messages.AgentEvent_Stage{Stage: &messages.StageRun{
			Stage: d.GetStage(), TookUs: m.now.Sub(m.stageFrom).Microseconds(), Faults: d.GetFaults(),
		}},
	})
	if r := c.GetResponse(); r != "" && m.phase < committing {
		if m.phase == onInput {
			m.noteStarted(c)
		}
		m.text = r
		m.become(committing)
		return
	}
	switch m.phase {
	case onInput:
		m.noteStarted(c)
		m.become(recalling)
	case preAction:
		m.prefix = c.GetMessages()
		m.become(prompting)
	case postAction:
		m.onPostAction(c)
	case inTools:
		m.onToolStage(d.GetStage(), c)
	case beforeOutput:
		m.text = c.GetFinalText()
		m.become(committing)
	case afterOutput:
		m.finishAnswered()
	default:
		panic("turn: a stage answered in phase " + word(m.phase))
	}
}

func (m *machine) becomeOnInput() {
	m.runStage(messages.Stage_STAGE_ON_INPUT, &messages.StageContext{})
}

// noteStarted keeps the input as on_input left it and journals it.
func (m *machine) noteStarted(c *messages.StageContext) {
	if t := c.GetInputText(); t != plainText(m.input.GetParts()) {
		in := proto.CloneOf(m.input)
		in.Parts = withText(in.GetParts(), t)
		m.input = in
	}
	m.journal(&messages.JournalEntry{Kind: messages.JournalKind_JOURNAL_KIND_STARTED, Attempt: 1, Input: m.input})
}

// withText puts text in the place of all text parts; media stays.
func withText(parts []*messages.Part, text string) []*messages.Part {
	out := []*messages.Part{{Content: &messages.Part_Text{Text: text}}}
	for _, p := range parts {
		if p.GetPayload() != nil {
			out = append(out, p)
		}
	}
	return out
}

// plainText joins the text parts of a content by line ends.
func plainText(parts []*messages.Part) string {
	if len(parts) == 1 {
		return parts[0].GetText()
	}
	var texts []string
	for _, p := range parts {
		if t := p.GetText(); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n")
}

func (m *machine) becomePreAction() {
	m.runStage(messages.Stage_STAGE_PRE_ACTION, &messages.StageContext{Messages: m.prefix})
}

func (m *machine) becomePostAction() {
	r := m.response
	m.runStage(messages.Stage_STAGE_POST_ACTION, &messages.StageContext{
		ModelText: r.GetText(), Reasoning: r.GetReasoning(), Calls: r.GetCalls(),
	})
}

// onPostAction takes what the handlers made of the response, journals it if it differs, and decides what follows.
func (m *machine) onPostAction(c *messages.StageContext) {
	r := m.response
	if c.GetModelText() != r.GetText() || !sameCalls(c.GetCalls(), r.GetCalls()) {
		r = proto.CloneOf(r)
		r.Text = c.GetModelText()
		r.Calls = nil
		for _, inv := range c.GetCalls() {
			r.Calls = append(r.Calls, proto.CloneOf(inv))
		}
		m.nameCalls(r)
		m.response = r
		m.journal(&messages.JournalEntry{
			Kind: messages.JournalKind_JOURNAL_KIND_RESPONSE, Attempt: int32(m.attempt), Round: int32(m.round), Response: r,
			Taint: m.taint,
		})
	}
	m.decide()
}

func sameCalls(a, b []*messages.ToolInvocation) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !proto.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

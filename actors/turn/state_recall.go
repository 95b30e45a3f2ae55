package turn

import (
	"homeagent/messages"
)

// becomeRecalling builds the prefix anew: first the conversation, then what memory brings up beyond it.
func (m *machine) becomeRecalling() {
	m.round = max(m.round, 1)
	m.prefix, m.window, m.recalled, m.asides, m.windowed = nil, nil, nil, nil, false
	m.ask("memory/context", m.deps.Context, &messages.ContextWindow{
		Agent: m.agent(), Conversation: m.input.GetConversation(),
		MaxEvents: int32(m.set.History), MaxTokens: int32(m.budget),
	}, m.set.Ask)
}

func (m *machine) onContext(c *messages.ContextEvents) {
	if c.GetError() != nil {
		m.onMemoryFailed(c.GetError())
		return
	}
	m.window, m.windowed = c.GetEvents(), true
	m.askRecall()
}

func (m *machine) askRecall() {
	if m.set.Recalled < 0 {
		m.prefixReady()
		return
	}
	text := plainText(m.input.GetParts())
	for _, s := range m.steers {
		if t := plainText(s.input.GetParts()); t != "" {
			text += "\n" + t
		}
	}
	exclude := make([]string, 0, len(m.window))
	for _, e := range m.window {
		exclude = append(exclude, e.GetEventId())
	}
	m.ask("memory", m.deps.Memory, &messages.Recall{
		Text: text, Agent: m.agent(), Conversation: m.input.GetConversation(),
		Limit: int32(m.set.Recalled), Exclude: exclude, NowUs: m.now.UnixMicro(),
	}, m.set.Ask)
}

func (m *machine) onRecall(r *messages.RecallResult) {
	if r.GetError() != nil {
		m.onMemoryFailed(r.GetError())
		return
	}
	m.recalled = r
	m.prefixReady()
}

// onMemoryFailed goes on without what memory could not give and says so, to the model and to people.
func (m *machine) onMemoryFailed(err *messages.Error) {
	m.publishError(err)
	if !m.windowed {
		m.windowed = true
		m.asides = append(m.asides, "The earlier messages of this conversation could not be read just now ("+err.GetCode()+").")
		m.askRecall()
		return
	}
	m.asides = append(m.asides, "Memory could not be searched just now ("+err.GetCode()+").")
	m.prefixReady()
}

func (m *machine) prefixReady() {
	m.readPrefix()
	m.prefix = buildPrefix(&m.set, m.start.GetAgent(), m.input, m.window, m.recalled, m.asides)
	m.become(preAction)
}

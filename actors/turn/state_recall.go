package turn

import (
	"homeagent/messages"
)

// becomeRecalling builds the prefix anew from the conversation, what memory brings up beyond it, and the tools, which are
// listed meanwhile: they count when the rest is shared out.
func (m *machine) becomeRecalling() {
	m.round = max(m.round, 1)
	m.prefix, m.window, m.recalled, m.asides, m.windowed = nil, nil, nil, nil, false
	m.gathered, m.listed = false, false
	m.ask("memory/context", m.deps.Context, &messages.ContextWindow{
		Agent: m.agent(), Conversation: m.input.GetConversation(),
		MaxEvents: int32(m.set.History), MaxTokens: int32(m.budget),
	}, m.set.Ask)
	if !m.toolless {
		m.askBeside("tools", m.deps.Tools, &messages.ListTools{Agent: m.agent()}, m.set.Ask)
	}
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
		m.onGathered()
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
	m.onGathered()
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
	m.onGathered()
}

// onGathered notes that memory has said all it has to.
func (m *machine) onGathered() {
	m.gathered = true
	m.prefixReady()
}

// prefixReady goes on when memory and tools have answered.
func (m *machine) prefixReady() {
	if !m.gathered || !m.toolless && !m.listed {
		return
	}
	m.readPrefix()
	m.prefix = m.layout()
	m.become(preAction)
}

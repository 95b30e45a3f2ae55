package provider

import (
	"encoding/json"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
	models "homeagent/providers"
)

const (
	toolList = "llm_list_sources"
	toolSet  = "llm_set_source"
	// auto is the name that takes a choice back.
	auto = "auto"

	corrTools = "tools"
	// choiceTime is how long a choice holds after it was last used.
	choiceTime = 24 * time.Hour
	// maxChoices is how many are remembered.
	maxChoices = 1000
)

const listSchema = `{"type":"object","additionalProperties":false,"properties":{}}`

const setSchema = `{"type":"object","required":["source"],"additionalProperties":false,"properties":{` +
	`"source":{"type":"string","minLength":1,"maxLength":64,"description":"Name of a source as llm_list_sources gives it, or auto for the usual order."},` +
	`"scope":{"type":"string","enum":["turn","conversation"],"description":"For the rest of this turn, or for this conversation until it has rested for a day; turn if absent."}}}`

// toolDefs are the tools of this package.
func toolDefs() []*messages.ToolDef {
	def := func(name, schema, text string) *messages.ToolDef {
		return &messages.ToolDef{
			Name: name, Provider: Kind, ParametersJson: []byte(schema), Description: text, TimeoutMs: 10_000,
			Effect: messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT, OnPreempt: messages.OnPreempt_ON_PREEMPT_FINISH,
			ToolClass: messages.ToolClass_TOOL_CLASS_WRITE,
		}
	}
	list := def(toolList, listSchema, "List the model sources that can be asked, in their order: model, state, what they take, and which one is chosen here.")
	list.Effect, list.ToolClass, list.ParallelSafe = messages.ToolEffect_TOOL_EFFECT_PURE, messages.ToolClass_TOOL_CLASS_READ, true
	return []*messages.ToolDef{
		list,
		def(toolSet, setSchema, "Have another model source asked first from the next request on, when the person asks for it. "+
			"Where it fails, the others are asked in their order."),
	}
}

// register offers the tools: at the start, and when tools was restarted.
func (m *machine) register(restarted string) {
	if m.p.Tools != nil && !strings.HasPrefix(restarted, sourcePrefix) {
		m.add(kit.Send{To: m.p.Tools, Corr: corrTools, Msg: &messages.RegisterTools{Owner: m.self, Tools: append(toolDefs(), m.helpers.mediaTools()...)}})
	}
}

// choices are the sources that were chosen for turns and conversations.
type choices map[string]choice

type choice struct {
	source string
	used   time.Time
}

func taskScope(task string) string { return "task\x00" + task }

func talkScope(agent, channel, conversation string) string {
	return "talk\x00" + agent + "\x00" + channel + "\x00" + conversation
}

// source is the one that was chosen for a request; empty means none.
func (c choices) source(now time.Time, r *messages.Complete) string {
	q := r.GetRequest()
	return c.of(now, taskScope(q.GetTaskId()), talkScope(q.GetAgent(), r.GetChannel(), r.GetConversation()))
}

func (c choices) of(now time.Time, scopes ...string) string {
	for _, s := range scopes {
		got, ok := c[s]
		if ok && now.Sub(got.used) < choiceTime {
			c[s] = choice{got.source, now}
			return got.source
		}
		delete(c, s)
	}
	return ""
}

// set chooses, and makes room where there is none: for the one that rested longest.
func (c choices) set(now time.Time, scope, source string) {
	if source == "" {
		delete(c, scope)
		return
	}
	c[scope] = choice{source, now}
	for len(c) > maxChoices {
		var oldest string
		for s, got := range c {
			if o := c[oldest]; oldest == "" || got.used.Before(o.used) || got.used.Equal(o.used) && s < oldest {
				oldest = s
			}
		}
		delete(c, oldest)
	}
}

// call serves the tools.
func (m *machine) call(e kit.Event, c *messages.CallTool) {
	scopes := []string{taskScope(c.GetTaskId()), talkScope(c.GetAgent(), c.GetChannel(), c.GetConversation())}
	var args struct{ Source, Scope, Attachment, Question string }
	if len(c.GetCall().GetArgumentsJson()) > 0 {
		if err := json.Unmarshal(c.GetCall().GetArgumentsJson(), &args); err != nil {
			m.add(e.Reply(refuse(c, "type", "", "the arguments are not as the schema says", "")))
			return
		}
	}
	switch c.GetCall().GetName() {
	case toolList:
		m.add(e.Reply(succeed(c, m.toolView(m.chosen.of(m.now, scopes...)))))
	case toolSet:
		m.choose(e, c, scopes, args.Source, args.Scope)
	default:
		m.look(e, c, args.Attachment, args.Question)
	}
}

// choose serves llm_set_source; scopes are those of the turn and the conversation.
func (m *machine) choose(e kit.Event, c *messages.CallTool, scopes []string, source, wide string) {
	scope := scopes[0]
	if wide == "conversation" {
		scope = scopes[1]
		m.chosen.set(m.now, scopes[0], "") // the later word counts
	}
	if source == auto {
		source = ""
		if wide != "conversation" && m.chosen.of(m.now, scopes[1]) != "" {
			source = m.first() // for this turn the usual order, whatever the conversation has
		}
	} else if k := m.known(source); k == nil || k.Route.Disabled {
		m.add(e.Reply(refuse(c, "not_found", "source", "there is no usable source "+source, "llm_list_sources gives the names.")))
		return
	}
	m.chosen.set(m.now, scope, source)
	m.add(e.Reply(succeed(c, m.toolView(m.chosen.of(m.now, scopes...)))))
}

// first is the source that is asked first by the usual order.
func (m *machine) first() string {
	for _, s := range m.router.Standings(m.now) {
		if s.State != "disabled" {
			return s.Name
		}
	}
	return ""
}

type sourceJSON struct {
	Source  string `json:"source"`
	Model   string `json:"model,omitempty"`
	State   string `json:"state"`
	Window  int32  `json:"context_window,omitempty"`
	Vision  bool   `json:"vision"`
	Audio   bool   `json:"audio"`
	Tools   bool   `json:"tools"`
	Failure string `json:"last_failure,omitempty"`
}

type sourcesJSON struct {
	Chosen  string       `json:"chosen"`
	Sources []sourceJSON `json:"sources"`
}

func (m *machine) toolView(chosen string) sourcesJSON {
	out := sourcesJSON{Chosen: auto, Sources: []sourceJSON{}}
	if chosen != "" {
		out.Chosen = chosen
	}
	for _, s := range m.router.Standings(m.now) {
		k := m.known(s.Name)
		if k == nil || s.State == "disabled" {
			continue
		}
		v := sourceJSON{
			Source: s.Name, Model: k.Spec.GetModel(), State: s.State, Window: k.Spec.GetContextWindow(),
			Vision: k.Spec.GetVision(), Audio: k.Spec.GetAudio(), Tools: k.Spec.GetTools(),
		}
		if s.Last != nil {
			v.Failure = models.KindName(s.Last.Kind)
		}
		out.Sources = append(out.Sources, v)
	}
	return out
}

func succeed(c *messages.CallTool, v any) *messages.ToolResult {
	b, err := json.Marshal(v)
	if err != nil {
		return refuse(c, "failed", "", "the result cannot be written as JSON", "")
	}
	return &messages.ToolResult{
		CallId: c.GetCall().GetCallId(), Name: c.GetCall().GetName(), Content: string(b), Taint: messages.Taint_TAINT_TRUSTED,
	}
}

func refuse(c *messages.CallTool, reason, field, detail, hint string) *messages.ToolResult {
	return &messages.ToolResult{
		CallId: c.GetCall().GetCallId(), Name: c.GetCall().GetName(), Taint: messages.Taint_TAINT_TRUSTED,
		Error: &messages.ToolError{Reason: reason, Field: field, Detail: detail, Hint: hint},
	}
}

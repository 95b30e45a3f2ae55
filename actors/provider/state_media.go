package provider

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/memory/usage"
	"homeagent/messages"
	models "homeagent/providers"
)

// lookTime bounds a look at media: a person waits for the turn that asked.
const lookTime = 2 * time.Minute

const describeSchema = `{"type":"object","required":["attachment"],"additionalProperties":false,"properties":{` +
	`"attachment":{"type":"string","minLength":1,"maxLength":100,"description":"Id of the picture, as the message names it."},` +
	`"question":{"type":"string","maxLength":4000,"description":"What you want to know of it; all of it if absent."}}}`

const ocrSchema = `{"type":"object","required":["attachment"],"additionalProperties":false,"properties":{` +
	`"attachment":{"type":"string","minLength":1,"maxLength":100,"description":"Id of the picture, as the message names it."}}}`

const transcribeSchema = `{"type":"object","required":["attachment"],"additionalProperties":false,"properties":{` +
	`"attachment":{"type":"string","minLength":1,"maxLength":100,"description":"Id of the sound, as the message names it."}}}`

// helpers are the sources that look at media for models that cannot; empty means
// that there is none.
type helpers struct{ image, audio string }

// mediaTools are offered where a source can help. Requests without media that
// their source does not take leave them out.
func (h helpers) mediaTools() []*messages.ToolDef {
	def := func(name, schema, text string) *messages.ToolDef {
		return &messages.ToolDef{
			Name: name, Provider: Kind, ParametersJson: []byte(schema), Description: text, TimeoutMs: lookTime.Milliseconds(),
			Effect: messages.ToolEffect_TOOL_EFFECT_PURE, OnPreempt: messages.OnPreempt_ON_PREEMPT_CANCEL,
			ToolClass: messages.ToolClass_TOOL_CLASS_READ, ParallelSafe: true,
		}
	}
	var out []*messages.ToolDef
	if h.image != "" {
		out = append(out,
			def(models.ToolDescribeImage, describeSchema, "Have a picture that you are not shown looked at by another model, and get its answer."),
			def(models.ToolOCRImage, ocrSchema, "Get the text that stands in a picture which you are not shown."))
	}
	if h.audio != "" {
		out = append(out, def(models.ToolTranscribeAudio, transcribeSchema, "Get what is said in a sound which you do not hear, written down."))
	}
	return out
}

// helpersOf finds those of the settings, else the first source that can.
func (m *machine) helpersOf(l loaded) helpers {
	find := func(name string, can func(*messages.SourceSpec) bool) string {
		for _, s := range m.router.Standings(m.now) {
			k := m.known(s.Name)
			if k != nil && !k.Route.Disabled && can(k.Spec) && (name == "" || name == s.Name) {
				return s.Name
			}
		}
		return ""
	}
	return helpers{
		image: find(l.ImageSource, (*messages.SourceSpec).GetVision), audio: find(l.AudioSource, (*messages.SourceSpec).GetAudio),
	}
}

// help takes the helpers of the settings in force; the tools follow them.
func (m *machine) help(l loaded) {
	if h := m.helpersOf(l); h != m.helpers {
		m.helpers = h
		m.register("")
	}
}

// look has a helper look at media.
func (m *machine) look(e kit.Event, c *messages.CallTool, attachment, question string) {
	name := c.GetCall().GetName()
	source, kind := m.helpers.image, "image"
	ask := "Describe this picture for somebody who cannot see it. Say what is there, and what is uncertain. "
	switch name {
	case models.ToolOCRImage:
		ask = "Write down all text that stands in this picture, as it stands, and nothing else. If there is none, say: no text."
	case models.ToolTranscribeAudio:
		source, kind = m.helpers.audio, "audio"
		ask = "Write down what is said in this recording, in its language, and nothing else. If nothing is said, say what is heard."
	default:
		if q := strings.TrimSpace(question); q != "" {
			ask += "Above all answer this: " + q
		}
	}
	k := m.known(source)
	if k == nil {
		m.add(e.Reply(refuse(c, "failed", "", "no source can look at it", "Tell the person that you cannot see or hear it.")))
		return
	}
	m.add(look{Ask: asked(e), Call: c, Source: source, Kind: kind, Attachment: attachment, Prompt: ask, Known: *k})
}

// looked answers, and counts what it took.
func (m *machine) looked(l looked) {
	c := l.Why.Call
	if l.Result != nil {
		m.account.book.Turn(m.day())
		m.op(usage.Put(m.account.book.Note(usage.Call{
			Source: l.Why.Source, Model: l.Result.GetModel(), Agent: c.GetAgent(), Channel: c.GetChannel(), Conversation: c.GetConversation(),
			Failed: l.Result.GetFailure() != nil, Tokens: l.Result.GetUsage(), Price: l.Why.Known.Price, Free: l.Why.Known.Route.Free,
		})))
		m.warn()
	}
	var out proto.Message
	switch f := l.Result.GetFailure().GetError(); {
	case l.Problem != "":
		out = refuse(c, "not_found", "attachment", l.Problem, "Use the id of an attachment of this conversation.")
	case f != nil:
		out = refuse(c, "failed", "", "the source "+l.Why.Source+" could not look at it: "+f.GetMessage(), f.GetHint())
	case strings.TrimSpace(l.Result.GetText()) == "":
		out = refuse(c, "failed", "", "the source "+l.Why.Source+" said nothing", "")
	default:
		// What stands in a picture or is said in a recording may come from anybody.
		out = &messages.ToolResult{
			CallId: c.GetCall().GetCallId(), Name: c.GetCall().GetName(), Content: l.Result.GetText(), Taint: messages.Taint_TAINT_FOREIGN,
		}
	}
	m.add(l.Why.Ask.reply(out))
}

package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func (s *state) onCall(e kit.Event, m *messages.CallTool) {
	call := m.GetCall()
	reply := func(r *messages.ToolResult) { s.add(e.Reply(r)) }
	switch {
	case call.GetName() == toolAgents && !s.resident():
		var a agentsArgs
		if err := json.Unmarshal(call.GetArgumentsJson(), &a); err != nil {
			reply(toolFailure(call, "type", "The arguments are not what this tool takes.", "Look at its parameters."))
			return
		}
		s.agentsTool(m, a, reply)
	case call.GetName() == toolNotify && s.resident():
		s.withText(call, reply, func(text string) {
			if s.fenced[m.GetTaskId()] {
				reply(toolFailure(call, "stopped", "The task was stopped.", ""))
				return
			}
			s.report(text, call.GetCallId(), m.GetTaskId(), m.GetPersonWaits(), func(id string, err *messages.Error) {
				if err != nil {
					reply(toolFailure(call, "failed", err.GetMessage(), err.GetHint()))
					return
				}
				reply(toolSuccess(call, map[string]any{"ok": true, "input_id": id}))
			})
		})
	case call.GetName() == toolNote && s.resident():
		s.withText(call, reply, func(text string) {
			s.note(text)
			reply(toolSuccess(call, map[string]any{"ok": true}))
		})
	default:
		reply(toolFailure(call, "not_found", fmt.Sprintf("The agent %s has no tool %q.", s.p.Spec.GetAgent(), call.GetName()), ""))
	}
}

func (s *state) withText(call *messages.ToolInvocation, reply func(*messages.ToolResult), do func(string)) {
	var a struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(call.GetArgumentsJson(), &a); err != nil || strings.TrimSpace(a.Text) == "" {
		r := toolFailure(call, "required", "The text is missing.", "Give text.")
		r.Error.Field = "text"
		reply(r)
		return
	}
	do(a.Text)
}

func (s *state) note(text string) {
	s.notes = append(s.notes, text)
	if len(s.notes) > maxNotes {
		s.notes = s.notes[1:]
	}
}

func (s *state) agentsTool(m *messages.CallTool, a agentsArgs, reply func(*messages.ToolResult)) {
	call := m.GetCall()
	fail := func(err *messages.Error) {
		reply(toolFailure(call, "failed", err.GetMessage(), err.GetHint()))
	}
	if a.Action != "list" && a.ID == "" {
		r := toolFailure(call, "required", "The id is missing.", "Give the name of the resident.")
		r.Error.Field = "id"
		reply(r)
		return
	}
	switch a.Action {
	case "list":
		s.listTool(call, reply)
	case "create":
		s.createTool(m, a, reply, fail)
	case "send":
		if s.children[a.ID] == nil {
			fail(s.unknown(a.ID))
			return
		}
		s.word(a.ID, a.Text, call.GetCallId(), m.GetPersonWaits(), "", func(err *messages.Error) {
			if err != nil {
				fail(err)
				return
			}
			reply(toolSuccess(call, map[string]any{"ok": true, "id": a.ID}))
		})
	case "inspect":
		if s.children[a.ID] == nil {
			fail(s.unknown(a.ID))
			return
		}
		s.gatherAll([]string{a.ID}, func(v []*messages.AgentView) { reply(toolSuccess(call, asJSON(v[len(v)-1]))) })
	case "destroy":
		s.destroy(a.ID, a.Residual == "drop", func(v *messages.AgentView, err *messages.Error) {
			if err != nil {
				fail(err)
				return
			}
			reply(toolSuccess(call, asJSON(v)))
		})
	default:
		r := toolFailure(call, "type", fmt.Sprintf("There is no action %q.", a.Action), "Use list, create, send, inspect or destroy.")
		r.Error.Field = "action"
		reply(r)
	}
}

func (s *state) listTool(call *messages.ToolInvocation, reply func(*messages.ToolResult)) {
	s.gatherAll(slices.Sorted(maps.Keys(s.children)), func(v []*messages.AgentView) {
		list := []viewJSON{}
		for _, a := range v[1:] {
			list = append(list, asJSON(a))
		}
		reply(toolSuccess(call, map[string]any{"residents": list}))
	})
}

func (s *state) createTool(m *messages.CallTool, a agentsArgs, reply func(*messages.ToolResult), fail func(*messages.Error)) {
	call := m.GetCall()
	if c := s.children[a.ID]; c != nil && c.spec.GetFirstTask() == call.GetCallId() {
		reply(toolSuccess(call, viewJSON{ID: a.ID, State: "working", TaskPrompt: c.spec.GetTaskPrompt()}))
		return
	}
	if strings.TrimSpace(a.TaskPrompt) == "" {
		r := toolFailure(call, "required", "The task_prompt is missing.", "Say what the resident is for and what to do first.")
		r.Error.Field = "task_prompt"
		reply(r)
		return
	}
	spec := &messages.AgentSpec{
		TaskPrompt: a.TaskPrompt, Capacity: a.Capacity, Principal: m.GetPrincipal(), FirstTask: call.GetCallId(),
		OriginChannel: m.GetChannel(), OriginConversation: m.GetConversation(), PersonWaits: m.GetPersonWaits(),
	}
	for _, o := range strings.Split(a.AllowedOutputs, ",") {
		if o = strings.TrimSpace(o); o != "" {
			spec.AllowedOutputs = append(spec.AllowedOutputs, o)
		}
	}
	s.create(&messages.CreateAgent{Spec: spec, Name: a.ID, Task: a.TaskPrompt, PersonWaits: m.GetPersonWaits()},
		func(_ *messages.AgentView, err *messages.Error) {
			if err != nil {
				fail(err)
				return
			}
			reply(toolSuccess(call, viewJSON{ID: a.ID, State: "working", TaskPrompt: a.TaskPrompt}))
		})
}

// onReport turns what a resident says into an input of its parent.
func (s *state) onReport(e kit.Event, m *messages.SendOutput) {
	o := m.GetOutput()
	if !s.resident() {
		// what the main agent answers here has no listener but the event stream, which channels feeds
		s.add(e.Reply(&messages.OutputSent{Receipt: s.receipt(o, "")}))
		return
	}
	var text strings.Builder
	for _, p := range o.GetParts() {
		text.WriteString(p.GetText())
	}
	s.last = text.String()
	if s.fenced[o.GetTaskId()] {
		s.add(e.Reply(&messages.OutputSent{Receipt: s.receipt(o, "stopped")}))
		return
	}
	s.report(text.String(), o.GetOutputId(), o.GetTaskId(), s.p.Spec.GetPersonWaits(), func(id string, err *messages.Error) {
		s.add(e.Reply(&messages.OutputSent{Receipt: s.receipt(o, id), Error: err}))
	})
}

func (s *state) receipt(o *messages.OutputIntent, id string) *messages.OutputReceipt {
	return &messages.OutputReceipt{OutputId: o.GetOutputId(), Receipt: id, AtUs: s.now.UnixMicro()}
}

// report gives the parent an input, once per key.
func (s *state) report(text, key, cause string, personWaits bool, done func(string, *messages.Error)) {
	channel, conversation := origin(s.p.Spec)
	s.ask(s.p.Channels, &messages.SubmitInput{Input: &messages.Input{
		Id: derivedID(s.now, key), IdempotencyKey: key, Channel: channel, Conversation: conversation,
		Agent: s.p.Spec.GetParent(), Source: messages.InputSource_INPUT_SOURCE_CHILD, Mode: messages.Mode_MODE_QUEUE,
		Parts: []*messages.Part{{Content: &messages.Part_Text{Text: text}}},
		Principal: &messages.Principal{
			Id: "agent:" + s.p.Spec.GetAgent(), Name: nameOf(s.p.Spec.GetAgent()), Kind: messages.PrincipalKind_PRINCIPAL_KIND_AGENT,
		},
		Taint: messages.Taint_TAINT_MODEL, PersonWaits: personWaits, CreatedUs: s.now.UnixMicro(), Cause: cause,
	}}, func(m proto.Message) {
		r, _ := m.(*messages.SubmitResult)
		done(r.GetInputId(), submitError(m))
	})
}

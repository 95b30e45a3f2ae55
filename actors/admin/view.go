package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"homeagent/messages"
	"homeagent/messages/api"
)

// word is the lower-case word of an enum; empty for its unspecified value.
func word(e fmt.Stringer, prefix string) string {
	w := strings.ToLower(strings.TrimPrefix(e.String(), prefix))
	if w == "unspecified" {
		return ""
	}
	return w
}

// moment is the time of microseconds since 1970; the zero time for none.
func moment(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// list turns a slice over; never nil, so that JSON has [] and not null.
func list[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

// some is list, but nil for nothing, for fields that are left out.
func some[A, B any](in []A, f func(A) B) []B {
	if len(in) == 0 {
		return nil
	}
	return list(in, f)
}

func plainError(e *messages.Error) *api.Error {
	if e == nil {
		return nil
	}
	return &api.Error{Code: e.GetCode(), Message: e.GetMessage(), Hint: e.GetHint(), Details: e.GetDetails()}
}

func tokens(u *messages.Usage) *api.Usage {
	if u == nil {
		return nil
	}
	out := &api.Usage{
		Input: u.GetInput(), Output: u.GetOutput(), Cached: u.GetCached(), Reasoning: u.GetReasoning(),
		CacheWrite: u.GetCacheWrite(), Prompt: u.GetPromptTotal(), Total: u.GetTotal(),
	}
	if out.Prompt == 0 {
		out.Prompt = out.Input
	}
	if out.Total == 0 {
		out.Total = out.Prompt + out.Output
	}
	return out
}

func block(p *messages.Part) api.Block {
	if r := p.GetPayload(); r != nil {
		kind, _, _ := strings.Cut(r.GetMediaType(), "/")
		switch kind {
		case "image", "audio", "video", "text":
		default:
			kind = "file"
		}
		return api.Block{Type: kind, ID: r.GetId(), MediaType: r.GetMediaType(), Size: r.GetSize()}
	}
	return api.Block{Type: "text", Text: p.GetText()}
}

func call(c *messages.ToolInvocation) api.ToolCall {
	out := api.ToolCall{CallID: c.GetCallId(), Name: c.GetName(), Invalid: c.GetInvalid(), Denied: c.GetDenied()}
	if args := c.GetArgumentsJson(); json.Valid(args) {
		out.Arguments = args
	} else if len(args) > 0 {
		out.Arguments, _ = json.Marshal(string(args)) // a string always encodes
	}
	return out
}

func failure(f *messages.CompletionFailure) *api.Failure {
	if f == nil {
		return nil
	}
	out := &api.Failure{Kind: word(f.GetKind(), "ERROR_KIND_"), Status: int(f.GetStatus())}
	if e := plainError(f.GetError()); e != nil {
		out.Error = *e
	}
	return out
}

func modelAnswer(r *messages.CompletionResult) *api.ModelAnswer {
	if r == nil {
		return nil
	}
	return &api.ModelAnswer{
		Source: r.GetSource(), Model: r.GetModel(), Text: r.GetText(), Reasoning: r.GetReasoning(),
		Calls: some(r.GetCalls(), call), Finish: word(r.GetFinish(), "FINISH_"), Refusal: r.GetRefusal(),
		Usage: tokens(r.GetUsage()), Failure: failure(r.GetFailure()),
	}
}

func chatMessage(m *messages.ChatMessage) api.ChatMessage {
	return api.ChatMessage{
		Role: word(m.GetRole(), "ROLE_"), Content: some(m.GetParts(), block), Reasoning: m.GetReasoning(),
		Calls: some(m.GetCalls(), call), ToolName: m.GetToolName(), Failed: m.GetFailed(),
	}
}

func recalled(r *messages.RecalledItem) api.Recalled {
	return api.Recalled{
		ID: r.GetId(), Text: r.GetText(), At: moment(r.GetAtUs()), Via: r.GetVia(), Score: r.GetScore(),
		Speaker: r.GetSpeaker(), Conversation: r.GetConversation(), Relevance: r.GetRelevance(),
		Channels: some(r.GetChannels(), func(c *messages.ChannelScore) api.ChannelScore {
			return api.ChannelScore{Channel: c.GetChannel(), Score: c.GetScore()}
		}),
		Source: r.GetSource(), Path: r.GetPath(), Matched: r.GetMatched(), Taint: word(r.GetTaint(), "TAINT_"),
		SupersededBy: r.GetSupersededBy(),
	}
}

func chain(c *messages.Chain) *api.Chain {
	q := c.GetRequest()
	return &api.Chain{
		Round: int(c.GetRound()), TookMS: c.GetTookMs(), Messages: list(q.GetMessages(), chatMessage),
		Tools:    some(q.GetTools(), (*messages.ToolDef).GetName),
		Recalled: some(q.GetRecalled(), recalled), Result: modelAnswer(c.GetResult()),
		Attempts: some(c.GetAttempts(), func(a *messages.CompletionAttempt) api.Attempt {
			return api.Attempt{Source: a.GetSource(), TookMS: a.GetTookMs(), Failure: failure(a.GetFailure())}
		}),
	}
}

func toolChange(t *messages.ToolChange) *api.ToolChange {
	out := &api.ToolChange{ToolCall: call(t.GetCall()), Parallel: t.GetParallel()}
	r := t.GetResult()
	if r == nil {
		return out
	}
	out.Result = &api.ToolResult{Content: r.GetContent(), TookMS: r.GetTookMs()}
	if e := r.GetError(); e != nil {
		out.Result.Error = &api.ToolError{
			Reason: e.GetReason(), Field: e.GetField(), Detail: e.GetDetail(), Hint: e.GetHint(),
		}
	}
	return out
}

func taskChange(t *messages.TaskChange) *api.TaskChange {
	out := &api.TaskChange{
		Change: t.GetChange(), Level: int(t.GetLevel()), By: t.GetBy(), Position: int(t.GetPosition()),
		Reason: t.GetReason(), Victim: t.GetVictim(), Approvals: t.GetApprovals(),
	}
	if e := t.GetEnded(); e != nil {
		out.End, out.Reason, out.Text = word(e.GetEnd(), "END_"), e.GetReason(), e.GetText()
		out.Usage = tokens(e.GetUsage())
		if e.GetBy() != "" {
			out.By = e.GetBy()
		}
	}
	return out
}

func stageRun(s *messages.StageRun) *api.StageRun {
	return &api.StageRun{
		Stage: word(s.GetStage(), "STAGE_"), TookUS: s.GetTookUs(),
		Faults: some(s.GetFaults(), func(f *messages.StageFault) api.StageFault {
			return api.StageFault{Handler: f.GetHandler(), Reason: f.GetReason(), Detail: f.GetDetail()}
		}),
	}
}

func eventType(t messages.EventType) string { return word(t, "EVENT_TYPE_") }

// event turns an event over; Detail is a closed set of the proto file, and an event without one has none.
func event(epoch uint64, e *messages.AgentEvent) *api.Event {
	out := &api.Event{
		Epoch: epoch, Sequence: e.GetSequence(), Type: eventType(e.GetType()), At: moment(e.GetAtUs()),
		TaskID: e.GetTaskId(), Agent: e.GetAgent(), Channel: e.GetChannel(), Conversation: e.GetConversation(),
		Text: e.GetText(),
	}
	switch d := e.GetDetail().(type) {
	case *messages.AgentEvent_Task:
		out.Task = taskChange(d.Task)
	case *messages.AgentEvent_Tool:
		out.Tool = toolChange(d.Tool)
	case *messages.AgentEvent_Chain:
		out.Chain = chain(d.Chain)
	case *messages.AgentEvent_Stage:
		out.Stage = stageRun(d.Stage)
	case *messages.AgentEvent_Error:
		out.Error = plainError(d.Error)
	case *messages.AgentEvent_System:
		out.System = &api.System{Code: d.System.GetCode(), Path: d.System.GetPath()}
	case *messages.AgentEvent_Approval:
		a := approval(d.Approval)
		out.Approval = &a
	case *messages.AgentEvent_Output:
		out.Output = output(d.Output)
	case *messages.AgentEvent_Timer:
		out.Timer = timerSlot(d.Timer)
	}
	return out
}

func output(o *messages.OutputIntent) *api.Output {
	return &api.Output{
		OutputID: o.GetOutputId(), TaskID: o.GetTaskId(), Channel: o.GetChannel(), Conversation: o.GetConversation(),
		Agent: o.GetAgent(), Content: list(o.GetParts(), block), Created: moment(o.GetCreatedUs()),
	}
}

func task(s *messages.TaskStatus) *api.Task {
	in := s.GetInput()
	return &api.Task{
		InputID: in.GetId(), State: word(s.GetState(), "TASK_STATE_"), End: word(s.GetEnd(), "END_"),
		Reason: s.GetReason(), Text: s.GetText(), By: s.GetBy(),
		Channel: in.GetChannel(), Conversation: in.GetConversation(), Agent: in.GetAgent(),
		Content: some(in.GetParts(), block), Accepted: moment(s.GetAcceptedUs()), Ended: moment(s.GetEndedUs()),
		Starts: int(s.GetStarts()), Preempted: int(s.GetPreempted()), Usage: tokens(s.GetUsage()),
		Principal: in.GetPrincipal().GetId(),
	}
}

func actorInfo(a *messages.ActorInfo) api.Actor {
	return api.Actor{
		Path: a.GetPath(), Kind: a.GetKind(), Node: a.GetNode(), State: a.GetState(), Since: moment(a.GetSinceUs()),
		Mailbox: api.Mailbox{User: a.GetMailboxUser(), Control: a.GetMailboxControl()}, OldestMS: a.GetOldestMs(),
		Handled: a.GetHandled(), Rate: a.GetRate(), MeanUS: a.GetMeanUs(), Restarts: a.GetRestarts(),
		LastFailure: a.GetLastFailure(), Summary: a.GetSummary(), Current: a.GetCurrent(), CurrentMS: a.GetCurrentMs(),
		System: a.GetSystem(), Refused: a.GetRefused(), Children: list(a.GetChildren(), actorInfo),
	}
}

func work(t *messages.TaskView) api.Work {
	return api.Work{
		TaskID: t.GetTaskId(), Level: int(t.GetLevel()), Effective: int(t.GetEffective()), Channel: t.GetChannel(),
		Conversation: t.GetConversation(), Text: t.GetText(), Since: moment(t.GetSinceUs()),
		Preempted: int(t.GetPreempted()), Phase: word(t.GetPhase(), "PHASE_"), Principal: t.GetPrincipal().GetId(),
		Position: int(t.GetPosition()), Approvals: t.GetApprovals(),
	}
}

func scheduler(s *messages.SchedulerState) *api.Scheduler {
	c := s.GetCounters()
	out := &api.Scheduler{
		Agent: s.GetAgent(), Stack: list(s.GetStack(), work), Queue: list(s.GetQueue(), work),
		Parked: list(s.GetParked(), work), Waiting: int(s.GetWaiting()), StopQuota: int(s.GetStopQuota()),
		Counters: api.Counters{
			Offered: c.GetOffered(), Started: c.GetStarted(), Suspended: c.GetSuspended(), Resumed: c.GetResumed(),
			Steered: c.GetSteered(), Ended: c.GetEnded(), Interrupts: c.GetInterrupts(),
			Preempts: c.GetPreempts(), Parked: c.GetParked(),
			MaxDepth: int(c.GetMaxDepth()), Anomalies: c.GetAnomalies(),
		},
	}
	if r := s.GetRunning(); r != nil {
		w := work(r)
		out.Running = &w
	}
	return out
}

func agent(a *messages.AgentView) api.Agent {
	s := a.GetSpec()
	out := api.Agent{
		Agent: s.GetAgent(), Parent: s.GetParent(), TaskPrompt: s.GetTaskPrompt(),
		AllowedOutputs: s.GetAllowedOutputs(), Capacity: int(s.GetCapacity()), Created: moment(s.GetCreatedUs()),
		State: a.GetState(), LastReport: a.GetLastReport(), Notes: a.GetNotes(),
	}
	if a.GetScheduler() != nil {
		out.Scheduler = scheduler(a.GetScheduler())
	}
	return out
}

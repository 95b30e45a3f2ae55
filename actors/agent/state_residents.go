package agent

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

var residentName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// create is a resident being created.
type create struct {
	msg  *messages.CreateAgent
	spec *messages.AgentSpec
	done func(*messages.AgentView, *messages.Error)
}

// destroy is a resident being ended.
type destroy struct {
	drop bool
	done func(*messages.AgentView, *messages.Error)
}

// onList gathers this agent's view and those of its residents; before its residents are known the asker waits.
func (s *state) onList(e kit.Event) {
	if !s.loaded {
		s.early = append(s.early, e)
		return
	}
	s.gatherAll(slices.Sorted(maps.Keys(s.children)), func(v []*messages.AgentView) {
		s.add(e.Reply(&messages.AgentList{Agents: v}))
	})
}

// gatherAll asks its own scheduler and the named residents, and calls done with what answered in time, itself first.
func (s *state) gatherAll(names []string, done func([]*messages.AgentView)) {
	s.seq++
	id := fmt.Sprintf("gather/%d", s.seq)
	g := &gather{done: done, left: map[string]bool{"": true}, views: map[string]*messages.AgentView{}}
	s.gathers[id] = g
	for _, n := range names {
		g.left[n] = true
	}
	took := func(name string, v *messages.AgentView) {
		if g := s.gathers[id]; g != nil {
			delete(g.left, name)
			g.views[name] = v
			if len(g.left) == 0 {
				s.gatherDone(id)
			}
		}
	}
	s.add(kit.After{Key: id, D: gatherLimit, Msg: gatherLate{id}})
	s.ask(s.schedulerPath(), &messages.SchedulerQuery{}, func(m proto.Message) {
		st, ok := m.(*messages.SchedulerState)
		took("", s.viewOf(st, ok))
	})
	for _, n := range names {
		s.ask(s.childPath(n), &messages.ListAgents{}, func(m proto.Message) {
			v := &messages.AgentView{State: "starting"}
			if c := s.children[n]; c != nil {
				v.Spec = c.spec
			}
			if l, ok := m.(*messages.AgentList); ok && len(l.GetAgents()) > 0 {
				v = l.GetAgents()[0]
				if c := s.children[n]; c != nil {
					c.up = true
				}
			}
			took(n, v)
		})
	}
}

func (s *state) viewOf(st *messages.SchedulerState, ok bool) *messages.AgentView {
	v := &messages.AgentView{Spec: s.p.Spec, Notes: slices.Clone(s.notes), LastReport: s.last, State: "idle"}
	switch {
	case !ok:
		v.State = "starting"
	case st.GetRunning() != nil:
		v.State, v.Scheduler = "working", st
	default:
		v.Scheduler = st
	}
	return v
}

func (s *state) gatherDone(id string) {
	g := s.gathers[id]
	if g == nil {
		return
	}
	delete(s.gathers, id)
	s.add(kit.CancelAfter{Key: id})
	for n := range g.left {
		v := &messages.AgentView{Spec: s.p.Spec, State: "silent"}
		if c := s.children[n]; c != nil {
			v.Spec = c.spec
		}
		g.views[n] = v
	}
	var all []*messages.AgentView
	for _, n := range slices.Sorted(maps.Keys(g.views)) {
		all = append(all, g.views[n])
	}
	g.done(all)
}

func (s *state) onCreate(e kit.Event, m *messages.CreateAgent) {
	s.create(m, func(v *messages.AgentView, err *messages.Error) {
		if err != nil {
			s.add(e.Reply(err))
			return
		}
		s.add(e.Reply(v))
	})
}

// create keeps a resident in ledger, starts it, waits until it is up and gives it its first task.
func (s *state) create(m *messages.CreateAgent, done func(*messages.AgentView, *messages.Error)) {
	if err := s.mayCreate(m.GetName()); err != nil {
		done(nil, err)
		return
	}
	spec := proto.CloneOf(m.GetSpec())
	if spec == nil {
		spec = &messages.AgentSpec{}
	}
	spec.Parent = s.p.Spec.GetAgent()
	spec.Agent = spec.GetParent() + "/" + childPrefix + m.GetName()
	spec.CreatedUs = s.now.UnixMicro()
	c := &create{msg: m, spec: spec, done: done}
	s.creates[m.GetName()] = c
	s.ask(s.p.Ledger, &messages.LedgerExecute{Sync: true, Ops: []*messages.LedgerOp{{
		Op: &messages.LedgerOp_PutAgent{PutAgent: &messages.PutAgent{Agent: spec}},
	}}}, func(m proto.Message) { s.created(c, m) })
}

func (s *state) mayCreate(name string) *messages.Error {
	switch {
	case s.resident():
		return &messages.Error{Code: "not_allowed", Message: "A resident has no residents of its own."}
	case !residentName.MatchString(name):
		return &messages.Error{
			Code: "bad_name", Message: fmt.Sprintf("%q is no name for a resident.", name),
			Hint: "Use lower-case letters, digits and hyphens; at most 32.",
		}
	case s.children[name] != nil || s.creates[name] != nil:
		return &messages.Error{
			Code: "agent_exists", Message: fmt.Sprintf("There is a resident %q already.", name), Hint: "Send to it, or choose another name.",
		}
	case len(s.children)+len(s.creates) >= maxAgents:
		return &messages.Error{
			Code: "too_many_agents", Message: fmt.Sprintf("There are %d residents, the most there may be.", maxAgents), Hint: "Destroy one first.",
		}
	}
	return nil
}

func (s *state) created(c *create, m proto.Message) {
	name := c.msg.GetName()
	if err := ledgerError(m); err != nil {
		delete(s.creates, name)
		c.done(nil, err)
		return
	}
	delete(s.creates, name)
	s.spawnChild(c.spec)
	s.gatherAll([]string{name}, func(v []*messages.AgentView) {
		view := v[len(v)-1]
		if c.msg.GetTask() == "" {
			c.done(view, nil)
			return
		}
		s.word(name, c.msg.GetTask(), "create/"+c.spec.GetAgent()+"/"+fmt.Sprint(c.spec.GetCreatedUs()), c.msg.GetPersonWaits(), c.msg.GetInputId(), func(err *messages.Error) {
			c.done(view, err)
		})
	})
}

// ledgerError reads what went wrong from the answer to a ledger request.
func ledgerError(m proto.Message) *messages.Error {
	switch d := m.(type) {
	case *messages.LedgerDone:
		return d.GetError()
	case *messages.Error:
		return d
	}
	return &messages.Error{Code: "busy", Message: "The ledger did not answer.", Hint: "Try again."}
}

// word tells a resident something: an input of level 4, given once per key.
func (s *state) word(name, text, key string, personWaits bool, id string, done func(*messages.Error)) {
	if id == "" {
		id = derivedID(s.now, key)
	}
	s.ask(s.p.Channels, &messages.SubmitInput{Input: &messages.Input{
		Id: id, IdempotencyKey: key, Channel: ReportChannel, Conversation: name,
		Agent: s.p.Spec.GetAgent() + "/" + childPrefix + name, Source: messages.InputSource_INPUT_SOURCE_PARENT,
		Mode: messages.Mode_MODE_QUEUE, Parts: []*messages.Part{{Content: &messages.Part_Text{Text: text}}},
		Principal:   &messages.Principal{Id: "agent:" + s.p.Spec.GetAgent(), Name: nameOf(s.p.Spec.GetAgent()), Kind: messages.PrincipalKind_PRINCIPAL_KIND_AGENT},
		Taint:       messages.Taint_TAINT_MODEL,
		PersonWaits: personWaits, CreatedUs: s.now.UnixMicro(),
	}}, func(m proto.Message) { done(submitError(m)) })
}

func submitError(m proto.Message) *messages.Error {
	switch r := m.(type) {
	case *messages.SubmitResult:
		return r.GetError()
	case *messages.Error:
		return r
	}
	return &messages.Error{Code: "busy", Message: "The node has too much to do.", Hint: "Try again."}
}

func (s *state) onDestroy(e kit.Event, m *messages.DestroyAgent) {
	s.destroy(m.GetName(), m.GetDrop(), func(v *messages.AgentView, err *messages.Error) {
		if err != nil {
			s.add(e.Reply(err))
			return
		}
		s.add(e.Reply(v))
	})
}

func (s *state) unknown(name string) *messages.Error {
	hint := "There are no residents."
	if len(s.children) > 0 {
		hint = "Residents: " + strings.Join(slices.Sorted(maps.Keys(s.children)), ", ") + "."
	}
	return &messages.Error{Code: "unknown_agent", Message: fmt.Sprintf("There is no resident %q.", name), Hint: hint}
}

// destroy stops a resident; when it has ended, its tasks are settled and it is forgotten.
func (s *state) destroy(name string, drop bool, done func(*messages.AgentView, *messages.Error)) {
	c := s.children[name]
	if c == nil || c.destroying != nil {
		done(nil, s.unknown(name))
		return
	}
	c.destroying = &destroy{drop: drop, done: done}
	s.add(kit.Stop{Who: s.childPath(name)})
}

// childEnded settles a resident that was destroyed, or tells of one that failed for good.
func (s *state) childEnded(name, failure string) {
	c := s.children[name]
	if c == nil {
		return
	}
	if c.destroying == nil {
		delete(s.children, name)
		if s.draining {
			return
		}
		s.add(kit.Publish{Event: &messages.AgentEvent{
			Type: messages.EventType_EVENT_TYPE_AGENT_ERROR, AtUs: s.now.UnixMicro(), Agent: c.spec.GetAgent(),
			Text: "A resident agent has ended: " + failure,
			Detail: &messages.AgentEvent_Error{Error: &messages.Error{
				Code: "agent_failed", Message: "A resident agent has failed and comes back with the next start of the node.",
				Hint: "Its tasks are kept; destroy it to have them back.",
			}},
		}})
		return
	}
	s.readTasks(name, c)
}

// readTasks asks ledger what a destroyed resident has left.
func (s *state) readTasks(name string, c *child) {
	s.ask(s.p.Ledger, &messages.LedgerPending{Agent: c.spec.GetAgent()}, func(m proto.Message) {
		p, ok := m.(*messages.PendingTasks)
		if !ok {
			s.settleLater(name, ledgerError(m))
			return
		}
		s.settle(name, c, p.GetTasks())
	})
}

// settle ends the tasks of an ended resident and forgets it; unless they are dropped, this agent gets each of them as a new
// task in the same transaction, so that none is lost or done twice. One that ended otherwise meanwhile makes the ledger
// refuse all of it: then what is open is read again.
func (s *state) settle(name string, c *child, tasks []*messages.PendingTask) {
	var ops []*messages.LedgerOp
	var back []*messages.Input
	for _, t := range tasks {
		ops = append(ops, &messages.LedgerOp{Op: &messages.LedgerOp_End{End: s.endOf(t)}})
	}
	if !c.destroying.drop {
		for _, t := range tasks {
			in := s.giveBack(c, t.GetInput())
			back = append(back, in)
			ops = append(ops, &messages.LedgerOp{Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: in}}})
		}
	}
	ops = append(ops, &messages.LedgerOp{Op: &messages.LedgerOp_DeleteAgent{DeleteAgent: &messages.DeleteAgent{Agent: c.spec.GetAgent()}}})
	s.ask(s.p.Ledger, &messages.LedgerExecute{Sync: true, Ops: ops}, func(m proto.Message) {
		err := ledgerError(m)
		switch {
		case err.GetCode() == "already_ended":
			s.readTasks(name, c)
			return
		case err != nil:
			s.settleLater(name, err)
			return
		}
		if d, ok := m.(*messages.LedgerDone); ok {
			s.settled(tasks, back, d.GetResults())
		}
		s.destroyed(name, c)
	})
}

// settleAgain is a timer: what a destroyed resident has left is to be settled.
type settleAgain struct{ name string }

// settleLater tries again: the resident has ended, and what it has left is nobody's until that is on disk.
func (s *state) settleLater(name string, err *messages.Error) {
	s.add(
		kit.Log{Level: kit.Warn, Text: "a resident's tasks were not settled", Attrs: []any{"resident", name, "code", err.GetCode()}},
		kit.After{Key: "settle/" + name, D: time.Second, Msg: settleAgain{name}},
	)
}

func (s *state) endOf(t *messages.PendingTask) *messages.EndTask {
	return &messages.EndTask{
		TaskId: t.GetInput().GetId(), End: messages.End_END_STOPPED, Reason: "agent_destroyed",
		Text: "Its agent was destroyed.", AtUs: s.now.UnixMicro(),
	}
}

// settled tells people of the ends and offers this agent's scheduler what it got.
func (s *state) settled(tasks []*messages.PendingTask, back []*messages.Input, results []*messages.LedgerResult) {
	for _, t := range tasks {
		in, e := t.GetInput(), s.endOf(t)
		s.add(kit.Publish{Event: &messages.AgentEvent{
			Type: messages.EventType_EVENT_TYPE_TASK, AtUs: s.now.UnixMicro(), TaskId: in.GetId(),
			Agent: in.GetAgent(), Channel: in.GetChannel(), Conversation: in.GetConversation(),
			Detail: &messages.AgentEvent_Task{Task: &messages.TaskChange{Change: "ended", Level: in.GetLevel(), Ended: &messages.TaskEnded{
				TaskId: in.GetId(), End: e.GetEnd(), Reason: e.GetReason(), Text: e.GetText(),
			}}},
		}})
	}
	for i, in := range back {
		if acc := results[len(tasks)+i].GetAccepted(); acc != nil && !acc.GetDuplicate() {
			// A scheduler that is away reads it from ledger when it is back.
			s.add(kit.Send{To: s.schedulerPath(), Msg: &messages.Offer{Input: in, Sequence: acc.GetSequence()}})
		}
	}
}

// giveBack makes an unfinished task of a resident a task of this agent. It is a child's report to it, with the level of
// one, and was accepted once already, so that fullness is no reason to refuse it.
func (s *state) giveBack(c *child, in *messages.Input) *messages.Input {
	back := proto.CloneOf(in)
	back.IdempotencyKey = "back/" + in.GetId()
	back.Id = derivedID(s.now, back.GetIdempotencyKey())
	back.Agent, back.Source, back.Cause = s.p.Spec.GetAgent(), messages.InputSource_INPUT_SOURCE_CHILD, in.GetId()
	back.Channel, back.Conversation = origin(c.spec)
	back.CreatedUs = s.now.UnixMicro() // a stop that came before does not mean it
	back.Mode, back.Level = messages.Mode_MODE_QUEUE, proto.Int32(1)
	if back.GetPersonWaits() {
		back.Level = proto.Int32(2)
	}
	return back
}

// origin is where people hear what a resident has to say.
func origin(spec *messages.AgentSpec) (channel, conversation string) {
	if spec.GetOriginChannel() == "" {
		return ReportChannel, nameOf(spec.GetAgent())
	}
	return spec.GetOriginChannel(), spec.GetOriginConversation()
}

func (s *state) destroyed(name string, c *child) {
	delete(s.children, name)
	c.destroying.done(&messages.AgentView{Spec: c.spec, State: "ended"}, nil)
}

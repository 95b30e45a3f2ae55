package guard

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/memory/approvals"
	"homeagent/messages"
)

// change has an approval written; until it is on disk the entry is busy. A nil next forgets it.
func (m *machine) change(id string, next *messages.Approval) {
	m.entries[id].busy = true
	m.changes = append(m.changes, change{id: id, next: next})
}

// flush hands the changes over as one group when none is under way.
func (m *machine) flush() {
	if m.flight != nil || len(m.changes) == 0 {
		return
	}
	m.flight, m.changes = m.changes, nil
	m.writes++
	m.corr = "write/" + strconv.FormatUint(m.writes, 10)
	m.hand()
}

// hand gives the group under way to ledger, maybe again: writing it twice does no harm.
func (m *machine) hand() {
	if m.flight == nil {
		return
	}
	x := &messages.LedgerExecute{Sync: true}
	for _, c := range m.flight {
		x.Ops = append(x.Ops, op(c))
	}
	m.add(kit.Send{To: m.ledger, Corr: m.corr, Msg: x})
}

func op(c change) *messages.LedgerOp {
	var (
		out *messages.LedgerOp
		err error
	)
	switch {
	case c.token != nil:
		out, err = c.token.op()
	case c.next == nil:
		out, err = approvals.Delete(c.id)
	default:
		out, err = approvals.Put(c.next)
	}
	if err != nil {
		panic("guard: " + err.Error()) // ids are ours and sizes were checked
	}
	return out
}

// onWritten takes the end of the group under way.
func (m *machine) onWritten(corr string, err *messages.Error) {
	if m.flight == nil || corr != m.corr {
		return // of an earlier try
	}
	flight := m.flight
	m.flight = nil
	if err != nil {
		m.fail(flight, err)
		return
	}
	var tasks []string
	for _, c := range flight {
		if c.token != nil {
			m.tokenWritten(c.token)
			continue
		}
		if c.next == nil {
			m.forget(c.id)
			continue
		}
		m.keep(c.next)
		m.publish(c.next)
		if s := c.next.GetState(); !pending(c.next) && s != messages.ApprovalState_APPROVAL_STATE_RELEASED && !slices.Contains(tasks, c.next.GetTaskId()) {
			tasks = append(tasks, c.next.GetTaskId())
		}
	}
	for _, task := range tasks {
		m.tellTwice(task)
	}
	m.rerun()
}

// fail takes a group back that the store refused, and refuses what has waited.
func (m *machine) fail(flight []change, err *messages.Error) {
	m.add(kit.Log{Level: kit.Error, Text: "approvals were not written", Attrs: []any{"code", err.GetCode(), "error", err.GetMessage()}})
	for _, c := range append(flight, m.changes...) {
		if c.token != nil {
			m.tokenFailed(c.token, err)
			continue
		}
		x := m.entries[c.id]
		if x == nil {
			continue
		}
		x.busy = false
		if c.next != nil && pending(c.next) { // a question that nobody can answer
			m.forget(c.id)
		}
	}
	m.changes = nil
	later := m.later
	m.later = nil
	for _, e := range later {
		c, isCheck := e.Msg.(*messages.CheckCalls)
		if !isCheck {
			m.add(e.Reply(err))
			continue
		}
		answer := &messages.CallVerdicts{}
		for _, call := range c.GetCalls() {
			v := denied("What it needs a person's word for could not be kept: " + err.GetMessage())
			v.CallId = call.GetCallId()
			answer.Verdicts = append(answer.Verdicts, v)
		}
		m.add(e.Reply(answer))
	}
}

func (m *machine) publish(a *messages.Approval) {
	m.add(kit.Publish{Event: &messages.AgentEvent{
		Type: messages.EventType_EVENT_TYPE_APPROVAL, TaskId: a.GetTaskId(), Agent: a.GetAgent(), Channel: a.GetChannel(),
		Conversation: a.GetConversation(), Text: word(a.GetState()),
		Detail: &messages.AgentEvent_Approval{Approval: proto.CloneOf(a)},
	}})
}

// tell wakes a parked task that has nothing left to wait for.
func (m *machine) tell(task string) {
	agent := m.agentOf(task)
	if m.waits(task) || agent == "" {
		return
	}
	m.add(kit.Send{To: kit.Path("agents/" + agent + "/scheduler"), Msg: &messages.ApprovalsDecided{TaskId: task}})
}

// tellTwice tells now and once more a little later: a decision can be faster than the task is parked.
func (m *machine) tellTwice(task string) {
	if m.waits(task) {
		return
	}
	m.tell(task)
	if _, known := m.untold[task]; !known {
		m.untold[task] = told{}
		m.add(kit.After{Key: "tell", D: tellAfter, Msg: tell{}})
	}
}

func (m *machine) agentOf(task string) string {
	for id := range m.tasks[task] {
		if agent := m.entries[id].a.GetAgent(); agent != "" {
			return agent
		}
		return "main"
	}
	return ""
}

// onFault is a message that did not arrive.
func (m *machine) onFault(f kit.Fault) {
	s, ok := f.Effect.(kit.Send)
	if !ok {
		m.add(kit.Log{Level: kit.Warn, Text: "effect failed", Attrs: []any{"code", f.Err.GetCode(), "error", f.Err.GetMessage()}})
		return
	}
	switch msg := s.Msg.(type) {
	case *messages.ApprovalsDecided:
		task := msg.GetTaskId()
		t := told{times: m.untold[task].times + 1}
		if t.times > tellTimes {
			delete(m.untold, task)
			m.add(kit.Log{Level: kit.Warn, Text: "a scheduler was not told of a decision", Attrs: []any{"task_id", task, "scheduler", s.To.GetPath()}})
			return
		}
		m.untold[task] = t
		m.add(kit.After{Key: "tell", D: tellAfter, Msg: tell{}})
	case *messages.LedgerExecute, *messages.TaskQuery:
		m.onBusy(s.Corr)
	default:
		m.add(kit.Log{Level: kit.Warn, Text: "message was not taken", Attrs: []any{"to", s.To.GetPath(), "code", f.Err.GetCode()}})
	}
}

// tellAgain tries the schedulers that were not there: they may still be starting.
func (m *machine) tellAgain() {
	for _, task := range slices.Sorted(maps.Keys(m.untold)) {
		t := m.untold[task]
		if t.sent || m.agentOf(task) == "" || m.waits(task) {
			delete(m.untold, task)
			continue
		}
		t.sent = true
		m.untold[task] = t
		m.tell(task)
	}
	if len(m.untold) > 0 {
		m.add(kit.After{Key: "tell", D: tellAfter, Msg: tell{}})
	}
}

// onBusy is a request that ledger did not take.
func (m *machine) onBusy(corr string) {
	if m.flight != nil && corr == m.corr || m.asked[strings.TrimPrefix(corr, taskCorr)] {
		m.add(kit.After{Key: "again", D: againAfter, Msg: again{}})
	}
}

const taskCorr = "task/"

// askTasks asks ledger what became of the tasks whose approvals the store held at the start.
func (m *machine) askTasks() {
	for _, task := range sorted(m.asked) {
		m.add(kit.Send{To: m.ledger, Corr: taskCorr + task, Msg: &messages.TaskQuery{InputId: task}})
	}
}

// onTask is what became of such a task.
func (m *machine) onTask(corr string, t *messages.TaskStatus) {
	task := strings.TrimPrefix(corr, taskCorr)
	if !m.asked[task] {
		return
	}
	delete(m.asked, task)
	switch t.GetState() {
	case messages.TaskState_TASK_STATE_ENDED:
		m.releaseTask(task)
	case messages.TaskState_TASK_STATE_PARKED:
		m.tellTwice(task)
	default: // it tells by itself what it waits for
	}
}

// onError is a refused request.
func (m *machine) onError(corr string, err *messages.Error) {
	task, isTask := strings.CutPrefix(corr, taskCorr)
	switch {
	case corr == m.corr && m.flight != nil:
		m.onWritten(corr, err)
	case isTask && m.asked[task]:
		delete(m.asked, task)
		if err.GetCode() == "unknown_input" {
			m.releaseTask(task)
		}
	default:
		m.add(kit.Log{Level: kit.Warn, Text: "request refused", Attrs: []any{"corr", corr, "code", err.GetCode(), "error", err.GetMessage()}})
	}
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

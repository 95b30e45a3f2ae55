package scheduler

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

func (s *state) load(corr, id string) {
	s.add(kit.Send{
		To: s.p.Ledger, Corr: corr,
		Msg: &messages.LedgerPending{Agent: s.p.Agent.GetAgent(), TaskId: id},
	})
}

func lostOf(corr string) (string, bool) { return strings.CutPrefix(corr, "reload/") }

// read asks for the journal of a task whose turn is gone.
func (s *state) read(t *task) {
	if !t.reading {
		t.reading = true
		s.load("reload/"+t.id(), t.id())
	}
}

// onPending takes in what ledger knows: at the start everything, later one task whose turn is gone.
func (s *state) onPending(e kit.Event, m *messages.PendingTasks) {
	if e.Corr != corrLoad {
		id, _ := lostOf(e.Corr)
		s.reload(id, m.GetTasks())
		return
	}
	if s.loaded {
		return
	}
	s.loaded = true
	s.restoreAll(m)
	s.dispatch()
	s.add(kit.Ready{})
	held := s.early
	s.early = nil
	for _, h := range held {
		s.receive(h)
	}
}

// restoreAll takes everything back after a restart of the scheduler or the node. What a stop had taken ends now.
func (s *state) restoreAll(m *messages.PendingTasks) {
	s.stops = m.GetStops()
	ends := s.collect(func() {
		for _, p := range m.GetTasks() {
			s.restore(p)
		}
		s.joinJournaled(m.GetTasks())
		s.settleSteered()
	})
	s.writeEnds(ends)
	s.sortStack()
	s.askParked()
}

// restore takes one task back.
func (s *state) restore(p *messages.PendingTask) {
	in := p.GetInput()
	t := s.newTask(in, p.GetSequence())
	t.preempted, t.starts, t.journal, t.joined = p.GetPreempted(), p.GetStarts(), p.GetJournal(), p.GetJoined()
	t.begun = len(t.journal) > 0 || hasRun(p.GetState())
	t.stopped = s.stoppedBefore(in, p.GetSequence())
	s.tasks[in.GetId()] = t
	if repeats(in) {
		s.duplicateOf(t)
	}
	steered := p.GetState() == messages.TaskState_TASK_STATE_STEERED
	if t.stopped && !steered && !committed(t.journal) {
		s.finishStopped(t)
		return
	}
	switch p.GetState() {
	case messages.TaskState_TASK_STATE_RUNNING:
		if t.starts >= maxStarts {
			s.crashed(t)
			return
		}
		t.phase = suspended
		s.stack = append(s.stack, t)
	case messages.TaskState_TASK_STATE_SUSPENDED:
		t.phase, t.wasCut = suspended, true
		s.stack = append(s.stack, t)
	case messages.TaskState_TASK_STATE_PARKED:
		t.approvals = approvalsOf(t.journal)
		t.journal, t.unread = nil, true
		t.phase = parked
		s.parked[in.GetId()] = t
	case messages.TaskState_TASK_STATE_STEERED:
		s.steered[in.GetId()] = t
	default:
		s.enqueue(t, false)
	}
}

func hasRun(st messages.TaskState) bool {
	switch st {
	case messages.TaskState_TASK_STATE_RUNNING, messages.TaskState_TASK_STATE_SUSPENDED, messages.TaskState_TASK_STATE_PARKED:
		return true
	default:
		return false
	}
}

// newTask makes a task of an input; what waits counts from when the input was made, as far as that can be.
func (s *state) newTask(in *messages.Input, sequence uint64) *task {
	t := &task{input: in, sequence: sequence, since: s.now, arrived: s.now, short: clip(text(in), shortText)}
	if made := time.UnixMicro(in.GetCreatedUs()); in.GetCreatedUs() > 0 && made.Before(s.now) {
		t.since, t.arrived = made, made
	}
	s.sequence = max(s.sequence, sequence)
	return t
}

// committed tells whether a turn has an answer on disk: it goes on to send it, stop or not.
func committed(journal []*messages.JournalEntry) bool {
	for _, e := range journal {
		if e.GetKind() == messages.JournalKind_JOURNAL_KIND_COMMITTED {
			return true
		}
	}
	return false
}

// approvalsOf are those for which a turn parked last.
func approvalsOf(journal []*messages.JournalEntry) []string {
	for _, e := range slices.Backward(journal) {
		if e.GetKind() == messages.JournalKind_JOURNAL_KIND_PARKED {
			return e.GetApprovals()
		}
	}
	return nil
}

// joinJournaled makes the inputs that a turn has in its journal join it, where the node went down before that was noted
// of the input: else the turn and the input itself would both answer.
func (s *state) joinJournaled(tasks []*messages.PendingTask) {
	for _, p := range tasks {
		for _, e := range p.GetJournal() {
			if e.GetKind() != messages.JournalKind_JOURNAL_KIND_STEERED {
				continue
			}
			t := s.tasks[e.GetInput().GetId()]
			if t == nil || !t.queued || t.begun {
				continue
			}
			s.dequeue(t)
			t.joined = p.GetInput().GetId()
			s.steered[t.id()] = t
			s.add(s.ledger("", s.setTask(t, messages.TaskState_TASK_STATE_STEERED)))
		}
	}
}

// settleSteered gives inputs whose turn is gone a turn of their own.
func (s *state) settleSteered() {
	for _, id := range sortedKeys(s.steered) {
		t := s.steered[id]
		if host := s.tasks[t.joined]; host != nil && host.phase != ending && s.steered[t.joined] == nil {
			continue
		}
		delete(s.steered, id)
		if t.stopped {
			s.finishStopped(t)
			continue
		}
		s.requeue(t, "steer_not_answered")
	}
}

// sortStack puts back the order in which tasks were suspended, with what was running on top. Where a journal does not tell
// it, lower levels lie deeper and later inputs on top.
func (s *state) sortStack() {
	cuts := map[*task]int64{}
	for _, t := range s.stack {
		at := cutAt(t.journal)
		if !t.wasCut {
			at = math.MaxInt64
		}
		if at == 0 {
			slices.SortStableFunc(s.stack, byLevel)
			return
		}
		cuts[t] = at
	}
	slices.SortStableFunc(s.stack, func(a, b *task) int {
		if c := cmp.Compare(cuts[a], cuts[b]); c != 0 {
			return c
		}
		return byLevel(a, b)
	})
}

func byLevel(a, b *task) int {
	if c := cmp.Compare(effective(a), effective(b)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.input.GetLevel(), b.input.GetLevel()); c != 0 {
		return c
	}
	return cmp.Compare(a.sequence, b.sequence)
}

// cutAt is when a turn was suspended last; zero when its journal does not say.
func cutAt(journal []*messages.JournalEntry) int64 {
	for _, e := range slices.Backward(journal) {
		if e.GetKind() == messages.JournalKind_JOURNAL_KIND_SUSPENDED {
			return e.GetAtUs()
		}
	}
	return 0
}

// reload starts a turn again from what ledger holds. A task that ledger does not know as open any more is let go of.
func (s *state) reload(id string, tasks []*messages.PendingTask) {
	t := s.tasks[id]
	if t == nil || !t.reading {
		return
	}
	t.reading = false
	if t.turn != nil || t.phase == ending {
		return
	}
	if len(tasks) == 0 {
		s.add(kit.Log{Level: kit.Error, Text: "a task is not open any more", Attrs: []any{"task", id}})
		s.forget(t)
		s.dispatch()
		return
	}
	p := tasks[0]
	t.journal, t.unread = p.GetJournal(), false
	t.starts = p.GetStarts()
	switch {
	case t != s.current || t.phase != spawning:
	case t.starts >= maxStarts:
		s.crashed(t)
		s.dispatch()
	default:
		s.spawn(t)
	}
}

// forget drops a task that has ended without this scheduler; what had joined it becomes tasks.
func (s *state) forget(t *task) {
	s.remove(t)
	delete(s.tasks, t.id())
	s.unsay(t)
	s.settleSteered()
	for _, st := range t.steers {
		s.ownTask(st)
	}
	t.steers = nil
}

// crashed ends a task whose turn failed, or brought the node down, too often without getting any further. Its journal is
// kept aside by ledger; people are told once, with the end.
func (s *state) crashed(t *task) {
	s.endHost(t, &messages.Finished{
		End: messages.End_END_FAILED, Reason: "crash_loop",
		Text: "This task failed three times without getting any further and was ended.",
	})
}

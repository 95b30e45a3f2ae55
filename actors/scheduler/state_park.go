package scheduler

import (
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

const (
	// approvalsEvery is how often guard is asked about parked tasks until it has answered.
	approvalsEvery = 5 * time.Second
	// releaseTries is how often guard is told that a task waits no more.
	releaseTries = 5
	releaseAfter = 2 * time.Second
)

// release is word to guard that tasks wait no more.
type release struct {
	tasks []string
	tries int
}

type (
	// askApprovals asks guard again about the parked tasks.
	askApprovals struct{}
	// releaseAgain tells guard again.
	releaseAgain struct{ corr string }
	// wake lets a task go on that waits for a time.
	wake struct{ task string }
)

// onParked lets go of a turn that waits for people: its actor has ended, the next task runs. What it had taken by
// steering stays with it; what was still on its way to it becomes tasks.
func (s *state) onParked(m *messages.Parked) {
	t := s.byTurn(m.GetTaskId(), m.GetGeneration())
	if t == nil {
		return
	}
	steers := t.steers
	t.steers = nil
	t.turn, t.gen = nil, 0 // what the turn may still be heard of is of no account
	if c := t.cancel; c != nil {
		s.endHost(t, &messages.Finished{End: c.GetEnd(), Reason: c.GetReason(), Text: stoppedText})
	} else {
		s.remove(t)
		t.phase, t.since, t.unread = parked, s.now, true
		t.approvals, t.until = m.GetApprovals(), time.Time{}
		s.parked[t.id()] = t
		s.counters.Parked++
		s.add(s.ledger("", s.setTask(t, messages.TaskState_TASK_STATE_PARKED)))
		reason := "approval"
		if m.GetUntilUs() != 0 {
			reason = "budget"
			s.wakeAt(t, time.UnixMicro(m.GetUntilUs()))
		} else {
			s.askApprovals(t.id()) // guard's word may have come before this one
		}
		s.publish(t, "parked", func(c *messages.TaskChange) { c.Reason, c.Approvals = reason, m.GetApprovals() })
	}
	for _, st := range steers {
		s.ownTask(st)
	}
	s.dispatch()
}

// wakeAt lets a parked task go on at a time.
func (s *state) wakeAt(t *task, at time.Time) {
	t.until = at
	s.add(kit.After{Key: "wake/" + t.id(), D: max(at.Sub(s.now), time.Second), Msg: wake{t.id()}})
}

func (s *state) onWake(w wake) {
	t := s.parked[w.task]
	switch {
	case t == nil || t.until.IsZero():
	case s.now.Before(t.until): // it was parked again meanwhile
		s.wakeAt(t, t.until)
	default:
		s.unpark(t)
	}
}

// onDecided lets a parked task wait for its turn again.
func (s *state) onDecided(m *messages.ApprovalsDecided) {
	if t := s.parked[m.GetTaskId()]; t != nil {
		s.unpark(t)
	}
}

func (s *state) unpark(t *task) {
	delete(s.parked, t.id())
	reason := "approval"
	if !t.until.IsZero() {
		reason = "budget"
	}
	t.approvals, t.approved, t.until = nil, true, time.Time{}
	s.requeue(t, reason)
	if s.current == nil {
		s.dispatch()
		return
	}
	s.consider(t)
}

const approvalsPrefix = "approvals/"

func isApprovals(corr string) bool { return strings.HasPrefix(corr, approvalsPrefix) }

func (s *state) askApprovals(id string) {
	s.add(kit.Send{To: s.p.Guard, Corr: approvalsPrefix + id, Msg: &messages.ListApprovals{TaskId: id}})
}

// askParked asks guard what is still to be decided for each parked task.
func (s *state) askParked() {
	for _, id := range sortedKeys(s.parked) {
		s.askApprovals(id)
	}
}

// onApprovals lets a parked task go on for which nothing is to be decided any more.
func (s *state) onApprovals(corr string, m *messages.ApprovalList) {
	t := s.parked[strings.TrimPrefix(corr, approvalsPrefix)]
	if t == nil || !t.until.IsZero() {
		return
	}
	for _, a := range m.GetApprovals() {
		if a.GetState() == messages.ApprovalState_APPROVAL_STATE_PENDING {
			return
		}
	}
	s.unpark(t)
}

// releaseApprovals tells guard that nobody waits any more for what a task asked.
func (s *state) releaseApprovals(t *task) {
	corr := "release/" + s.number()
	s.releases[corr] = &release{tasks: []string{t.id()}}
	s.sendRelease(corr)
}

func (s *state) sendRelease(corr string) {
	if r := s.releases[corr]; r != nil {
		r.tries++
		s.add(kit.Send{To: s.p.Guard, Corr: corr, Msg: &messages.ReleaseApprovals{TaskIds: r.tasks}})
	}
}

// releaseRefused tells guard again after a while, and gives up in the end: it may be gone for good, and whoever decides
// later decides nothing.
func (s *state) releaseRefused(corr string) {
	r := s.releases[corr]
	if r.tries >= releaseTries {
		delete(s.releases, corr)
		s.add(kit.Log{Level: kit.Warn, Text: "approvals were not released", Attrs: []any{"tasks", strings.Join(r.tasks, " ")}})
		return
	}
	s.add(kit.After{Key: corr, D: releaseAfter, Msg: releaseAgain{corr}})
}

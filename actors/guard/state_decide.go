package guard

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// Why an approval was released.
const (
	releasedEnded   = "ended"
	releasedChanged = "changed"
	releasedPolicy  = "policy"
)

// Settings of the policy before config has told, which guard waits for.
const (
	defaultExpiry = 7 * 24 * time.Hour
	defaultLimit  = 50
)

// decide takes a person's word. It is answered once the word is on disk.
func (m *machine) decide(e kit.Event, d *messages.DecideApproval) bool {
	id := d.GetApprovalId()
	x := m.entries[id]
	switch {
	case !mayDecide(&m.values, d.GetPrincipal()):
		m.add(e.Reply(errNotAllowed(d.GetPrincipal())))
	case len(d.GetNote()) > maxNote:
		m.add(e.Reply(errNote()))
	case x == nil:
		m.add(e.Reply(errUnknown(id)))
	case x.busy:
		return false
	case d.GetHash() != "" && d.GetHash() != x.a.GetHash():
		m.add(e.Reply(errChanged(id)))
	case pending(x.a):
		if !m.expire(x) {
			m.settle(x, d)
		}
		return false
	case x.a.GetState() == wanted(d):
		m.add(read{
			Ask: kit.Event{From: e.From, Corr: e.Corr}, Query: &messages.ListApprovals{ApprovalId: id}, One: true,
		})
	case x.a.GetReleasedFor() == releasedChanged || x.a.GetReleasedFor() == releasedPolicy:
		m.add(e.Reply(errChanged(id)))
	default:
		m.add(e.Reply(errDecided(id, x.a.GetState())))
	}
	return true
}

func wanted(d *messages.DecideApproval) messages.ApprovalState {
	if d.GetAllow() {
		return messages.ApprovalState_APPROVAL_STATE_ALLOWED
	}
	return messages.ApprovalState_APPROVAL_STATE_DENIED
}

func (m *machine) settle(x *entry, d *messages.DecideApproval) {
	next := m.ended(x, wanted(d))
	next.DecidedBy, next.Note = proto.CloneOf(d.GetPrincipal()), d.GetNote()
	m.change(next.GetApprovalId(), next)
}

// ended is a pending approval as it is after its end.
func (m *machine) ended(x *entry, state messages.ApprovalState) *messages.Approval {
	next := proto.CloneOf(x.a)
	next.State, next.DecidedUs = state, m.now.UnixMicro()
	return next
}

// expire ends a pending approval whose time is over.
func (m *machine) expire(x *entry) bool {
	if !over(x.a, m.now) {
		return false
	}
	next := m.ended(x, messages.ApprovalState_APPROVAL_STATE_EXPIRED)
	m.change(next.GetApprovalId(), next)
	return true
}

func (m *machine) releaseOne(x *entry, why string) {
	next := m.ended(x, messages.ApprovalState_APPROVAL_STATE_RELEASED)
	next.ReleasedFor = why
	m.change(next.GetApprovalId(), next)
}

// release ends what waits for tasks that have ended.
func (m *machine) release(e kit.Event, r *messages.ReleaseApprovals) bool {
	done := true
	for _, task := range r.GetTaskIds() {
		done = m.releaseTask(task) && done
	}
	if done {
		m.add(e.Reply(&messages.Ok{}))
	}
	return done
}

// releaseTask reports whether nothing of the task waits any more.
func (m *machine) releaseTask(task string) bool {
	if !slices.Contains(m.released, task) {
		m.released = append(m.released, task)
		if len(m.released) > keepReleased {
			m.released = m.released[1:]
		}
	}
	delete(m.untold, task)
	done := true
	for _, id := range sorted(m.tasks[task]) {
		x := m.entries[id]
		switch {
		case x.busy:
			done = false
		case pending(x.a):
			m.releaseOne(x, releasedEnded)
			done = false
		}
	}
	return done
}

// onFound answers with what the store holds.
func (m *machine) onFound(f found) {
	switch {
	case f.Err != nil:
		m.add(kit.Log{Level: kit.Error, Text: "approvals were not read", Attrs: []any{"error", f.Err.Error()}}, f.Ask.Reply(errRead("store_failed")))
	case !f.One:
		m.add(f.Ask.Reply(&messages.ApprovalList{Approvals: f.List}))
	case len(f.List) == 0:
		m.add(f.Ask.Reply(errUnknown(f.ID))) // forgotten since it was decided
	default:
		m.add(f.Ask.Reply(f.List[0]))
	}
}

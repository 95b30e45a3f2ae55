package ledger

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/store"
	"homeagent/messages"
)

// ErrNotWaiting refuses a change of an input whose turn has begun.
var ErrNotWaiting = errors.New("ledger: input does not wait")

// editInput changes an input whose turn has not begun, in its place in the inbox.
func (b *batch) editInput(e *messages.EditInput) error {
	t, err := b.running(e.GetTaskId())
	if err != nil {
		return err
	}
	if t.GetState() != messages.TaskState_TASK_STATE_QUEUED || t.GetJournal() > 0 {
		return fmt.Errorf("%w: %s", ErrNotWaiting, e.GetTaskId())
	}
	if e.Level != nil && (e.GetLevel() < 0 || e.GetLevel() > 3) {
		return invalid("level %d of %s", e.GetLevel(), e.GetTaskId())
	}
	old, err := inbox(b.txn, t.GetSequence())
	if err != nil {
		return err
	}
	record := proto.CloneOf(old)
	if len(e.GetParts()) > 0 {
		record.Input.Parts = e.GetParts()
	}
	if e.Level != nil {
		record.Input.Level = proto.Int32(e.GetLevel())
		t.Level = e.GetLevel()
	}
	if err := b.txn.PutRecord(version, inboxKey(t.GetSequence()), record); err != nil {
		return err
	}
	return b.putTask(e.GetTaskId(), t)
}

// maxStops is how many moments an agent may have at most.
const maxStops = 1024

func stopsKey(agent string) []byte { return store.Meta.Key([]byte("stops"), listMark, []byte(agent)) }

// noteStops replaces the stops of an agent; none forgets them.
func (b *batch) noteStops(n *messages.NoteStops) error {
	agent := agentOr(n.GetAgent())
	if err := checkID("agent", agent); err != nil {
		return err
	}
	if len(n.GetMoments()) > maxStops {
		return invalid("%d stops of %s", len(n.GetMoments()), agent)
	}
	if len(n.GetMoments()) == 0 {
		return b.txn.Delete(stopsKey(agent))
	}
	return b.txn.PutRecord(version, stopsKey(agent), &messages.StopsRecord{Moments: n.GetMoments()})
}

func stops(txn store.Txn, agent string) ([]*messages.StopMoment, error) {
	out := &messages.StopsRecord{}
	err := txn.GetRecord(version, stopsKey(agent), out)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return out.GetMoments(), err
}

package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"homeagent/memory/store"
	"homeagent/messages"
)

// version is the record version of every record of this package.
const version = 1

// maxID is the longest id in bytes; outputs and events derive theirs from it.
const maxID = 200

// mainAgent is the agent an input without one is for.
const mainAgent = "main"

var (
	countersKey = store.Meta.KeyString("ledger")
	listMark    = []byte{0}
)

func inboxKey(sequence uint64) []byte { return store.Inbox.KeyUint(sequence) }

// idempotencyKey is per principal: two senders that happen to use one key do not
// meet.
func idempotencyKey(in *messages.Input) []byte {
	sum := sha256.Sum256([]byte(in.GetPrincipal().GetId() + "\x00" + in.GetIdempotencyKey()))
	return store.Idempotency.Key(sum[:])
}

func taskKey(id string) []byte { return store.Task.KeyString(id) }

func openKey(sequence uint64) []byte {
	return store.Task.Key(listMark, binary.BigEndian.AppendUint64(nil, sequence))
}

func journalKey(task string, sequence uint64) []byte {
	return store.Journal.Key([]byte(task), listMark, binary.BigEndian.AppendUint64(nil, sequence))
}

// endedKey lists the journal of an ended task by the end.
func endedKey(us int64, task string) []byte {
	return store.Journal.Key(listMark, moment(us), []byte(task))
}

// moment sorts like the time; none is before 1970.
func moment(us int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(max(us, 0))) }

func asideKey(task string) []byte { return store.Aside.KeyString(task) }

func outputKey(id string) []byte { return store.Output.KeyString(id) }

func unsentKey(id string) []byte { return store.Output.Key(listMark, []byte(id)) }

// sentMark begins the list of sent outputs by time; no output id begins with a zero
// byte, so that it does not meet the list of those not sent.
var sentMark = []byte{0, 0}

func sentKey(us int64, id string) []byte { return store.Output.Key(sentMark, moment(us), []byte(id)) }

// EventKey returns the key of an event of the context; EventPrefix that of all
// events of an agent, without the byte of the space.
func EventKey(agent, id string) []byte {
	return store.Event.Key(EventPrefix(agent), []byte(id))
}

// EventPrefix returns what the keys of all events of an agent begin with, without
// the byte of the space, as store.Range wants it. An empty agent means "main".
func EventPrefix(agent string) []byte {
	return append([]byte(agentOr(agent)), 0)
}

// DecodeEvent decodes a stored event; key is the full key with the space byte.
func DecodeEvent(key, record []byte) (*messages.EventRecord, error) {
	out := &messages.EventRecord{}
	if err := store.DecodeRecord(version, key, record, out); err != nil {
		return nil, err
	}
	if out.GetEvent() == nil {
		return nil, fmt.Errorf("%w: event %q is empty", store.ErrRecord, key)
	}
	return out, nil
}

func agentKey(agent string) []byte { return store.Agent.KeyString(agent) }

func agentOr(agent string) string {
	if agent == "" {
		return mainAgent
	}
	return agent
}

// checkID refuses ids that are empty, long, or hold a zero byte.
func checkID(what, id string) error {
	if id == "" || len(id) > maxID || strings.IndexByte(id, 0) >= 0 {
		return invalid("%s %q", what, id)
	}
	return nil
}

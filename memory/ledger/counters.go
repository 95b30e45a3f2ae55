package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"homeagent/memory/store"
)

// counters are kept under one key, written by each transaction that changes them.
type counters struct {
	// inbox is the last inbox sequence given.
	inbox uint64
	// floor is the last inbox sequence that retention has removed.
	floor uint64
	// journal is the last number given over all journals.
	journal uint64
	// accepted and ended count since the store was made.
	accepted, ended uint64
	// events is the last event number given.
	events uint64
	// keys is the last inbox sequence whose idempotency key retention has seen to.
	keys uint64
}

func (c *counters) fields() []*uint64 {
	return []*uint64{&c.inbox, &c.floor, &c.journal, &c.accepted, &c.ended, &c.events, &c.keys}
}

// firstFields is how many counters the first format of the store had.
const firstFields = 6

// open is the number of tasks that have not ended.
func (c counters) open() int64 { return int64(c.accepted - c.ended) }

func (c counters) encode() []byte {
	body := make([]byte, 0, 56)
	for _, f := range c.fields() {
		body = binary.BigEndian.AppendUint64(body, *f)
	}
	return store.Seal(version, countersKey, body)
}

func decodeCounters(record []byte) (counters, error) {
	var c counters
	v, body, err := store.Unseal(countersKey, record)
	if err != nil {
		return c, err
	}
	fields := c.fields()
	if v != version || len(body) != 8*len(fields) && len(body) != 8*firstFields {
		return c, fmt.Errorf("%w: counters of version %d with %d bytes", store.ErrRecord, v, len(body))
	}
	fields = fields[:len(body)/8]
	for i, f := range fields {
		*f = binary.BigEndian.Uint64(body[8*i:])
	}
	return c, nil
}

func readCounters(txn store.Txn) (counters, error) {
	record, err := txn.Get(countersKey)
	if errors.Is(err, store.ErrNotFound) {
		return counters{}, nil
	}
	if err != nil {
		return counters{}, err
	}
	return decodeCounters(record)
}

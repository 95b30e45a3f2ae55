package timers

import (
	"fmt"

	"homeagent/memory/store"
	"homeagent/messages"
)

// version is the record version of every record of this package.
const version = 1

// Put is the operation that stores a timer.
func Put(r *messages.TimerRecord) (*messages.LedgerOp, error) {
	id := r.GetTimer().GetTimerId()
	value, err := store.EncodeRecord(version, store.Timer.KeyString(id), r)
	if err != nil {
		return nil, fmt.Errorf("timer %s: %w", id, err)
	}
	return write(id, value), nil
}

// Delete is the operation that removes a timer; one that is not there is no error.
func Delete(id string) *messages.LedgerOp { return write(id, nil) }

func write(id string, value []byte) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Write{Write: &messages.RawWrite{
		Space: uint32(store.Timer), Key: []byte(id), Value: value,
	}}}
}

// Decode reads a stored timer; key is the full key with the space byte. What does not fit is store.ErrRecord.
func Decode(key, record []byte) (*messages.TimerRecord, error) {
	r := &messages.TimerRecord{}
	if err := store.DecodeRecord(version, key, record, r); err != nil {
		return nil, err
	}
	if string(key) != string(store.Timer.KeyString(r.GetTimer().GetTimerId())) {
		return nil, fmt.Errorf("%w: timer %q under key %q", store.ErrRecord, r.GetTimer().GetTimerId(), key)
	}
	return r, nil
}

// Engine reads the timers of a store.
type Engine struct{ db *store.DB }

// NewEngine returns the engine over a store, which stays the caller's to close.
func NewEngine(db *store.DB) *Engine { return &Engine{db: db} }

// Load returns all timers in the order of their ids. Damaged are the keys of records that cannot be read: one of them
// does not keep the others from being due.
func (e *Engine) Load() (records []*messages.TimerRecord, damaged []string, err error) {
	err = e.db.View(func(txn store.Txn) error {
		for item, err := range txn.Scan(store.Range{Space: store.Timer}) {
			if err != nil {
				return err
			}
			value, err := item.Value()
			if err != nil {
				return err
			}
			r, err := Decode(item.FullKey(), value)
			if err != nil {
				damaged = append(damaged, string(item.Key()))
				continue
			}
			records = append(records, r)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("load timers: %w", err)
	}
	return records, damaged, nil
}

package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"homeagent/memory/block"
	"homeagent/memory/store"
	"homeagent/messages"
)

// The late index is written behind the answer: an event is stored with a note that it is not indexed yet, and the index
// follows in a transaction of its own before the next input is accepted, the next task ends or the next events are
// stored. So whatever a later turn asks finds it, and a person does not wait for it. What a crash leaves noted is indexed
// at the next start.

// lateMark begins the keys of the notes: lateMark, number of the event. The value is agent, zero byte, event id.
var lateMark = []byte{0, 'w'}

func lateKey(number uint64) []byte {
	return store.Event.Key(lateMark, binary.BigEndian.AppendUint64(nil, number))
}

// note remembers events for the late index.
func (b *batch) note(added []*messages.EventRecord) error {
	for _, r := range added {
		e := r.GetEvent()
		if err := b.txn.Put(lateKey(r.GetNumber()), append(EventPrefix(e.GetAgent()), e.GetEventId()...)); err != nil {
			return err
		}
	}
	b.due = append(b.due, added)
	return nil
}

// settles tells whether a request may be followed by questions that must find all that was stored before.
func settles(r *messages.LedgerExecute) bool {
	for _, op := range r.GetOps() {
		if op.GetAccept() != nil || op.GetEnd() != nil || op.GetEvents() != nil {
			return true
		}
	}
	return false
}

// settle writes the late index of what was stored, in its order. What there is no room for waits; what cannot be indexed
// stays noted for the next start.
func (l *Ledger) settle() {
	for len(l.due) > 0 {
		err := l.indexLate(l.due[0])
		if errors.Is(err, store.ErrDiskLow) {
			return
		}
		if err != nil {
			l.log.Error("events are not indexed before the next start", "events", len(l.due[0]), "error", err)
		}
		l.due = l.due[1:]
	}
	l.due = nil
}

func (l *Ledger) indexLate(events []*messages.EventRecord) error {
	return l.db.Update(func(txn store.Txn) error {
		if err := l.late.IndexEvents(txn, events); err != nil {
			return err
		}
		for _, r := range events {
			if err := txn.Delete(lateKey(r.GetNumber())); err != nil {
				return err
			}
		}
		return nil
	})
}

// catchUp takes up what an earlier run has left noted.
func (l *Ledger) catchUp() error {
	if l.late == nil {
		return nil
	}
	var gone [][]byte
	err := l.db.View(func(txn store.Txn) error {
		for item, err := range txn.Scan(store.Range{Space: store.Event, Prefix: lateMark}) {
			if err != nil {
				return err
			}
			value, err := item.Value()
			if err != nil {
				return err
			}
			agent, id, _ := bytes.Cut(value, []byte{0})
			r, err := WholeEvent(txn, string(agent), string(id))
			switch {
			case errors.Is(err, store.ErrNotFound):
				gone = append(gone, bytes.Clone(item.FullKey()))
			case err != nil:
				l.log.Error("an event cannot be read and is not indexed", "event", string(id), "error", err)
			default:
				l.due = append(l.due, []*messages.EventRecord{r})
			}
		}
		return nil
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	return l.db.Update(func(txn store.Txn) error {
		for _, key := range gone {
			if err := txn.Delete(key); err != nil {
				return err
			}
		}
		return nil
	})
}

// WholeEvent reads an event with the long texts that stand in their payloads alone. An event that is not there is
// store.ErrNotFound, a text that is not there block.ErrNoPayload.
func WholeEvent(txn store.Txn, agent, id string) (*messages.EventRecord, error) {
	key := EventKey(agent, id)
	record, err := txn.Get(key)
	if err != nil {
		return nil, err
	}
	r, err := DecodeEvent(key, record)
	if err != nil {
		return nil, err
	}
	for _, b := range r.GetEvent().GetBlocks() {
		ref := b.GetContent().GetPayload()
		if ref.GetMediaType() != block.TextType {
			continue
		}
		_, data, err := block.Payload(txn, ref.GetId())
		if err != nil {
			return nil, fmt.Errorf("text of block %s: %w", b.GetBlockId(), err)
		}
		b.Content = &messages.Part{Content: &messages.Part_Text{Text: string(data)}}
	}
	return r, nil
}

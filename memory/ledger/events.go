package ledger

import (
	"google.golang.org/protobuf/proto"

	"homeagent/memory/block"
	"homeagent/memory/store"
	"homeagent/messages"
)

// maxEventText is the longest text in bytes that an event carries with it; a
// longer one stands in its payload alone.
const maxEventText = 64 << 10

// appendEvents stores events with their blocks and payloads. An event that is
// there is left as it is.
func (b *batch) appendEvents(events []*messages.Event) error {
	var added []*messages.EventRecord
	for _, e := range events {
		r, err := b.appendEvent(e)
		if err != nil {
			return err
		}
		if r != nil {
			added = append(added, r)
		}
	}
	if len(added) == 0 {
		return nil
	}
	if b.late {
		if err := b.note(added); err != nil {
			return err
		}
	}
	if b.index == nil {
		return nil
	}
	return b.index.IndexEvents(b.txn, added)
}

// appendEvent returns nil for an event that is there. The record it returns has
// the whole text of its blocks.
func (b *batch) appendEvent(e *messages.Event) (*messages.EventRecord, error) {
	if err := checkID("event id", e.GetEventId()); err != nil {
		return nil, err
	}
	if e.GetKind() == messages.EventKind_EVENT_KIND_UNSPECIFIED {
		return nil, invalid("event %s has no kind", e.GetEventId())
	}
	agent := agentOr(e.GetAgent())
	if err := checkID("agent", agent); err != nil {
		return nil, err
	}
	key := EventKey(agent, e.GetEventId())
	if known, err := b.txn.Has(key); err != nil || known {
		return nil, err
	}
	full := proto.CloneOf(e)
	full.Agent = agent
	stored := proto.CloneOf(full)
	for i, bl := range full.GetBlocks() {
		if bl.GetStoredUs() == 0 {
			bl.StoredUs = b.now.UnixMicro()
		}
		put, err := block.Put(b.txn, bl)
		if err != nil {
			return nil, err
		}
		full.Blocks[i] = put
		stored.Blocks[i] = shorten(put)
	}
	b.count.events++
	record := &messages.EventRecord{Event: stored, Number: b.count.events}
	if err := b.txn.PutRecord(version, key, record); err != nil {
		return nil, err
	}
	return &messages.EventRecord{Event: full, Number: b.count.events}, nil
}

// shorten replaces a long text by the reference to its payload.
func shorten(bl *messages.Block) *messages.Block {
	text := bl.GetContent().GetText()
	if len(text) <= maxEventText {
		return bl
	}
	out := proto.CloneOf(bl)
	out.Content = &messages.Part{Content: &messages.Part_Payload{Payload: &messages.PayloadRef{
		Id: bl.GetPayloadId(), MediaType: block.TextType, Size: int64(len(text)),
	}}}
	return out
}

// Event returns an event by agent and id, or store.ErrNotFound. Long texts are
// references to their payload, see block.Payload.
func (l *Ledger) Event(agent, id string) (*messages.EventRecord, error) {
	var out *messages.EventRecord
	err := l.db.View(func(txn store.Txn) error {
		key := EventKey(agent, id)
		record, err := txn.Get(key)
		if err != nil {
			return err
		}
		out, err = DecodeEvent(key, record)
		return err
	})
	return out, err
}

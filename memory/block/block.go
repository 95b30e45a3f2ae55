package block

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/store"
	"homeagent/messages"
)

// maxID is the longest block id in bytes.
const maxID = 200

func blockKey(id string) []byte { return store.Block.KeyString(id) }

// Put stores b within the transaction and returns it as stored: a copy with its
// payload id. Text is stored with it; another payload must be in the store, else
// ErrNoPayload. A block whose id is known is left as it is and returned.
func Put(txn store.Txn, b *messages.Block) (*messages.Block, error) {
	if err := check(b); err != nil {
		return nil, err
	}
	if old, err := head(txn, b.GetBlockId()); err == nil {
		out := proto.CloneOf(b)
		out.PayloadId = old.GetPayloadId()
		return out, nil
	} else if !isMissing(err) {
		return nil, err
	}
	out := proto.CloneOf(b)
	var text *string
	if ref := b.GetContent().GetPayload(); ref != nil {
		out.PayloadId = ref.GetId()
	} else {
		s := b.GetContent().GetText()
		text = &s
		out.PayloadId = PayloadID(TextType, []byte(s))
	}
	if err := hold(txn, out.GetPayloadId(), text); err != nil {
		return nil, fmt.Errorf("put block %s: %w", b.GetBlockId(), err)
	}
	stored := proto.CloneOf(out)
	if text != nil {
		stored.Content = nil
	}
	record := &messages.BlockRecord{Block: stored}
	if err := txn.PutRecord(Version, blockKey(b.GetBlockId()), record); err != nil {
		return nil, fmt.Errorf("put block %s: %w", b.GetBlockId(), err)
	}
	return out, nil
}

func check(b *messages.Block) error {
	id := b.GetBlockId()
	switch {
	case id == "" || len(id) > maxID || strings.IndexByte(id, 0) >= 0:
		return fmt.Errorf("%w: id %q", ErrInvalid, id)
	case b.GetContent().GetContent() == nil:
		return fmt.Errorf("%w: %s has no content", ErrInvalid, id)
	case b.GetContent().GetPayload() != nil && b.GetContent().GetPayload().GetId() == "":
		return fmt.Errorf("%w: %s refers to no payload", ErrInvalid, id)
	}
	return nil
}

// head returns a block without its text.
func head(txn store.Txn, id string) (*messages.Block, error) {
	record := &messages.BlockRecord{}
	if err := txn.GetRecord(Version, blockKey(id), record); err != nil {
		return nil, err
	}
	if record.GetBlock() == nil {
		return nil, fmt.Errorf("%w: block %s is empty", store.ErrRecord, id)
	}
	return record.GetBlock(), nil
}

// Get returns a block, text included; store.ErrNotFound when there is none. The
// block belongs to the caller.
func Get(txn store.Txn, id string) (*messages.Block, error) {
	b, err := head(txn, id)
	if err != nil {
		return nil, fmt.Errorf("get block %s: %w", id, err)
	}
	if b.GetContent() != nil {
		return b, nil
	}
	_, data, err := Payload(txn, b.GetPayloadId())
	if err != nil {
		return nil, fmt.Errorf("get block %s: %w", id, err)
	}
	b.Content = &messages.Part{Content: &messages.Part_Text{Text: string(data)}}
	return b, nil
}

// Delete removes a block, and its payload when no other block holds it. A block
// that is not there is no error.
func Delete(txn store.Txn, id string) error {
	b, err := head(txn, id)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete block %s: %w", id, err)
	}
	if err := release(txn, b.GetPayloadId()); err != nil {
		return fmt.Errorf("delete block %s: %w", id, err)
	}
	return txn.Delete(blockKey(id))
}

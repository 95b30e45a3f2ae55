package approvals

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	// version is the record version of every record of this package.
	version = 1
	// maxID is the longest approval id in bytes.
	maxID = 200
	// MaxRecord is the most bytes of an approval; a call that needs more is not one that a person can read.
	MaxRecord = 384 << 10
)

func approvalKey(id string) []byte { return store.Approval.KeyString(id) }

// Put makes the write of an approval, which replaces an earlier one of the same id.
func Put(a *messages.Approval) (*messages.LedgerOp, error) {
	id := a.GetApprovalId()
	if err := checkID(id); err != nil {
		return nil, err
	}
	if n := proto.Size(a); n > MaxRecord {
		return nil, fmt.Errorf("%w: approval %s of %d bytes", ErrInvalid, id, n)
	}
	record, err := store.EncodeRecord(version, approvalKey(id), &messages.ApprovalRecord{Approval: a})
	if err != nil {
		return nil, err
	}
	return write(store.Approval, []byte(id), record), nil
}

// Delete makes the write that forgets an approval; one that is not there is no error.
func Delete(id string) (*messages.LedgerOp, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	return write(store.Approval, []byte(id), nil), nil
}

func checkID(id string) error {
	if id == "" || len(id) > maxID || strings.IndexByte(id, 0) >= 0 {
		return fmt.Errorf("%w: approval id %q", ErrInvalid, id)
	}
	return nil
}

// write makes an operation; a nil value deletes.
func write(space store.Space, key, value []byte) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Write{Write: &messages.RawWrite{
		Space: uint32(space), Key: key, Value: value,
	}}}
}

// DecodeApproval decodes a stored approval; key is the full key with the space byte. What does not fit is
// store.ErrRecord.
func DecodeApproval(key, record []byte) (*messages.Approval, error) {
	out := &messages.ApprovalRecord{}
	if err := store.DecodeRecord(version, key, record, out); err != nil {
		return nil, err
	}
	if id := out.GetApproval().GetApprovalId(); id == "" || id != string(key[1:]) {
		return nil, fmt.Errorf("%w: approval %q under %q", store.ErrRecord, id, key)
	}
	return out.GetApproval(), nil
}

// Engine reads approvals and tokens. It is safe for concurrent use.
type Engine struct{ db *store.DB }

// New returns the engine over db, which stays the caller's to close.
func New(db *store.DB) *Engine { return &Engine{db: db} }

// Get returns one approval, or ErrNotFound.
func (e *Engine) Get(id string) (out *messages.Approval, err error) {
	if err := checkID(id); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	err = e.db.View(func(txn store.Txn) error {
		record, err := txn.Get(approvalKey(id))
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w: approval %s", ErrNotFound, id)
		}
		if err != nil {
			return err
		}
		out, err = DecodeApproval(approvalKey(id), record)
		return err
	})
	return out, err
}

// List returns the approvals that want lets through, oldest first; nil lets all through. want sees each record once and
// must not keep it when it returns false. damaged names the records that do not decode: what they said is lost, and their
// calls are asked about anew.
func (e *Engine) List(want func(*messages.Approval) bool) (list []*messages.Approval, damaged []string, err error) {
	err = e.db.View(func(txn store.Txn) error {
		for item, err := range txn.Scan(store.Range{Space: store.Approval}) {
			if err != nil {
				return err
			}
			record, err := item.Value()
			if err != nil {
				return err
			}
			a, err := DecodeApproval(item.FullKey(), record)
			switch {
			case err != nil:
				damaged = append(damaged, fmt.Sprintf("%q", item.Key()))
			case want == nil || want(a):
				list = append(list, a)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list approvals: %w", err)
	}
	slices.SortFunc(list, Older)
	return list, damaged, nil
}

// Older orders approvals by the time they were made, then by their call and id.
func Older(a, b *messages.Approval) int {
	return cmp.Or(
		cmp.Compare(a.GetCreatedUs(), b.GetCreatedUs()),
		strings.Compare(a.GetCall().GetCallId(), b.GetCall().GetCallId()),
		strings.Compare(a.GetApprovalId(), b.GetApprovalId()),
	)
}

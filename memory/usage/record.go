package usage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/store"
	"homeagent/messages"
)

// version is the record version of every record of this package.
const version = 1

const (
	dayPrefix  = "d/"
	markPrefix = "m/"
)

// rowKey is the key of a row within the space.
func rowKey(r *messages.UsageRow) string {
	h := sha256.New()
	for _, part := range []string{r.GetSource(), r.GetModel(), r.GetAgent(), r.GetChannel(), r.GetConversation()} {
		_, _ = fmt.Fprintf(h, "%d:", len(part))
		_, _ = io.WriteString(h, part)
	}
	return dayPrefix + r.GetDay() + "/" + hex.EncodeToString(h.Sum(nil)[:16])
}

// Put is the operation that stores a row as it is.
func Put(r *messages.UsageRow) (*messages.LedgerOp, error) { return put(rowKey(r), r) }

// PutMarks is the operation that stores what is remembered of a source.
func PutMarks(m *messages.SourceMarks) (*messages.LedgerOp, error) {
	return put(markPrefix+m.GetSource(), m)
}

// DropMarks is the operation that forgets a source; one that is not there is no error.
func DropMarks(source string) *messages.LedgerOp { return write(markPrefix+source, nil) }

// Drop is the operation that removes a row by its key, as Old gives it.
func Drop(key string) *messages.LedgerOp { return write(key, nil) }

func put(key string, m proto.Message) (*messages.LedgerOp, error) {
	value, err := store.EncodeRecord(version, store.Usage.KeyString(key), m)
	if err != nil {
		return nil, fmt.Errorf("usage: %w", err)
	}
	return write(key, value), nil
}

func write(key string, value []byte) *messages.LedgerOp {
	return &messages.LedgerOp{Op: &messages.LedgerOp_Write{Write: &messages.RawWrite{
		Space: uint32(store.Usage), Key: []byte(key), Value: value,
	}}}
}

// DecodeRow reads a stored row; key is the full key with the space byte. What does not fit is store.ErrRecord.
func DecodeRow(key, record []byte) (*messages.UsageRow, error) {
	r := &messages.UsageRow{}
	if err := store.DecodeRecord(version, key, record, r); err != nil {
		return nil, err
	}
	if ParseDay(r.GetDay()) != nil || string(key) != string(store.Usage.KeyString(rowKey(r))) {
		return nil, fmt.Errorf("%w: a row of %q under key %q", store.ErrRecord, r.GetDay(), key)
	}
	return r, nil
}

// DecodeMarks reads stored marks, as DecodeRow does a row.
func DecodeMarks(key, record []byte) (*messages.SourceMarks, error) {
	m := &messages.SourceMarks{}
	if err := store.DecodeRecord(version, key, record, m); err != nil {
		return nil, err
	}
	if string(key) != string(store.Usage.KeyString(markPrefix+m.GetSource())) {
		return nil, fmt.Errorf("%w: marks of %q under key %q", store.ErrRecord, m.GetSource(), key)
	}
	return m, nil
}

package store

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// EncodeRecord returns the sealed record of a message, see Seal.
func EncodeRecord(version byte, key []byte, m proto.Message) ([]byte, error) {
	body, err := proto.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %q: %w", key, err)
	}
	return Seal(version, key, body), nil
}

// DecodeRecord checks a sealed record of the given version and decodes it into
// m. Whatever does not fit is ErrRecord.
func DecodeRecord(version byte, key, record []byte, m proto.Message) error {
	got, body, err := Unseal(key, record)
	if err != nil {
		return err
	}
	if got != version {
		return fmt.Errorf("%w: version %d of %q, want %d", ErrRecord, got, key, version)
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return fmt.Errorf("%w: %q: %w", ErrRecord, key, err)
	}
	return nil
}

// PutRecord encodes m and puts it under key.
func (t Txn) PutRecord(version byte, key []byte, m proto.Message) error {
	record, err := EncodeRecord(version, key, m)
	if err != nil {
		return err
	}
	return t.Put(key, record)
}

// GetRecord decodes the record under key into m; ErrNotFound when there is none.
func (t Txn) GetRecord(version byte, key []byte, m proto.Message) error {
	record, err := t.Get(key)
	if err != nil {
		return err
	}
	return DecodeRecord(version, key, record, m)
}

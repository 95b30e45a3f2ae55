package block

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

const (
	// Version is the record version of payload heads, chunks and blocks.
	Version = 1
	// InlineSize is the largest payload in bytes that stands in its head.
	InlineSize = 16 << 10
	// ChunkSize is the size of a chunk in bytes.
	ChunkSize = 256 << 10
	// TextType is the media type of text.
	TextType = "text/plain"

	// ahead is how many bytes of chunks PutPayload writes in one transaction.
	ahead = 2 * ChunkSize
)

// PayloadID returns the name of a payload. An empty media type means text. The
// type counts without surrounding space and in lower case.
func PayloadID(mediaType string, data []byte) string {
	mediaType = normalType(mediaType)
	sum := sha256.New()
	kind := "blk_src_"
	if mediaType != TextType {
		kind = "blk_media_"
		sum.Write([]byte(mediaType))
		sum.Write([]byte{0})
	}
	sum.Write(data)
	return kind + hex.EncodeToString(sum.Sum(nil)[:20])
}

func normalType(mediaType string) string {
	if mediaType = strings.ToLower(strings.TrimSpace(mediaType)); mediaType == "" {
		return TextType
	}
	return mediaType
}

func headKey(id string) []byte { return store.Payload.KeyString(id) }

func chunkKey(id string, n int) []byte {
	key := append(headKey(id), 0)
	return binary.BigEndian.AppendUint32(key, uint32(n))
}

// PutPayload stores a payload of any size in transactions of its own and returns
// its reference; one that is there is not written again. It does not sync: the
// sync of the transaction that refers to it covers it.
func PutPayload(db *store.DB, mediaType string, data []byte) (*messages.PayloadRef, error) {
	mediaType = normalType(mediaType)
	id := PayloadID(mediaType, data)
	ref := &messages.PayloadRef{Id: id, MediaType: mediaType, Size: int64(len(data))}
	known := false
	err := db.View(func(txn store.Txn) (err error) {
		known, err = txn.Has(headKey(id))
		return err
	})
	if err != nil || known {
		return ref, err
	}
	for off := 0; len(data) > InlineSize && off < len(data); off += ahead {
		err := db.Update(func(txn store.Txn) error {
			return putChunks(txn, id, data, off, min(off+ahead, len(data)))
		})
		if err != nil {
			return nil, fmt.Errorf("put payload %s: %w", id, err)
		}
	}
	err = db.Update(func(txn store.Txn) error {
		// Another may have stored and counted it meanwhile.
		if known, err := txn.Has(headKey(id)); err != nil || known {
			return err
		}
		head := newHead(mediaType, data)
		head.StoredUs = time.Now().UnixMicro()
		return putHead(txn, id, head)
	})
	if err != nil {
		return nil, fmt.Errorf("put payload %s: %w", id, err)
	}
	return ref, nil
}

// putChunks writes the chunks of data from an offset, a multiple of ChunkSize, to
// an end.
func putChunks(txn store.Txn, id string, data []byte, from, to int) error {
	for off := from; off < to; off += ChunkSize {
		key := chunkKey(id, off/ChunkSize)
		chunk := data[off:min(off+ChunkSize, len(data))]
		if err := txn.Put(key, store.Seal(Version, key, chunk)); err != nil {
			return err
		}
	}
	return nil
}

func newHead(mediaType string, data []byte) *messages.PayloadRecord {
	digest := sha256.Sum256(data)
	head := &messages.PayloadRecord{MediaType: mediaType, Size: int64(len(data)), Digest: digest[:]}
	if len(data) <= InlineSize {
		head.Inline = data
	} else {
		head.Chunks = int32((len(data) + ChunkSize - 1) / ChunkSize)
	}
	return head
}

func putHead(txn store.Txn, id string, head *messages.PayloadRecord) error {
	return txn.PutRecord(Version, headKey(id), head)
}

func getHead(txn store.Txn, id string) (*messages.PayloadRecord, error) {
	head := &messages.PayloadRecord{}
	err := txn.GetRecord(Version, headKey(id), head)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNoPayload, id)
	}
	return head, err
}

// Payload returns the media type and the bytes of a payload, which belong to the
// caller. The digest is checked.
func Payload(txn store.Txn, id string) (mediaType string, data []byte, err error) {
	head, err := getHead(txn, id)
	if err != nil {
		return "", nil, err
	}
	data = head.GetInline()
	if head.GetChunks() > 0 {
		if data, err = chunks(txn, id, head); err != nil {
			return "", nil, err
		}
	}
	if sum := sha256.Sum256(data); int64(len(data)) != head.GetSize() || !bytes.Equal(sum[:], head.GetDigest()) {
		return "", nil, fmt.Errorf("%w: %s", ErrDigest, id)
	}
	return head.GetMediaType(), data, nil
}

func chunks(txn store.Txn, id string, head *messages.PayloadRecord) ([]byte, error) {
	if head.GetSize() < 0 || head.GetSize() > int64(head.GetChunks())*ChunkSize {
		return nil, fmt.Errorf("%w: %s", ErrDigest, id)
	}
	data := make([]byte, 0, head.GetSize())
	for n := range int(head.GetChunks()) {
		key := chunkKey(id, n)
		record, err := txn.Get(key)
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("%w: %s lacks chunk %d", ErrDigest, id, n)
		}
		if err != nil {
			return nil, err
		}
		version, chunk, err := store.Unseal(key, record)
		if err != nil {
			return nil, err
		}
		if version != Version {
			return nil, fmt.Errorf("%w: version %d of %q", store.ErrRecord, version, key)
		}
		data = append(data, chunk...)
	}
	return data, nil
}

// hold counts one more block for a payload; text that is not there yet is
// stored in the same transaction.
func hold(txn store.Txn, id string, text *string) error {
	head, err := getHead(txn, id)
	if errors.Is(err, ErrNoPayload) && text != nil {
		data := []byte(*text)
		head, err = newHead(TextType, data), nil
		if head.GetChunks() > 0 {
			err = putChunks(txn, id, data, 0, len(data))
		}
	}
	if err != nil {
		return err
	}
	head.References++
	return putHead(txn, id, head)
}

// release counts one block less and removes the payload with the last.
func release(txn store.Txn, id string) error {
	head, err := getHead(txn, id)
	if err != nil {
		return err
	}
	if head.References--; head.References > 0 {
		return putHead(txn, id, head)
	}
	return remove(txn, id, head)
}

func remove(txn store.Txn, id string, head *messages.PayloadRecord) error {
	for n := range int(head.GetChunks()) {
		if err := txn.Delete(chunkKey(id, n)); err != nil {
			return err
		}
	}
	return txn.Delete(headKey(id))
}

// Sweep removes payloads that no block holds and that were stored before a moment, so
// that one whose block is still to come stays. It looks at up to limit payloads after
// the one named, and returns how many went and the last one it looked at; empty means
// that it came to the end. It must not run beside itself.
func Sweep(db *store.DB, before time.Time, after string, limit int) (removed int, next string, err error) {
	var ids []string
	err = db.View(func(txn store.Txn) (err error) {
		ids, next, err = unheld(txn, before.UnixMicro(), after, limit)
		return err
	})
	if err != nil {
		return 0, "", err
	}
	for n, id := range ids {
		err := db.Reclaim(func(txn store.Txn) error {
			head, err := getHead(txn, id)
			if err != nil || head.GetReferences() > 0 {
				return err
			}
			return remove(txn, id, head)
		})
		if err != nil {
			return n, "", err
		}
	}
	return len(ids), next, nil
}

func unheld(txn store.Txn, before int64, after string, limit int) (ids []string, next string, err error) {
	looked := 0
	for item, err := range txn.Scan(store.Range{Space: store.Payload, From: []byte(after)}) {
		if err != nil {
			return nil, "", err
		}
		if bytes.IndexByte(item.Key(), 0) >= 0 || string(item.Key()) == after {
			continue
		}
		if looked == limit {
			return ids, next, nil
		}
		looked++
		next = string(item.Key())
		record, err := item.Value()
		if err != nil {
			return nil, "", err
		}
		head := &messages.PayloadRecord{}
		if err := store.DecodeRecord(Version, item.FullKey(), record, head); err != nil {
			return nil, "", err
		}
		if head.GetReferences() == 0 && head.GetStoredUs() < before {
			ids = append(ids, next)
		}
	}
	return ids, "", nil
}

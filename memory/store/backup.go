package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A backup is a stream of records, each a length in four bytes (big end first)
// and that many bytes:
//
//	magic and one line of JSON (BackupInfo)
//	pairs: key length in two bytes, key, value
//	an empty record, then the SHA-256 of all before it
//
// It holds the newest value of each key of one snapshot, in the order of keys.
const (
	backupMagic = "homeagent backup 1\n"
	// backupRecord is the largest record: a key and a value at their limits.
	backupRecord = 2 + maxKey + MaxValue
)

// ErrBackup refuses a stream that is not a whole backup.
var ErrBackup = errors.New("store: not a whole backup")

// BackupInfo heads a backup.
type BackupInfo struct {
	// Format is the version of the store's layout.
	Format int `json:"format"`
	// Commit is the last commit that the snapshot holds.
	Commit uint64 `json:"commit"`
	// Inbox and Journal are the counters that the snapshot at least holds.
	Inbox   uint64 `json:"inbox"`
	Journal uint64 `json:"journal"`
	// Pairs is the number of keys; it is known at the end and zero in the head.
	Pairs uint64 `json:"pairs,omitempty"`
}

// Backup writes the state of one moment to w while the store goes on. It leaves
// out the spaces named in without. The stream is whole only when Backup returned
// nil; it ends early when ctx does.
func (db *DB) Backup(ctx context.Context, w io.Writer, without ...Space) (BackupInfo, error) {
	out := &backupWriter{w: bufio.NewWriterSize(w, 64<<10), sum: sha256.New()}
	info := BackupInfo{Format: db.Format(), Inbox: db.inbox.Load(), Journal: db.journal.Load()}
	err := db.View(func(txn Txn) error {
		var err error
		if info.Commit, err = stampOf(txn); err != nil {
			return err
		}
		head, err := json.Marshal(info)
		if err != nil {
			return err
		}
		out.record([]byte(backupMagic), head)
		for _, s := range Spaces() {
			if slices.Contains(without, s.Space) {
				continue
			}
			n, err := out.space(ctx, txn, s.Space)
			if err != nil {
				return err
			}
			info.Pairs += n
		}
		return out.finish()
	})
	if err != nil {
		return BackupInfo{}, fmt.Errorf("backup: %w", err)
	}
	return info, nil
}

func stampOf(txn Txn) (uint64, error) {
	v, err := txn.Get(stampKey)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil || len(v) != 8 {
		return 0, errors.Join(err, ErrRecord)
	}
	return binary.BigEndian.Uint64(v), nil
}

// backupWriter keeps the first error; finish returns it.
type backupWriter struct {
	w   *bufio.Writer
	sum hash.Hash
	err error
}

func (b *backupWriter) record(parts ...[]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b.write(binary.BigEndian.AppendUint32(nil, uint32(n)))
	for _, p := range parts {
		b.write(p)
	}
}

func (b *backupWriter) write(p []byte) {
	if b.err == nil {
		_, b.err = b.w.Write(p)
		b.sum.Write(p)
	}
}

func (b *backupWriter) space(ctx context.Context, txn Txn, s Space) (pairs uint64, err error) {
	for item, err := range txn.Scan(Range{Space: s}) {
		if err != nil {
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		key := item.FullKey()
		if bytes.Equal(key, stampKey) {
			continue
		}
		value, err := item.Value()
		if err != nil {
			return 0, err
		}
		pairs++
		b.record(binary.BigEndian.AppendUint16(nil, uint16(len(key))), key, value)
		if b.err != nil {
			return 0, b.err
		}
	}
	return pairs, nil
}

func (b *backupWriter) finish() error {
	b.record()
	sum := b.sum.Sum(nil)
	b.write(sum)
	if b.err != nil {
		return b.err
	}
	return b.w.Flush()
}

// Restore makes a new store in dir, which must not exist or be empty, from a
// backup. A stream that is not whole leaves no store.
func Restore(ctx context.Context, dir string, r io.Reader, opt Options) (BackupInfo, error) {
	if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
		return BackupInfo{}, fmt.Errorf("restore: %s is not empty", dir)
	}
	tmp := filepath.Clean(dir) + ".restore"
	if err := os.RemoveAll(tmp); err != nil {
		return BackupInfo{}, fmt.Errorf("restore: %w", err)
	}
	info, err := restoreInto(ctx, tmp, r, opt)
	if err == nil {
		if err = os.Remove(dir); os.IsNotExist(err) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err == nil {
		err = syncDir(filepath.Dir(filepath.Clean(dir)))
	}
	if err != nil {
		_ = os.RemoveAll(tmp)
		return BackupInfo{}, fmt.Errorf("restore: %w", err)
	}
	return info, nil
}

func restoreInto(ctx context.Context, dir string, r io.Reader, opt Options) (info BackupInfo, err error) {
	in := &backupReader{r: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
	if info, err = in.head(); err != nil {
		return info, err
	}
	opt.InMemory, opt.Salvage, opt.Faults = false, false, Faults{}
	db, err := Open(dir, opt)
	if err != nil {
		return info, err
	}
	info.Pairs, err = in.pairs(ctx, db)
	if err == nil {
		db.Promise(info.Inbox, info.Journal)
	}
	if err = errors.Join(err, db.Close()); err == nil && info.Format != formatVersion {
		err = writeFormat(dir, info.Format) // what an older store held is upgraded when it is opened
	}
	return info, err
}

type backupReader struct {
	r   *bufio.Reader
	sum hash.Hash
	buf []byte
}

// record returns the next record, valid until the next call; empty is the end.
func (b *backupReader) record() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(b.r, head[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBackup, err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > backupRecord {
		return nil, fmt.Errorf("%w: record of %d bytes", ErrBackup, n)
	}
	if cap(b.buf) < int(n) {
		b.buf = make([]byte, n)
	}
	out := b.buf[:n]
	if _, err := io.ReadFull(b.r, out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBackup, err)
	}
	b.sum.Write(head[:])
	b.sum.Write(out)
	return out, nil
}

func (b *backupReader) head() (info BackupInfo, err error) {
	rec, err := b.record()
	if err != nil {
		return info, err
	}
	text, ok := bytes.CutPrefix(rec, []byte(backupMagic))
	if !ok {
		return info, fmt.Errorf("%w: no head", ErrBackup)
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return info, fmt.Errorf("%w: %w", ErrBackup, err)
	}
	if info.Format < 1 {
		return info, fmt.Errorf("%w: format %d", ErrBackup, info.Format)
	}
	if info.Format > formatVersion {
		return info, fmt.Errorf("%w: the backup has format %d, this program knows up to %d", ErrFormat, info.Format, formatVersion)
	}
	return info, nil
}

// pairs writes all pairs in transactions of a fitting size and checks the sum.
func (b *backupReader) pairs(ctx context.Context, db *DB) (n uint64, err error) {
	for end := false; !end; {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		err := db.Update(func(txn Txn) error {
			for size, count := 0, 0; size < MaxTransaction/4 && count < MaxWrites; count++ {
				rec, err := b.record()
				if err != nil {
					return err
				}
				if end = len(rec) == 0; end {
					return nil
				}
				key, value, err := splitPair(rec)
				if err != nil {
					return err
				}
				if err := txn.Put(key, value); err != nil {
					return err
				}
				size += len(rec) + writeCost
				n++
			}
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	want := b.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(b.r, got); err != nil || !bytes.Equal(got, want) {
		return n, fmt.Errorf("%w: checksum", ErrBackup)
	}
	return n, nil
}

// splitPair returns copies: the transaction keeps them.
func splitPair(rec []byte) (key, value []byte, err error) {
	if len(rec) < 2 {
		return nil, nil, fmt.Errorf("%w: short pair", ErrBackup)
	}
	n := int(binary.BigEndian.Uint16(rec))
	if len(rec) < 2+n {
		return nil, nil, fmt.Errorf("%w: short pair", ErrBackup)
	}
	rec = bytes.Clone(rec[2:])
	return rec[:n:n], rec[n:], nil
}

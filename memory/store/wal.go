package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Layout of badger's write-ahead files: a header of 20 bytes, then entries
//
//	meta 1, user meta 1, key length, value length, expiry (varints), key with
//	eight bytes of version, value, CRC32C of all before (four bytes)
//
// A transaction is a run of entries with bitTxn and the same version, closed by
// one with bitFinTxn whose value is that version in decimal. Files are created
// with their full size and are never appended to after a restart, so that
// everything behind the last whole transaction is zero unless a write was torn.
const (
	walHeader  = 20
	walBitTxn  = 1 << 6
	walBitFin  = 1 << 7
	walMaxHead = 22
	walMaxKey  = 1 << 16
)

// walFile is what a scan found in one write-ahead file.
type walFile struct {
	name string
	size int64
	// valid is the offset behind the last whole transaction.
	valid int64
	// tail is the offset behind the last byte that is not zero.
	tail int64
	// first and last are the stamps of the first and last commit, zero without.
	first, last uint64
	// gap is set when the stamps inside the file are not dense.
	gapFrom, gapTo uint64
	// entries counts the entries of whole transactions.
	entries int
}

// torn reports whether something follows the last whole transaction.
func (w *walFile) torn() bool { return w.tail > w.valid }

// scanWAL reads a write-ahead file without changing it. Only an error of reading
// is an error; damage shows as torn.
func scanWAL(path string) (*walFile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	w := &walFile{name: filepath.Base(path), size: info.Size()}
	s := walScanner{
		r:    bufio.NewReaderSize(file, 256<<10),
		size: info.Size(),
		out:  w,
	}
	if err := s.run(); err != nil {
		return nil, fmt.Errorf("scan %s: %w", w.name, err)
	}
	if w.tail, err = lastByte(file, info.Size()); err != nil {
		return nil, fmt.Errorf("scan %s: %w", w.name, err)
	}
	return w, nil
}

// walScanner walks the entries up to the first that is not whole.
type walScanner struct {
	r    *bufio.Reader
	off  int64
	size int64
	buf  []byte
	out  *walFile
	// version is that of the open transaction, zero outside of one; pending are
	// its entries and stamp.
	version uint64
	pending int
	stamp   uint64
}

// errWALEnd ends a scan at the first entry that is not whole.
var errWALEnd = errors.New("end of write-ahead file")

func (s *walScanner) run() error {
	n, err := s.r.Discard(walHeader)
	s.off, s.out.valid = int64(n), int64(n)
	if err != nil {
		return ignoreEnd(err)
	}
	for {
		if err := s.step(); err != nil {
			return ignoreEnd(err)
		}
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, errWALEnd) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// step takes one entry into account.
func (s *walScanner) step() error {
	meta, key, value, err := s.entry()
	if err != nil {
		return err
	}
	switch {
	case meta&walBitTxn != 0:
		if len(key) < 8 {
			return errWALEnd
		}
		version := binary.BigEndian.Uint64(key[len(key)-8:])
		if s.pending == 0 {
			s.version = version
		} else if s.version != version {
			return errWALEnd
		}
		s.pending++
		if len(value) == 8 && bytes.Equal(key[:len(key)-8], stampKey) {
			s.stamp = binary.BigEndian.Uint64(value)
		}
	case meta&walBitFin != 0:
		// Badger keeps versions upside down so that newer ones sort first.
		v, err := strconv.ParseUint(string(value), 10, 64)
		if err != nil || s.pending == 0 || ^v != s.version {
			return errWALEnd
		}
		s.commit(s.pending)
	default:
		if s.pending != 0 {
			return errWALEnd
		}
		s.commit(1)
	}
	return nil
}

// commit accounts for a whole transaction.
func (s *walScanner) commit(entries int) {
	w := s.out
	w.valid = s.off
	w.entries += entries
	if s.stamp != 0 {
		switch {
		case w.first == 0:
			w.first = s.stamp
		case s.stamp != w.last+1 && w.gapTo == 0:
			w.gapFrom, w.gapTo = w.last+1, s.stamp-1
		}
		w.last = s.stamp
	}
	s.pending, s.stamp, s.version = 0, 0, 0
}

// entry reads one entry whose checksum holds. Key and value are valid until the
// next call.
func (s *walScanner) entry() (meta byte, key, value []byte, err error) {
	head, err := s.r.Peek(walMaxHead)
	if err != nil && len(head) < 5 {
		return 0, nil, nil, err
	}
	at := 2
	var sizes [3]uint64
	for i := range sizes {
		v, n := binary.Uvarint(head[at:])
		if n <= 0 {
			return 0, nil, nil, errWALEnd
		}
		sizes[i], at = v, at+n
	}
	klen, vlen := sizes[0], sizes[1]
	left := uint64(s.size - s.off)
	if klen == 0 || klen > walMaxKey || vlen > left || uint64(at)+klen+vlen+crc32.Size > left {
		return 0, nil, nil, errWALEnd
	}
	total := at + int(klen) + int(vlen) + crc32.Size
	if cap(s.buf) < total {
		s.buf = make([]byte, total)
	}
	b := s.buf[:total]
	if _, err := io.ReadFull(s.r, b); err != nil {
		return 0, nil, nil, err
	}
	body := b[:total-crc32.Size]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(b[total-crc32.Size:]) {
		return 0, nil, nil, errWALEnd
	}
	s.off += int64(total)
	return b[0], b[at : at+int(klen)], body[at+int(klen):], nil
}

// lastByte returns the offset behind the last byte of file that is not zero,
// looking from the end.
func lastByte(file *os.File, size int64) (int64, error) {
	buf := make([]byte, 256<<10)
	for end := size; end > 0; {
		n := min(end, int64(len(buf)))
		if _, err := file.ReadAt(buf[:n], end-n); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := lastNonZero(buf[:n]); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return 0, nil
}

var zeros [4096]byte

func lastNonZero(b []byte) int {
	for len(b) >= len(zeros) && bytes.Equal(b[len(b)-len(zeros):], zeros[:]) {
		b = b[:len(b)-len(zeros)]
	}
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0 {
			return i
		}
	}
	return -1
}

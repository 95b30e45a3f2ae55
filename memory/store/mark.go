package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
)

// Mark is what was promised to be on disk.
type Mark struct {
	// Commit is the number of the last commit that a sync covered.
	Commit uint64
	// Inbox is the highest inbox sequence that a sync covered.
	Inbox uint64
	// Journal is the highest number of journal entries written that a sync
	// covered, over all tasks.
	Journal uint64
}

// The mark file has two slots, each in a sector group of its own, written in
// turn: a torn write leaves the other slot. The slot with the higher generation
// and a right checksum counts.
const (
	markMagic = "HAmark01"
	slotSize  = 4096
	markBytes = 8 + 4*8 + 4
)

var errMark = errors.New("mark file has no valid slot")

// markFile is not safe for concurrent use; DB.Sync serialises it.
type markFile struct {
	file       *os.File
	generation uint64
}

func encodeMark(generation uint64, m Mark) []byte {
	b := append(make([]byte, 0, markBytes), markMagic...)
	for _, n := range []uint64{generation, m.Commit, m.Inbox, m.Journal} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeMark(b []byte) (generation uint64, m Mark, ok bool) {
	if len(b) < markBytes || string(b[:8]) != markMagic {
		return 0, Mark{}, false
	}
	body := b[:markBytes-4]
	if binary.BigEndian.Uint32(b[markBytes-4:]) != crc32.Checksum(body, castagnoli) {
		return 0, Mark{}, false
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(body[8+8*i:]) }
	return n(0), Mark{Commit: n(1), Inbox: n(2), Journal: n(3)}, true
}

// parseMark returns the newest valid slot of the content of a mark file.
func parseMark(data []byte) (generation uint64, m Mark, err error) {
	err = errMark
	for off := 0; off < 2*slotSize && off < len(data); off += slotSize {
		if g, s, ok := decodeMark(data[off:]); ok && (err != nil || g > generation) {
			generation, m, err = g, s, nil
		}
	}
	return generation, m, err
}

// createMark makes a mark file that promises nothing, durably.
func createMark(path string) error {
	data := make([]byte, 2*slotSize)
	copy(data[slotSize:], encodeMark(1, Mark{}))
	return writeDurable(path, data)
}

func openMark(path string) (*markFile, Mark, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, Mark{}, err
	}
	data, err := os.ReadFile(path)
	if err == nil {
		var f markFile
		var m Mark
		if f.generation, m, err = parseMark(data); err == nil {
			f.file = file
			return &f, m, nil
		}
	}
	_ = file.Close()
	return nil, Mark{}, fmt.Errorf("read mark: %w", err)
}

// write puts m into the older slot. With flush it is on disk when write returns.
func (f *markFile) write(m Mark, flush bool) error {
	f.generation++
	off := int64(f.generation%2) * slotSize
	if _, err := f.file.WriteAt(encodeMark(f.generation, m), off); err != nil {
		return fmt.Errorf("write mark: %w", err)
	}
	if flush {
		return f.flush()
	}
	return nil
}

func (f *markFile) flush() error {
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("flush mark: %w", err)
	}
	return nil
}

func (f *markFile) close() error { return f.file.Close() }

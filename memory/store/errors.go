package store

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels of this package. Code gives the machine code of each.
var (
	// ErrNotFound is returned by Get for a key that has no value.
	ErrNotFound = errors.New("store: no such key")
	// ErrClosed is returned after Close has begun.
	ErrClosed = errors.New("store: closed")
	// ErrTooBig refuses a transaction over MaxTransaction or a value over
	// MaxValue; nothing of it was written. Permanent for this transaction.
	ErrTooBig = errors.New("store: transaction too big")
	// ErrDiskLow refuses a write because the disk has less free space than the
	// reserve. Nothing was written; it may be tried again when there is room.
	ErrDiskLow = errors.New("store: disk space below the reserve")
	// ErrBroken refuses writes after the disk failed a commit or a sync: what is
	// on disk is not known until the store is opened again.
	ErrBroken = errors.New("store: broken by a failed write")
	// ErrStuck is returned by Close when the disk does not take what is left.
	ErrStuck = errors.New("store: not closed")
	// ErrSpace refuses a key outside the declared key spaces.
	ErrSpace = errors.New("store: unknown key space")
	// ErrReadOnly refuses a write in a View.
	ErrReadOnly = errors.New("store: read-only transaction")
	// ErrEmptyKey refuses a key that has nothing after the byte of its space.
	ErrEmptyKey = errors.New("store: empty key")
	// ErrScanOpen refuses a second scan inside one write transaction.
	ErrScanOpen = errors.New("store: another scan of this write transaction is open")
	// ErrFormat refuses a store whose format is newer than this program.
	ErrFormat = errors.New("store: format newer than this program")
	// ErrRecord is returned for a stored record that does not decode: bad
	// checksum, unknown version, short.
	ErrRecord = errors.New("store: damaged record")
	// ErrDamaged is what every *DamageError unwraps to.
	ErrDamaged = errors.New("store: damaged")
)

// Code returns the machine code of an error of this package, "internal" for
// others and "" for nil.
func Code(err error) string {
	codes := []struct {
		err  error
		code string
	}{
		{ErrDiskLow, "disk_low"},
		{ErrTooBig, "too_big"},
		{ErrClosed, "store_closed"},
		{ErrBroken, "store_broken"},
		{ErrStuck, "store_stuck"},
		{ErrDamaged, "store_damaged"},
		{ErrFormat, "store_format"},
		{ErrRecord, "store_damaged"},
		{ErrNotFound, "not_found"},
		{ErrSpace, "unknown_space"},
		{ErrReadOnly, "read_only"},
		{ErrEmptyKey, "empty_key"},
		{ErrScanOpen, "scan_open"},
	}
	if err == nil {
		return ""
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return "internal"
}

// Damage is one thing that is missing or wrong.
type Damage struct {
	// File is the name of the file below the store's folder; empty when the
	// damage shows in the data only.
	File string
	// What says what is wrong, for a person.
	What string
	// From and To are the first and last commit, inbox or journal number that is
	// missing; zero when numbers do not apply.
	From, To uint64
}

// String returns the damage in one line.
func (d Damage) String() string {
	var b strings.Builder
	if d.File != "" {
		fmt.Fprintf(&b, "%s: ", d.File)
	}
	b.WriteString(d.What)
	switch {
	case d.From == 0 && d.To == 0:
	case d.From == d.To:
		fmt.Fprintf(&b, " (%d)", d.From)
	default:
		fmt.Fprintf(&b, " (%d to %d)", d.From, d.To)
	}
	return b.String()
}

// DamageError says what of the promised data is missing. Nothing was changed in
// the store's folder.
type DamageError struct {
	// Items holds each damage found, at least one.
	Items []Damage
	// Copy is the folder with the copy of the write-ahead files; empty when none
	// was made because the stop was clean.
	Copy string
	// Mark is what had been promised.
	Mark Mark
}

// Error names everything that is missing and where the copy lies.
func (e *DamageError) Error() string {
	items := make([]string, len(e.Items))
	for i, d := range e.Items {
		items[i] = d.String()
	}
	msg := "store damaged: " + strings.Join(items, "; ")
	if e.Copy != "" {
		msg += "; write-ahead files kept in " + e.Copy
	}
	return msg
}

// Unwrap makes errors.Is(err, ErrDamaged) true.
func (e *DamageError) Unwrap() error { return ErrDamaged }

// Hint says what a person can do about it.
func (e *DamageError) Hint() string {
	return "put the missing files back or restore a backup; to go on without what is missing, start with salvage"
}

package store

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// Limits of one transaction. They follow from the size of the memory tables,
// which is small so that an idle node stays small.
const (
	// MaxValue is the largest value in bytes. Larger payloads are chunked by
	// memory/block.
	MaxValue = 512 << 10
	// MaxTransaction is the largest sum of keys and values of one transaction,
	// in bytes, with 32 bytes counted for each write.
	MaxTransaction = 1 << 20
	// MaxWrites is the most writes of one transaction.
	MaxWrites = 8 << 10

	maxKey       = 1 << 10
	writeCost    = 32
	memTableSize = 8 << 20
	// levelZeroTables is how many tables gather before badger merges them.
	levelZeroTables = 5
)

// DefaultReserve is the free disk space, in bytes, below which writes are
// refused. It covers what badger may still write by itself: write-ahead files,
// the flush of the memory tables and a compaction.
const DefaultReserve = 256 << 20

// openFloor is the free space without which the store is not even opened: badger
// writes into mapped files while it opens, and a full disk kills the process.
const openFloor = 32 << 20

// Options of Open. The zero value is a store on disk with the defaults.
type Options struct {
	// Logger gets what was cut, what is damaged and badger's own messages; nil
	// means none.
	Logger *slog.Logger
	// Reserve is the free disk space in bytes below which writes are refused;
	// zero means DefaultReserve, negative means no reserve.
	Reserve int64
	// Free tells the free bytes of the disk that holds dir; nil asks the system.
	Free func(dir string) (int64, error)
	// InMemory keeps everything in memory; dir is not used, and nothing
	// survives Close. The guards and the reserve are off, unless Free is set.
	InMemory bool
	// Salvage opens a damaged store without what is missing. What was lost is
	// in Report, and the mark is set back to what is there.
	Salvage bool
	// VerifyBytes is how many bytes of tables are verified at Open, newest first;
	// zero means 512 MiB. VerifyTables checks all of them at any time.
	VerifyBytes int64
	// MarkEvery is the longest time a written mark may stay unflushed while
	// there are syncs; zero means one second, negative flushes at each sync.
	MarkEvery time.Duration
	// Broken is called once, with the cause, when nothing can be stored any more. It
	// must not block or use the store; any goroutine.
	Broken func(err error)
	// Faults lets a simulation fail operations; the zero value never fails.
	Faults Faults
	// Image is what a store in memory begins with; nil is an empty one.
	Image *Image
}

// Image is the content of a store in memory, for a simulated disk (see storetest).
type Image struct {
	// Pairs holds values by full key.
	Pairs map[string][]byte
	// Mark is what had been promised.
	Mark Mark
}

// Faults holds hooks that run before the real operation. An error makes the
// operation fail with it, having done nothing.
type Faults struct {
	// Commit runs before a commit is written, with its number.
	Commit func(commit uint64) error
	// Sync runs before a sync, with the number of the last commit it would cover. An
	// error that wraps ErrBroken breaks the store, as a real one does.
	Sync func(commit uint64) error
	// Written runs after a commit of a store in memory, with what it wrote, the stamp
	// left out; the slices must not be changed. Keys have no space byte.
	Written func(commit uint64, list []Write)
	// Synced runs after a sync, with what it covered.
	Synced func(m Mark)
}

func (o *Options) fill() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Reserve == 0:
		o.Reserve = DefaultReserve
	case o.Reserve < 0:
		o.Reserve = 0
	}
	if o.Free == nil {
		o.Free = freeSpace
		if o.InMemory {
			o.Free = func(string) (int64, error) { return math.MaxInt64, nil }
		}
	}
	if o.VerifyBytes == 0 {
		o.VerifyBytes = 512 << 20
	}
	if o.MarkEvery == 0 {
		o.MarkEvery = time.Second
	}
}

// badgerOptions holds the tuning. No compression and no caches: blocks are read
// from the mapped tables, so that the page cache of the system is the cache and
// an idle node holds next to nothing. No conflict detection: each space has one
// writer. Checksums of blocks are not checked on reads, because badger would
// turn a mismatch into "not found"; records carry their own.
func (db *DB) badgerOptions() badger.Options {
	o := &db.opt
	b := badger.DefaultOptions(db.files)
	if o.InMemory {
		b = badger.DefaultOptions("").WithInMemory(true)
	}
	return b.
		WithLogger(badgerLog{o.Logger, db.hear}).
		WithSyncWrites(false).
		WithDetectConflicts(false).
		WithNumVersionsToKeep(1).
		WithNumCompactors(2).
		WithMemTableSize(memTableSize).
		WithNumMemtables(2).
		WithNumLevelZeroTables(levelZeroTables).
		WithBaseTableSize(2 << 20).
		WithBaseLevelSize(8 << 20).
		WithValueLogFileSize(1 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithMetricsEnabled(false).
		WithChecksumVerificationMode(options.NoVerification)
}

// badgerLog hands badger's messages to slog. What badger calls info is detail
// of its own.
type badgerLog struct {
	log  *slog.Logger
	hear func(format string, args []any)
}

func (l badgerLog) Errorf(format string, args ...any) {
	l.hear(format, args)
	l.log.Error("badger", "text", logText(format, args))
}

func (l badgerLog) Warningf(format string, args ...any) {
	l.hear(format, args)
	l.log.Warn("badger", "text", logText(format, args))
}

func (l badgerLog) Infof(format string, args ...any) {
	l.log.Debug("badger", "text", logText(format, args))
}

func (l badgerLog) Debugf(string, ...any) {}

func logText(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}

package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

// Indexer writes what it keeps about new events in the transaction that appends
// them. An error refuses the whole transaction. The records must not be changed
// or kept.
type Indexer interface {
	IndexEvents(txn store.Txn, events []*messages.EventRecord) error
}

// Options of Open.
type Options struct {
	// Indexer joins each transaction that appends events; nil means none.
	Indexer Indexer
	// Late gets the same events a little later, in a transaction of its own: before the next input is accepted, the next
	// task ends or the next events are stored. It must bear the same event twice. nil means none.
	Late Indexer
	// Logger gets what a salvage gave up; nil means none.
	Logger *slog.Logger
}

// Ledger is the engine; see the package about who may call what.
type Ledger struct {
	db    *store.DB
	index Indexer
	late  Indexer
	log   *slog.Logger
	// due are stored events that late has not got yet, as they were stored together. They belong to Execute.
	due [][]*messages.EventRecord

	// count is the state of the counters as committed; mu guards it for readers,
	// Execute alone writes.
	mu    sync.Mutex
	count counters
	keep  keeper
}

// Open reads the counters and verifies what was promised. Damage is a
// *store.DamageError; with a store that is being salvaged it is logged, repaired
// and passed over.
func Open(db *store.DB, opt Options) (*Ledger, error) {
	l := &Ledger{db: db, index: opt.Indexer, late: opt.Late, log: opt.Logger}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	err := db.View(func(txn store.Txn) (err error) {
		l.count, err = readCounters(txn)
		return err
	})
	if err != nil && !db.Salvaging() {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	if err := l.guard(); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	if err := l.upgrade(); err != nil {
		return nil, fmt.Errorf("open ledger: upgrade from format %d: %w", db.Format(), err)
	}
	l.keep.walked = l.count.floor
	db.Promise(l.count.inbox, l.count.journal)
	if err := l.catchUp(); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l.settle()
	return l, nil
}

// Execute runs requests in order, each as one transaction, then syncs once if
// any of them wants it, and returns one answer for each. A request wants a sync
// when it says so or accepts an input. An answer that was to be synced carries an
// error if the sync failed: then it is not known whether its request will be
// found after a restart.
//
// Once the disk has no room for a request, all later ones of the call are refused
// for want of room as well, so that none overtakes it; those that accept an input
// are tried.
//
// now stamps accepted inputs and stored blocks.
func (l *Ledger) Execute(now time.Time, requests []*messages.LedgerExecute) []*messages.LedgerDone {
	out := make([]*messages.LedgerDone, len(requests))
	wants := make([]bool, len(requests))
	sync := false
	var low error
	for i, r := range requests {
		if low != nil && !accepts(r) {
			out[i] = &messages.LedgerDone{Error: Fault(low)}
			continue
		}
		if len(l.due) > 0 && settles(r) {
			l.settle()
		}
		results, err := l.run(now, r.GetOps())
		if err != nil {
			if errors.Is(err, store.ErrDiskLow) {
				low = err
			}
			l.logRefused(err)
			out[i] = &messages.LedgerDone{Error: Fault(err)}
			continue
		}
		out[i] = &messages.LedgerDone{Results: results}
		wants[i] = wantsSync(r)
		sync = sync || wants[i]
	}
	if !sync {
		return out
	}
	if err := l.db.Sync(); err != nil {
		l.log.Error("ledger sync failed", "error", err)
		for i, w := range wants {
			if w {
				out[i] = &messages.LedgerDone{Error: Fault(err)}
			}
		}
	}
	return out
}

// logRefused logs what is hidden from the answer.
func (l *Ledger) logRefused(err error) {
	if code := Fault(err).GetCode(); code == "internal" || code == "store_broken" || code == "store_damaged" {
		l.log.Error("ledger transaction failed", "code", code, "error", err)
	}
}

func wantsSync(r *messages.LedgerExecute) bool { return r.GetSync() || accepts(r) }

// accepts tells whether a request takes an input in.
func accepts(r *messages.LedgerExecute) bool {
	for _, op := range r.GetOps() {
		if op.GetAccept() != nil {
			return true
		}
	}
	return false
}

// run executes one request as one transaction.
func (l *Ledger) run(now time.Time, ops []*messages.LedgerOp) ([]*messages.LedgerResult, error) {
	results := make([]*messages.LedgerResult, len(ops))
	b := batch{now: now, count: l.count, index: l.index, late: l.late != nil, full: l.refusal()}
	err := l.db.Update(func(txn store.Txn) error {
		b.txn = txn
		for i, op := range ops {
			r, err := b.apply(op)
			if err != nil {
				return fmt.Errorf("operation %d: %w", i+1, err)
			}
			results[i] = r
		}
		if b.count == l.count {
			return nil
		}
		return txn.Put(countersKey, b.count.encode())
	})
	if err != nil {
		return nil, err
	}
	l.due = append(l.due, b.due...)
	if b.count != l.count {
		l.mu.Lock()
		l.count = b.count
		l.mu.Unlock()
		l.db.Promise(b.count.inbox, b.count.journal)
	}
	return results, nil
}

// Figures returns the counters and the figures of the store.
func (l *Ledger) Figures() *messages.LedgerFigures {
	l.mu.Lock()
	c := l.count
	l.mu.Unlock()
	s := l.db.Stats()
	broken := ""
	if err := l.db.Check(); err != nil {
		broken = err.Error()
	}
	return &messages.LedgerFigures{
		Open: c.open(), Accepted: c.accepted, Ended: c.ended,
		Bytes: s.Bytes, FreeBytes: s.Free, DiskLow: s.DiskLow, Syncs: s.Syncs,
		Broken: broken, Upkeep: l.upkeepFigures(),
	}
}

// LastSequence returns the last inbox sequence given, zero before the first.
func (l *Ledger) LastSequence() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count.inbox
}

// LastEvent returns the last event number given, zero before the first.
func (l *Ledger) LastEvent() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count.events
}

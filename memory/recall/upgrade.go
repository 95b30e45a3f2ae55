package recall

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"homeagent/memory/contextmem"
	"homeagent/memory/ledger"
	"homeagent/memory/lexical"
	"homeagent/memory/store"
	"homeagent/messages"
)

// Upgrade indexes the events of a store anew when its index is of an older format, and reports how many; only the writer of
// the store may call it, before it writes. Events that do not decode are left out and counted apart: the ledger tells of
// them. It may be cut short and called again.
func Upgrade(db *store.DB, index *lexical.Index) (done, broken int, err error) {
	current := true
	if err := db.View(func(txn store.Txn) error {
		current, err = lexical.Current(txn)
		return err
	}); err != nil || current {
		return 0, 0, err
	}
	return Reindex(db, index)
}

// place is where an event stands.
type place struct {
	number    uint64
	agent, id string
}

// Reindex makes the index anew from all events; see Upgrade.
func Reindex(db *store.DB, index *lexical.Index) (done, broken int, err error) {
	places, broken, err := events(db)
	if err != nil {
		return 0, broken, fmt.Errorf("list events: %w", err)
	}
	err = index.Rebuild(db, func(yield func(*messages.EventRecord, error) bool) {
		for _, p := range places {
			var r *messages.EventRecord
			err := db.View(func(txn store.Txn) (err error) {
				r, err = contextmem.Get(txn, p.agent, p.id)
				return err
			})
			if !yield(r, err) {
				return
			}
			done++
		}
	})
	return done, broken, err
}

// events lists all events by number.
func events(db *store.DB) (out []place, broken int, err error) {
	err = db.View(func(txn store.Txn) error {
		// Agents are not empty: the keys of other records begin with a zero byte.
		for item, err := range txn.Scan(store.Range{Space: store.Event, From: []byte{1}}) {
			if err != nil {
				return err
			}
			value, err := item.Value()
			if err != nil {
				return err
			}
			r, err := ledger.DecodeEvent(item.FullKey(), value)
			if err != nil {
				broken++
				continue
			}
			agent, id, _ := bytes.Cut(item.Key(), []byte{0})
			out = append(out, place{r.GetNumber(), string(agent), string(id)})
		}
		return nil
	})
	slices.SortFunc(out, func(a, b place) int { return cmp.Compare(a.number, b.number) })
	return out, broken, err
}

package lexical

import (
	"bytes"
	"fmt"

	"homeagent/memory/store"
	"homeagent/messages"
)

// format of the index; a store with an older one is indexed anew. 2 has speakers, lengths and traits.
const format = 2

var formatKey = []byte{byte(store.Lexical), subFormat}

// Format returns the format in which a store is indexed; zero for one that is empty or from before formats had numbers.
func Format(txn store.Txn) (uint64, error) { return getUvarint(txn, formatKey) }

// Current reports whether an index needs no rebuilding: it has the format of this program, or nothing in it.
func Current(txn store.Txn) (bool, error) {
	f, err := Format(txn)
	if err != nil || f >= format {
		return err == nil, err
	}
	for _, err := range txn.Scan(store.Range{Space: store.Lexical, Limit: 1}) {
		return false, err
	}
	return true, nil
}

// clearStep is how many keys one transaction of a rebuild deletes.
const clearStep = 2048

// Rebuild makes the index anew from events, which yields all of them in the order of their numbers and stops when it is told
// false. What the second field held is made anew only while the dictionary is loaded. Only the writer of the store may call
// it; readers find less while it runs. When it is cut short, Current tells, and it is to be begun anew.
func (x *Index) Rebuild(db *store.DB, events func(yield func(*messages.EventRecord, error) bool)) error {
	for more := true; more; {
		err := db.Update(func(txn store.Txn) error {
			var err error
			more, err = clearSome(txn)
			return err
		})
		if err != nil {
			return fmt.Errorf("rebuild index: clear: %w", err)
		}
	}
	x.shelf.clear()
	var failed error
	events(func(r *messages.EventRecord, err error) bool {
		if err == nil {
			err = db.Update(func(txn store.Txn) error {
				// What is being rebuilt has the first format until all of it is there.
				if err := putUvarint(txn, formatKey, 1); err != nil {
					return err
				}
				return x.IndexEvents(txn, []*messages.EventRecord{r})
			})
		}
		failed = err
		return err == nil
	})
	if failed != nil {
		return fmt.Errorf("rebuild index: %w", failed)
	}
	return db.Update(func(txn store.Txn) error { return putUvarint(txn, formatKey, format) })
}

func clearSome(txn store.Txn) (more bool, err error) {
	var keys [][]byte
	for item, err := range txn.Scan(store.Range{Space: store.Lexical, Limit: clearStep}) {
		if err != nil {
			return false, err
		}
		keys = append(keys, bytes.Clone(item.FullKey()))
	}
	for _, k := range keys {
		if err := txn.Delete(k); err != nil {
			return false, err
		}
	}
	return len(keys) == clearStep, nil
}

// settleFormat marks an index that begins as one of this format.
func settleFormat(txn store.Txn) error {
	if known, err := txn.Has(formatKey); err != nil || known {
		return err
	}
	fresh, err := Current(txn)
	if err != nil || !fresh {
		return err
	}
	return putUvarint(txn, formatKey, format)
}

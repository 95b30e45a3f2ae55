package ledger

import (
	"bytes"

	"homeagent/memory/store"
	"homeagent/messages"
)

// upgradeStep is how many records one transaction of an upgrade rewrites.
const upgradeStep = 512

// upgrade brings the records of an older format into the form of this program. Each
// step may be done twice: a crash begins the upgrade anew.
func (l *Ledger) upgrade() error {
	from := l.db.Format()
	if from >= 2 {
		return nil
	}
	if err := l.listSent(); err != nil {
		return err
	}
	// The counters take their new form with the next change; now, so that none of the
	// old form is left.
	err := l.db.Update(func(txn store.Txn) error { return txn.Put(countersKey, l.count.encode()) })
	if err != nil {
		return err
	}
	if err := l.db.Sync(); err != nil {
		return err
	}
	if err := l.db.Upgraded(); err != nil {
		return err
	}
	l.log.Info("store upgraded", "from_format", from, "to_format", l.db.Format())
	return nil
}

// listSent makes the list of sent outputs by time, which the first format did not
// have.
func (l *Ledger) listSent() error {
	// Ids begin with a byte that is not zero.
	for from := []byte{1}; from != nil; {
		keys, next, err := l.sentFrom(from)
		if err != nil {
			return err
		}
		err = l.db.Update(func(txn store.Txn) error {
			for _, k := range keys {
				if err := txn.Put(k, nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		from = next
	}
	return nil
}

// sentFrom returns the list keys of the sent outputs among the next upgradeStep, and
// where to go on; nil is the end.
func (l *Ledger) sentFrom(from []byte) (keys [][]byte, next []byte, err error) {
	err = l.db.View(func(txn store.Txn) error {
		n := 0
		for item, err := range txn.Scan(store.Range{Space: store.Output, From: from}) {
			if err != nil {
				return err
			}
			if n == upgradeStep {
				next = bytes.Clone(item.Key())
				return nil
			}
			n++
			record, err := item.Value()
			if err != nil {
				return err
			}
			o := &messages.OutputRecord{}
			if err := store.DecodeRecord(version, item.FullKey(), record, o); err != nil {
				if l.db.Salvaging() {
					l.log.Error("ledger salvaged without", "damage", err.Error())
					continue
				}
				return err
			}
			if o.GetReceipt() != nil {
				keys = append(keys, sentKey(o.GetReceipt().GetAtUs(), string(item.Key())))
			}
		}
		return nil
	})
	return keys, next, err
}

package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"homeagent/memory/store"
	"homeagent/messages"
)

// guard verifies the promise of the store's mark: counters, the dense inbox and
// the journals of open tasks. After an orderly stop the inbox records of ended
// tasks are not read; their checksum is checked when they are.
func (l *Ledger) guard() error {
	mark := l.db.Promised()
	var damage []store.Damage
	err := l.db.View(func(txn store.Txn) error {
		damage = l.checkCounters(mark)
		lost, err := l.checkInbox(txn)
		if err != nil {
			return err
		}
		damage = append(damage, lost...)
		lost, err = l.checkOpen(txn)
		damage = append(damage, lost...)
		return err
	})
	if err != nil || len(damage) == 0 {
		return err
	}
	if !l.db.Salvaging() {
		return &store.DamageError{Items: damage, Mark: mark}
	}
	for _, d := range damage {
		l.log.Error("ledger salvaged without", "damage", d.String())
	}
	return l.repair()
}

func (l *Ledger) checkCounters(mark store.Mark) []store.Damage {
	var out []store.Damage
	if l.count.inbox < mark.Inbox {
		out = append(out, store.Damage{What: "promised inputs are missing", From: l.count.inbox + 1, To: mark.Inbox})
	}
	if l.count.journal < mark.Journal {
		out = append(out, store.Damage{What: "promised journal entries are missing", From: l.count.journal + 1, To: mark.Journal})
	}
	return out
}

// checkInbox wants every sequence from the floor to the counter.
func (l *Ledger) checkInbox(txn store.Txn) ([]store.Damage, error) {
	var out []store.Damage
	next := l.count.floor + 1
	gap := func(to uint64) {
		if next <= to {
			out = append(out, store.Damage{What: "inputs are missing in the inbox", From: next, To: to})
		}
	}
	for item, err := range txn.Scan(store.Range{Space: store.Inbox}) {
		if err != nil {
			return nil, err
		}
		if len(item.Key()) != 8 {
			return nil, fmt.Errorf("%w: inbox key %x", store.ErrRecord, item.Key())
		}
		n := binary.BigEndian.Uint64(item.Key())
		gap(n - 1)
		next = max(next, n+1)
		if l.db.Report().Clean {
			continue
		}
		record, err := item.Value()
		if err != nil {
			return nil, err
		}
		if _, _, err := store.Unseal(item.FullKey(), record); err != nil {
			out = append(out, store.Damage{What: "input is damaged in the inbox", From: n, To: n})
		}
	}
	gap(l.count.inbox)
	if next > l.count.inbox+1 {
		out = append(out, store.Damage{What: "inbox goes beyond its counter", From: l.count.inbox + 1, To: next - 1})
	}
	return out, nil
}

// checkOpen reads every open task with its input and journal.
func (l *Ledger) checkOpen(txn store.Txn) ([]store.Damage, error) {
	open, err := openTasks(txn)
	if err != nil {
		if errors.Is(err, store.ErrRecord) {
			return []store.Damage{{What: err.Error()}}, nil
		}
		return nil, err
	}
	var out []store.Damage
	if int64(len(open)) != l.count.open() {
		out = append(out, store.Damage{What: fmt.Sprintf("%d open tasks in the list, %d by the counters", len(open), l.count.open())})
	}
	for _, o := range open {
		if _, err := pending(txn, o.id, ""); err != nil {
			if !isDamage(err) {
				return nil, err
			}
			out = append(out, store.Damage{What: fmt.Sprintf("task %s: %v", o.id, err), From: o.sequence, To: o.sequence})
		}
	}
	return out, nil
}

func isDamage(err error) bool {
	return errors.Is(err, store.ErrRecord) || errors.Is(err, store.ErrNotFound) || errors.Is(err, ErrUnknownTask)
}

// repair brings counters and lists into agreement with what is there: open tasks
// that cannot be read are given up, and a journal with a hole ends before it. What is
// given up is kept aside as it was found.
func (l *Ledger) repair() error {
	return l.db.Update(func(txn store.Txn) error {
		keys, err := openKeys(txn)
		if err != nil {
			return err
		}
		open := uint64(0)
		var lost []store.Write
		for _, key := range keys {
			kept, gone, err := l.repairTask(txn, key)
			if err != nil {
				return err
			}
			lost = append(lost, gone...)
			if kept {
				open++
			}
		}
		dir, err := l.db.KeepAside(fmt.Sprintf("ledger-%d", l.db.Stats().Commits), lost)
		if err != nil {
			return err
		}
		if dir != "" {
			l.log.Warn("records that cannot be used are kept aside", "records", len(lost), "folder", dir)
		}
		for item, err := range txn.Scan(store.Range{Space: store.Inbox, Reverse: true, Limit: 1}) {
			if err != nil {
				return err
			}
			if len(item.Key()) == 8 {
				l.count.inbox = max(l.count.inbox, binary.BigEndian.Uint64(item.Key()))
			}
		}
		mark := l.db.Promised()
		// New numbers must not repeat those that were lost.
		l.count.inbox = max(l.count.inbox, mark.Inbox)
		l.count.journal = max(l.count.journal, mark.Journal)
		l.count.floor = l.count.inbox
		l.count.accepted = max(l.count.accepted, l.count.inbox)
		l.count.ended = l.count.accepted - open
		if l.count.events, err = lastEvent(txn, l.count.events); err != nil {
			return err
		}
		return txn.Put(countersKey, l.count.encode())
	})
}

func openKeys(txn store.Txn) ([][]byte, error) {
	var out [][]byte
	for item, err := range txn.Scan(store.Range{Space: store.Task, Prefix: listMark}) {
		if err != nil {
			return nil, err
		}
		out = append(out, bytes.Clone(item.FullKey()))
	}
	return out, nil
}

// raw copies records as they are.
func raw(txn store.Txn, keys ...[]byte) ([]store.Write, error) {
	var out []store.Write
	for _, key := range keys {
		value, err := txn.Get(key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, store.Write{Space: store.Space(key[0]), Key: key[1:], Value: value})
	}
	return out, nil
}

// repairTask keeps an open task if its input can be read, and returns what it gives
// up.
func (l *Ledger) repairTask(txn store.Txn, key []byte) (kept bool, lost []store.Write, err error) {
	record, err := txn.Get(key)
	if err != nil {
		return false, nil, err
	}
	_, name, err := store.Unseal(key, record)
	if err != nil {
		if lost, err = raw(txn, key); err != nil {
			return false, nil, err
		}
		return false, lost, txn.Delete(key)
	}
	id := string(name)
	entries, err := journalKeys(txn, id, 0)
	if err != nil {
		return false, nil, err
	}
	t, err := readTask(txn, id)
	if err == nil {
		_, err = inbox(txn, t.GetSequence())
	}
	switch {
	case err != nil && isDamage(err):
		sequence := binary.BigEndian.Uint64(key[2:])
		if lost, err = raw(txn, append(entries, key, taskKey(id), inboxKey(sequence))...); err != nil {
			return false, nil, err
		}
		return false, lost, txn.Delete(key)
	case err != nil:
		return false, nil, err
	}
	if _, err := journal(txn, id, t.GetJournal()); err != nil {
		if !isDamage(err) {
			return false, nil, err
		}
		if lost, err = raw(txn, append(entries, taskKey(id))...); err != nil {
			return false, nil, err
		}
		return true, lost, keepSound(txn, id, t, entries)
	}
	return true, nil, nil
}

// keepSound cuts a journal at its first entry that is missing or damaged: the turn
// goes on from what is sound before.
func keepSound(txn store.Txn, id string, t *messages.TaskRecord, entries [][]byte) error {
	last := t.GetJournal()
	t.Journal, t.Result, t.StartedAt = 0, 0, 0
	for n := uint64(1); n <= last; n++ {
		r := &messages.JournalRecord{}
		if err := txn.GetRecord(version, journalKey(id, n), r); err != nil {
			if !isDamage(err) {
				return err
			}
			break
		}
		t.Journal = n
		if isResult(r.GetEntry().GetKind()) {
			t.Result = n
		}
	}
	gone := slices.DeleteFunc(entries, func(key []byte) bool { return bytes.Compare(key, journalKey(id, t.GetJournal())) <= 0 })
	if t.GetJournal() == 0 {
		gone = entries
	}
	if err := dropJournal(txn, gone); err != nil {
		return err
	}
	return txn.PutRecord(version, taskKey(id), t)
}

// lastEvent returns the highest event number in use.
func lastEvent(txn store.Txn, known uint64) (uint64, error) {
	for item, err := range txn.Scan(store.Range{Space: store.Event}) {
		if err != nil {
			return 0, err
		}
		record, err := item.Value()
		if err != nil {
			return 0, err
		}
		r := &messages.EventRecord{}
		if store.DecodeRecord(version, item.FullKey(), record, r) == nil {
			known = max(known, r.GetNumber())
		}
	}
	return known, nil
}

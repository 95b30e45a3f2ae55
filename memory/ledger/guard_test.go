package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homeagent/memory/store"
	"homeagent/messages"
)

// filled makes a store on disk with inputs a to e: a ended, b running with a
// journal of three, the rest queued.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t, db, l}
	r.do(accept("a"), accept("b"), accept("c"), accept("d"), accept("e"))
	r.do(end("a", answered, "ok"), set("b", running), events(event("e1", "", "hello")))
	for range 3 {
		r.do(step("b", messages.JournalKind_JOURNAL_KIND_REQUEST))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tamper changes a store behind the ledger's back.
func tamper(t *testing.T, dir string, fn func(store.Txn) error) {
	t.Helper()
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(fn); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func flip(txn store.Txn, key []byte) error {
	v, err := txn.Get(key)
	if err != nil {
		return err
	}
	v[len(v)-1] ^= 1
	return txn.Put(key, v)
}

func TestGuardNamesWhatIsMissing(t *testing.T) {
	cases := []struct {
		name string
		do   func(store.Txn) error
		text string
		// pending is what a salvage leaves open.
		pending string
		// journal is what it leaves of the journal of b, lost what is kept aside.
		journal int
		lost    string
	}{
		{"inbox record", func(x store.Txn) error { return x.Delete(inboxKey(3)) }, "inputs are missing in the inbox (3)", "b d e", 3, "tc"},
		{"ended inbox record", func(x store.Txn) error { return x.Delete(inboxKey(1)) }, "inputs are missing in the inbox (1)", "b c d e", 3, ""},
		{"last inbox record", func(x store.Txn) error { return x.Delete(inboxKey(5)) }, "inputs are missing in the inbox (5)", "b c d", 3, "te"},
		{"flipped inbox record", func(x store.Txn) error { return flip(x, inboxKey(4)) }, "task d", "b c e", 3, "text of d"},
		{"task record", func(x store.Txn) error { return x.Delete(taskKey("c")) }, "task c", "b d e", 3, "text of c"},
		{"list of open tasks", func(x store.Txn) error { return x.Delete(openKey(3)) }, "3 open tasks in the list, 4 by the counters", "b d e", 3, ""},
		{"journal entry", func(x store.Txn) error { return x.Delete(journalKey("b", 2)) }, "journal lacks entry 2", "b c d e", 1, "tb"},
		{"last journal entry", func(x store.Txn) error { return x.Delete(journalKey("b", 3)) }, "journal ends at 2 of 3", "b c d e", 2, "tb"},
		{"flipped journal entry", func(x store.Txn) error { return flip(x, journalKey("b", 1)) }, "checksum", "b c d e", 0, "jb"},
		{"counters", func(x store.Txn) error { return x.Delete(countersKey) }, "promised inputs are missing (1 to 5)", "b c d e", 3, ""},
		{"old counters", func(x store.Txn) error {
			return x.Put(countersKey, counters{inbox: 5, journal: 1, accepted: 5, ended: 1}.encode())
		}, "promised journal entries are missing (2 to 3)", "b c d e", 3, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := filled(t)
			tamper(t, dir, c.do)
			db, err := store.Open(dir, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Open(db, Options{})
			var damage *store.DamageError
			if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.text) || store.Code(err) != "store_damaged" {
				t.Fatalf("err = %v, want %q", err, c.text)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			journalLeft := salvage(t, dir, c.pending)
			if j := journalLeft; j != c.journal {
				t.Errorf("%d journal entries are left, want %d", j, c.journal)
			}
			aside, err := filepath.Glob(filepath.Join(dir, "aside", "ledger-*", "records"))
			if err != nil || (len(aside) == 1) != (c.lost != "") {
				t.Fatalf("kept aside: %v, %v", aside, err)
			}
			if c.lost == "" {
				return
			}
			if b, err := os.ReadFile(aside[0]); err != nil || !strings.Contains(string(b), c.lost) {
				t.Errorf("kept aside %q, want %q (%v)", b, c.lost, err)
			}
		})
	}
}

// salvage opens a damaged ledger, wants the tasks, and goes on with it. It returns how
// long the journal of b is.
func salvage(t *testing.T, dir, want string) (journal int) {
	t.Helper()
	db, err := store.Open(dir, store.Options{Salvage: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(db, Options{})
	if err != nil {
		t.Fatalf("salvage: %v", err)
	}
	r := &rig{t, db, l}
	var ids []string
	for _, p := range r.pending("") {
		ids = append(ids, p.GetInput().GetId())
		if p.GetInput().GetId() == "b" {
			journal = len(p.GetJournal())
		}
	}
	if got := strings.Join(ids, " "); got != want {
		t.Fatalf("pending after salvage %q, want %q", got, want)
	}
	if a := r.do(accept("new"))[0].GetAccepted(); a.GetSequence() != 6 {
		t.Fatalf("sequence %d after salvage, want 6", a.GetSequence())
	}
	r.do(end("b", failed, "lost"), events(event("e2", "", "more")))
	if l.LastEvent() != 2 {
		t.Errorf("event number %d after salvage, want 2", l.LastEvent())
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db, err = store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if l, err = Open(db, Options{}); err != nil {
		t.Fatalf("the salvaged ledger does not go on: %v", err)
	}
	if n := len((&rig{t, db, l}).pending("")); n != len(ids) {
		t.Errorf("%d tasks after the next start, want %d", n, len(ids))
	}
	return journal
}

func TestReopenGoesOn(t *testing.T) {
	dir := filled(t)
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	l, err := Open(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t, db, l}
	p := r.pending("")
	if len(p) != 4 || p[0].GetInput().GetId() != "b" || p[0].GetState() != running || len(p[0].GetJournal()) != 3 || p[0].GetStarts() != 1 {
		t.Fatalf("pending %v", p)
	}
	if got := r.do(accept("f"), step("b", messages.JournalKind_JOURNAL_KIND_RESPONSE)); got[0].GetAccepted().GetSequence() != 6 || got[1].GetSequence() != 4 {
		t.Fatalf("results %v", got)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(counters{inbox: 1}.encode())
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := decodeCounters(data); err == nil && len(data) == len(c.encode()) && string(c.encode()) != string(data) {
			t.Fatalf("%+v encodes differently", c)
		}
		key := EventKey("main", "e")
		for _, record := range [][]byte{data, store.Seal(version, key, data)} {
			r, err := DecodeEvent(key, record)
			if err == nil && r.GetEvent() == nil {
				t.Fatal("an event without content")
			}
			if err != nil && !errors.Is(err, store.ErrRecord) {
				t.Fatalf("err = %v", err)
			}
		}
	})
}

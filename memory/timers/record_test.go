package timers

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
)

func TestRecords(t *testing.T) {
	db, err := store.Open(t.TempDir(), store.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	l, err := ledger.Open(db, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	do := func(ops ...*messages.LedgerOp) {
		t.Helper()
		if e := l.Execute(at(t, "2026-12-01T00:00:00Z"), []*messages.LedgerExecute{{Ops: ops, Sync: true}})[0].GetError(); e != nil {
			t.Fatal(e)
		}
	}
	record := func(id, text string) *messages.TimerRecord {
		return &messages.TimerRecord{Timer: &messages.Timer{TimerId: id, Text: text, NextUs: 5}, PendingUs: 7, PendingTask: "01X"}
	}
	put := func(r *messages.TimerRecord) *messages.LedgerOp {
		t.Helper()
		op, err := Put(r)
		if err != nil {
			t.Fatal(err)
		}
		return op
	}
	do(put(record("b", "two")), put(record("a", "one")), put(record("c", "three")))
	do(put(record("b", "two again")), Delete("c"), Delete("never there"))
	got, damaged, err := NewEngine(db).Load()
	if err != nil || len(damaged) != 0 || len(got) != 2 || !proto.Equal(got[0], record("a", "one")) || !proto.Equal(got[1], record("b", "two again")) {
		t.Fatalf("loaded %v, %v, %v", got, damaged, err)
	}

	// A record that cannot be read is named, and the others are there.
	flipped := put(record("a", "one")).GetWrite()
	flipped.Value[len(flipped.Value)-1] ^= 1
	moved := put(record("a", "one")).GetWrite()
	moved.Key = []byte("elsewhere")
	do(&messages.LedgerOp{Op: &messages.LedgerOp_Write{Write: flipped}}, &messages.LedgerOp{Op: &messages.LedgerOp_Write{Write: moved}})
	got, damaged, err = NewEngine(db).Load()
	if err != nil || !slices.Equal(damaged, []string{"a", "elsewhere"}) || len(got) != 1 {
		t.Errorf("loaded %v, damaged %v, %v", got, damaged, err)
	}
}

func FuzzDecode(f *testing.F) {
	op, err := Put(&messages.TimerRecord{Timer: &messages.Timer{TimerId: "T", Text: "x"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("T", op.GetWrite().GetValue())
	f.Add("", []byte{1, 2, 3, 4, 5})
	f.Add("T", store.Seal(version, store.Timer.KeyString("T"), []byte{0xff}))
	f.Fuzz(func(t *testing.T, id string, b []byte) {
		r, err := Decode(store.Timer.KeyString(id), b)
		if err != nil && !errors.Is(err, store.ErrRecord) {
			t.Fatalf("an error of another kind: %v", err)
		}
		if err == nil && r.GetTimer().GetTimerId() != id {
			t.Fatalf("%q came from the key of %q", r.GetTimer().GetTimerId(), id)
		}
	})
}

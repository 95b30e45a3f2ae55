package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"homeagent/memory/store"
	"homeagent/messages"
)

// noted lists the numbers of the events that the late index lacks, as stored.
func (r *rig) noted() (n int) {
	r.t.Helper()
	err := r.db.View(func(txn store.Txn) error {
		for _, err := range txn.Scan(store.Range{Space: store.Event, Prefix: lateMark}) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// TestLateIndex shows what the late index is written before, and that it gets all, in order, once.
func TestLateIndex(t *testing.T) {
	for name, next := range map[string]*messages.LedgerOp{
		"accept": accept("b"), "end": end("a", answered, "ok"), "events": events(event("e9", "", "nine")),
	} {
		t.Run(name, func(t *testing.T) {
			x, now := &indexer{}, &indexer{}
			r := newRig(t, Options{Indexer: now, Late: x})
			r.do(accept("a"))
			r.do(events(event("e1", "", "hello"), event("e2", "main/resident/cook", "twice")), output("a/o1"))
			r.do(sent("a/o1", "ok"))
			if len(x.got) != 0 || len(now.got) != 2 || r.noted() != 2 {
				t.Fatalf("indexed %v at once and %v late, %d noted; want 2, 0, 2", now.got, x.got, r.noted())
			}
			r.do(next)
			if want := []string{"1:5", "2:5"}; !slices.Equal(x.got, want) {
				t.Fatalf("indexed late %v, want %v", x.got, want)
			}
			if left := r.noted(); left != len(now.got)-2 {
				t.Fatalf("%d stay noted", left)
			}
		})
	}
}

// TestLateIndexAfterCrash shows that what was stored and not indexed is indexed at the next start, whole.
func TestLateIndexAfterCrash(t *testing.T) {
	r := newRig(t, Options{Late: &indexer{}})
	long := strings.Repeat("long ", maxEventText/4)
	r.do(events(event("e1", "", "hello"), event("e2", "main/resident/cook", long)))
	x := &indexer{}
	if _, err := Open(r.db, Options{Late: x}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"1:5", fmt.Sprint("2:", len(long))}; !slices.Equal(x.got, want) || r.noted() != 0 {
		t.Fatalf("indexed %v, want %v; %d stay noted", x.got, want, r.noted())
	}
	again := &indexer{}
	if _, err := Open(r.db, Options{Late: again}); err != nil || len(again.got) != 0 {
		t.Fatalf("indexed again: %v, %v", again.got, err)
	}
}

// TestLateIndexFails shows that an index that cannot be written refuses nothing and is tried again at the next start.
func TestLateIndexFails(t *testing.T) {
	x := &indexer{fail: errors.New("broken")}
	r := newRig(t, Options{Late: x})
	r.do(accept("a"))
	r.do(events(event("e1", "", "hello")))
	r.do(end("a", answered, "ok"))
	r.do(accept("b"))
	if len(x.got) != 1 || r.noted() != 1 {
		t.Fatalf("tried %v, %d noted", x.got, r.noted())
	}
	if has, err := hasKey(r.db, store.Lexical.KeyUint(1)); has || err != nil {
		t.Fatalf("half an index was written: %v, %v", has, err)
	}
	x.fail = nil
	if _, err := Open(r.db, Options{Late: x}); err != nil || len(x.got) != 2 || r.noted() != 0 {
		t.Fatalf("at the next start: %v, %v, %d noted", x.got, err, r.noted())
	}
}

// TestLateIndexWaitsForRoom shows that a full disk only delays the index.
func TestLateIndexWaitsForRoom(t *testing.T) {
	free := int64(1 << 40)
	db, err := store.Open(t.TempDir(), store.Options{Reserve: 1 << 30, Free: func(string) (int64, error) { return free, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	x := &indexer{}
	l, err := Open(db, Options{Late: x})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t, db, l}
	r.do(accept("a"))
	r.do(events(event("e1", "", "hello")))
	free = 0
	if code := r.try(end("a", answered, "ok")).GetError().GetCode(); code != "disk_low" {
		t.Fatalf("code %q on a full disk", code)
	}
	if free = 1 << 40; r.noted() != 1 {
		t.Fatalf("%d noted on a full disk", r.noted())
	}
	r.do(end("a", answered, "ok"))
	if r.noted() != 0 {
		t.Fatal("not indexed when there was room again")
	}
}

func hasKey(db *store.DB, key []byte) (has bool, err error) {
	err = db.View(func(txn store.Txn) error {
		has, err = txn.Has(key)
		return err
	})
	return has, err
}

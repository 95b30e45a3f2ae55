package lexical

import (
	"reflect"
	"testing"
	"time"

	"homeagent/memory/shelf"
	"homeagent/memory/store"
	"homeagent/messages"
)

// TestShelfKeepsSnapshots searches a snapshot with a shelf that was filled from a newer one.
func TestShelfKeepsSnapshots(t *testing.T) {
	db, x := openStore(t), &Index{}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	index(t, db, x, said("1", "c", "the kettle is blue", at), said("2", "c", "and it whistles", at.Add(time.Minute)))
	ask := func(txn store.Txn, x *Index) []Hit {
		t.Helper()
		hits, err := x.Search(txn, ParseQuery("the kettle whistles"), Search{Agent: "main"})
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) == 0 {
			t.Fatal("nothing was found")
		}
		return hits
	}
	err := db.View(func(old store.Txn) error {
		want := ask(old, &Index{})
		next := &messages.EventRecord{Number: 3, Event: said("3", "c", "loudly", at.Add(2*time.Minute))}
		if err := db.Update(func(txn store.Txn) error { return x.IndexEvents(txn, []*messages.EventRecord{next}) }); err != nil {
			return err
		}
		err := db.View(func(txn store.Txn) error {
			first := ask(txn, x)
			if again := ask(txn, x); !reflect.DeepEqual(again, first) {
				t.Errorf("from the shelf %+v, from the store %+v", again, first)
			}
			return nil
		})
		if _, ok := x.shelf.get(2); !ok {
			t.Error("the second text is not on the shelf")
		}
		if got := ask(old, x); !reflect.DeepEqual(got, want) {
			t.Errorf("the old snapshot shows %+v, not %+v", got, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestShelfForgets keeps what is asked for and lets go of the rest.
func TestShelfForgets(t *testing.T) {
	var s structures
	if _, ok := s.get(1); ok {
		t.Fatal("an empty shelf has a text")
	}
	for n := range uint64(10 * shelf.DefaultSize) {
		s.put(n*blockSize+1, structure{session: n + 1})
		if got, ok := s.get(1); !ok || got.session != 1 {
			t.Fatalf("after %d blocks the first text is %+v", n+1, got)
		}
	}
	if held := s.blocks.Len(); held > 2*shelf.DefaultSize {
		t.Errorf("the shelf holds %d blocks", held)
	}
	if _, ok := s.get(blockSize + 1); ok {
		t.Error("a text that nobody asked for is still there")
	}
	if _, ok := s.get(2); ok {
		t.Error("a text that was never put there is there")
	}
}

package recall

import (
	"errors"
	"testing"

	"homeagent/memory/contextmem"
	"homeagent/memory/ledger"
	"homeagent/memory/store"
)

// TestGistsForgetWithTheStore shows that what was looked at before is not brought up once it is gone.
func TestGistsForgetWithTheStore(t *testing.T) {
	m := open(t, "")
	id := m.say("main", "the bicycle stands in the cellar")
	ask := func() int {
		t.Helper()
		a, err := m.engine.Recall(t.Context(), Question{Text: "bicycle cellar", Now: noon})
		if err != nil {
			t.Fatal(err)
		}
		return len(a.Items)
	}
	if first, again := ask(), ask(); first != 1 || again != 1 {
		t.Fatalf("%d found, then %d, want 1 each time", first, again)
	}
	if n := m.engine.gists.kept.Len(); n != 1 {
		t.Fatalf("%d kept, want 1", n)
	}
	err := m.db.Update(func(txn store.Txn) error { return txn.Delete(ledger.EventKey("main", id)) })
	if err != nil {
		t.Fatal(err)
	}
	if n := ask(); n != 0 {
		t.Fatalf("%d found after it was deleted", n)
	}
	err = m.db.View(func(txn store.Txn) error {
		_, err := m.engine.gists.get(txn, "main", id)
		return err
	})
	if !errors.Is(err, contextmem.ErrNotFound) {
		t.Fatalf("error %v", err)
	}
}

func TestBesidePassesPanicsOn(t *testing.T) {
	wait := beside(func() (int, error) { panic("boom") })
	defer func() {
		if r := recover(); r != "boom" {
			t.Fatalf("recovered %v", r)
		}
	}()
	_, _ = wait()
	t.Fatal("the panic was lost")
}

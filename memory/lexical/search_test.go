package lexical

import (
	"testing"
	"time"

	"homeagent/memory/memorytest"
	"homeagent/memory/store"
	"homeagent/messages"
)

func openStore(t testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open("", store.Options{InMemory: true, Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func index(t testing.TB, db *store.DB, x *Index, events ...*messages.Event) {
	t.Helper()
	for i, e := range events {
		r := &messages.EventRecord{Event: e, Number: uint64(i + 1)}
		if err := db.Update(func(txn store.Txn) error { return x.IndexEvents(txn, []*messages.EventRecord{r}) }); err != nil {
			t.Fatal(err)
		}
	}
}

func search(t testing.TB, db *store.DB, x *Index, text string, s Search) []Hit {
	t.Helper()
	var hits []Hit
	err := db.View(func(txn store.Txn) (err error) {
		hits, err = x.Search(txn, ParseQuery(text), s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func measure(t *testing.T, list []memorytest.Corpus, k ...int) []float64 {
	t.Helper()
	dbs, xs := make([]*store.DB, len(list)), make([]Index, len(list))
	for i := range list {
		dbs[i] = openStore(t)
		index(t, dbs[i], &xs[i], list[i].Events...)
	}
	var out []float64
	for _, k := range k {
		var took time.Duration
		n := 0
		r := memorytest.Recall(t, list, k, func(c int, q string) []string {
			start := time.Now()
			hits := search(t, dbs[c], &xs[c], q, Search{Agent: "main", Limit: k})
			took += time.Since(start)
			n++
			var ids []string
			for _, h := range hits {
				ids = append(ids, h.Event)
			}
			return ids
		})
		t.Logf("recall@%d %.1f over %d questions, %v each", k, r, n, took/time.Duration(n))
		out = append(out, r)
	}
	return out
}

func TestRecallOfLoCoMo(t *testing.T) {
	r := measure(t, memorytest.LoCoMo(t), 10)
	if r[0] < 68 {
		t.Errorf("recall@10 is %.1f", r[0])
	}
}

func TestRecallOfMemoryBank(t *testing.T) {
	r := measure(t, memorytest.MemoryBank(t), 5)
	if r[0] < 80 {
		t.Errorf("recall@5 is %.1f", r[0])
	}
}

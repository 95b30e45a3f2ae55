package graph

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"homeagent/actors/kit"
	"homeagent/actors/kit/kittest"
	"homeagent/memory/graphmem"
	"homeagent/memory/store"
	"homeagent/messages"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func commit(key string, facts ...*messages.Fact) kit.Event {
	return kit.Event{From: kit.Path("memory"), Corr: key, Msg: &messages.CommitFacts{Key: key, Facts: facts}}
}

func TestCommit(t *testing.T) {
	s := kittest.New(t, "commit", New(), start)
	tea := &messages.Fact{Subject: "Ann", Predicate: "likes", Object: "tea"}
	s.Step(0, kit.Event{Msg: kit.Started{Self: kit.Path("memory/graph")}})
	s.Step(time.Second, commit("k1", tea, &messages.Fact{
		FactId: "own", Subject: "Ann", Predicate: "lives in", Object: "Paris", Functional: true, Confidence: 0.5,
		ValidFromUs: start.UnixMicro(), LearnedUs: start.UnixMicro(), Source: "E1", SubjectType: "person",
	}))
	s.Note("one batch at a time")
	s.Step(0, commit("k2", tea))
	s.Step(0, kit.Event{Msg: written{outcomes: []graphmem.Outcome{{ID: "k1/f0"}, {ID: "own", Closed: []string{"old"}}}}})
	s.Note("known already")
	s.Step(0, kit.Event{Msg: written{outcomes: []graphmem.Outcome{{ID: "k1/f0", Known: true}}}})
	s.Note("the store refuses")
	s.Step(0, commit("k3", tea))
	s.Step(0, kit.Event{Msg: written{err: fmt.Errorf("write: %w", store.ErrDiskLow)}})
	s.Note("a fact that is none")
	s.Step(0, commit("k4", &messages.Fact{Subject: "Ann"}))
	s.Step(0, kit.Event{Msg: written{err: fmt.Errorf("%w: no object", graphmem.ErrInvalid)}})
	s.Note("batches that are none")
	s.Step(0, commit("k5"))
	s.Step(0, commit("", tea))
	s.Step(0, commit("k6", make([]*messages.Fact, maxFacts+1)...))
	s.Show()
	s.Done()
}

// syncer fails on demand.
type syncer struct {
	n   int
	err error
}

func (s *syncer) Sync() error { s.n++; return s.err }

func TestAnswersOnlyAfterTheSync(t *testing.T) {
	db, err := store.Open("", store.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	g, err := graphmem.Open(db)
	if err != nil {
		t.Fatal(err)
	}
	fact := facts(commit("k", &messages.Fact{Subject: "Ann", Predicate: "likes", Object: "tea"}).Msg.(*messages.CommitFacts), start)
	sy := &syncer{err: errors.New("disk")}
	if w := run(context.Background(), Deps{Engine: g, Store: sy}, fact); !errors.Is(w.err, sy.err) || sy.n != 1 {
		t.Fatalf("%+v after %d syncs", w, sy.n)
	}
	sy.err = nil
	if w := run(context.Background(), Deps{Engine: g, Store: sy}, fact); w.err != nil || len(w.outcomes) != 1 || !w.outcomes[0].Known || w.outcomes[0].ID != "k/f0" {
		t.Fatalf("again: %+v", w)
	}
}

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"homeagent/configs/paths"
	"homeagent/memory/contextmem"
	"homeagent/memory/ledger"
	"homeagent/memory/lexical"
	"homeagent/memory/store"
	"homeagent/messages"
)

// vocabulary is the number of made-up words that are spoken.
const vocabulary = 30_000

// talker makes up talk: words drawn with the frequencies of a natural vocabulary, the same in each run.
type talker struct {
	*rand.Rand
	zipf *rand.Zipf
}

func newTalker() *talker {
	rng := rand.New(rand.NewPCG(1, 2))
	return &talker{rng, rand.NewZipf(rng, 1.1, 4, vocabulary-1)}
}

// words are the next n words.
func (t *talker) words(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = word(int(t.zipf.Uint64()))
	}
	return out
}

// seed writes n events into a store below data, by the engines of the node, and closes it in order.
func seed(data string, n int) (err error) {
	layout, err := paths.Resolve(data, func(string) string { return "" })
	if err != nil {
		return err
	}
	if err := layout.Create(); err != nil {
		return err
	}
	db, err := store.Open(layout.Store(), store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	l, err := ledger.Open(db, ledger.Options{Indexer: contextmem.New(db, &lexical.Index{Words: &lexical.Dictionary{}})})
	if err != nil {
		return err
	}
	talk := newTalker()
	began := time.Now().Add(-time.Duration(n) * time.Minute)
	for i := range n {
		event := seededEvent(i, began.Add(time.Duration(i)*time.Minute), talk.words(8+talk.IntN(20)))
		done := l.Execute(time.Now(), []*messages.LedgerExecute{{
			Ops: []*messages.LedgerOp{{Op: &messages.LedgerOp_Events{Events: &messages.AppendEvents{Events: []*messages.Event{event}}}}},
		}})
		if failed := done[0].GetError(); failed != nil {
			return fmt.Errorf("seed event %d: %s", i, failed.GetMessage())
		}
	}
	return db.Sync()
}

func seededEvent(i int, at time.Time, words []string) *messages.Event {
	id := fmt.Sprintf("0SEED%08d", i)
	kind := messages.EventKind_EVENT_KIND_INPUT
	if i%2 == 1 {
		kind = messages.EventKind_EVENT_KIND_RESPONSE
	}
	text := strings.Join(words, " ") + " " + seededTopic(i)
	return &messages.Event{
		EventId: id, Kind: kind, Agent: "main", Channel: "cli", Conversation: fmt.Sprint("c", i%3), AtUs: at.UnixMicro(),
		Blocks: []*messages.Block{{BlockId: id + "/b", Content: &messages.Part{Content: &messages.Part_Text{Text: text}}}},
	}
}

// word is the i-th made-up word.
func word(i int) string {
	digits := func(r rune) rune { return r - '0' + 'a' }
	return "w" + strings.Map(digits, fmt.Sprint(i)) + "x"
}

// seededTopic is a word that few seeded events have, among them the i-th.
func seededTopic(i int) string { return "topic" + word(i%1000) }

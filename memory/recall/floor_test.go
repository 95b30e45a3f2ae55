package recall

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"homeagent/messages"
)

// Memory that holds some words of a question says that it has none, in either language, unless it holds a symbol of it.
func TestWeakHitsAreNone(t *testing.T) {
	m := open(t, "")
	for _, s := range []string{
		"Ann went to the beach with her kids last summer", "the new shoes are for running", "we watched a movie about surfing",
		"我昨天在公园里跑步", "朋友推荐了一部电影", "error E4711 came up while printing",
	} {
		m.say("main", s)
	}
	for i := range 20 {
		m.say("main", fmt.Sprintf("dinner number %d was pasta with tomatoes", i))
	}
	for ask, want := range map[string]string{
		"How often does Caroline go to the beach with Oliver and Bailey?":     "",
		"Which restaurant did Melanie book for running club members?":         "",
		"爷爷在公园里弹钢琴的时候穿什么颜色的衣服？":                                               "",
		"Where did Ann go with the kids?":                                     "Ann went to the beach with her kids last summer",
		"昨天在公园做了什么？":                                                          "我昨天在公园里跑步",
		"What does the manual of Xerox say about E4711 and the yellow light?": "error E4711 came up while printing",
	} {
		a := m.ask(Question{Text: ask})
		switch {
		case want == "" && (len(a.Items) > 0 || !a.None):
			t.Errorf("%q: %q, none %v; memory has nothing on it", ask, texts(a), a.None)
		case want != "" && (len(a.Items) == 0 || a.Items[0].GetText() != want || a.None):
			t.Errorf("%q: %q, none %v; want %q first", ask, texts(a), a.None, want)
		}
	}
}

// What speaks for an item adds up to its score, before scaling; why tells what was left out.
func TestWhy(t *testing.T) {
	m := open(t, "")
	id := m.say("main", "the blue bicycle of Ann stands in the shed since 3 May")
	m.say("main", "the shed needs paint")
	a := m.ask(Question{Text: "When did the bicycle of Ann come to the shed?"})
	if len(a.Items) == 0 || a.Items[0].GetId() != id {
		t.Fatalf("recalled %q", texts(a))
	}
	i := a.Items[0]
	var names []string
	last := 0.0
	for n, c := range i.GetChannels() {
		names = append(names, c.GetChannel())
		if n > 0 && c.GetScore() > last {
			t.Errorf("channels are not sorted: %v", i.GetChannels())
		}
		last = c.GetScore()
	}
	for _, want := range []string{"words", "window", "time"} {
		if !slices.Contains(names, want) {
			t.Errorf("channels %v, without %s", names, want)
		}
	}
	if i.GetRelevance() < Floor || i.GetRelevance() > 1 || len(i.GetMatched()) < 3 {
		t.Errorf("item %v", i)
	}
	look := func(text string) *messages.MemoryAnswer {
		t.Helper()
		out, err := m.engine.Browse(context.Background(), &messages.MemoryQuery{Text: text, Why: true}, noon)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if w := look("Which colour has the shed that Melanie and Caroline bought in Rome?"); !w.GetNone() || len(w.GetItems()) > 0 ||
		len(w.GetLeftOut()) == 0 || w.GetFloor() != Floor {
		t.Errorf("why of nothing: %v", w)
	}
	if w := look(id); len(w.GetEvents()) != 1 || w.GetEvents()[0].GetEventId() != id || w.GetNone() {
		t.Errorf("why of an id: %v", w)
	}
}

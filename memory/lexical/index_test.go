package lexical

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

var noon = time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC)

func said(id, conversation, text string, at time.Time) *messages.Event {
	return &messages.Event{
		EventId: id, Kind: messages.EventKind_EVENT_KIND_INPUT, Agent: "main", Conversation: conversation, AtUs: at.UnixMicro(),
		Blocks: []*messages.Block{{Content: &messages.Part{Content: &messages.Part_Text{Text: text}}}},
	}
}

func found(hits []Hit) string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Event)
	}
	return strings.Join(out, " ")
}

func TestSearch(t *testing.T) {
	db, x := openStore(t), &Index{}
	other := said("E4", "a", "a bicycle of somebody else", noon)
	other.Agent = "main/resident/cook"
	index(t, db, x, said("E1", "a", "The bicycle is blue", noon), said("E2", "b", "bicycle bicycle bicycle", noon),
		said("E3", "c", "nothing of the kind", noon), other)
	hits := search(t, db, x, "bicycles", Search{Agent: "main"})
	if found(hits) != "E2 E1" || strings.Join(hits[1].Matched, " ") != stem("bicycle") || hits[1].AtUs != noon.UnixMicro() ||
		hits[1].Conversation != "a" || hits[1].Kind != messages.EventKind_EVENT_KIND_INPUT || hits[1].BM25 <= 0 {
		t.Errorf("hits %+v", hits)
	}
	if hits := search(t, db, x, "bicycle", Search{Agent: "main", Skip: func(id string) bool { return id == "E2" }}); found(hits) != "E1" {
		t.Errorf("with a skip: %+v", hits)
	}
	if hits := search(t, db, x, "bicycle", Search{Agent: "main/resident/cook"}); found(hits) != "E4" {
		t.Errorf("of another agent: %+v", hits)
	}
	for _, q := range []string{"elephant", "", "what did I say"} {
		if hits := search(t, db, x, q, Search{Agent: "main"}); len(hits) != 0 {
			t.Errorf("%q: %+v", q, hits)
		}
	}
	if hits := search(t, db, x, "bicycle", Search{Agent: "nobody"}); len(hits) != 0 {
		t.Errorf("of nobody: %+v", hits)
	}
}

func TestIndexingTwiceChangesNothing(t *testing.T) {
	db, x := openStore(t), &Index{}
	index(t, db, x, said("E1", "a", "the blue bicycle", noon))
	before := dump(t, db)
	index(t, db, x, said("E1", "a", "the blue bicycle", noon))
	if after := dump(t, db); !bytes.Equal(before, after) {
		t.Error("the second time changed the index")
	}
}

// dump is every key and value of the index.
func dump(t *testing.T, db *store.DB) []byte {
	t.Helper()
	var out bytes.Buffer
	err := db.View(func(txn store.Txn) error {
		for item, err := range txn.Scan(store.Range{Space: store.Lexical}) {
			if err != nil {
				return err
			}
			v, err := item.Value()
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%q=%q\n", item.Key(), v)
		}
		return nil
	})
	if err != nil || out.Len() == 0 {
		t.Fatalf("%d bytes, %v", out.Len(), err)
	}
	return out.Bytes()
}

func TestWhatIsNotIndexed(t *testing.T) {
	db, x := openStore(t), &Index{}
	tool := said("E1", "a", "walrus", noon)
	tool.Kind = messages.EventKind_EVENT_KIND_TOOL
	recalled := said("E2", "a", "walrus", noon)
	recalled.Taint = messages.Taint_TAINT_RECALLED
	part := said("E3", "a", "penguin", noon)
	part.Blocks = append(part.Blocks, &messages.Block{
		Taint: messages.Taint_TAINT_RECALLED, Content: &messages.Part{Content: &messages.Part_Text{Text: "walrus"}},
	})
	index(t, db, x, tool, recalled, part, said("E4", "a", " \n", noon))
	if hits := search(t, db, x, "walrus", Search{Agent: "main"}); len(hits) != 0 {
		t.Errorf("what was recalled or a tool's is memory again: %+v", hits)
	}
	if hits := search(t, db, x, "penguin", Search{Agent: "main"}); found(hits) != "E3" {
		t.Errorf("the rest: %+v", hits)
	}
}

func TestNeighboursAndSessions(t *testing.T) {
	db, x := openStore(t), &Index{}
	index(t, db, x,
		said("E1", "a", "do you have a telescope", noon),
		said("F1", "b", "unrelated talk between", noon.Add(time.Second)),
		said("E2", "a", "yes, in the cellar", noon.Add(time.Minute)),
		said("E3", "a", "a new day", noon.Add(24*time.Hour)))
	// The answer stands beside the word, in its conversation and session.
	if hits := search(t, db, x, "telescope", Search{Agent: "main"}); found(hits) != "E1 E2" || len(hits[1].Matched) != 0 {
		t.Errorf("hits %+v", hits)
	}
}

func TestDates(t *testing.T) {
	db := openStore(t)
	x := &Index{Zone: time.FixedZone("east", 14*3600)}
	index(t, db, x, said("E1", "a", "we went swimming", noon), said("E2", "b", "we went climbing", noon.Add(72*time.Hour)))
	for _, q := range []string{"what happened on 3 May 2026?", "May 3rd", "5月3日我们做了什么", "我5月3号去哪了"} {
		if hits := search(t, db, x, q, Search{Agent: "main"}); len(hits) == 0 || hits[0].Event != "E1" {
			t.Errorf("%q: %+v", q, hits)
		}
	}
}

// A very long text is indexed by its beginning, within the transaction's limits.
func TestLongText(t *testing.T) {
	db, x := openStore(t), &Index{}
	var text strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&text, "word%d ", i)
	}
	r := &messages.EventRecord{Number: 1, Event: said("E1", "a", text.String(), noon)}
	if err := db.Update(func(txn store.Txn) error { return x.IndexEvents(txn, []*messages.EventRecord{r}) }); err != nil {
		t.Fatal(err)
	}
	if hits := search(t, db, x, "word100", Search{Agent: "main"}); found(hits) != "E1" {
		t.Errorf("its beginning: %+v", hits)
	}
	if hits := search(t, db, x, "word39999", Search{Agent: "main"}); len(hits) != 0 {
		t.Errorf("its end: %+v", hits)
	}
}

func TestInvalidEvents(t *testing.T) {
	db, x := openStore(t), &Index{}
	for name, r := range map[string]*messages.EventRecord{
		"number": {Event: said("E1", "a", "x", noon)},
		"id":     {Event: said("", "a", "x", noon), Number: 1},
		"event":  {Number: 1},
	} {
		err := db.Update(func(txn store.Txn) error { return x.IndexEvents(txn, []*messages.EventRecord{r}) })
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The second field adds to scores and never makes a hit.
func TestWordsOnlyAdd(t *testing.T) {
	words := &Dictionary{}
	if err := words.Load(noon); err != nil {
		t.Fatal(err)
	}
	plain, with := openStore(t), openStore(t)
	events := []*messages.Event{said("E1", "a", "我在图书馆看书", noon), said("E2", "b", "图画和书馆", noon), said("E3", "c", "今天下雨", noon)}
	index(t, plain, &Index{}, events...)
	index(t, with, &Index{Words: words}, events...)
	a := search(t, plain, &Index{}, "图书馆", Search{Agent: "main"})
	b := search(t, with, &Index{Words: words}, "图书馆", Search{Agent: "main"})
	if found(a) != found(b) || len(a) == 0 || !(b[0].BM25 > a[0].BM25) {
		t.Errorf("without %+v\nwith %+v", a, b)
	}
	// Unloaded, the same index answers as if the field were not there.
	words.DropIdle(noon.Add(time.Hour))
	if c := search(t, with, &Index{Words: words}, "图书馆", Search{Agent: "main"}); found(c) != found(a) || c[0].Score != a[0].Score {
		t.Errorf("unloaded %+v", c)
	}
}

func FuzzRecords(f *testing.F) {
	key := textKey(7)
	f.Add(encodeText(key, &text{agent: "main", event: "E1", conversation: "c", structure: structure{at: 5, session: 6, prev: 3, next: 9, role: 1, length: 4, speaker: "Ann", traits: 3}}))
	f.Add(encodeFigures(figures{1, 2, 3}))
	f.Add(appendPosting(appendPosting(nil, posting{1, 2, 3}), posting{200, 255, 1 << 40}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, err := decodeText(key, b); err == nil && !bytes.Equal(encodeText(key, &x), b) {
			// Numbers may be spelled longer than needed; the meaning must hold.
			if y, err := decodeText(key, encodeText(key, &x)); err != nil || y != x {
				t.Fatalf("%+v became %+v, %v", x, y, err)
			}
		}
		if _, err := decodeFigures(b); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		if err := eachPosting(b, func(posting) {}); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

// A text record of the first format is read, without what it does not hold.
func TestFirstRecordVersion(t *testing.T) {
	key := textKey(7)
	b := []byte{10, 6, 3, 9, 1}
	for _, s := range []string{"main", "E1", "c"} {
		b = append(append(b, byte(len(s))), s...)
	}
	got, err := decodeText(key, store.Seal(1, key, b))
	want := text{agent: "main", event: "E1", conversation: "c", structure: structure{at: 10, session: 6, prev: 3, next: 9, role: 1}}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := decodeText(key, store.Seal(3, key, b)); err == nil {
		t.Error("a record of a version to come is read")
	}
}

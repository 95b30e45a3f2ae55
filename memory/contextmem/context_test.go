package contextmem

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"homeagent/memory/ledger"
	"homeagent/memory/store"
	"homeagent/messages"
)

func open(t testing.TB, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(dir, store.Options{InMemory: dir == "", Reserve: -1})
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

func event(n int, agent, conversation, text string) *messages.Event {
	return &messages.Event{
		EventId: fmt.Sprintf("E%04d", n), Kind: messages.EventKind_EVENT_KIND_INPUT, Agent: agent, Conversation: conversation,
		AtUs: int64(n) * 1e6,
		Blocks: []*messages.Block{{
			BlockId: fmt.Sprintf("E%04d-0", n), Content: &messages.Part{Content: &messages.Part_Text{Text: text}},
		}},
	}
}

// add appends events through the ledger, as the node does.
func add(t testing.TB, l *ledger.Ledger, events ...*messages.Event) *messages.Error {
	t.Helper()
	done := l.Execute(time.Unix(1000, 0), []*messages.LedgerExecute{{Ops: []*messages.LedgerOp{
		{Op: &messages.LedgerOp_Events{Events: &messages.AppendEvents{Events: events}}},
	}}})
	return done[0].GetError()
}

func openLedger(t testing.TB, db *store.DB, index ledger.Indexer) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(db, ledger.Options{Indexer: index})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func ids(records []*messages.EventRecord) string {
	var out []string
	for _, r := range records {
		out = append(out, r.GetEvent().GetEventId())
	}
	return strings.Join(out, " ")
}

type recorder struct {
	seen []string
	err  error
}

func (r *recorder) IndexEvents(_ store.Txn, events []*messages.EventRecord) error {
	for _, e := range events {
		r.seen = append(r.seen, fmt.Sprint(e.GetEvent().GetEventId(), "=", e.GetNumber()))
	}
	return r.err
}

func TestAppendAndRead(t *testing.T) {
	db := open(t, t.TempDir())
	index := &recorder{}
	c := New(db, index)
	odd := "  tabs\tand\r\nlines, é as e\u0301, 全角Ａ, \u200b end "
	events := []*messages.Event{
		event(1, "main", "a", odd), event(2, "main", "b", "two"), event(3, "main", "a", "three"),
		event(4, "main/resident/x", "a", "other"), event(5, "main", "a", "five"), event(6, "main", "ab", "six"),
	}
	if err := add(t, openLedger(t, db, c), events...); err != nil {
		t.Fatal(err)
	}
	if want := "[E0001=1 E0002=2 E0003=3 E0004=4 E0005=5 E0006=6]"; fmt.Sprint(index.seen) != want {
		t.Errorf("indexed %v", index.seen)
	}
	got, err := c.Event("main", "E0001")
	if err != nil || got.GetEvent().GetAtUs() != events[0].GetAtUs() || got.GetEvent().GetBlocks()[0].GetContent().GetText() != odd {
		t.Errorf("event %v, %v", got, err)
	}
	for _, q := range []struct {
		w    Window
		want string
	}{
		{Window{Agent: "main"}, "E0001 E0002 E0003 E0005 E0006"},
		{Window{Agent: "main", Conversation: "a"}, "E0001 E0003 E0005"},
		{Window{Agent: "main", Conversation: "a", Events: 2}, "E0003 E0005"},
		{Window{Agent: "main", Conversation: "a", Before: "E0005"}, "E0001 E0003"},
		{Window{Agent: "main", Conversation: "a", After: "E0001"}, "E0003 E0005"},
		{Window{Agent: "main", After: "E0002", Before: "E0006"}, "E0003 E0005"},
		{Window{Agent: "main", Conversation: "a", Tokens: 1}, "E0005"},
		{Window{Agent: "main", Conversation: "a", Tokens: 2 * (perEvent + 1)}, "E0003 E0005"},
		{Window{Agent: "main/resident/x"}, "E0004"},
		{Window{Agent: "main", Conversation: "none"}, ""},
		{Window{Agent: "mai"}, ""},
	} {
		got, err := c.Last(q.w)
		if err != nil || ids(got) != q.want {
			t.Errorf("%+v: %q, want %q, %v", q.w, ids(got), q.want, err)
		}
	}
	if names, err := c.Conversations("main"); err != nil || !slices.Equal(names, []string{"a", "ab", "b"}) {
		t.Errorf("conversations %q, %v", names, err)
	}
	if _, err := c.Event("main", "E0004"); !errors.Is(err, ErrNotFound) {
		t.Errorf("another agent's event: %v", err)
	}
}

func TestSameEventTwice(t *testing.T) {
	db := open(t, "")
	index := &recorder{}
	c := New(db, index)
	l := openLedger(t, db, c)
	for _, text := range []string{"first", "second"} {
		if err := add(t, l, event(1, "main", "a", text)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Last(Window{Agent: "main"})
	if err != nil || len(got) != 1 || got[0].GetEvent().GetBlocks()[0].GetContent().GetText() != "first" {
		t.Errorf("%v, %v", got, err)
	}
	if n, err := c.Count(); err != nil || n != 1 || len(index.seen) != 1 {
		t.Errorf("count %d, indexed %v, %v", n, index.seen, err)
	}
}

func TestAFailedIndexUndoesTheEvent(t *testing.T) {
	db := open(t, "")
	c := New(db, &recorder{err: errors.New("index")})
	if err := add(t, openLedger(t, db, c), event(1, "main", "a", "x")); err == nil {
		t.Fatal("appended")
	}
	if got, err := c.Last(Window{Agent: "main"}); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// A text too long to stand in the event comes back whole.
func TestLongText(t *testing.T) {
	db := open(t, t.TempDir())
	c := New(db, nil)
	long := strings.Repeat("a long text, 很长的文字. ", 8000)
	if err := add(t, openLedger(t, db, c), event(1, "main", "a", long)); err != nil {
		t.Fatal(err)
	}
	got, err := c.Event("main", "E0001")
	if err != nil || got.GetEvent().GetBlocks()[0].GetContent().GetText() != long {
		t.Fatalf("%d bytes, %v", len(got.GetEvent().GetBlocks()[0].GetContent().GetText()), err)
	}
}

func TestInvalid(t *testing.T) {
	db := open(t, "")
	c := New(db, nil)
	for name, change := range map[string]func(*messages.Event){
		"id":    func(e *messages.Event) { e.EventId = "" },
		"agent": func(e *messages.Event) { e.Agent = "" },
		"zero":  func(e *messages.Event) { e.Conversation = "a\x00b" },
	} {
		e := event(1, "main", "a", "x")
		change(e)
		err := db.Update(func(txn store.Txn) error { return c.IndexEvents(txn, []*messages.EventRecord{{Event: e, Number: 1}}) })
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEstimate(t *testing.T) {
	for text, want := range map[string][2]int{
		"": {0, 0}, "hello world": {2, 3}, "internationalisation": {3, 5}, "我妹妹的生日是五月二日": {10, 14}, "a, b, c!": {4, 7},
	} {
		if n := Estimate(text); n < want[0] || n > want[1] {
			t.Errorf("Estimate(%q) = %d, want %v", text, n, want)
		}
	}
}

// TestWindowsShareEvents shows that a window reads an event once, and that the shelf forgets no more than it must.
func TestWindowsShareEvents(t *testing.T) {
	s := &New(nil, nil).kept.shelf
	look := func(at place) *kept { k, _ := s.Get(at); return k }
	for i := range 2*shelfSize + 1 {
		s.Put(place{"main", fmt.Sprint(i)}, &kept{tokens: i})
		if k := look(place{"main", "0"}); k == nil || k.tokens != 0 {
			t.Fatalf("what is asked for again and again is gone after %d others", i)
		}
	}
	if n := s.Len(); n > 2*shelfSize {
		t.Fatalf("%d events are kept", n)
	}
	if k := look(place{"main", "1"}); k != nil {
		t.Fatal("what nobody asked for is still there")
	}
	if k := look(place{"other", "0"}); k != nil {
		t.Fatal("agents share events")
	}
}

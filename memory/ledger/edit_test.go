package ledger

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

func editOp(id, text string, level *int32) *messages.LedgerOp {
	e := &messages.EditInput{TaskId: id, Level: level}
	if text != "" {
		e.Parts = []*messages.Part{{Content: &messages.Part_Text{Text: text}}}
	}
	return &messages.LedgerOp{Op: &messages.LedgerOp_Edit{Edit: e}}
}

func TestEditChangesWhatWaits(t *testing.T) {
	r := newRig(t, Options{})
	r.do(accept("a"), accept("b"))
	r.do(editOp("a", "new words", nil))
	r.do(editOp("b", "", proto.Int32(3)))
	reopen(r)
	p := r.pending("")
	if len(p) != 2 || p[0].GetInput().GetParts()[0].GetText() != "new words" || p[0].GetSequence() != 1 {
		t.Fatalf("pending %v", p)
	}
	if p[1].GetInput().GetLevel() != 3 || p[1].GetInput().GetParts()[0].GetText() != "text of b" {
		t.Fatalf("pending %v", p[1])
	}
	r.do(set("a", running))
	r.refused("not_waiting", editOp("a", "too late", nil))
	r.refused("invalid_operation", editOp("b", "", proto.Int32(4)))
	r.refused("unknown_input", editOp("c", "x", nil))
	r.do(end("b", answered, "ok"))
	r.refused("already_ended", editOp("b", "x", nil))
	if s := r.task("a"); s.GetInput().GetParts()[0].GetText() != "new words" {
		t.Fatalf("a refused edit changed %v", s.GetInput())
	}
}

func TestStopsComeBack(t *testing.T) {
	r := newRig(t, Options{})
	note := func(agent string, m ...*messages.StopMoment) *messages.LedgerOp {
		return &messages.LedgerOp{Op: &messages.LedgerOp_Stops{Stops: &messages.NoteStops{Agent: agent, Moments: m}}}
	}
	r.do(note("main", &messages.StopMoment{AtUs: 7, Sequence: 2}, &messages.StopMoment{Conversation: "c", AtUs: 9}))
	r.do(note("main/resident/cook", &messages.StopMoment{AtUs: 8}))
	reopen(r)
	of := func(agent string) []*messages.StopMoment {
		p, err := r.l.Pending(&messages.LedgerPending{Agent: agent})
		if err != nil {
			t.Fatal(err)
		}
		return p.GetStops()
	}
	if s := of("main"); len(s) != 2 || s[0].GetAtUs() != 7 || s[0].GetSequence() != 2 || s[1].GetConversation() != "c" {
		t.Fatalf("stops of main %v", s)
	}
	if s := of("main/resident/cook"); len(s) != 1 || s[0].GetAtUs() != 8 {
		t.Fatalf("stops of cook %v", s)
	}
	r.do(note("main"))
	if s := of("main"); len(s) != 0 {
		t.Fatalf("forgotten stops %v", s)
	}
	r.refused("invalid_operation", note("main", make([]*messages.StopMoment, maxStops+1)...))
}

// reopen reads everything anew from the store.
func reopen(r *rig) {
	r.t.Helper()
	l, err := Open(r.db, Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.l = l
}

func TestStartsInVain(t *testing.T) {
	r := newRig(t, Options{})
	r.do(accept("a"))
	starts := func() int32 { return r.pending("")[0].GetStarts() }
	for want := int32(1); want <= 3; want++ {
		r.do(set("a", running), step("a", messages.JournalKind_JOURNAL_KIND_REQUEST))
		if got := starts(); got != want {
			t.Fatalf("%d starts in vain, want %d", got, want)
		}
	}
	r.do(step("a", messages.JournalKind_JOURNAL_KIND_RESPONSE))
	if got := starts(); got != 0 {
		t.Fatalf("%d starts in vain after a result", got)
	}
	r.do(set("a", running))
	if got := starts(); got != 1 {
		t.Fatalf("%d starts in vain after one more, want 1", got)
	}
}

package ledger

import (
	"archive/zip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homeagent/memory/store"
	"homeagent/messages"
)

// unpack lays out a committed store and returns its folder.
func unpack(t *testing.T, name string) string {
	t.Helper()
	z, err := zip.OpenReader(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	dir := t.TempDir()
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openDir(t *testing.T, dir string) *rig {
	t.Helper()
	db, err := store.Open(dir, store.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	l, err := Open(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, db, l}
}

// checkFirst wants what testdata/fixture.go wrote.
func checkFirst(t *testing.T, r *rig) {
	t.Helper()
	p, err := r.l.Pending(&messages.LedgerPending{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		state   messages.TaskState
		journal int
		joined  string
	}{
		"b": {messages.TaskState_TASK_STATE_QUEUED, 0, ""},
		"c": {messages.TaskState_TASK_STATE_RUNNING, 3, ""},
		"d": {messages.TaskState_TASK_STATE_SUSPENDED, 2, ""},
		"e": {messages.TaskState_TASK_STATE_STEERED, 0, "c"},
		"g": {messages.TaskState_TASK_STATE_QUEUED, 0, ""},
	}
	if len(p.GetTasks()) != len(want) {
		t.Errorf("%d open tasks, want %d", len(p.GetTasks()), len(want))
	}
	for _, got := range p.GetTasks() {
		id := got.GetInput().GetId()
		w, ok := want[id]
		if !ok || got.GetState() != w.state || len(got.GetJournal()) != w.journal || got.GetJoined() != w.joined ||
			got.GetInput().GetParts()[0].GetText() != "text of "+id {
			t.Errorf("%s came as %v", id, got)
		}
	}
	if len(p.GetUnsent()) != 1 || p.GetUnsent()[0].GetOutputId() != "g-o" || len(p.GetAgents()) != 1 {
		t.Errorf("unsent %v, agents %v", p.GetUnsent(), p.GetAgents())
	}
	if a := r.task("a"); a.GetEnd() != answered || a.GetText() != "end of a" {
		t.Errorf("a came as %v", a)
	}
	if e, err := r.l.Event("main", "a-out"); err != nil || e.GetEvent().GetBlocks()[0].GetContent().GetText() != "it rains" {
		t.Errorf("event %v, %v", e, err)
	}
	if f := r.l.Figures(); f.GetAccepted() != 7 || f.GetEnded() != 2 {
		t.Errorf("figures %v", f)
	}
}

func TestUpgradeOfTheFirstFormat(t *testing.T) {
	dir := unpack(t, "format1.zip")
	r := openDir(t, dir)
	checkFirst(t, r)
	if r.db.Format() < 2 {
		t.Errorf("format %d after the upgrade", r.db.Format())
	}
	if err := r.db.Close(); err != nil {
		t.Fatal(err)
	}
	r = openDir(t, dir)
	checkFirst(t, r)
	// It goes on as a store of today.
	in := input("x")
	in.IdempotencyKey = "key c"
	in.Principal.Kind = messages.PrincipalKind_PRINCIPAL_KIND_OWNER
	if got := r.do(acceptInput(in, 0))[0].GetAccepted(); !got.GetDuplicate() || got.GetInputId() != "c" {
		t.Errorf("an old key: %v", got)
	}
	if got := r.do(accept("h"), step("c", messages.JournalKind_JOURNAL_KIND_TOOL_STARTED)); got[0].GetAccepted().GetSequence() != 8 || got[1].GetSequence() != 4 {
		t.Errorf("it goes on with %v", got)
	}
	// Retention finds what the old program did not list.
	r.l.SetPolicy(policy)
	r.retain(time.Now().Add(10 * 365 * day))
	if _, err := r.l.Output("a-o1"); !errors.Is(err, ErrUnknownOutput) {
		t.Errorf("an output that was sent years ago: %v", err)
	}
	if known(r, "a") || !known(r, "c") {
		t.Error("retention took the wrong tasks")
	}
}

// A crash anywhere in the upgrade begins it anew.
func TestUpgradeIsRepeated(t *testing.T) {
	dir := unpack(t, "format1.zip")
	r := openDir(t, dir)
	if err := r.db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "format"), []byte("homeagent store 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = openDir(t, dir)
	checkFirst(t, r)
	n := 0
	err := r.db.View(func(txn store.Txn) error {
		for _, err := range txn.Scan(store.Range{Space: store.Output, Prefix: sentMark}) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil || n != 2 {
		t.Errorf("%d sent outputs listed, want 2 (%v)", n, err)
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	dir := unpack(t, "format1.zip")
	if err := os.WriteFile(filepath.Join(dir, "format"), []byte("homeagent store 99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(dir, store.Options{Reserve: -1})
	if !errors.Is(err, store.ErrFormat) || !strings.Contains(err.Error(), "format 99") {
		t.Errorf("err = %v", err)
	}
}

package kernel

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"homeagent/actors/kit"
	"homeagent/configs"
	"homeagent/memory/store"
	"homeagent/messages"
)

// filled boots a node with something in it.
func filled(t *testing.T) *Node {
	t.Helper()
	n := boot(t, options(t))
	l := n.w.layout
	for path, text := range map[string]string{
		l.Personal(): "I like tea.", filepath.Join(l.Adapters(), "mine.lua"): "-- mine", filepath.Join(l.Skills(), "a", "b.md"): "# skill",
		filepath.Join(l.Logs(), "other.log"): "not this",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(l.Adapters(), "link.lua")); err != nil {
		t.Fatal(err)
	}
	in := &messages.Input{Id: "one", Channel: "api", Parts: []*messages.Part{{Content: &messages.Part_Text{Text: "hello"}}}}
	got, err := n.w.rt.Ask(context.Background(), kit.Path("ledger"), &messages.LedgerExecute{Ops: []*messages.LedgerOp{{
		Op: &messages.LedgerOp_Accept{Accept: &messages.AcceptInput{Input: in}},
	}}})
	if err != nil || got.(*messages.LedgerDone).GetError() != nil {
		t.Fatal(got, err)
	}
	_, err = n.w.registry.Set(nil,
		configs.Edit{Key: "core.llm.sources.x.adapter", Value: "openai"}, configs.Edit{Key: "core.llm.sources.x.api_key", Value: "sk-very-secret-value"},
		configs.Edit{Key: configs.KeyAgentName, Value: "Juno"})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func taken(t *testing.T, n *Node, key bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := n.w.backup(t.Context(), &b, key); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBackupAndRestore(t *testing.T) {
	n := filled(t)
	defer closeNode(t, n)
	for _, key := range []bool{false, true} {
		whole := taken(t, n, key)
		got, err := VerifyBackup(t.Context(), bytes.NewReader(whole), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range got.Manifest.Files {
			names = append(names, f.Name)
		}
		want := []string{"personal.md", "adapters/mine.lua", "skills/a/b.md"}
		if key {
			want = append(want, "secret.key")
		}
		if !slices.Equal(names, want) || got.Manifest.WithKey != key || got.Store.Pairs == 0 || got.Bytes != int64(len(whole)) || got.Manifest.Node != "test" {
			t.Errorf("key %v: %+v", key, got)
		}
		if bytes.Contains(whole, []byte("sk-very-secret-value")) {
			t.Error("a secret lies open in the backup")
		}
		o := options(t)
		if _, err := Restore(t.Context(), bytes.NewReader(whole), o.Data); err != nil {
			t.Fatal(err)
		}
		restoredNode(t, o, key)
	}
}

// restoredNode wants what filled wrote, and secrets only with their key.
func restoredNode(t *testing.T, o Options, key bool) {
	t.Helper()
	n := boot(t, o)
	defer closeNode(t, n)
	s := n.w.settings()
	if got := s.String(configs.KeyAgentName); got != "Juno" {
		t.Errorf("name %q", got)
	}
	task, err := n.w.ledger.Task("one")
	if err != nil || task.GetInput().GetParts()[0].GetText() != "hello" {
		t.Errorf("task %v, %v", task, err)
	}
	if got := n.w.personal(); got != "I like tea." {
		t.Errorf("personal %q", got)
	}
	secret := ""
	for _, src := range s.Sources() {
		if src.Name == "x" {
			secret = src.APIKey.Reveal()
		}
	}
	if (secret == "sk-very-secret-value") != key {
		t.Errorf("with key %v the secret is %q", key, secret)
	}
	if info, err := os.Stat(n.Data()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	n := filled(t)
	whole := taken(t, n, true)
	closeNode(t, n)
	manifestAt := len(backupMagic) + 4
	manifestEnd := manifestAt + int(binary.BigEndian.Uint32(whole[len(backupMagic):]))
	// with writes another manifest, which only the digest at the end would notice.
	with := func(change func(*Manifest)) []byte {
		var m Manifest
		if err := json.Unmarshal(whole[manifestAt:manifestEnd], &m); err != nil {
			t.Fatal(err)
		}
		change(&m)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out := binary.BigEndian.AppendUint32([]byte(backupMagic), uint32(len(b)))
		return slices.Concat(out, b, whole[manifestEnd:])
	}
	cases := map[string]struct {
		b    []byte
		want error
	}{
		"nothing":          {nil, ErrBackup},
		"another file":     {[]byte(strings.Repeat("x", 5000)), ErrBackup},
		"a longer one":     {append(slices.Clone(whole), 0), ErrBackup},
		"a newer one":      {with(func(m *Manifest) { m.Version = 2 }), store.ErrFormat},
		"a file outside":   {with(func(m *Manifest) { m.Files[0].Name = "../personal.md" }), ErrBackup},
		"an absolute file": {with(func(m *Manifest) { m.Files[0].Name = "/personal.md" }), ErrBackup},
		"a huge file":      {with(func(m *Manifest) { m.Files[0].Size = 1 << 60 }), ErrBackup},
		"a negative file":  {with(func(m *Manifest) { m.Files[0].Size = -1 }), ErrBackup},
		"another name":     {with(func(m *Manifest) { m.Node = "other" }), ErrBackup},
	}
	for name, c := range cases {
		refusedBackup(t, name, c.b, c.want)
	}
	for i := range 40 {
		at := i * len(whole) / 40
		refusedBackup(t, "truncated", whole[:at], nil)
		flipped := slices.Clone(whole)
		flipped[at] ^= 0x10
		refusedBackup(t, "flipped", flipped, nil)
	}
	refusedBackup(t, "without its last byte", whole[:len(whole)-1], ErrBackup)
}

// refusedBackup wants an error, nothing left beside the folder, and no folder.
func refusedBackup(t *testing.T, name string, b []byte, want error) {
	t.Helper()
	dir := t.TempDir()
	_, err := Restore(t.Context(), bytes.NewReader(b), filepath.Join(dir, "data"))
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("%s (%d bytes): %v, want %v", name, len(b), err, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%s: left behind %v, %v", name, left, err)
	}
	if _, err := VerifyBackup(t.Context(), bytes.NewReader(b), dir); err == nil {
		t.Errorf("%s: verified", name)
	}
}

func TestRestoreKeepsOffFolders(t *testing.T) {
	n := filled(t)
	whole := taken(t, n, false)
	_, err := Restore(t.Context(), bytes.NewReader(whole), n.Data())
	if !errors.Is(err, ErrNotEmpty) {
		t.Errorf("over a running node: %v", err)
	}
	closeNode(t, n)
	empty := t.TempDir()
	if _, err := Restore(t.Context(), bytes.NewReader(whole), empty); err != nil {
		t.Errorf("into an empty folder: %v", err)
	}
	if _, err := Restore(t.Context(), bytes.NewReader(whole), empty); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a second time: %v", err)
	}
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte(backupMagic))
	head := []byte(`{"version":1,"files":[{"name":"a","size":1}]}`)
	f.Add(slices.Concat([]byte(backupMagic), binary.BigEndian.AppendUint32(nil, uint32(len(head))), head, []byte("x\x00\x00\x00\x00")))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if _, err := Restore(t.Context(), bytes.NewReader(b), filepath.Join(dir, "d")); err == nil {
			t.Fatal("restored from nonsense")
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Fatalf("left %v", left)
		}
	})
}

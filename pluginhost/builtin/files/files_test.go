//go:build unix

package files_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/pluginhost"
	"homeagent/pluginhost/builtin/files"
)

// world is a plugin over a data folder and some folders of the owner.
type world struct {
	t      testing.TB
	p      *files.Plugin
	data   string
	number int
}

func settings(roots ...string) pluginhost.Settings {
	return pluginhost.Settings{
		configs.KeyFilesRoots: strings.Join(roots, ","), configs.KeyFilesMaxRead: "64KiB", configs.KeyFilesMaxWrite: "1KiB",
		configs.KeyFilesMaxEntries: "500",
	}
}

func newWorld(t testing.TB, roots ...string) *world {
	t.Helper()
	w := &world{t: t, data: t.TempDir()}
	w.p = files.New(w.data)
	if _, err := w.p.Configure(t.Context(), settings(roots...)); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) call(name string, args map[string]any) *messages.ToolResult {
	w.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	w.number++
	return w.p.Call(w.t.Context(), &messages.CallTool{Call: &messages.ToolInvocation{
		CallId: fmt.Sprint("T/c", w.number), Name: name, ArgumentsJson: b,
	}})
}

func (w *world) ok(name string, args map[string]any) map[string]any {
	w.t.Helper()
	r := w.call(name, args)
	if r.GetError() != nil {
		w.t.Fatalf("%s %v: %v", name, args, r.GetError())
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(r.GetContent()), &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) fails(reason, says, name string, args map[string]any) {
	w.t.Helper()
	r := w.call(name, args)
	e := r.GetError()
	if e.GetReason() != reason || !strings.Contains(e.GetDetail()+" "+e.GetHint(), says) {
		w.t.Errorf("%s %v: %v %q, want %s %q", name, args, e, r.GetContent(), reason, says)
	}
	if strings.Contains(e.GetDetail()+e.GetHint(), w.data) {
		w.t.Errorf("%s %v: %v shows where the data is", name, args, e)
	}
}

type m = map[string]any

func TestFirstUse(t *testing.T) {
	w := newWorld(t)
	if got := w.ok("files_list", m{}); fmt.Sprint(got["entries"]) != "[map[kind:folder name:files]]" {
		t.Errorf("folders: %v", got)
	}
	if got := w.ok("files_list", m{"path": "files"}); len(got["entries"].([]any)) != 0 {
		t.Errorf("a new folder holds %v", got)
	}
	got := w.ok("files_write", m{"path": "notes/today.md", "content": "Milk\n"})
	if got["path"] != "files/notes/today.md" || got["bytes"] != 5.0 {
		t.Errorf("written: %v", got)
	}
	if got := w.ok("files_read", m{"path": "files/notes/today.md"}); got["content"] != "Milk\n" || got["next_offset"] != nil {
		t.Errorf("read: %v", got)
	}
	w.ok("files_append", m{"path": "notes/today.md", "content": "Eggs\n"})
	if got := w.ok("files_read", m{"path": filepath.Join(w.data, "files", "notes", "today.md")}); got["content"] != "Milk\nEggs\n" {
		t.Errorf("read by its absolute path: %v", got)
	}
	list := w.ok("files_list", m{"path": "files/notes"})
	entry := list["entries"].([]any)[0].(map[string]any)
	if entry["name"] != "today.md" || entry["kind"] != "file" || entry["size"] != 10.0 || entry["modified"] == "" {
		t.Errorf("list: %v", list)
	}
}

func TestWriteModes(t *testing.T) {
	w := newWorld(t)
	w.ok("files_write", m{"path": "a", "content": "one"})
	t.Log("the same again, as after a crash, is no change and no failure")
	if got := w.ok("files_write", m{"path": "a", "content": "one"}); got["unchanged"] != true {
		t.Errorf("again: %v", got)
	}
	w.fails("failed", "overwrite", "files_write", m{"path": "a", "content": "two"})
	file := filepath.Join(w.data, "files", "a")
	if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // that it is kept is what is tested
		t.Fatal(err)
	}
	w.ok("files_write", m{"path": "a", "content": "two", "mode": "overwrite"})
	if b, err := os.ReadFile(file); string(b) != "two" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	w.ok("files_write", m{"path": "b", "content": "AAEC", "encoding": "base64"})
	if b, err := os.ReadFile(filepath.Join(w.data, "files", "b")); string(b) != "\x00\x01\x02" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	w.fails("type", "base64", "files_write", m{"path": "c", "content": "%", "encoding": "base64"})
	w.fails("type", "1024", "files_write", m{"path": "c", "content": strings.Repeat("x", 1025)})
	for _, e := range w.ok("files_list", m{"path": "files"})["entries"].([]any) {
		if name := e.(map[string]any)["name"]; name != "a" && name != "b" {
			t.Errorf("%v was left", name)
		}
	}
	left, err := filepath.Glob(filepath.Join(w.data, "files", ".homed-*"))
	if len(left) != 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestReadPieces(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("日記é\n", 60)
	if err := os.MkdirAll(filepath.Join(w.data, "files"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.data, "files", "long"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for offset, n := 0.0, 0; ; n++ {
		piece := w.ok("files_read", m{"path": "long", "offset": offset, "limit": 7})
		if !utf8.ValidString(piece["content"].(string)) || n > len(text) {
			t.Fatalf("piece %v", piece)
		}
		got.WriteString(piece["content"].(string))
		next, more := piece["next_offset"].(float64)
		if !more {
			break
		}
		offset = next
	}
	if got.String() != text {
		t.Errorf("the pieces are %q", got.String())
	}
	w.fails("type", fmt.Sprint(len(text)), "files_read", m{"path": "long", "offset": 10_000})
	if err := os.WriteFile(filepath.Join(w.data, "files", "x.png"), []byte("\x89PNG\r\n\x1a\n\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.fails("type", "image/png, 10 bytes", "files_read", m{"path": "x.png"})
	if got := w.ok("files_read", m{"path": "x.png", "encoding": "base64"}); got["content"] != "iVBORw0KGgoAAA==" {
		t.Errorf("bytes: %v", got)
	}
}

func TestRefusals(t *testing.T) {
	out, docs := t.TempDir(), t.TempDir()
	w := newWorld(t, docs)
	if err := os.WriteFile(filepath.Join(out, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": filepath.Join(out, "secret"), "dir": out, "up": "../..", "self": "self", "gone": "nothing"} {
		if err := os.Symlink(to, filepath.Join(docs, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(docs, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(docs, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"../x", "..", "sub/../../x", filepath.Join(out, "secret"), "/etc/passwd", "link", "dir/secret", "up/x", "dir"} {
		for _, tool := range []string{"files_read", "files_append"} {
			args := m{"path": p}
			if tool != "files_read" {
				args["content"] = "x"
			}
			w.fails("denied", "", tool, args)
		}
	}
	w.fails("denied", "leads out", "files_write", m{"path": "dir/new", "content": "x"})
	w.fails("denied", "leads out", "files_write", m{"path": "up/new/deep", "content": "x"})
	w.fails("denied", "no ordinary file", "files_read", m{"path": "pipe"})
	w.fails("denied", "no ordinary file", "files_append", m{"path": "pipe", "content": "x"})
	w.fails("type", "files_list", "files_read", m{"path": "sub"})
	w.fails("type", "files_list", "files_append", m{"path": "sub", "content": "x"})
	w.fails("type", "files_list", "files_write", m{"path": "sub", "content": "x", "mode": "overwrite"})
	w.fails("type", "Name a file", "files_write", m{"path": "sub/", "content": "x"})
	w.fails("type", "Name a file", "files_write", m{"path": ".", "content": "x"})
	w.ok("files_write", m{"path": "plain", "content": "x"})
	w.fails("type", "files_read", "files_list", m{"path": filepath.Base(docs) + "/plain"})
	w.fails("failed", "", "files_write", m{"path": "plain/below", "content": "x"})
	w.fails("not_found", "files_list", "files_read", m{"path": "nothing"})
	w.fails("type", "control", "files_read", m{"path": "a\x00b"})
	w.fails("type", "control", "files_read", m{"path": strings.Repeat("a", 5000)})
	w.fails("denied", "node's own", "files_write", m{"path": ".homed-0011223344556677.part", "content": "x"})
	w.fails("failed", "", "files_read", m{"path": "self"})
	w.fails("type", "", "files_read", m{"path": 5})
	w.fails("type", "unknown field", "files_read", m{"path": "a", "mode": "x"})
	if b, err := os.ReadFile(filepath.Join(out, "secret")); string(b) != "secret" || err != nil {
		t.Errorf("outside: %q, %v", b, err)
	}
	t.Log("a write replaces a link and not what it leads to")
	w.ok("files_write", m{"path": "link", "content": "mine", "mode": "overwrite"})
	if b, err := os.ReadFile(filepath.Join(out, "secret")); string(b) != "secret" || err != nil {
		t.Errorf("outside: %q, %v", b, err)
	}
}

func TestFolders(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "docs"), filepath.Join(t.TempDir(), "docs")
	for _, dir := range []string{a, b} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x"), []byte(dir), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, a, b, filepath.Join(a, "later"))
	if got := w.ok("files_read", m{"path": "docs-2/x"}); got["content"] != b {
		t.Errorf("the second folder: %v", got)
	}
	w.fails("not_found", "docs, docs-2, later", "files_read", m{"path": "x"})
	w.fails("not_found", "", "files_list", m{"path": "later"})
	if err := os.Mkdir(filepath.Join(a, "later"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.ok("files_list", m{"path": "later"})

	for _, bad := range []string{"relative/path", "/", w.data, filepath.Dir(w.data), filepath.Join(w.data, "store"), filepath.Join(w.data, "link")} {
		if err := os.MkdirAll(filepath.Join(w.data, "store"), 0o700); err != nil {
			t.Fatal(err)
		}
		_ = os.Symlink(w.data, filepath.Join(w.data, "link")) // there from the second time on
		if _, err := w.p.Configure(t.Context(), settings(bad)); err == nil || !strings.Contains(err.Error(), configs.KeyFilesRoots) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	w.ok("files_read", m{"path": "docs/x"}) // what was configured before stands
}

func TestGivenUp(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, args := range map[string]string{"files_write": `{"path":"a","content":"x"}`, "files_append": `{"path":"b","content":"x"}`} {
		r := w.p.Call(ctx, &messages.CallTool{Call: &messages.ToolInvocation{CallId: "c", Name: name, ArgumentsJson: []byte(args)}})
		if r.GetError().GetReason() != "cancelled" {
			t.Errorf("%s: %v", name, r)
		}
	}
	if got := w.ok("files_list", m{"path": "files"}); strings.Contains(fmt.Sprint(got), "name:a") {
		t.Errorf("written nevertheless: %v", got)
	}
}

// TestSwap turns a link that stays inside to the outside and back, again and again, while files below it are read and
// written.
func TestSwap(t *testing.T) {
	out, docs := t.TempDir(), t.TempDir()
	w := newWorld(t, docs)
	for dir, word := range map[string]string{out: "outside", filepath.Join(docs, "real"): "inside"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x"), []byte(word), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	turn := func(to string) error {
		next := filepath.Join(docs, "next")
		if err := os.Symlink(to, next); err != nil {
			return err
		}
		return os.Rename(next, filepath.Join(docs, "sub"))
	}
	if err := turn("real"); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			for _, to := range []string{out, "real"} {
				if err := turn(to); err != nil {
					t.Error(err)
					return
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	reads, denied := 0, 0
	for i := 0; i < 20_000 && (i < 1000 || reads == 0 || denied == 0); i++ {
		r := w.call("files_read", m{"path": "sub/x"})
		switch {
		case r.GetError().GetReason() == "denied":
			denied++
		case r.GetError() == nil:
			reads++
			if !strings.Contains(r.GetContent(), "inside") {
				t.Fatalf("read outside: %s", r.GetContent())
			}
		}
		if i%10 == 0 {
			w.call("files_write", m{"path": fmt.Sprint("sub/new", i), "content": "x", "mode": "overwrite"})
			w.call("files_append", m{"path": "sub/log", "content": "x"})
		}
	}
	close(stop)
	swapper.Wait()
	if reads == 0 || denied == 0 {
		t.Errorf("%d reads and %d refusals: nothing was raced", reads, denied)
	}
	left, err := os.ReadDir(out)
	if len(left) != 1 || err != nil {
		t.Errorf("written outside: %v, %v", left, err)
	}
}

// FuzzPath holds that no path reads what lies outside.
func FuzzPath(f *testing.F) {
	base := f.TempDir()
	docs := filepath.Join(base, "docs")
	if err := os.MkdirAll(filepath.Join(docs, "sub"), 0o700); err != nil {
		f.Fatal(err)
	}
	for _, file := range []string{"secret", "docs/x", "docs/sub/y"} {
		if err := os.WriteFile(filepath.Join(base, file), []byte(file), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink("../../secret", filepath.Join(docs, "sub", "l")); err != nil {
		f.Fatal(err)
	}
	w := newWorld(f, docs)
	for _, s := range []string{"docs/x", "../secret", "docs/../../secret", "sub/l", "sub/./y", base + "/secret", "docs//sub/y", "docs/sub/../../../secret"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		args, err := json.Marshal(m{"path": path})
		if err != nil {
			t.Skip()
		}
		for _, tool := range []string{"files_read", "files_list"} {
			r := w.p.Call(t.Context(), &messages.CallTool{Call: &messages.ToolInvocation{Name: tool, ArgumentsJson: args}})
			if strings.Contains(r.GetContent(), "secret") {
				t.Fatalf("%q: %s", path, r.GetContent())
			}
		}
	})
}

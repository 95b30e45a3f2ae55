package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files are the files of a data folder that fit a pattern; there must be one.
func files(t *testing.T, data, pattern string) []string {
	t.Helper()
	got, err := filepath.Glob(filepath.Join(data, "store", "db", pattern))
	if err != nil || len(got) == 0 {
		t.Fatalf("no file %s: %v", pattern, err)
	}
	return got
}

// killed is a node that was killed after some input, with tables and write-ahead files on disk.
func killed(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.start()
	n.ask("My sister Lena is allergic to walnuts.")
	n.stop() // writes the tables
	n.start()
	n.ask("My brother Tom plays the cello.")
	n.kill()
	remove(t, filepath.Join(n.data, "run", "homed.sock")) // nothing to copy
	return n
}

// copyOf is the same node over a copy of its data folder.
func (n *node) copyOf(t *testing.T) *node {
	t.Helper()
	c := newNode(t)
	if err := os.CopyFS(c.data, os.DirFS(n.data)); err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{"secret.key", "run/admin.token"} {
		if _, err := os.Stat(filepath.Join(c.data, private)); err == nil {
			if err := os.Chmod(filepath.Join(c.data, private), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// refuses starts the node, which must not start, and returns what it said.
func (n *node) refuses() string {
	n.t.Helper()
	n.launch()
	if code := n.wait(); code != 1 {
		n.t.Errorf("exit %d:\n%s", code, n.output)
	}
	said := n.output.String()
	if strings.Contains(said, "ready http") {
		n.t.Errorf("it started:\n%s", said)
	}
	return said
}

// flip changes one byte of a file at a share of what is used of it.
func flip(t *testing.T, name string, share float64) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(b, "\x00"))
	if used < 64 {
		t.Fatalf("%s holds %d bytes", name, used)
	}
	b[int(float64(used)*share)] ^= 0x40
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedStore damages the store of a killed node: it does not start, names what is wrong, and touches nothing.
func TestDamagedStore(t *testing.T) {
	origin := killed(t)
	for name, damage := range map[string]func(t *testing.T, data string) string{
		"write-ahead file flipped": func(t *testing.T, data string) string {
			f := files(t, data, "*.mem")[0]
			flip(t, f, 0.5)
			return filepath.Base(f)
		},
		"write-ahead file flipped at its end": func(t *testing.T, data string) string {
			f := files(t, data, "*.mem")[0]
			flip(t, f, 0.99)
			return filepath.Base(f)
		},
		"write-ahead file missing": func(t *testing.T, data string) string {
			remove(t, files(t, data, "*.mem")[0])
			return "write-ahead"
		},
		"table flipped": func(t *testing.T, data string) string {
			f := files(t, data, "*.sst")[0]
			flip(t, f, 0.3)
			return filepath.Base(f)
		},
		"table missing": func(t *testing.T, data string) string {
			f := files(t, data, "*.sst")[0]
			remove(t, f)
			return filepath.Base(f)
		},
		"manifest missing": func(t *testing.T, data string) string {
			remove(t, files(t, data, "MANIFEST")[0])
			return "manifest"
		},
		"mark missing": func(t *testing.T, data string) string {
			remove(t, filepath.Join(data, "store", "mark"))
			return "mark"
		},
		"newer format": func(t *testing.T, data string) string {
			f := filepath.Join(data, "store", "format")
			if err := os.WriteFile(f, []byte("homeagent store 99\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return "format 99"
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := origin.copyOf(t)
			part := damage(t, n.data)
			before := snapshot(t, filepath.Join(n.data, "store", "db"))
			for range 2 { // asking twice changes nothing
				said := n.refuses()
				if !strings.Contains(strings.ToLower(said), strings.ToLower(part)) {
					t.Errorf("it does not name %s:\n%s", part, said)
				}
			}
			if after := snapshot(t, filepath.Join(n.data, "store", "db")); after != before {
				t.Errorf("the files changed from\n%s\nto\n%s", before, after)
			}
			if name == "newer format" || name == "write-ahead file missing" || name == "mark missing" {
				return // there is nothing to copy, or it is not known what of it was promised
			}
			if kept, err := filepath.Glob(filepath.Join(n.data, "store", "aside", "*")); err != nil || len(kept) == 0 {
				t.Errorf("no copy was kept: %v %v", kept, err)
			}
		})
	}
}

// snapshot tells names, sizes and sums of the files in a folder.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d %x\n", e.Name(), len(text), sha256.Sum256(text))
	}
	return b.String()
}

// TestSalvage opens a damaged store when it is told to, and tells what was lost.
func TestSalvage(t *testing.T) {
	n := killed(t)
	flip(t, files(t, n.data, "*.mem")[0], 0.5)
	contains(t, n.refuses(), "--salvage")
	n.args = []string{"--salvage"}
	n.start()
	contains(t, n.output.String(), "level=WARN")
	contains(t, n.waiter("chat", "What did I tell you about Lena?").must(t).stdout, "walnuts")
	n.stop()
	n.args = nil
	n.start()
}

// TestTornTail cuts off what nobody was promised, and starts.
func TestTornTail(t *testing.T) {
	n := killed(t)
	f, err := os.OpenFile(files(t, n.data, "*.mem")[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(b, "\x00"))
	if _, err := f.WriteAt([]byte("half a record, as a power cut leaves it"), int64(end+4)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	n.start()
	contains(t, n.waiter("chat", "What did I tell you about Tom?").must(t).stdout, "cello")
}

// TestSecondNode refuses a second process on the folder and names the first one.
func TestSecondNode(t *testing.T) {
	n := newNode(t)
	n.start()
	second := command(t, "", "homed", "run", "--data", n.data, "--listen", "127.0.0.1:0")
	if second.code != 1 {
		t.Errorf("exit %d", second.code)
	}
	contains(t, second.stderr, "another homed runs", fmt.Sprintf("process %d", n.cmd.Process.Pid), n.data)
	n.ask("are you well?")
	n.kill()
	n.start() // a lock of the dead holds nobody up
	taken := newNode(t)
	taken.args = []string{"--listen", n.state().HTTP}
	contains(t, taken.refuses(), n.state().HTTP, "in use")
}

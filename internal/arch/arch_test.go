package arch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestRepository checks this repository. It fails where it read no file, or none of a kind that a rule is about.
func TestRepository(t *testing.T) {
	root, err := FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	var parsed, texts, states int
	for i := range tree.Files {
		f := &tree.Files[i]
		if f.Syntax != nil {
			parsed++
		}
		if f.Text != nil {
			texts++
		}
		if under(f.Path, "actors") && strings.HasPrefix(filepath.Base(f.Path), "state") {
			states++
		}
	}
	t.Logf("read %d files: %d text, %d Go, %d of pure steps", len(tree.Files), texts, parsed, states)
	if parsed == 0 || texts == 0 {
		t.Fatal("nothing was read, so nothing was checked")
	}
	for _, f := range Check(tree) {
		t.Error(f)
	}
	for _, f := range Smells(tree) {
		t.Log("smell: ", f)
	}
}

// TestRules runs the rules over small trees. The head of each archive names every finding that the tree must give, as
// "want path:line: rule"; a tree without such lines must give none.
func TestRules(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	shown := make(map[string]bool)
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(a.Comment)) {
				if w, ok := strings.CutPrefix(strings.TrimSpace(line), "want "); ok {
					want = append(want, w)
				}
			}
			var got []string
			for _, f := range Check(plant(t, a)) {
				shown[f.Rule] = true
				parts := strings.SplitN(f.String(), f.Rule, 2)
				got = append(got, parts[0]+f.Rule)
			}
			slices.Sort(want)
			slices.Sort(got)
			for _, w := range want {
				if !slices.Contains(got, w) {
					t.Errorf("not found: %s", w)
				}
			}
			for _, g := range got {
				if !slices.Contains(want, g) {
					t.Errorf("found though not wanted: %s", g)
				}
			}
		})
	}
	for _, rule := range []string{"import", "pure", "sleep", "future", "contract", "actor-row", "module", "root-entry", "root-package", "folder-name", "machine-path", "lock-url", "origin", "workshop", "promise"} {
		if !shown[rule] {
			t.Errorf("no tree shows that the rule %q fires", rule)
		}
	}
}

// plant writes an archive into a new folder and loads it.
func plant(t *testing.T, a *txtar.Archive) *Tree {
	t.Helper()
	root := t.TempDir()
	if err := txtar.Write(a, root); err != nil {
		t.Fatal(err)
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) != len(a.Files) {
		t.Fatalf("read %d of %d files", len(tree.Files), len(a.Files))
	}
	return tree
}

// TestRegistryHosts puts the names together from pieces, for this file is checked too.
func TestRegistryHosts(t *testing.T) {
	for _, host := range []string{"proxy.golang" + ".org", "https://registry.npmjs" + ".org/x", "DEB.debian" + ".org", "goproxy" + ".cn"} {
		tree := &Tree{Files: []File{{Path: "docs/a.md", Text: []byte("one\nget it from " + host + "\n")}}}
		got := Check(tree)
		if len(got) != 1 || got[0].Rule != "registry-host" || got[0].Line != 2 {
			t.Errorf("%s: %v", host, got)
		}
	}
	tree := &Tree{Files: []File{{Path: "docs/a.md", Text: []byte("go.org, npmjs, debian.org/policy and golang.org/x/sys\n")}}}
	if got := Check(tree); len(got) != 0 {
		t.Errorf("found in harmless text: %v", got)
	}
}

func TestNothingToReadIsAnError(t *testing.T) {
	if _, err := Load(t.TempDir()); !errors.Is(err, ErrEmpty) {
		t.Errorf("an empty folder gave %v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing folder gave no error")
	}
	root := t.TempDir()
	write(t, filepath.Join(root, "a.go"), "package ((")
	if _, err := Load(root); err == nil {
		t.Error("a Go file that does not parse gave no error")
	}
}

func TestOnlyTrackedFilesCount(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	if _, err := Load(root); !errors.Is(err, ErrEmpty) {
		t.Errorf("a checkout without tracked files gave %v", err)
	}
	write(t, filepath.Join(root, "README.md"), "hello\n")
	write(t, filepath.Join(root, "docs.md"), "gone\n")
	git("add", "README.md", "docs.md")
	write(t, filepath.Join(root, "deps.go"), "package homeagent")
	if err := os.Remove(filepath.Join(root, "docs.md")); err != nil {
		t.Fatal(err)
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) != 1 || tree.Files[0].Path != "README.md" {
		t.Errorf("read %v, want the one tracked file that is there", tree.Files)
	}
}

func TestSmells(t *testing.T) {
	long := strings.Repeat("\n", Smell+1)
	root := t.TempDir()
	write(t, filepath.Join(root, "a.go"), "package a"+long)
	write(t, filepath.Join(root, "b.go"), "package a\n")
	write(t, filepath.Join(root, "c.go"), "// Code generated by x. DO NOT EDIT.\n\npackage a"+long)
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := Smells(tree); len(got) != 1 || got[0].Path != "a.go" {
		t.Errorf("got %v, want a.go alone", got)
	}
}

// TestLintNamesTheSameOwners compares the rules with the linter's file: a pin or a row that one of them lacks is found.
func TestLintNamesTheSameOwners(t *testing.T) {
	root, err := FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	lint := string(data)
	for _, p := range Pins {
		name := p.Import
		if p.Exact {
			name += "$"
		}
		if !strings.Contains(lint, "pkg: "+name+",") {
			t.Errorf("the linter does not know the owner of %s", name)
		}
	}
	for _, r := range Rows {
		if strings.Count(r.Folder, "/") == 0 && !strings.Contains(lint, "${base-path}/"+r.Folder+"/**") {
			t.Errorf("the linter has no rule for %s", r.Folder)
		}
	}
}

// TestTableIsSound finds mistakes in the rules themselves.
func TestTableIsSound(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range Rows {
		if r.Why == "" {
			t.Errorf("row %s gives no reason", r.Folder)
		}
		if seen[r.Folder] {
			t.Errorf("row %s is there twice", r.Folder)
		}
		seen[r.Folder] = true
		top, _, _ := strings.Cut(r.Folder, "/")
		if !slices.Contains(Root, top) {
			t.Errorf("row %s lies under no entry of the root", r.Folder)
		}
	}
	for _, p := range Pins {
		if p.Why == "" {
			t.Errorf("pin %s gives no reason", p.Import)
		}
	}
	for _, p := range Phrases {
		if p.Why == "" {
			t.Errorf("phrase %s gives no reason", p.Rule)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"homeagent/providers/lua"
	"homeagent/providers/providertest"
)

const root = "../../.."

// TestDocumentIsUpToDate fails where docs/providers.md is not what the fixtures
// say.
func TestDocumentIsUpToDate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "providers.md")
	if err := write(file); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs", "providers.md"))
	if err != nil || string(got) != string(want) {
		t.Errorf("docs/providers.md is not up to date: run go generate ./providers/providertest (%v)", err)
	}
}

// TestNamedTestsExist looks for each Go test that the document names.
func TestNamedTestsExist(t *testing.T) {
	have := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	for _, dir := range []string{"providers", "actors/provider"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(b, -1) {
				have[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := providertest.Facts()
	if err != nil || len(list) < 50 {
		t.Fatalf("%d facts, %v", len(list), err)
	}
	for _, f := range list {
		for _, name := range f.Tests {
			if !have[name] {
				t.Errorf("%s names the test %s, which does not exist", f.ID, name)
			}
		}
	}
	for _, f := range features {
		if f.test != "" && !have[f.test] {
			t.Errorf("%s names the test %s, which does not exist", f.name, f.test)
		}
	}
}

// TestReasonsAreNeeded finds reasons for cells that have a fixture after all, or
// that belong to nobody.
func TestReasonsAreNeeded(t *testing.T) {
	e, err := lua.New("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	all, err := providertest.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for adapter, why := range lacks {
		for name := range why {
			i := slices.IndexFunc(features, func(f feature) bool { return f.name == name })
			if i < 0 || !e.Knows(adapter) {
				t.Errorf("%s, %s: there is no such cell", adapter, name)
				continue
			}
			for _, entry := range all {
				if entry.Family == adapter && features[i].shows(entry) {
					t.Errorf("%s, %s: %s shows it", adapter, name, entry.Name)
				}
			}
		}
	}
}

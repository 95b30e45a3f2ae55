package arch

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ErrEmpty says that a tree has no file to check: a check of nothing must not pass.
var ErrEmpty = errors.New("the tree has no files")

// textLimit is the size above which a file is not searched for phrases (data, not prose).
const textLimit = 4 << 20

// Tree is a repository read into memory, in the order of its paths.
type Tree struct {
	Files []File
}

// File is one tracked file. Path is slash-separated and relative to the root.
type File struct {
	Path string
	// Text is the content; nil for a binary file and for one above 4 MiB.
	Text []byte
	// Syntax is set for Go files.
	Syntax *ast.File
	set    *token.FileSet
}

// folder is the path of the package that a file belongs to.
func (f *File) folder() string { return path.Dir(f.Path) }

func (f *File) isTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

func (f *File) isGenerated() bool { return f.Syntax != nil && ast.IsGenerated(f.Syntax) }

// isGenerator says whether the file is kept out of every build, as programs behind go:generate are.
func (f *File) isGenerator() bool {
	head, _, _ := bytes.Cut(f.Text, []byte("\npackage "))
	return bytes.HasPrefix(head, []byte("//go:build ignore\n")) || bytes.Contains(head, []byte("\n//go:build ignore\n"))
}

func (f *File) line(pos token.Pos) int { return f.set.Position(pos).Line }

// FindRoot walks up from dir to the folder that holds go.mod.
func FindRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir || !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find go.mod: %w", err)
		}
		dir = up
	}
}

// Load reads the tree at root. Where root is the top of a git checkout only tracked files count; elsewhere (a source
// archive, a made-up tree) every file does. A tree without files is [ErrEmpty]; a Go file that does not parse is an
// error, since its imports could not be judged.
func Load(root string) (*Tree, error) {
	paths, err := list(root)
	if err != nil {
		return nil, err
	}
	t := &Tree{}
	set := token.NewFileSet()
	for _, p := range paths {
		f, err := read(root, p, set)
		if errors.Is(err, fs.ErrNotExist) {
			continue // tracked, and deleted in the work tree
		}
		if err != nil {
			return nil, err
		}
		t.Files = append(t.Files, *f)
	}
	if len(t.Files) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrEmpty, root)
	}
	return t, nil
}

func read(root, p string, set *token.FileSet) (*File, error) {
	full := filepath.Join(root, filepath.FromSlash(p))
	info, err := os.Lstat(full)
	if err != nil {
		return nil, err
	}
	f := &File{Path: p, set: set}
	if !info.Mode().IsRegular() || info.Size() > textLimit {
		return f, nil
	}
	data, err := os.ReadFile(full)
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0 {
		f.Text = data
	}
	if strings.HasSuffix(p, ".go") && !inTestdata(p) {
		f.Syntax, err = parser.ParseFile(set, p, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
	}
	return f, nil
}

// inTestdata says whether the go tool ignores the file's folder; such Go files are data.
func inTestdata(p string) bool {
	return slices.Contains(strings.Split(path.Dir(p), "/"), "testdata")
}

func list(root string) ([]string, error) {
	if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
		return tracked(root)
	}
	return walk(root)
}

func tracked(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", root, err)
	}
	paths := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" }), nil
}

func walk(root string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == ".git" || name == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, p)
		paths = append(paths, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("walk %s: %w", root, err)
	}
	return paths, nil
}

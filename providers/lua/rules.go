package lua

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"slices"
	"time"

	"homeagent/providers"
)

// Rules say which files of the folder may run in this process, where a script that
// means harm could take all of its memory. Safe for concurrent use.
type Rules struct {
	// Trusted tells whether a file with this name and Sum was confirmed.
	Trusted func(name, sum string) bool
	// Print changes whenever an answer of Trusted may have.
	Print func() string
	// Apart runs an adapter in another process. files are all of the folder, by
	// name; the callee keeps them.
	Apart func(name string, files map[string][]byte) (Apart, error)
}

// Apart is an adapter that runs in another process.
type Apart interface {
	providers.Adapter
	// Close ends the processes that are idle; those in use go with their calls. It
	// may be called twice.
	Close()
}

// Sum is by what a confirmed file is known: an edit makes it another.
func Sum(src []byte) string {
	sum := sha256.Sum256(src)
	return hex.EncodeToString(sum[:])
}

// memory is a folder of files in memory.
type memory map[string][]byte

// Open implements fs.FS.
func (m memory) Open(name string) (fs.File, error) {
	if name == "." {
		return &listing{m: m}, nil
	}
	b, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &opened{Reader: bytes.NewReader(b), stat: stat{name: name, size: int64(len(b))}}, nil
}

type opened struct {
	*bytes.Reader
	stat stat
}

// Stat implements fs.File.
func (o *opened) Stat() (fs.FileInfo, error) { return o.stat, nil }

// Close implements fs.File.
func (o *opened) Close() error { return nil }

// listing is the folder itself.
type listing struct {
	m    memory
	read bool
}

// Stat implements fs.File.
func (l *listing) Stat() (fs.FileInfo, error) { return stat{name: ".", mode: fs.ModeDir}, nil }

// Read implements fs.File.
func (l *listing) Read([]byte) (int, error) { return 0, fs.ErrInvalid }

// Close implements fs.File.
func (l *listing) Close() error { return nil }

// ReadDir implements fs.ReadDirFile, all at once.
func (l *listing) ReadDir(int) ([]fs.DirEntry, error) {
	if l.read {
		return nil, nil
	}
	l.read = true
	var out []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(l.m)) {
		out = append(out, fs.FileInfoToDirEntry(stat{name: name, size: int64(len(l.m[name]))}))
	}
	return out, nil
}

type stat struct {
	name string
	size int64
	mode fs.FileMode
}

// Name implements fs.FileInfo.
func (s stat) Name() string { return s.name }

// Size implements fs.FileInfo.
func (s stat) Size() int64 { return s.size }

// Mode implements fs.FileInfo.
func (s stat) Mode() fs.FileMode { return s.mode }

// ModTime implements fs.FileInfo.
func (s stat) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (s stat) IsDir() bool { return s.mode.IsDir() }

// Sys implements fs.FileInfo.
func (s stat) Sys() any { return nil }

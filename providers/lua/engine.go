package lua

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/adapters"
)

// maxFile caps an adapter file.
const maxFile = 1 << 20

// keepStates is how many idle interpreters an adapter keeps.
const keepStates = 2

// freshFor is how long the folder is taken for unchanged after a look at it.
const freshFor = time.Second

// Engine holds all adapters. Safe for concurrent use.
type Engine struct {
	dir string
	log *slog.Logger
	// rules may be nil.
	rules *Rules
	// given are files that take the place of a folder.
	given fs.FS
	// fresh is freshFor, but for tests.
	fresh time.Duration

	mu     sync.RWMutex
	shelf  shelf
	print  string
	looked time.Time
}

// New offers the embedded adapters and the files *.lua of dir, which take the
// place of embedded ones with the same name; an empty or missing dir has none. A
// broken file breaks only its own adapter and those that build on it. A file that
// is changed, added or removed later is noticed within a second. The error is
// that of reading the folder.
//
// All scripts run in this process; Guarded is for folders that others write to.
func New(dir string, log *slog.Logger) (*Engine, error) { return Guarded(dir, log, nil) }

// Guarded is New with rules about the files of dir, which are asked again at each
// look at the folder.
func Guarded(dir string, log *slog.Logger, rules *Rules) (*Engine, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{dir: dir, log: log, rules: rules, fresh: freshFor}
	return e, e.Reload()
}

// Given is New with files in memory in place of a folder, by their names.
func Given(files map[string][]byte, log *slog.Logger) (*Engine, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{given: memory(files), log: log, fresh: freshFor}
	return e, e.Reload()
}

// Reload reads all files again. Calls under way keep the adapters they have.
func (e *Engine) Reload() error {
	print, err := e.fingerprint()
	if err != nil {
		return err
	}
	next := make(shelf)
	if err := e.fill(next, adapters.Files, "embedded/"); err != nil {
		return err
	}
	if e.dir != "" {
		if err := e.fill(next, os.DirFS(e.dir), e.dir+string(filepath.Separator)); err != nil {
			return err
		}
	}
	if e.given != nil {
		if err := e.fill(next, e.given, ""); err != nil {
			return err
		}
	}
	for _, b := range next.sorted() {
		if b.own && !b.strange() { // somebody wrote it here: say at once what is wrong with it
			if _, err := b.open(); err != nil {
				e.log.Warn("adapter is broken", "file", b.file, "error", err)
			}
		}
	}
	e.mu.Lock()
	old := e.shelf
	e.shelf, e.print, e.looked = next, print, time.Now()
	e.mu.Unlock()
	old.close()
	return nil
}

// fingerprint changes with every change of the folder's files.
func (e *Engine) fingerprint() (string, error) {
	if e.dir == "" {
		return "", nil
	}
	names, err := fs.Glob(os.DirFS(e.dir), "*.lua")
	if err != nil {
		return "", fmt.Errorf("adapters of %s: %w", e.dir, err)
	}
	var b strings.Builder
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(e.dir, name)); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	if e.rules != nil && e.rules.Print != nil {
		b.WriteString(e.rules.Print())
	}
	return b.String(), nil
}

// look reloads when the folder has changed since the last look.
func (e *Engine) look() {
	e.mu.RLock()
	due := e.dir != "" && time.Since(e.looked) >= e.fresh
	print := e.print
	e.mu.RUnlock()
	if !due {
		return
	}
	now, err := e.fingerprint()
	if err == nil && now != print {
		err = e.Reload()
		e.log.Info("adapters were read again", "folder", e.dir)
	}
	if err != nil {
		e.log.Warn("adapters cannot be read again", "error", err)
	}
	e.mu.Lock()
	e.looked = time.Now()
	e.mu.Unlock()
}

func (e *Engine) fill(into shelf, files fs.FS, prefix string) error {
	names, err := fs.Glob(files, "*.lua")
	if err != nil {
		return fmt.Errorf("adapters of %s: %w", prefix, err)
	}
	for _, name := range names {
		key := strings.TrimSuffix(name, ".lua")
		into[key] = &book{key: key, name: name, file: prefix + name, files: files, own: prefix != "embedded/", log: e.log, shelf: into, rules: e.rules}
	}
	return nil
}

// broken gives the failure that a source of this adapter meets.
func broken(name string, err error) *providers.Failure {
	var told *providers.Failure
	if errors.As(err, &told) {
		return told // by the process that it runs in
	}
	return &providers.Failure{
		Kind:    messages.ErrorKind_ERROR_KIND_ADAPTER,
		Message: fmt.Sprintf("the adapter %s is broken: %s", name, err),
		Hint:    providers.Hint(messages.ErrorKind_ERROR_KIND_ADAPTER),
	}
}

// Adapter gives an adapter by name; see providers.Adapters.
func (e *Engine) Adapter(name string) (providers.Adapter, error) {
	e.look()
	e.mu.RLock()
	b, ok := e.shelf[name]
	names := e.shelf
	e.mu.RUnlock()
	if !ok || isPart(name) {
		list := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), isPart)
		return nil, fmt.Errorf("%w %q: there are %s", providers.ErrUnknownAdapter, name, strings.Join(list, ", "))
	}
	a, err := b.open()
	if err != nil {
		return nil, broken(name, err)
	}
	return a, nil
}

// Knows tells whether there is an adapter of a name, be it broken.
func (e *Engine) Knows(name string) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.shelf[name] != nil && !isPart(name)
}

// Info describes an adapter; empty when there is none or it is broken.
func (e *Engine) Info(name string) providers.Info {
	a, err := e.Adapter(name)
	if err != nil {
		return providers.Info{}
	}
	return a.Info()
}

// Status is one adapter as people see it.
type Status struct {
	// Info is empty but for Name and File when the adapter is broken.
	Info providers.Info
	// Err says why it is broken; empty when it is not.
	Err string
}

// List gives all adapters by name.
func (e *Engine) List() []Status {
	e.look()
	e.mu.RLock()
	books := e.shelf.sorted()
	e.mu.RUnlock()
	out := make([]Status, 0, len(books))
	for _, b := range books {
		if isPart(b.key) {
			continue
		}
		a, err := b.open()
		if err != nil {
			out = append(out, Status{Info: providers.Info{Name: b.key, File: b.file}, Err: broken(b.key, err).Message})
			continue
		}
		out = append(out, Status{Info: a.Info()})
	}
	return out
}

// Close drops all interpreters that are idle; those in use go with their calls.
func (e *Engine) Close() {
	e.mu.RLock()
	defer e.mu.RUnlock()
	e.shelf.close()
}

// failed turns an error of a script into a failure of the kind adapter.
func failed(name string, err error) error {
	var f *providers.Failure
	if errors.As(err, &f) {
		return err
	}
	return broken(name, err)
}

// Check loads one file as the adapter of its name, with all others of e beside
// it, and says what it is. The error names file and line.
func (e *Engine) Check(ctx context.Context, path string) (providers.Info, error) {
	name := filepath.Base(path)
	key, ok := strings.CutSuffix(name, ".lua")
	if !ok {
		return providers.Info{}, fmt.Errorf("%s: an adapter's file ends in .lua", path)
	}
	e.mu.RLock()
	next := make(shelf, len(e.shelf)+1)
	for k, b := range e.shelf {
		next[k] = &book{key: k, name: b.name, file: b.file, files: b.files, log: e.log, shelf: next}
	}
	e.mu.RUnlock()
	defer next.close()
	b := &book{key: key, name: name, file: path, files: os.DirFS(filepath.Dir(path)), log: e.log, shelf: next}
	next[key] = b
	if isPart(key) {
		_, err := b.compile()
		return providers.Info{Name: key, File: path}, err
	}
	a, err := b.open()
	if err != nil {
		return providers.Info{}, err
	}
	return a.Info(), tried(ctx, a)
}

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

	"homeagent/internal/luavm"
	"homeagent/messages"
	"homeagent/providers"
	"homeagent/providers/adapters"
)

// maxFile caps an adapter file.
const maxFile = 1 << 20

// keepStates is how many idle interpreters an adapter keeps.
const keepStates = 2

// Engine holds all adapters. Safe for concurrent use.
type Engine struct {
	dir string
	log *slog.Logger

	mu       sync.RWMutex
	adapters map[string]*entry
}

// entry is a loaded adapter, or why it cannot be used.
type entry struct {
	adapter *adapter
	err     *providers.Failure
	file    string
}

// New loads the embedded adapters and then the files *.lua of dir, which take
// the place of embedded ones with the same name; an empty or missing dir has
// none. A broken file breaks only its own adapter. The error is that of reading
// the folder.
func New(dir string, log *slog.Logger) (*Engine, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{dir: dir, log: log}
	return e, e.Reload()
}

// Reload reads all files again. Calls under way keep the adapters they have.
func (e *Engine) Reload() error {
	loaded := make(map[string]*entry)
	if err := e.load(loaded, adapters.Files, "embedded/"); err != nil {
		return err
	}
	if e.dir != "" {
		if err := e.load(loaded, os.DirFS(e.dir), e.dir+string(filepath.Separator)); err != nil {
			return err
		}
	}
	e.mu.Lock()
	old := e.adapters
	e.adapters = loaded
	e.mu.Unlock()
	for _, o := range old {
		if o.adapter != nil {
			o.adapter.pool.Close()
		}
	}
	return nil
}

func (e *Engine) load(into map[string]*entry, files fs.FS, prefix string) error {
	names, err := fs.Glob(files, "*.lua")
	if err != nil {
		return fmt.Errorf("adapters of %s: %w", prefix, err)
	}
	for _, name := range names {
		a, err := e.read(files, name, prefix+name)
		key := strings.TrimSuffix(name, ".lua")
		if err != nil {
			e.log.Warn("adapter is broken", "file", prefix+name, "error", err)
			into[key] = &entry{file: prefix + name, err: broken(key, err)}
			continue
		}
		into[key] = &entry{adapter: a, file: prefix + name}
	}
	return nil
}

func (e *Engine) read(files fs.FS, name, shown string) (*adapter, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe or a device would be read for ever
		return nil, fmt.Errorf("%s: is no plain file", shown)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", shown, maxFile)
	}
	src, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	prog, err := luavm.Compile(shown, src)
	if err != nil {
		return nil, err
	}
	key := strings.TrimSuffix(name, ".lua")
	opts := luavm.Options{Print: func(line string) { e.log.Info("adapter says", "adapter", key, "text", line) }}
	state, err := luavm.New(context.Background(), prog, opts)
	if err != nil {
		return nil, err
	}
	out, err := inspect(state.Exports(), key, shown)
	if err != nil {
		state.Close()
		return nil, err
	}
	out.pool = luavm.NewPool(prog, opts, keepStates)
	out.pool.Put(state)
	return out, nil
}

// broken gives the failure that a source of this adapter meets.
func broken(name string, err error) *providers.Failure {
	return &providers.Failure{
		Kind:    messages.ErrorKind_ERROR_KIND_ADAPTER,
		Message: fmt.Sprintf("the adapter %s is broken: %s", name, err),
		Hint:    providers.Hint(messages.ErrorKind_ERROR_KIND_ADAPTER),
	}
}

// Adapter gives an adapter by name; see providers.Adapters.
func (e *Engine) Adapter(name string) (providers.Adapter, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	got, ok := e.adapters[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w %q: there are %s", providers.ErrUnknownAdapter, name, strings.Join(slices.Sorted(maps.Keys(e.adapters)), ", "))
	case got.err != nil:
		f := *got.err
		return nil, &f
	}
	return got.adapter, nil
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
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := make([]Status, 0, len(e.adapters))
	for _, name := range slices.Sorted(maps.Keys(e.adapters)) {
		got := e.adapters[name]
		if got.err != nil {
			out = append(out, Status{Info: providers.Info{Name: name, File: got.file}, Err: got.err.Message})
			continue
		}
		out = append(out, Status{Info: got.adapter.info})
	}
	return out
}

// Close drops all interpreters that are idle; those in use go with their calls.
func (e *Engine) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, got := range e.adapters {
		if got.adapter != nil {
			got.adapter.pool.Close()
		}
	}
}

// failed turns an error of a script into a failure of the kind adapter.
func failed(name string, err error) error {
	var f *providers.Failure
	if errors.As(err, &f) {
		return err
	}
	return broken(name, err)
}

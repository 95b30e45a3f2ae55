package lua

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"homeagent/internal/luavm"
)

// shelf holds what was found at one reading, by name.
type shelf map[string]*book

func (s shelf) sorted() []*book {
	out := make([]*book, 0, len(s))
	for _, k := range slices.Sorted(maps.Keys(s)) {
		out = append(out, s[k])
	}
	return out
}

func (s shelf) close() {
	for _, b := range s {
		b.mu.Lock()
		if b.adapter != nil {
			b.adapter.pool.Close()
		}
		b.mu.Unlock()
	}
}

// isPart tells that a file is no adapter but a part that adapters use.
func isPart(key string) bool { return strings.HasPrefix(key, "_") }

// book is one file. It is compiled when first needed, and once.
type book struct {
	key, name, file string
	files           fs.FS
	// own tells that it is a file of the data folder.
	own   bool
	log   *slog.Logger
	shelf shelf

	once sync.Once
	prog *luavm.Program
	err  error

	mu      sync.Mutex
	opened  bool
	adapter *adapter
	failed  error
}

// compile reads and compiles the file.
func (b *book) compile() (*luavm.Program, error) {
	b.once.Do(func() { b.prog, b.err = b.read() })
	return b.prog, b.err
}

func (b *book) read() (*luavm.Program, error) {
	info, err := fs.Stat(b.files, b.name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe or a device would be read for ever
		return nil, fmt.Errorf("%s: is no plain file", b.file)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", b.file, maxFile)
	}
	src, err := fs.ReadFile(b.files, b.name)
	if err != nil {
		return nil, err
	}
	return luavm.Compile(b.file, src)
}

// open gives the adapter in the file, or why there is none.
func (b *book) open() (*adapter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.opened {
		b.adapter, b.failed = b.make()
		b.opened = true
	}
	return b.adapter, b.failed
}

func (b *book) make() (*adapter, error) {
	prog, err := b.compile()
	if err != nil {
		return nil, err
	}
	opts := luavm.Options{
		Print: func(line string) { b.log.Info("adapter says", "adapter", b.key, "text", line) },
		Funcs: map[string]luavm.Host{"log": b.logLine, "http_get": httpGet, "http_post": httpPost, "escape": escape},
		Use:   b.use,
		Ready: func(s *luavm.State) error {
			err := inherit(s)
			var placed *luavm.Error
			if err != nil && !errors.As(err, &placed) {
				err = fmt.Errorf("%s: %w", b.file, err)
			}
			return err
		},
	}
	state, err := luavm.New(context.Background(), prog, opts)
	if err != nil {
		return nil, err
	}
	out, err := inspect(state.Exports(), b.key, b.file)
	if err == nil {
		out.options, err = state.Encode(optionsOf(state))
	}
	if err != nil {
		state.Close()
		return nil, err
	}
	out.pool = luavm.NewPool(prog, opts, keepStates)
	out.pool.Put(state)
	return out, nil
}

func optionsOf(s *luavm.State) luavm.Value {
	if v := s.Exports().Get("options"); v.Kind() == luavm.Table {
		return v
	}
	return s.Object()
}

// use finds the program of another file of the same reading.
func (b *book) use(name string) (*luavm.Program, error) {
	other, ok := b.shelf[name]
	if other == b {
		return nil, fmt.Errorf("%s uses itself", name)
	}
	if !ok {
		return nil, fmt.Errorf("there is no file %s.lua to use", name)
	}
	return other.compile()
}

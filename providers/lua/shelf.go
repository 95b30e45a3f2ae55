package lua

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"homeagent/internal/luavm"
	"homeagent/providers"
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
		if c, ok := b.adapter.(interface{ close() }); ok {
			c.close()
		}
		if b.apart != nil {
			b.apart.Close()
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
	// rules say whose scripts run here; nil lets all.
	rules *Rules

	load sync.Once
	src  []byte
	lost error

	judge   sync.Once
	foreign bool

	once sync.Once
	prog *luavm.Program
	err  error

	mu     sync.Mutex
	opened bool
	// adapter is an *adapter, or what apart gave.
	adapter providers.Adapter
	apart   Apart
	failed  error
	// leans tells that a file which may not run here was asked for while this one was loaded; under mu.
	leans bool
}

// strange tells that the file may not run in this process: it comes from the data
// folder, and nobody has said that it may.
func (b *book) strange() bool {
	b.judge.Do(func() {
		if !b.own || b.rules == nil {
			return
		}
		src, err := b.source()
		b.foreign = err == nil && !b.rules.Trusted(b.name, Sum(src))
	})
	return b.foreign
}

// source gives the text of the file, as it was when it was first asked for.
func (b *book) source() ([]byte, error) {
	b.load.Do(func() { b.src, b.lost = b.read() })
	return b.src, b.lost
}

// compile reads and compiles the file.
func (b *book) compile() (*luavm.Program, error) {
	b.once.Do(func() {
		src, err := b.source()
		if err != nil {
			b.err = err
			return
		}
		b.prog, b.err = luavm.Compile(b.file, src)
	})
	return b.prog, b.err
}

func (b *book) read() ([]byte, error) {
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
	f, err := b.files.Open(b.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	// It may have grown since.
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(src) > maxFile {
		err = fmt.Errorf("%s: larger than %d bytes", b.file, maxFile)
	}
	return src, err
}

// open gives the adapter in the file, or why there is none.
func (b *book) open() (providers.Adapter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened {
		return b.adapter, b.failed
	}
	b.opened = true
	if !b.strange() {
		a, err := b.make()
		if err == nil && !b.leans {
			b.adapter = a
			return a, nil
		}
		if a != nil {
			a.pool.Close()
		}
		if b.failed = err; !b.leans {
			return nil, err
		}
	}
	b.adapter, b.failed = b.elsewhere()
	return b.adapter, b.failed
}

// elsewhere gives the adapter from another process, which gets all files of the
// folder: this one may build on any of them.
func (b *book) elsewhere() (providers.Adapter, error) {
	files := make(map[string][]byte)
	for _, other := range b.shelf {
		if !other.own {
			continue
		}
		src, err := other.source()
		if err != nil {
			if other == b {
				return nil, err
			}
			continue // it is missing there as it is here
		}
		files[other.name] = src
	}
	b.log.Info("an adapter runs in a process of its own until somebody confirms its file", "file", b.file, "adapter", b.key)
	apart, err := b.rules.Apart(b.key, files)
	if err != nil {
		return nil, err
	}
	b.apart = apart
	return apart, nil
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
	if other.strange() {
		b.leans = true // noted here as well: a script may catch the error
		return nil, fmt.Errorf("%s may not run in this process", other.file)
	}
	return other.compile()
}

package obs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
)

const (
	defaultMaxBytes = 16 << 20
	defaultKeep     = 4
	logMode         = 0o600
)

// rotator is an append-only file that is set aside when the next line would take it over its size. One line is never
// split over two files. Safe for concurrent use.
type rotator struct {
	mu   sync.Mutex
	path string
	max  int64
	keep int
	file *os.File // nil after Close, or after a rotation that could not reopen
	size int64
	shut bool
}

func openRotator(path string, maxBytes int64, keep int) (*rotator, error) {
	if maxBytes <= 0 {
		maxBytes = defaultMaxBytes
	}
	if keep <= 0 {
		keep = defaultKeep
	}
	r := &rotator{path: path, max: maxBytes, keep: keep}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// open appends to what is there: a restart goes on in the same file.
func (r *rotator) open() error {
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, logMode)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.file, r.size = f, info.Size()
	return nil
}

func (r *rotator) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shut {
		return 0, ErrClosed
	}
	if r.file == nil { // an earlier rotation could not reopen; perhaps there is room again
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	if r.size > 0 && r.size+int64(len(p)) > r.max {
		if err := r.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := r.file.Write(p)
	r.size += int64(n)
	return n, err
}

// rotate shifts path.1 to path.2 and so on, the oldest falling off the end, then path to path.1, and opens a new file.
func (r *rotator) rotate() error {
	err := r.file.Close()
	r.file = nil
	if err != nil {
		return fmt.Errorf("close full log: %w", err)
	}
	for i := r.keep; i > 0; i-- {
		from := r.path
		if i > 1 {
			from = r.aside(i - 1)
		}
		if err := os.Rename(from, r.aside(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set log aside: %w", err)
		}
	}
	return r.open()
}

func (r *rotator) aside(i int) string { return r.path + "." + strconv.Itoa(i) }

// Close syncs and closes the file. A second Close does nothing.
func (r *rotator) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut = true
	if r.file == nil {
		return nil
	}
	err := errors.Join(r.file.Sync(), r.file.Close())
	r.file = nil
	return err
}

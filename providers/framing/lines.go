package framing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lines reads lines of any length up to limit. A lone CR ends a line only when
// cr is set (SSE); a CR at the end of what has arrived ends its line at once,
// and a LF that follows later is skipped: waiting for it could hang.
type lines struct {
	src   io.Reader
	limit int
	cr    bool

	buf        []byte
	start, end int
	// seen is how far the open line has been searched.
	seen   int
	skipLF bool
	err    error
}

const (
	chunk = 16 << 10
	// keep is the largest buffer held on to after a long line.
	keep = 1 << 20
)

// next gives one line without its end. closed is false for the rest that a body
// without a last line end leaves. The slice is valid until the next call.
func (l *lines) next() (line []byte, closed bool, err error) {
	l.seen = l.start
	for {
		if l.skipLF && l.start < l.end {
			if l.buf[l.start] == '\n' {
				l.start++
				l.seen = max(l.seen, l.start)
			}
			l.skipLF = false
		}
		if i := l.find(l.buf[l.seen:l.end]); i >= 0 {
			at := l.seen + i
			line = l.buf[l.start:at]
			l.start = at + 1
			l.skipLF = l.buf[at] == '\r'
			return line, true, l.fits(line)
		}
		l.seen = l.end
		if l.end-l.start > l.limit {
			return nil, false, l.fits(l.buf[l.start:l.end])
		}
		if l.err != nil {
			line, l.start = l.buf[l.start:l.end], l.end
			if len(line) > 0 && errors.Is(l.err, io.EOF) {
				return line, false, nil
			}
			return nil, false, l.err
		}
		l.fill()
	}
}

func (l *lines) fits(line []byte) error {
	if len(line) > l.limit {
		return fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, l.limit)
	}
	return nil
}

func (l *lines) find(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if !l.cr {
		return i
	}
	if i >= 0 {
		b = b[:i]
	}
	if j := bytes.IndexByte(b, '\r'); j >= 0 {
		return j
	}
	return i
}

func (l *lines) fill() {
	if l.start > 0 {
		n := copy(l.buf, l.buf[l.start:l.end])
		if n == 0 && len(l.buf) > keep {
			l.buf = nil
		}
		l.seen -= l.start
		l.start, l.end = 0, n
	}
	if len(l.buf)-l.end < chunk/2 {
		grown := make([]byte, max(chunk, 2*len(l.buf)))
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	for range 100 {
		n, err := l.src.Read(l.buf[l.end:])
		l.end += n
		if err != nil {
			l.err = err
			return
		}
		if n > 0 {
			return
		}
	}
	l.err = io.ErrNoProgress
}

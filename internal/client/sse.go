package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxFrame bounds one frame of a stream, in bytes: a model round with its whole request is the largest.
const maxFrame = 64 << 20

// frame is one server-sent event.
type frame struct {
	id, name string
	data     []byte
}

// decoder reads frames by the rules of server-sent events: lines end in LF, CR or CRLF, a frame ends with an empty line,
// comments and unknown fields are left out, and a frame cut off by the end of the stream does not count.
type decoder struct {
	r      *bufio.Reader
	first  bool
	skipLF bool
	// max bounds a frame.
	max int
	// alive is called at each line, comments included; may be nil.
	alive func()
}

func newDecoder(r io.Reader, alive func()) *decoder {
	return &decoder{r: bufio.NewReader(r), first: true, max: maxFrame, alive: alive}
}

// next returns the next frame that has data.
func (d *decoder) next() (frame, error) {
	var f frame
	size, any := 0, false
	for {
		line, err := d.line(d.max - size)
		if err != nil {
			return frame{}, err
		}
		if d.alive != nil {
			d.alive()
		}
		size += len(line)
		if len(line) == 0 {
			if any {
				return f, nil
			}
			f, size = frame{}, 0
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if any {
				f.data = append(f.data, '\n')
			}
			f.data, any = append(f.data, value...), true
		case "event":
			f.name = string(value)
		case "id":
			if !bytes.ContainsRune(value, 0) {
				f.id = string(value)
			}
		}
	}
}

// line reads one line without its end, of at most limit bytes.
func (d *decoder) line(limit int) ([]byte, error) {
	var out []byte
	for {
		b, err := d.r.ReadByte()
		if err != nil {
			return nil, err // a line cut off is no line
		}
		if d.skipLF {
			d.skipLF = false
			if b == '\n' {
				continue
			}
		}
		switch b {
		case '\r':
			d.skipLF = true
			return d.whole(out), nil
		case '\n':
			return d.whole(out), nil
		}
		if len(out) >= limit {
			return nil, fmt.Errorf("%w: a frame is larger than %d bytes", ErrStream, d.max)
		}
		out = append(out, b)
	}
}

// whole takes the byte order mark off the first line.
func (d *decoder) whole(line []byte) []byte {
	if d.first {
		d.first = false
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}

// ended says that a stream ended rather than broke.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

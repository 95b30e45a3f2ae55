package framing

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// ErrPage reports a web page in the place of data. Permanent for this body.
var ErrPage = errors.New("framing: a web page")

// maxPeek is how much white space may come before the first byte that tells.
const maxPeek = 512

// Detect gives the framing of a body like Choose, but looks at how the body
// begins, too: servers leave the content type out or name a wrong one. It waits
// for the first bytes and takes none away. The error is ErrPage; an error of the
// body is left for the reader to meet.
func Detect(declared Kind, contentType string, r *bufio.Reader) (Kind, error) {
	kind := Choose(declared, contentType)
	head, raw := begins(r)
	if len(head) == 0 {
		return kind, nil
	}
	switch c := head[0]; {
	case raw[0] == 0 && binaryPrelude(r):
		return EventStream, nil
	case c == '<':
		return kind, ErrPage
	case c == '{', c == '[':
		// No line of an event stream begins so, and no binary message.
		if kind == SSE || kind == EventStream {
			if declared == NDJSON {
				return NDJSON, nil
			}
			return JSON, nil
		}
	case kind == JSON, kind == NDJSON:
		if sseField(r, len(raw)-len(head)) {
			return SSE, nil
		}
	}
	return kind, nil
}

// begins peeks as far as the first byte that is no white space: head begins with
// it, raw is all that was peeked.
func begins(r *bufio.Reader) (head, raw []byte) {
	for n := 1; n <= maxPeek; n++ {
		raw, _ = r.Peek(n)
		if len(raw) < n {
			return nil, raw
		}
		if head = bytes.TrimSpace(raw); len(head) == 0 {
			continue
		}
		if bytes.HasPrefix(bom, head) && len(head) < len(bom) {
			continue
		}
		if head = bytes.TrimSpace(bytes.TrimPrefix(head, bom)); len(head) > 0 {
			return head, raw
		}
	}
	return nil, raw
}

func binaryPrelude(r *bufio.Reader) bool {
	b, err := r.Peek(preludeSize)
	return err == nil && crc32.ChecksumIEEE(b[:8]) == binary.BigEndian.Uint32(b[8:])
}

// sseField tells that a field of an event stream, or a comment, begins at an
// offset.
func sseField(r *bufio.Reader, at int) bool {
	for _, field := range []string{":", "data:", "event:", "id:", "retry:"} {
		b, _ := r.Peek(at + 1)
		if len(b) <= at || b[at] != field[0] {
			continue
		}
		if b, _ = r.Peek(at + len(field)); len(b) >= at && string(b[at:]) == field {
			return true
		}
	}
	return false
}

package framing

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// eventstream reads the binary messages that AWS calls an event stream: total
// length, length of the headers, a CRC of both, headers, payload, and a CRC of
// all before it.
type eventstream struct {
	src   io.Reader
	limit int
	buf   []byte
}

const (
	preludeSize = 12
	trailerSize = 4
)

func (e *eventstream) Next() (Event, error) {
	var prelude [preludeSize]byte
	switch n, err := io.ReadFull(e.src, prelude[:]); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Event{Name: "message", Data: bytes.Clone(prelude[:n]), Partial: true}, nil
	case err != nil:
		return Event{}, err
	}
	total, heads := binary.BigEndian.Uint32(prelude[:4]), binary.BigEndian.Uint32(prelude[4:8])
	if crc32.ChecksumIEEE(prelude[:8]) != binary.BigEndian.Uint32(prelude[8:]) {
		return Event{}, fmt.Errorf("%w: the checksum of a message's length is wrong", ErrDamaged)
	}
	if total < preludeSize+trailerSize || uint64(heads) > uint64(total)-preludeSize-trailerSize {
		return Event{}, fmt.Errorf("%w: a message of %d bytes with headers of %d", ErrDamaged, total, heads)
	}
	if uint64(total) > uint64(e.limit) {
		return Event{}, fmt.Errorf("%w: a message of %d bytes, at most %d are allowed", ErrTooLarge, total, e.limit)
	}
	rest, err := e.rest(int(total) - preludeSize)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return Event{Name: "message", Data: rest, Partial: true}, nil
	}
	if err != nil {
		return Event{}, err
	}
	end := len(rest) - trailerSize
	sum := crc32.Update(crc32.ChecksumIEEE(prelude[:]), crc32.IEEETable, rest[:end])
	if sum != binary.BigEndian.Uint32(rest[end:]) {
		return Event{}, fmt.Errorf("%w: the checksum of a message is wrong", ErrDamaged)
	}
	return message(rest[:heads], rest[heads:end])
}

// rest reads n bytes; memory grows with what arrives, not with what a length
// claims.
func (e *eventstream) rest(n int) ([]byte, error) {
	if cap(e.buf) > keep {
		e.buf = nil
	}
	buf := e.buf[:0]
	for len(buf) < n {
		step := min(n-len(buf), max(chunk, len(buf)))
		at := len(buf)
		buf = append(buf, make([]byte, step)...)
		got, err := io.ReadFull(e.src, buf[at:])
		if err != nil {
			return buf[:at+got], err
		}
	}
	e.buf = buf
	return buf, nil
}

// message makes the event of one message. The part of an invoked model's own
// stream comes wrapped: {"bytes": base64}; it is unwrapped here, so that an
// adapter sees what the vendor sent.
func message(headers, payload []byte) (Event, error) {
	h, err := headerTexts(headers)
	if err != nil {
		return Event{}, err
	}
	ev := Event{Name: "message", Data: payload}
	switch h[":message-type"] {
	case "exception":
		ev.Name, ev.Exception = h[":exception-type"], true
	case "error":
		// The error has no payload: its code and text are headers.
		text, err := json.Marshal(map[string]string{"code": h[":error-code"], "message": h[":error-message"]})
		if err != nil {
			return Event{}, err
		}
		ev.Name, ev.Data, ev.Exception = h[":error-code"], text, true
	default:
		if name := h[":event-type"]; name != "" {
			ev.Name = name
		}
		if ev.Name != "chunk" {
			break
		}
		var wrapped struct {
			Bytes []byte `json:"bytes"`
		}
		if err := json.Unmarshal(payload, &wrapped); err != nil {
			var bad base64.CorruptInputError
			if errors.As(err, &bad) {
				return Event{}, fmt.Errorf("%w: a wrapped event is no base64", ErrDamaged)
			}
			break // not wrapped: the adapter says what it is
		}
		if wrapped.Bytes != nil {
			ev.Name, ev.Data = "message", wrapped.Bytes
		}
	}
	return ev, nil
}

// Types of header values, and how long those of a fixed size are.
const (
	typeBytes = 6
	typeText  = 7
)

var fixed = map[byte]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}

// headerTexts gives the headers whose values are texts.
func headerTexts(b []byte) (map[string]string, error) {
	short := fmt.Errorf("%w: the headers of a message are cut", ErrDamaged)
	out := make(map[string]string)
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 2+n {
			return nil, short
		}
		name, kind := string(b[1:1+n]), b[1+n]
		b = b[2+n:]
		size, known := fixed[kind]
		if kind == typeBytes || kind == typeText {
			if len(b) < 2 {
				return nil, short
			}
			size, known = int(binary.BigEndian.Uint16(b)), true
			b = b[2:]
		}
		switch {
		case !known:
			return nil, fmt.Errorf("%w: a header of the unknown type %d", ErrDamaged, kind)
		case len(b) < size:
			return nil, short
		}
		if kind == typeText {
			out[name] = strings.ToValidUTF8(string(b[:size]), "\uFFFD")
		}
		b = b[size:]
	}
	return out, nil
}

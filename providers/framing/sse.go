package framing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// sse follows the event stream grammar of the HTML standard, with one
// difference: what is pending at the end of the body is given, as Partial.
type sse struct {
	lines   lines
	started bool
	data    []byte
	has     bool
	name    string
	id      string
}

var bom = []byte("\xef\xbb\xbf")

func (s *sse) Next() (Event, error) {
	s.lines.cr = true
	s.data, s.has, s.name = s.data[:0], false, ""
	if cap(s.data) > keep {
		s.data = nil
	}
	for {
		line, closed, err := s.lines.next()
		if err != nil {
			if errors.Is(err, io.EOF) && s.has {
				return s.event(true), nil
			}
			return Event{}, err
		}
		if !s.started {
			s.started = true
			line = bytes.TrimPrefix(line, bom)
		}
		if len(line) == 0 && closed {
			if s.has {
				return s.event(false), nil
			}
			s.name = ""
			continue
		}
		if err := s.field(line); err != nil {
			return Event{}, err
		}
	}
}

func (s *sse) event(partial bool) Event {
	name := s.name
	if name == "" {
		name = "message"
	}
	return Event{Name: name, ID: s.id, Data: s.data, Partial: partial}
}

func (s *sse) field(line []byte) error {
	name, value, found := bytes.Cut(line, []byte(":"))
	if found && len(name) == 0 {
		return nil
	}
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if len(s.data)+len(value)+1 > s.lines.limit {
			return fmt.Errorf("%w: an event of more than %d bytes", ErrTooLarge, s.lines.limit)
		}
		if s.has {
			s.data = append(s.data, '\n')
		}
		s.data, s.has = append(s.data, value...), true
	case "event":
		s.name = strings.ToValidUTF8(string(value), "\uFFFD")
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			s.id = strings.ToValidUTF8(string(value), "\uFFFD")
		}
	}
	return nil
}

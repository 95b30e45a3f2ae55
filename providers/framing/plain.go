package framing

import (
	"bytes"
	"fmt"
	"io"
)

// ndjson gives one event for each line that is not blank.
type ndjson struct {
	lines   lines
	started bool
}

func (n *ndjson) Next() (Event, error) {
	for {
		line, closed, err := n.lines.next()
		if err != nil {
			return Event{}, err
		}
		if !n.started {
			n.started = true
			line = bytes.TrimPrefix(line, bom)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return Event{Name: "message", Data: line, Partial: !closed}, nil
		}
	}
}

// document gives the whole body as one event.
type document struct {
	src   io.Reader
	limit int
	done  bool
}

func (d *document) Next() (Event, error) {
	if d.done {
		return Event{}, io.EOF
	}
	d.done = true
	body, err := io.ReadAll(io.LimitReader(d.src, int64(d.limit)+1))
	if err != nil {
		return Event{}, err
	}
	if len(body) > d.limit {
		return Event{}, fmt.Errorf("%w: a body of more than %d bytes", ErrTooLarge, d.limit)
	}
	body = bytes.TrimSpace(bytes.TrimPrefix(body, bom))
	if len(body) == 0 {
		return Event{}, io.EOF
	}
	return Event{Name: "message", Data: body}, nil
}

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"homeagent/messages/api"
)

// StreamOptions say which events.
type StreamOptions struct {
	// Types wanted; none means all.
	Types []string
	// Task whose events are wanted; empty means all.
	Task string
	// After is the id of an event after which to begin, "<epoch>-<sequence>"; empty means with what comes.
	After string
	// Once ends the stream with its connection instead of connecting again.
	Once bool
}

// Frame is what comes from a stream: exactly one field is set.
type Frame struct {
	// Event of the node.
	Event *Event
	// Ready says that the subscription stands, at the beginning and after each reconnection.
	Ready *api.Ready
	// Sync says that events may be missing: what is known must be read anew.
	Sync *api.Sync
}

// Stream reads events. It connects again by itself and goes on after the last event it has seen. Not safe for
// concurrent use; it ends with its context.
type Stream struct {
	c     *Client
	ctx   context.Context //nolint:containedctx // the stream lives as long as it
	o     StreamOptions
	body  io.ReadCloser
	dec   *decoder
	end   context.CancelFunc
	guard *time.Timer
	last  string
	pause time.Duration
}

const (
	firstPause = 200 * time.Millisecond
	lastPause  = 5 * time.Second
	// silence is how long nothing may come, heartbeats included, before the connection counts as dead.
	silence = 45 * time.Second
)

// Events connects and returns when the node has answered; the first frame is then Ready.
func (c *Client) Events(ctx context.Context, o StreamOptions) (*Stream, error) {
	s := &Stream{c: c, ctx: ctx, o: o, last: o.After, pause: firstPause}
	if err := s.connect(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Stream) connect() error {
	ctx, cancel := context.WithCancel(s.ctx)
	q, err := s.c.request(ctx, "GET",
		query(root+"/events", "types", strings.Join(s.o.Types, ","), "task", s.o.Task), nil)
	if err != nil {
		cancel()
		return err
	}
	q.Header.Set("Accept", "text/event-stream")
	if s.last != "" {
		q.Header.Set("Last-Event-ID", s.last)
	}
	guard := time.AfterFunc(silence, cancel)
	res, err := s.c.http.Do(q)
	if err == nil && res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // a body that breaks off is judged as far as it came
		_ = res.Body.Close()
		err = refusalOf(res.StatusCode, b)
	} else if err != nil {
		err = s.c.failed(s.ctx, err)
	}
	if err != nil {
		guard.Stop()
		cancel()
		return err
	}
	s.body, s.end, s.guard = res.Body, cancel, guard
	s.dec = newDecoder(res.Body, func() { guard.Reset(silence) })
	return nil
}

// Next waits for the next frame. After an error the stream is over.
func (s *Stream) Next() (Frame, error) {
	for {
		if s.body == nil {
			if err := s.again(); err != nil {
				return Frame{}, err
			}
		}
		f, err := s.dec.next()
		if err == nil {
			var out Frame
			if out, err = s.frame(f); err == nil {
				s.pause = firstPause
				if out != (Frame{}) {
					return out, nil
				}
				continue
			}
		}
		s.disconnect()
		switch {
		case s.ctx.Err() != nil:
			return Frame{}, s.ctx.Err()
		case errors.Is(err, ErrStream), errors.Is(err, ErrAnswer):
			return Frame{}, err
		case s.o.Once && ended(err):
			return Frame{}, io.EOF
		case s.o.Once:
			return Frame{}, s.c.failed(s.ctx, err)
		}
	}
}

// again connects anew after a pause. A node that refuses will go on refusing, unless it only has too much to do.
func (s *Stream) again() error {
	for {
		t := time.NewTimer(s.pause)
		select {
		case <-t.C:
		case <-s.ctx.Done():
			t.Stop()
			return s.ctx.Err()
		}
		s.pause = min(2*s.pause, lastPause)
		err := s.connect()
		var e *Error
		switch {
		case err == nil:
			return nil
		case s.ctx.Err() != nil:
			return s.ctx.Err()
		case errors.As(err, &e) && e.Status < 500 && e.Status != http.StatusTooManyRequests:
			return err
		}
	}
}

// frame decodes a frame; one of a kind that is not known gives an empty Frame.
func (s *Stream) frame(f frame) (Frame, error) {
	var out Frame
	var into any
	switch {
	case f.name == api.FrameReady:
		out.Ready = new(api.Ready)
		into = out.Ready
	case f.name == api.FrameSync:
		out.Sync = new(api.Sync)
		into = out.Sync
	case f.id != "":
		out.Event = new(Event)
		into = out.Event
	default:
		return out, nil
	}
	if err := json.Unmarshal(f.data, into); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if f.id != "" {
		s.last = f.id
	}
	if out.Sync != nil && out.Sync.Reason == "gone" {
		s.last = "" // the old place is void
	}
	return out, nil
}

func (s *Stream) disconnect() {
	if s.body == nil {
		return
	}
	s.guard.Stop()
	s.end()
	_ = s.body.Close() // what it could still say concerns nobody
	s.body = nil
}

// Close ends the stream.
func (s *Stream) Close() { s.disconnect() }

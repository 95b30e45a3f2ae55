package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"homeagent/internal/client"
	"homeagent/messages/api"
)

// seen is an event of the node with the moment at which it came here.
type seen struct {
	api.Event
	came time.Time
}

// feed follows the events of a node as a subscriber.
type feed struct {
	stop context.CancelFunc
	over chan struct{}

	mu     sync.Mutex
	events []seen
	err    error
	news   chan struct{}
}

// subscribe begins to follow; when it returns nothing of what comes is missed. end must be called.
func subscribe(ctx context.Context, c *client.Client) (*feed, error) {
	ctx, cancel := context.WithCancel(ctx)
	st, err := c.Events(ctx, client.StreamOptions{
		Types: []string{api.EventContentDelta, api.EventOutput, api.EventTask}, Once: true,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	f := &feed{stop: cancel, over: make(chan struct{}), news: make(chan struct{})}
	first, err := st.Next()
	if err == nil && first.Ready == nil {
		err = fmt.Errorf("%w: the stream does not begin with ready", errNode)
	}
	if err != nil {
		cancel()
		st.Close()
		return nil, err
	}
	go f.run(st)
	return f, nil
}

func (f *feed) run(st *client.Stream) {
	defer close(f.over)
	defer st.Close()
	for {
		frame, err := st.Next()
		came := time.Now()
		f.mu.Lock()
		switch {
		case err != nil:
			f.err = err
		case frame.Sync != nil:
			f.err = fmt.Errorf("%w: events were missed", errNode)
		case frame.Event != nil:
			f.events = append(f.events, seen{*frame.Event, came})
		}
		err = f.err
		close(f.news)
		f.news = make(chan struct{})
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// end unsubscribes and waits.
func (f *feed) end() {
	f.stop()
	<-f.over
}

// forget drops what came so far.
func (f *feed) forget() {
	f.mu.Lock()
	f.events = nil
	f.mu.Unlock()
}

// await waits for the first event since the last forget that fits.
func (f *feed) await(ctx context.Context, what string, fits func(*api.Event) bool) (seen, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		f.mu.Lock()
		for i := range f.events {
			if fits(&f.events[i].Event) {
				e := f.events[i]
				f.mu.Unlock()
				return e, nil
			}
		}
		err, news := f.err, f.news
		f.mu.Unlock()
		if err != nil {
			return seen{}, fmt.Errorf("waiting for %s: %w", what, err)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return seen{}, fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}

// change waits until a task changed so.
func (f *feed) change(ctx context.Context, task, change string) (seen, error) {
	return f.await(ctx, "task "+task+" "+change, func(e *api.Event) bool {
		return e.Task != nil && e.TaskID == task && e.Task.Change == change
	})
}

// answered waits until a task has ended, which must be with this text.
func (f *feed) answered(ctx context.Context, task, text string) error {
	e, err := f.change(ctx, task, "ended")
	if err != nil {
		return err
	}
	if e.Task.End != "answered" || e.Task.Text != text {
		return fmt.Errorf("%w: task %s ended as %s %q (%s)", errNode, task, e.Task.End, e.Task.Text, e.Task.Reason)
	}
	return nil
}

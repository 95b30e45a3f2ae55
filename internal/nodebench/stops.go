package main

import (
	"context"
	"fmt"
	"time"

	"homeagent/internal/client"
	"homeagent/providers/providertest"
)

// behind is how many inputs wait behind the answer that a person stops.
const behind = 10

// stops measures how long what a node does goes on after a person said stop.
func (b *bench) stops(ctx context.Context) error {
	var closed, all sample
	err := b.withVendor(ctx, "stops", func(n *node, v *providertest.Vendor, f *feed) error {
		for i := range b.warm + b.stopping {
			c, a := &closed, &all
			if i < b.warm {
				c, a = new(sample), new(sample)
			}
			if err := oneStop(ctx, n, v, f, i, c, a); err != nil {
				return fmt.Errorf("stop %d: %w", i, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, row := range []struct {
		name string
		s    sample
	}{
		{"stop: POST sent -> connection closed at the model", closed},
		{fmt.Sprintf("stop: POST sent -> the answer and %d waiting inputs ended", behind), all},
	} {
		f, err := row.s.figure(row.name, "ms", b.stopping)
		if err != nil {
			return err
		}
		b.report(f.within("p99", 2000))
	}
	return nil
}

func oneStop(ctx context.Context, n *node, v *providertest.Vendor, f *feed, i int, closed, all *sample) error {
	f.forget()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v.Load(providertest.Script{Steps: []providertest.Step{{Text: story, Hold: providertest.Hold{Middle: "never"}}}})
	var ids []string
	for k := range 1 + behind {
		got, err := n.client.Submit(ctx, client.Submit{Text: fmt.Sprintf("Tell me story %d of %d.", k, i), Channel: "cli", Conversation: "main", Mode: "queue"})
		if err != nil {
			return err
		}
		ids = append(ids, got.InputID)
	}
	if _, err := v.Await(ctx, providertest.Held, i+1); err != nil {
		return err
	}
	posted := time.Now()
	if _, err := n.client.Stop(ctx, client.Stop{}); err != nil {
		return err
	}
	gone, err := v.Await(ctx, providertest.Closed, i+1)
	if err != nil {
		return err
	}
	last := posted
	for _, id := range ids {
		e, err := f.change(ctx, id, "ended")
		if err != nil {
			return err
		}
		if e.Task.End != "stopped" {
			return fmt.Errorf("%w: task %s ended as %s", errNode, id, e.Task.End)
		}
		if e.came.After(last) {
			last = e.came
		}
	}
	closed.add(gone.At.Sub(posted))
	all.add(last.Sub(posted))
	return nil
}

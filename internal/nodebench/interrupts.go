package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"homeagent/internal/client"
	"homeagent/providers/providertest"
)

// The story that is interrupted, piece by piece and whole.
var (
	story = []string{"Once ", "upon ", "a ", "time."}
	told  = strings.Join(story, "")
)

// interruptTimes are the parts of a preemption.
type interruptTimes struct{ posted, accepted, decided, suspended sample }

// interrupts measures how fast an urgent input ends the model call of the running turn.
func (b *bench) interrupts(ctx context.Context) error {
	var times interruptTimes
	err := b.withVendor(ctx, "interrupts", func(n *node, v *providertest.Vendor, f *feed) error {
		for i := range b.warm + b.interrupting {
			t := &times
			if i < b.warm {
				t = new(interruptTimes)
			}
			if err := oneInterrupt(ctx, n, v, f, i, t); err != nil {
				return fmt.Errorf("interrupt %d: %w", i, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, row := range []struct {
		name   string
		s      sample
		target bool
		note   string
	}{
		{"interrupt: POST sent -> connection closed at the model", times.posted, false, "the synced accept of the interrupt is in it"},
		{"interrupt: 202 received -> connection closed at the model", times.accepted, false, "negative where the connection is closed first"},
		{"interrupt: decided -> connection closed at the model", times.decided, true, "from the scheduler's decision (time of its event, wall clock, in microseconds): Preempt through scheduler, turn, source and call"},
		{"interrupt: decided -> suspended", times.suspended, false, "by the times of both events"},
	} {
		f, err := row.s.figure(row.name, "ms", b.interrupting)
		if err != nil {
			return err
		}
		if row.target {
			f = f.within("p99", 5)
		}
		f.Note = row.note
		b.report(f)
	}
	return nil
}

func oneInterrupt(ctx context.Context, n *node, v *providertest.Vendor, f *feed, i int, t *interruptTimes) error {
	f.forget()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v.Load(providertest.Script{Steps: []providertest.Step{
		{Match: "story", Times: 1, Text: story, Hold: providertest.Hold{Middle: "never"}},
		{Match: "story", Text: story},
		{Match: "fire", Text: []string{"Leave the house."}},
	}})
	tale, err := n.client.Submit(ctx, client.Submit{Text: fmt.Sprintf("Tell me story %d.", i), Channel: "cli", Conversation: "main"})
	if err != nil {
		return err
	}
	if _, err := v.Await(ctx, providertest.Held, i+1); err != nil {
		return err
	}
	posted := time.Now()
	fire, err := n.client.Submit(ctx, client.Submit{
		Text: fmt.Sprintf("There is a fire, number %d!", i), Channel: "cli", Conversation: "alarm", Level: json.RawMessage("3"),
	})
	accepted := time.Now()
	if err != nil {
		return err
	}
	if fire.Outcome != "preempting" {
		return fmt.Errorf("%w: the interrupt was taken as %s", errNode, fire.Outcome)
	}
	closed, err := v.Await(ctx, providertest.Closed, i+1)
	if err != nil {
		return err
	}
	if err := f.answered(ctx, fire.InputID, "Leave the house."); err != nil {
		return err
	}
	if err := f.answered(ctx, tale.InputID, told); err != nil {
		return err
	}
	decided, err := f.change(ctx, fire.InputID, "preempting")
	if err != nil {
		return err
	}
	suspended, err := f.change(ctx, tale.InputID, "suspended")
	if err != nil {
		return err
	}
	t.posted.add(closed.At.Sub(posted))
	t.accepted.add(closed.At.Sub(accepted))
	t.decided.add(closed.At.Sub(decided.At))
	t.suspended.add(suspended.At.Sub(decided.At))
	return nil
}

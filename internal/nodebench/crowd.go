package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"homeagent/internal/client"
	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// firstToken is how long the model takes before it says anything.
const firstToken = time.Second

// crowd measures how soon a person sees the first piece of an answer while background work waits, with a model that is
// slow to begin. Each task of the background must end with what it would have ended with undisturbed.
func (b *bench) crowd(ctx context.Context) error {
	var first sample
	preempted := uint64(0)
	err := b.withVendor(ctx, "crowd", func(n *node, v *providertest.Vendor, f *feed) error {
		v.Serve(func(q providertest.Question) providertest.Step {
			return providertest.Step{
				Delay: providertest.Duration(firstToken), Text: []string{"You said: ", q.Messages[len(q.Messages)-1].Text},
			}
		})
		tasks := map[string]string{}
		for i := range b.crowding {
			text := fmt.Sprintf("background task %d", i)
			got, err := n.client.Submit(ctx, client.Submit{Text: text, Channel: "api", Conversation: fmt.Sprint("b", i), Level: api.Level(i % 2)})
			if err != nil {
				return err
			}
			tasks[got.InputID] = "You said: " + text
		}
		for i := range b.persons {
			took, err := onePerson(ctx, n, f, fmt.Sprintf("person %d", i))
			if err != nil {
				return fmt.Errorf("person %d: %w", i, err)
			}
			first.add(took)
		}
		left, err := n.client.Scheduler(ctx, "", 0)
		if err != nil {
			return err
		}
		if left.Waiting == 0 {
			return fmt.Errorf("%w: the background work was over before the last person came", errNode)
		}
		preempted = left.Counters.Suspended
		for id, text := range tasks {
			if err := f.answered(ctx, id, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	f, err := first.figure(fmt.Sprintf("person among %d background tasks: POST sent -> first piece", b.crowding), "ms", b.persons)
	if err != nil {
		return err
	}
	f.Note = fmt.Sprintf("the model takes %s to its first piece, which is in it; background tasks were suspended %d times and all ended as if undisturbed", firstToken, preempted)
	b.report(f.within("p95", 2000))
	return nil
}

// onePerson says something at the default level and waits for the answer; it returns the time to its first piece.
func onePerson(ctx context.Context, n *node, f *feed, text string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	posted := time.Now()
	got, err := n.client.Submit(ctx, client.Submit{Text: text, Channel: "cli", Conversation: "main"})
	if err != nil {
		return 0, err
	}
	piece, err := f.await(ctx, "the first piece", func(e *api.Event) bool {
		return e.Type == api.EventContentDelta && e.TaskID == got.InputID && strings.TrimSpace(e.Text) != ""
	})
	if err != nil {
		return 0, err
	}
	return piece.came.Sub(posted), f.answered(ctx, got.InputID, "You said: "+text)
}

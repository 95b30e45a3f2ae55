package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"homeagent/internal/client"
	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// last is a gate that stands open: that an answer came to it tells when its last delta was sent.
const last = "last"

// A question has asking words, an answer comes in pieces of a word.
const (
	asking = 12
	pieces = 20
)

// withVendor runs a node with one model source that the given function scripts.
func (b *bench) withVendor(ctx context.Context, name string, measure func(*node, *providertest.Vendor, *feed) error) error {
	v, err := providertest.Start("", providertest.Script{Steps: []providertest.Step{{Text: []string{"ok"}}}})
	if err != nil {
		return err
	}
	defer v.Close()
	return use(ctx, b.binary, filepath.Join(b.dir, name), func(n *node) error {
		source := client.Source{Name: "scripted", Adapter: "openai", BaseURL: v.URL(), Model: "scripted", Enabled: true}
		if _, err := n.client.AddSource(ctx, client.AddSource{Source: source, APIKey: "sk-nodebench"}); err != nil {
			return err
		}
		f, err := subscribe(ctx, n.client)
		if err != nil {
			return err
		}
		return errors.Join(measure(n, v, f), func() error { f.end(); return nil }())
	})
}

// turnTimes are the parts of turns in which the node works: all but the time of the model.
type turnTimes struct{ posted, accepted, told, finished, sum sample }

// turns measures what the node adds to a turn of the model.
func (b *bench) turns(ctx context.Context) error {
	var times turnTimes
	var work sample
	err := b.withVendor(ctx, "turns", func(n *node, v *providertest.Vendor, f *feed) error {
		v.Open(last)
		talk := newTalker()
		for i := range b.warm {
			if err := oneTurn(ctx, n, v, f, talk, i, new(turnTimes)); err != nil {
				return fmt.Errorf("turn %d: %w", i, err)
			}
		}
		before, err := readCPU(n.cmd.Process.Pid)
		if err != nil {
			return err
		}
		for i := b.warm; i < b.warm+b.turning; i++ {
			if err := oneTurn(ctx, n, v, f, talk, i, &times); err != nil {
				return fmt.Errorf("turn %d: %w", i, err)
			}
		}
		if got := len(v.Requests()); got != 1+b.warm+b.turning {
			return fmt.Errorf("%w: %d requests for %d turns", errNode, got-1, b.warm+b.turning)
		}
		after, err := readCPU(n.cmd.Process.Pid)
		work.add((after - before) / time.Duration(b.turning))
		return err
	})
	if err != nil {
		return err
	}
	return b.reportTurns(times, work)
}

func (b *bench) reportTurns(times turnTimes, work sample) error {
	for _, row := range []struct {
		name string
		s    sample
		note string
	}{
		{"turn: POST sent -> request at the model", times.posted, "from before the POST is written: HTTP, the synced accept and all before the request"},
		{"turn: 202 received -> request at the model", times.accepted, "negative where the request is there first"},
		{"turn: last delta sent -> agent_output", times.told, "received at an event subscriber; the end of the stream, the commit with its sync, and the output are in it"},
		{"turn: agent_output -> task ended", times.finished, "after the output was received: the mark that it was sent, the last stage, the end"},
		{overhead, times.sum, "202 received -> request, plus last delta -> agent_output"},
	} {
		f, err := row.s.figure(row.name, "ms", b.turning)
		if err != nil {
			return err
		}
		if row.name == overhead {
			f = f.within("p50", 5)
		}
		f.Note = row.note
		b.report(f)
	}
	f, err := work.figure("turn: processor time", "ms", 1)
	f.Note = "of homed, the mean of all turns; it depends little on what else the machine does"
	b.report(f)
	return err
}

// overhead is the name of the figure of turns that has a target.
const overhead = "turn: overhead"

func oneTurn(ctx context.Context, n *node, v *providertest.Vendor, f *feed, talk *talker, i int, t *turnTimes) error {
	f.forget()
	text, answer := strings.Join(talk.words(asking), " "), talk.words(pieces)
	for k := range answer[1:] {
		answer[k] += " "
	}
	v.Load(providertest.Script{Steps: []providertest.Step{{Text: answer, Hold: providertest.Hold{End: last}}}})
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	posted := time.Now()
	got, err := n.client.Submit(ctx, client.Submit{
		Text: fmt.Sprintf("Question %d: %s?", i, text), Channel: "cli", Conversation: "main",
	})
	accepted := time.Now()
	if err != nil {
		return err
	}
	if got.Outcome != "started" {
		return fmt.Errorf("%w: the input was taken as %s", errNode, got.Outcome)
	}
	// The first request of all was the test of the source.
	asked, err := v.Await(ctx, providertest.Received, i+2)
	if err != nil {
		return err
	}
	delta, err := v.Await(ctx, providertest.Held, i+1)
	if err != nil {
		return err
	}
	out, err := f.await(ctx, "the output", func(e *api.Event) bool { return e.Type == api.EventOutput && e.TaskID == got.InputID })
	if err != nil {
		return err
	}
	if err := f.answered(ctx, got.InputID, strings.Join(answer, "")); err != nil {
		return err
	}
	ended, err := f.change(ctx, got.InputID, "ended")
	if err != nil {
		return err
	}
	before, after := asked.At.Sub(accepted), out.came.Sub(delta.At)
	t.posted.add(asked.At.Sub(posted))
	t.accepted.add(before)
	t.told.add(after)
	t.finished.add(ended.came.Sub(out.came))
	t.sum.add(before + after)
	return nil
}

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"homeagent/internal/client"
)

const (
	// look is how often the memory of an idle node is read; it is settled when the readings of calm differ by at most
	// still bytes.
	look  = 250 * time.Millisecond
	calm  = 20
	still = 256 << 10
)

// settle waits until the memory of a node changes no more.
func settle(ctx context.Context, n *node) (memory, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	var seen []int64
	for {
		m, err := readMemory(n.cmd.Process.Pid)
		if err != nil {
			return m, err
		}
		seen = append(seen, m.rss)
		if last := seen[max(0, len(seen)-calm):]; len(last) == calm && slices.Max(last)-slices.Min(last) <= still {
			return m, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return m, fmt.Errorf("the memory of the idle node does not settle: %w", ctx.Err())
		}
	}
}

// memories collects readings of one state.
type memories struct{ rss, pss, anon sample }

func (s *memories) read(ctx context.Context, n *node) error {
	m, err := settle(ctx, n)
	if err != nil {
		return err
	}
	s.rss = append(s.rss, float64(m.rss)/1e6)
	s.pss = append(s.pss, float64(m.pss)/1e6)
	s.anon = append(s.anon, float64(m.anon)/1e6)
	return nil
}

// mostIdle is the target for the resident memory of an idle node, in MB.
const mostIdle = 35

func (b *bench) reportMemory(state string, s memories, targeted bool) error {
	for _, part := range []struct {
		name string
		s    sample
		note string
	}{
		{"idle RSS", s.rss, "VmRSS when it changes no more; file-backed pages of the program count"},
		{"idle PSS", s.pss, ""},
		{"idle anonymous", s.anon, "RssAnon: heap, stacks and what the runtime keeps"},
	} {
		f, err := part.s.figure(part.name+", "+state, "MB", b.idling)
		if err != nil {
			return err
		}
		if part.name == "idle RSS" && targeted {
			f = f.within("p50", mostIdle)
		}
		if targeted {
			f.Note = part.note
		}
		b.report(f)
	}
	return nil
}

// idle measures the memory of a node that does nothing: with an empty store, with many events before and after
// questions about them, and with the dictionary. seeded is the folder with the events.
func (b *bench) idle(ctx context.Context, seeded string) error {
	var empty, full, asked, words memories
	var cpu sample
	for i := range b.idling {
		err := use(ctx, b.binary, filepath.Join(b.dir, fmt.Sprint("idle", i)), func(n *node) error {
			if err := empty.read(ctx, n); err != nil {
				return err
			}
			used, err := processor(ctx, n)
			cpu = append(cpu, used)
			return err
		})
		if err != nil {
			return err
		}
		if err := use(ctx, b.binary, seeded, func(n *node) error {
			if err := full.read(ctx, n); err != nil {
				return err
			}
			if err := b.question(ctx, n); err != nil {
				return err
			}
			if err := asked.read(ctx, n); err != nil {
				return err
			}
			if err := loadDictionary(ctx, n); err != nil {
				return err
			}
			return words.read(ctx, n)
		}); err != nil {
			return err
		}
	}
	events := fmt.Sprintf("%d events", b.events)
	for _, state := range []struct {
		name string
		s    memories
	}{{"empty store", empty}, {events, full}, {events + ", asked", asked}, {events + " and dictionary", words}} {
		if err := b.reportMemory(state.name, state.s, state.name == "empty store"); err != nil {
			return err
		}
	}
	f, err := cpu.figure("idle processor, empty store", "%", b.idling)
	if err != nil {
		return err
	}
	f.Note = "share of one core while nothing happens"
	b.report(f)
	return nil
}

// resting is how long the processor time of an idle node is watched.
const resting = 10 * time.Second

// processor is the share of one core that an idle node uses, in percent.
func processor(ctx context.Context, n *node) (float64, error) {
	before, err := readCPU(n.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	timer := time.NewTimer(resting)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := readCPU(n.cmd.Process.Pid)
	return float64(after-before) / float64(resting) * 100, err
}

// question asks about the seeded events, and fails unless they are all there and found.
func (b *bench) question(ctx context.Context, n *node) error {
	for i := range 20 {
		got, err := n.client.Memory(ctx, client.MemoryQuery{Text: seededTopic(i)})
		if err != nil {
			return err
		}
		if len(got.Items) == 0 || got.Figures == nil || got.Figures.Events < int64(b.events) {
			return fmt.Errorf("%w: the question %q found %d items, with figures %+v", errNode, seededTopic(i), len(got.Items), got.Figures)
		}
	}
	return nil
}

// loadDictionary says something in Chinese to the agent and waits until the node tells that the dictionary is loaded.
func loadDictionary(ctx context.Context, n *node) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	loaded := func() (bool, error) {
		got, err := n.client.Memory(ctx, client.MemoryQuery{})
		return err == nil && got.Figures != nil && got.Figures.Dictionary, err
	}
	switch before, err := loaded(); {
	case err != nil:
		return err
	case before:
		return fmt.Errorf("%w: the dictionary was loaded before anything was said in Chinese", errNode)
	}
	if _, err := n.client.Submit(ctx, client.Submit{Text: "我昨天说过什么关于厨房的事情？", Channel: "cli", Conversation: "main", Wait: true}); err != nil {
		return err
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if ok, err := loaded(); err != nil || ok {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the dictionary does not load: %w", ctx.Err())
		}
	}
}

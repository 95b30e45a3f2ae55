package memory

import (
	"context"
	"fmt"
	"time"

	"homeagent/actors/kit"
	"homeagent/memory/lexical"
	"homeagent/memory/recall"
	"homeagent/messages"
)

// Kind is the row of memory in the kernel's table.
const Kind = "memory"

// Engine is what the actor needs of the engine; memory/recall has it. It is called by several workers at a time.
type Engine interface {
	Recall(ctx context.Context, q recall.Question) (recall.Answer, error)
	Browse(ctx context.Context, m *messages.MemoryQuery, now time.Time) (*messages.MemoryAnswer, error)
}

// Words is the dictionary; memory/lexical has it.
type Words interface {
	Load(now time.Time) error
	DropIdle(before time.Time) bool
}

var (
	_ Engine = (*recall.Engine)(nil)
	_ Words  = (*lexical.Dictionary)(nil)
)

// Deps of the actor; engine and words are owned by the caller.
type Deps struct {
	// Engine answers questions.
	Engine Engine
	// Words is the dictionary that this actor loads and drops; nil means none.
	Words Words
	// Tools is the registry of tools, Graph the writer of facts.
	Tools, Graph *messages.Address
}

// limit of one visit of the engine.
const limit = 10 * time.Second

// Props makes the actor.
func Props(d Deps) kit.Props {
	return kit.Props{
		Kind:    Kind,
		New:     func() kit.Machine { return New(Params{Tools: d.Tools, Graph: d.Graph, Words: d.Words != nil}) },
		Perform: func(sh kit.Shell, e kit.Effect) { perform(d, sh, e) },
	}
}

func perform(d Deps, sh kit.Shell, e kit.Effect) {
	switch e := e.(effect).(type) {
	case lookup:
		sh.Go(workKey(e.Job), limit, func(ctx context.Context, _ func(any)) any {
			a, err := d.Engine.Recall(ctx, e.Question)
			return found{Job: e.Job, Answer: a, Err: err}
		})
	case browse:
		now := sh.Now()
		sh.Go(workKey(e.Job), limit, func(ctx context.Context, _ func(any)) any {
			a, err := d.Engine.Browse(ctx, e.Query, now)
			return browsed{Job: e.Job, Answer: a, Err: err}
		})
	case loadWords:
		now := sh.Now()
		sh.Go("words", 0, func(context.Context, func(any)) any { return wordsLoaded{d.Words.Load(now)} })
	case dropWords:
		sh.Go("words", 0, func(context.Context, func(any)) any { return wordsChecked{d.Words.DropIdle(e.Since)} })
	}
}

func workKey(job uint64) string { return fmt.Sprint("job/", job) }

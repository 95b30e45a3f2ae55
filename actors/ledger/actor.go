package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	engine "homeagent/memory/ledger"
	"homeagent/messages"
)

// Kind is the row of ledger in the kernel's table.
const Kind = "ledger"

// Engine is what the actor needs of the engine; memory/ledger has the one that writes to disk. Execute is called by one
// worker at a time.
type Engine interface {
	Execute(now time.Time, requests []*messages.LedgerExecute) []*messages.LedgerDone
	Pending(q *messages.LedgerPending) (*messages.PendingTasks, error)
	Task(id string) (*messages.TaskStatus, error)
	Figures() *messages.LedgerFigures
}

var _ Engine = (*engine.Ledger)(nil)

// Keeper looks after the store while the node runs; memory/ledger has it. Retain is called by the one who calls Execute;
// Upkeep may run beside it.
type Keeper interface {
	Retain(now time.Time) (more bool, err error)
	Upkeep(ctx context.Context, now time.Time) (again bool, err error)
}

var _ Keeper = (*engine.Ledger)(nil)

// Deps of the actor.
type Deps struct {
	// Engine is owned by the caller; the actor is its only writer.
	Engine Engine
	// Keeper removes what is too old; nil means that nothing ever goes.
	Keeper Keeper
}

// Props makes the actor.
func Props(d Deps) kit.Props {
	params := Params{Keep: d.Keeper != nil}
	p := &performer{Deps: d}
	return kit.Props{Kind: Kind, New: func() kit.Machine { return New(params) }, Perform: p.perform}
}

// performer lets one worker at a time into the engine: the last visit of an actor that ends may meet the one before it.
type performer struct {
	Deps
	engine sync.Mutex
}

func (d *performer) perform(sh kit.Shell, e kit.Effect) {
	switch e := e.(effect).(type) {
	case visit:
		sh.Go("engine", 0, func(context.Context, func(any)) any {
			d.engine.Lock()
			defer d.engine.Unlock()
			return run(d.Engine, sh.Now(), e.Requests)
		})
	case retain:
		sh.Go("engine", 0, func(context.Context, func(any)) any {
			d.engine.Lock()
			defer d.engine.Unlock()
			more, err := d.Keeper.Retain(sh.Now())
			return retained{more, err}
		})
	case upkeep:
		sh.Go("upkeep", 0, func(ctx context.Context, _ func(any)) any {
			again, err := d.Keeper.Upkeep(ctx, sh.Now())
			return kept{again, err}
		})
	}
}

// run executes requests in order: neighbouring writes together, each read after the writes before it.
func run(en Engine, now time.Time, requests []proto.Message) answers {
	out := make(answers, len(requests))
	var writes []*messages.LedgerExecute
	first := 0
	flush := func(end int) {
		if len(writes) == 0 {
			return
		}
		for i, d := range en.Execute(now, writes) {
			out[first+i] = d
		}
		writes, first = nil, end
	}
	for i, r := range requests {
		if w, ok := r.(*messages.LedgerExecute); ok {
			if len(writes) == 0 {
				first = i
			}
			writes = append(writes, w)
			continue
		}
		flush(i)
		out[i] = read(en, r)
	}
	flush(len(requests))
	return out
}

func read(en Engine, r proto.Message) proto.Message {
	var (
		m   proto.Message
		err error
	)
	switch r := r.(type) {
	case *messages.LedgerPending:
		m, err = en.Pending(r)
	case *messages.TaskQuery:
		m, err = en.Task(r.GetInputId())
	case *messages.LedgerStats:
		m = en.Figures()
	default:
		err = fmt.Errorf("%w: %T", engine.ErrInvalid, r)
	}
	if err != nil {
		return engine.Fault(err)
	}
	return m
}

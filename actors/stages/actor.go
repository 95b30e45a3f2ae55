package stages

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// Kind of the seven rows in the kernel's table.
const Kind = "stage"

// defaultDeadline of a handler that names none.
const defaultDeadline = 5 * time.Second

// Handler is code that looks at a turn at one of its hook points, or changes it.
type Handler struct {
	// Name is unique within the stage: lower-case words joined by dots or hyphens.
	Name string
	// Modifies says that what Run writes is wanted. Others observe.
	Modifies bool
	// Guard, on a modifier of before_toolcall, says that a call must not run when this handler fails.
	Guard bool
	// Deadline of one run; zero means 5 s.
	Deadline time.Duration
	// Run looks at c and may change it; c belongs to it until it returns and not beyond. ctx ends at the deadline and
	// with the node. Runs of several turns may be under way at the same time. An error drops what it wrote.
	Run func(ctx context.Context, c *messages.StageContext) error
}

// All lists the seven stages in the order of a turn.
func All() []messages.Stage {
	return []messages.Stage{
		messages.Stage_STAGE_ON_INPUT, messages.Stage_STAGE_PRE_ACTION, messages.Stage_STAGE_POST_ACTION,
		messages.Stage_STAGE_BEFORE_TOOLCALL, messages.Stage_STAGE_AFTER_TOOLCALL, messages.Stage_STAGE_BEFORE_OUTPUT,
		messages.Stage_STAGE_AFTER_OUTPUT,
	}
}

// Name is the last path segment of a stage's actor, such as "on_input".
func Name(s messages.Stage) string { return strings.ToLower(strings.TrimPrefix(s.String(), "STAGE_")) }

// Check tells what is wrong with the handlers of a stage: a missing or double name, no Run, a guard that guards nothing.
func Check(s messages.Stage, handlers []Handler) error {
	seen := map[string]bool{}
	for _, h := range handlers {
		switch {
		case h.Name == "":
			return fmt.Errorf("stage %s: a handler has no name", Name(s))
		case h.Run == nil:
			return fmt.Errorf("stage %s: handler %s has nothing to run", Name(s), h.Name)
		case seen[h.Name]:
			return fmt.Errorf("stage %s: two handlers are named %s", Name(s), h.Name)
		case h.Guard && (!h.Modifies || s != messages.Stage_STAGE_BEFORE_TOOLCALL):
			return fmt.Errorf("stage %s: handler %s is a guard, which only a modifier of before_toolcall can be", Name(s), h.Name)
		case h.Modifies && s == messages.Stage_STAGE_AFTER_OUTPUT:
			return fmt.Errorf("stage %s: handler %s modifies, and nothing may be modified here", Name(s), h.Name)
		}
		seen[h.Name] = true
	}
	return nil
}

// Props makes the actor of one stage with its handlers in the order of registration. It panics when Check finds a fault:
// handlers are wired once, by the program itself.
func Props(s messages.Stage, handlers []Handler) kit.Props {
	if err := Check(s, handlers); err != nil {
		panic(err)
	}
	p := newPool(s, handlers)
	return kit.Props{
		Kind: Kind,
		New:  func() kit.Machine { return newMachine(s, handlers) },
		Perform: func(sh kit.Shell, e kit.Effect) {
			r, ok := e.(run)
			if !ok {
				sh.Log().Error("unknown effect", slog.String("type", fmt.Sprintf("%T", e)))
				return
			}
			sh.Go("run", 0, func(ctx context.Context, _ func(any)) any {
				c, faults := p.run(ctx, r.Context)
				return ran{ID: r.ID, Context: c, Faults: faults}
			})
		},
		Close: p.wait,
	}
}

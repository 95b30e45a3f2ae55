package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"homeagent/messages"
)

// chance makes the random source of something that is named, so that it does not depend on when it is asked for.
func chance(seed uint64, parts ...string) *rand.Rand {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// script is what the vendor does for one task.
type script struct {
	rounds []round
}

// round is what the vendor answers to the requests of one round.
type round struct {
	calls   []string // names of the tools
	args    []string
	failure messages.ErrorKind
	finish  messages.Finish
	deltas  int
	first   time.Duration // until something comes
	gap     time.Duration // between deltas
	silent  bool          // nothing comes at all
	empty   bool
	over    int // times it says that the prompt is too long
}

// scriptOf is the script of a task.
func scriptOf(seed uint64, task string) script {
	rng := chance(seed, "task", task)
	var s script
	n := []int{0, 0, 0, 1, 1, 2, 3}[rng.IntN(7)]
	for i := range n + 1 {
		r := round{
			finish: messages.Finish_FINISH_STOP, deltas: rng.IntN(4),
			first: time.Duration(1+rng.IntN(60)) * time.Millisecond, gap: time.Duration(rng.IntN(30)) * time.Millisecond,
		}
		if rng.IntN(4) == 0 {
			r.first = time.Duration(rng.IntN(4000)) * time.Millisecond
		}
		if i < n {
			r.finish = messages.Finish_FINISH_TOOL_CALLS
			for range 1 + rng.IntN(3) {
				r.call(rng)
			}
		} else if rng.IntN(30) == 0 {
			r.finish = messages.Finish_FINISH_LENGTH
		}
		switch rng.IntN(60) {
		case 0:
			r.failure = messages.ErrorKind_ERROR_KIND_STREAM_TRUNCATED
		case 1:
			r.failure = messages.ErrorKind_ERROR_KIND_SERVER
		case 2:
			r.silent = true
		case 3:
			r.empty = i == n
		case 4, 5:
			r.over = 1 + rng.IntN(3)
		}
		s.rounds = append(s.rounds, r)
	}
	return s
}

func (r *round) call(rng *rand.Rand) {
	name, args := pick(rng, toolNames()...), "{}"
	switch rng.IntN(25) {
	case 0:
		name = "no_such_tool"
	case 1:
		args = `{"x":[1]}`
	case 2:
		name, args = "time_now", "{}"
	case 3, 4:
		name, args = "output_send", fmt.Sprintf(`{"channel":%q,"text":"said in between"}`, pick(rng, "web", "chat", "mail"))
	}
	r.calls, r.args = append(r.calls, name), append(r.args, args)
}

// at is the round of that number; behind the last one the vendor just answers.
func (s script) at(n int) round {
	if n >= 1 && n <= len(s.rounds) {
		return s.rounds[n-1]
	}
	return round{finish: messages.Finish_FINISH_STOP, deltas: 1, first: time.Millisecond}
}

// answer is the final text of a round; it tells the task and the round.
func answer(task string, n int) string { return fmt.Sprintf("Answer %s.%d", task, n) }

// result is what the vendor says in a round. Without tools in the request it answers in text.
func (r round) result(task string, n int, tools bool) *messages.CompletionResult {
	out := &messages.CompletionResult{
		Text: answer(task, n), Finish: r.finish, Source: "fake", Model: "fake-1",
		Usage: &messages.Usage{Input: 10, Output: 2, Total: 12},
	}
	switch {
	case r.failure != 0:
		out.Finish = messages.Finish_FINISH_ERROR
		out.Failure = &messages.CompletionFailure{Kind: r.failure, Error: &messages.Error{Code: "vendor", Message: "The vendor failed."}}
		out.Text = "cut"
	case len(r.calls) > 0 && tools:
		out.Text = ""
		for i, name := range r.calls {
			out.Calls = append(out.Calls, &messages.ToolInvocation{
				VendorId: fmt.Sprintf("v%d", i), Name: name, ArgumentsJson: []byte(r.args[i]), Index: int32(i),
			})
		}
	case len(r.calls) > 0:
		out.Finish = messages.Finish_FINISH_STOP
	case r.empty:
		out.Text = ""
	}
	return out
}

// overflow is the vendor's word that a prompt is too long.
func overflow() *messages.CompletionResult {
	return &messages.CompletionResult{
		Finish: messages.Finish_FINISH_ERROR, Source: "fake",
		Failure: &messages.CompletionFailure{
			Kind: messages.ErrorKind_ERROR_KIND_CONTEXT_OVERFLOW, Error: &messages.Error{Code: "context_overflow", Message: "Too long."},
		},
	}
}

// The tools of package acts: one for each class of effect and of preemption, and whether calls of a batch may run together.
var (
	effects = map[string]messages.ToolEffect{
		"pure": messages.ToolEffect_TOOL_EFFECT_PURE, "same": messages.ToolEffect_TOOL_EFFECT_IDEMPOTENT,
		"once": messages.ToolEffect_TOOL_EFFECT_ONCE,
	}
	classes = map[string]messages.ToolClass{
		"pure": messages.ToolClass_TOOL_CLASS_READ, "same": messages.ToolClass_TOOL_CLASS_WRITE, "once": messages.ToolClass_TOOL_CLASS_EXEC,
	}
	preempts = map[string]messages.OnPreempt{
		"cancel": messages.OnPreempt_ON_PREEMPT_CANCEL, "finish": messages.OnPreempt_ON_PREEMPT_FINISH,
		"detach": messages.OnPreempt_ON_PREEMPT_DETACH,
	}
)

func toolNames() []string {
	return []string{
		"pure_cancel_p", "pure_finish_p", "pure_detach", "same_cancel_p", "same_finish", "same_detach_p",
		"once_cancel", "once_finish", "once_finish_p", "once_detach", "once_cancel_p",
	}
}

func toolDefs() []*messages.ToolDef {
	var out []*messages.ToolDef
	for _, name := range toolNames() {
		parts := strings.Split(name, "_")
		d := &messages.ToolDef{
			Name: name, Description: "acts", ParametersJson: []byte(`{"type":"object","properties":{"x":{"type":"integer"}}}`),
			Effect: effects[parts[0]], OnPreempt: preempts[parts[1]], ParallelSafe: len(parts) > 2, Provider: "acts", TimeoutMs: 5000,
			ToolClass: classes[parts[0]],
		}
		out = append(out, d)
	}
	return out
}

// deed is what one call of a tool does.
type deed struct {
	effect time.Duration // until it takes effect
	total  time.Duration // until its result comes
	hangs  bool          // no result comes
	fails  bool
	deaf   bool // it does not confirm a cancel
}

func deedOf(seed uint64, call string) deed {
	rng := chance(seed, "call", call)
	d := deed{total: time.Duration(1+rng.IntN(50)) * time.Millisecond}
	if rng.IntN(3) == 0 {
		d.total = time.Duration(1+rng.IntN(3500)) * time.Millisecond
	}
	d.effect = time.Duration(rng.Int64N(int64(d.total)))
	switch rng.IntN(20) {
	case 0:
		d.hangs = true
	case 1, 2:
		d.fails = true
	case 3:
		d.deaf = true
	}
	return d
}

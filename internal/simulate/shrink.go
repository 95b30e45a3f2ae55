package main

import (
	"fmt"
	"io"
	"slices"
)

// shrink leaves actions out as long as the same invariant is violated.
func shrink(p plan, bad *violation, b bug) (plan, *violation) {
	try := func(q plan) *violation {
		v := newWorld(q, b, nil).run()
		if v != nil && v.invariant == bad.invariant {
			return v
		}
		return nil
	}
	for size := len(p.actions) / 2; size >= 1; {
		smaller := false
		for at := 0; at+size <= len(p.actions); {
			q := p
			q.actions = slices.Concat(p.actions[:at], p.actions[at+size:])
			if v := try(q); v != nil {
				p, bad, smaller = q, v, true
				continue
			}
			at++
		}
		if !smaller || size > len(p.actions) {
			size /= 2
		}
	}
	for i := range p.actions {
		q := p
		q.actions = slices.Clone(p.actions)
		q.actions[i].steps = 0
		if v := try(q); v != nil {
			p, bad = q, v
		}
	}
	return p, bad
}

// explain prints the smallest plan found that still fails, and its transcript.
func explain(out io.Writer, f failure, b bug) {
	p, bad := shrink(makePlan(f.seed), f.bad, b)
	fmt.Fprintf(out, "seed %d violates %q: %s\n", f.seed, f.bad.invariant, f.bad.text)
	fmt.Fprintf(out, "what is left of its plan (at most %d rounds):\n", p.rounds)
	for _, a := range p.actions {
		fmt.Fprintf(out, "  %s\n", a)
	}
	fmt.Fprintf(out, "its transcript, which violates: %s\n", bad.text)
	_ = newWorld(p, b, &recorder{out: out}).run() // it fails as it did before
}

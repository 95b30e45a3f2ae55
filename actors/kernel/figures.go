package kernel

import "homeagent/actors/kit"

// registerFigures shows the counters of the actor world on the metrics page; those of single kinds are admin's.
func (w *world) registerFigures() {
	for _, c := range []struct {
		name, help string
		read       func(kit.Counters) uint64
	}{
		{"failures_total", "Panics in actors and their workers.", func(c kit.Counters) uint64 { return c.Failures }},
		{"given_up_total", "Actors ended because they failed too often.", func(c kit.Counters) uint64 { return c.GivenUp }},
		{"dead_letters_total", "Messages that reached nobody.", func(c kit.Counters) uint64 { return c.DeadLetters }},
		{"slow_messages_total", "Messages handled for longer than their actor's limit.", func(c kit.Counters) uint64 { return c.Slow }},
		{"sweeps_total", "Looks of the sweeper at the actors at work; it stands still while the node is idle.", func(c kit.Counters) uint64 { return c.Sweeps }},
	} {
		w.metrics.CounterFunc("runtime", c.name, c.help, func() float64 { return float64(c.read(w.rt.Counters())) })
	}
}

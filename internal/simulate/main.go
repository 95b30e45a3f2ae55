package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options of a run of many seeds.
type options struct {
	from, seeds uint64
	steps       uint64
	budget      time.Duration
	workers     int
	verbose     bool
	all         bool
}

// run is the command; it returns the exit code.
func run(args []string, out, errs io.Writer) int {
	var o options
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Uint64Var(&o.seeds, "seeds", 100, "how many seeds")
	f.Uint64Var(&o.from, "from", 0, "the first seed")
	f.Uint64Var(&o.steps, "steps", 0, "end after so many steps in all, though not every seed was run; 0 means all seeds")
	f.DurationVar(&o.budget, "budget", 0, "end after so long, though not every seed was run; 0 means all seeds")
	f.IntVar(&o.workers, "workers", 2, "seeds run at the same time")
	f.BoolVar(&o.verbose, "v", false, "print the transcript of every run; for few seeds")
	f.BoolVar(&o.all, "all", false, "go on behind a violation and list the seeds that fail, without their transcripts")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if f.NArg() > 0 || o.seeds == 0 || o.workers < 1 {
		fmt.Fprintln(errs, "simulate: wants at least one seed and one worker, and no arguments")
		return 2
	}
	r := simulate(o, bug{}, out)
	fmt.Fprintf(out, "%d seeds, %d steps in %s, %.0f steps/s\n", r.seeds, r.steps, r.took.Round(time.Millisecond), float64(r.steps)/r.took.Seconds())
	if len(r.failed) == 0 {
		return 0
	}
	if !o.all {
		explain(out, r.failed[0], bug{})
		return 1
	}
	for _, f := range r.failed {
		text, _, _ := strings.Cut(f.bad.Error(), "\n")
		fmt.Fprintf(out, "seed %d violates %s\n", f.seed, text)
	}
	return 1
}

// report is what came of many runs.
type report struct {
	seeds, steps uint64
	took         time.Duration
	failed       []failure // by seed
}

// failure is a seed whose run violated something.
type failure struct {
	seed uint64
	bad  *violation
}

// simulate runs seeds until one fails, all are done, or the budget is used up.
func simulate(o options, b bug, out io.Writer) report {
	began := time.Now()
	var next, done, steps atomic.Uint64
	var stop atomic.Bool
	var mu sync.Mutex
	var r report
	var wg sync.WaitGroup
	if o.verbose {
		o.workers = 1
	}
	for range o.workers {
		wg.Go(func() {
			for !stop.Load() {
				n := next.Add(1) - 1
				if n >= o.seeds || o.budget > 0 && time.Since(began) > o.budget || o.steps > 0 && steps.Load() >= o.steps {
					return
				}
				seed := o.from + n
				var rec *recorder
				if o.verbose {
					rec = &recorder{out: out}
					rec.note("seed %d", seed)
				}
				w := newWorld(makePlan(seed), b, rec)
				bad := w.run()
				steps.Add(w.made())
				done.Add(1)
				if bad != nil {
					stop.Store(!o.all)
					mu.Lock()
					r.failed = append(r.failed, failure{seed, bad})
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(r.failed, func(a, b failure) int { return cmp.Compare(a.seed, b.seed) })
	r.seeds, r.steps, r.took = done.Load(), steps.Load(), time.Since(began)
	return r
}

// made is how many steps the run has made.
func (w *world) made() uint64 { return w.steps + w.host.Steps() }

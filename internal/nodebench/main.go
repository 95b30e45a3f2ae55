package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bench is one run.
type bench struct {
	binary, dir string
	out         *Report

	events, starting, idling, warm, turning, interrupting, stopping, crowding, persons, recovering int
}

func (b *bench) report(f Figure) { b.out.Figures = append(b.out.Figures, f) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "nodebench:", err)
		os.Exit(1)
	}
}

// parts are what can be measured, in this order.
var parts = []string{"size", "start", "idle", "turns", "interrupts", "stops", "crowd", "recovery"}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	b := new(bench)
	set := flag.NewFlagSet("nodebench", flag.ContinueOnError)
	set.SetOutput(stderr)
	save := set.String("json", "", "write the figures to this `file` too")
	only := set.String("only", strings.Join(parts, ","), "measure these `parts`")
	set.StringVar(&b.binary, "homed", "", "measure this `program` instead of building one")
	set.IntVar(&b.events, "events", 20_000, "events in the store that is not empty")
	set.IntVar(&b.starting, "starts", 20, "starts of each kind")
	set.IntVar(&b.idling, "idles", 3, "idle nodes of each kind")
	set.IntVar(&b.warm, "warm", 30, "turns, interrupts and stops that are not counted")
	set.IntVar(&b.turning, "turns", 400, "turns")
	set.IntVar(&b.interrupting, "interrupts", 200, "interrupts")
	set.IntVar(&b.stopping, "stops", 100, "stops")
	set.IntVar(&b.crowding, "crowd", 50, "background tasks that a person comes among")
	set.IntVar(&b.persons, "persons", 40, "inputs of persons among them")
	set.IntVar(&b.recovering, "recoveries", 200, "starts after a kill")
	if err := set.Parse(args); err != nil {
		return err
	}
	wanted := strings.Split(*only, ",")
	for _, w := range wanted {
		if !slices.Contains(parts, w) {
			return fmt.Errorf("there is no part %q; there are %s", w, strings.Join(parts, ", "))
		}
	}
	// The name stays short: the path of the socket in it is bounded.
	if b.dir, err = os.MkdirTemp("", "nb-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.out, err = describe(time.Now()); err != nil {
		return err
	}
	if b.binary == "" {
		if b.binary, err = build(ctx, b.dir); err != nil {
			return err
		}
	}
	if err := b.measure(ctx, wanted, stderr); err != nil {
		return err
	}
	if b.out.Machine.LoadAfter, err = loadAverage(); err != nil {
		return err
	}
	if *save != "" {
		if err := b.out.save(*save); err != nil {
			return err
		}
	}
	return b.out.table(stdout)
}

// measure runs the parts in their order.
func (b *bench) measure(ctx context.Context, wanted []string, progress io.Writer) error {
	seeded := filepath.Join(b.dir, "seeded")
	if slices.Contains(wanted, "start") || slices.Contains(wanted, "idle") {
		if err := seed(seeded, b.events); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if !slices.Contains(wanted, part) {
			continue
		}
		fmt.Fprintln(progress, "measuring", part)
		var err error
		switch part {
		case "size":
			var f Figure
			f, err = binarySize(b.binary)
			b.report(f)
		case "start":
			err = b.starts(ctx, seeded)
		case "idle":
			err = b.idle(ctx, seeded)
		case "turns":
			err = b.turns(ctx)
		case "interrupts":
			err = b.interrupts(ctx)
		case "stops":
			err = b.stops(ctx)
		case "crowd":
			err = b.crowd(ctx)
		case "recovery":
			err = b.recovery(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Command hmapdev is the tool of people who write for the node: it checks model adapters and replays recorded answers
// through them.
//
// Exit codes: 0 all is well, 1 what was checked is not well, 2 it could not be checked.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"homeagent/internal/obs"
)

// Exit codes.
const (
	exitOK     = 0
	exitUnwell = 1
	exitFailed = 2
)

// errUnwell says that the answer itself is bad news, which was shown already.
var errUnwell = errors.New("not well")

// console is where a command reads and writes.
type console struct {
	ctx    context.Context //nolint:containedctx // one command, one context
	out    io.Writer
	errout io.Writer
}

type cli struct {
	Version kong.VersionFlag `help:"Show the version."`

	Adapter adapterCmd `cmd:"" help:"Model adapters."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(&console{ctx: ctx, out: os.Stdout, errout: os.Stderr}, os.Args[1:]))
}

// exited carries the exit code that the parser wants out of it.
type exited int

// run does one command line and returns the exit code.
func run(c *console, args []string) (code int) {
	defer func() {
		if v := recover(); v != nil {
			e, ok := v.(exited)
			if !ok {
				panic(v)
			}
			code = int(e)
		}
	}()
	var flags cli
	p, err := kong.New(&flags,
		kong.Name("hmapdev"), kong.Description("The tool of people who write for the node."),
		kong.Writers(c.out, c.errout), kong.UsageOnError(),
		kong.Vars{"version": obs.ReadBuild().String()},
		kong.Exit(func(n int) { panic(exited(n)) }), // after help and version
	)
	if err != nil {
		fmt.Fprintln(c.errout, "hmapdev:", err)
		return exitFailed
	}
	k, err := p.Parse(args)
	if err != nil {
		fmt.Fprintf(c.errout, "hmapdev: %v (hmapdev --help shows the commands)\n", err)
		return exitFailed
	}
	switch err := k.Run(c); {
	case errors.Is(err, errUnwell):
		return exitUnwell
	case err != nil:
		fmt.Fprintln(c.errout, "hmapdev:", err)
		return exitFailed
	}
	return exitOK
}

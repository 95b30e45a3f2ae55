// Command waiter speaks to a running node: it chats, shows what the node does, and changes its settings.
//
// Exit codes: 0 all is well, 1 what was asked about is not well, 2 it could not be asked.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"homeagent/internal/client"
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
	in     io.Reader
	out    io.Writer
	errout io.Writer
	env    func(string) string
	// interrupts brings one value per Ctrl-C. All commands but chat end with the first one, by their context.
	interrupts <-chan os.Signal
	// color says that out is a terminal that shows colours.
	color bool
	// size tells how many places and lines the terminal has; nil for what is none.
	size func() (places, lines int)
	json bool
}

// screen is the size of the terminal that is written to; zeros mean that nothing bounds what is written.
func (c *console) screen() (places, lines int) {
	if c.size == nil {
		return 0, 0
	}
	return c.size()
}

// cli is the command line.
type cli struct {
	Data      string           `help:"Data folder of the node; default as for homed." type:"path" placeholder:"DIR"`
	Node      string           `help:"Address of a node elsewhere, such as http://192.168.1.5:8765." placeholder:"URL"`
	TokenFile string           `help:"File with the token for --node." type:"path" placeholder:"FILE"`
	JSON      bool             `name:"json" help:"Write JSON."`
	Version   kong.VersionFlag `help:"Show the version."`

	Chat      chatCmd      `cmd:"" help:"Talk to the agent; without a text, interactively."`
	Send      sendCmd      `cmd:"" help:"Hand over an input and do not wait for the answer."`
	Stop      stopCmd      `cmd:"" help:"Stop what runs and what waits."`
	Queue     queueGroup   `cmd:"" help:"Show what runs, is suspended and waits, and change what waits."`
	Status    statusCmd    `cmd:"" help:"Show how the node is."`
	Tree      treeCmd      `cmd:"" help:"Show the actors of the node."`
	Inspect   inspectCmd   `cmd:"" help:"Show one actor with its state."`
	Kill      orderCmd     `cmd:"" help:"Stop an actor."`
	Restart   orderCmd     `cmd:"" help:"Restart an actor."`
	Pause     orderCmd     `cmd:"" help:"Hold an actor's messages."`
	Resume    orderCmd     `cmd:"" help:"Let a paused actor go on."`
	Agents    agentsCmd    `cmd:"" help:"The agents of the node."`
	Timers    timersCmd    `cmd:"" help:"Reminders and work at given times."`
	Memory    memoryCmd    `cmd:"" help:"What the agent remembers."`
	Approvals approvalsCmd `cmd:"" help:"Calls that wait for your word."`
	Tokens    tokensCmd    `cmd:"" help:"Named tokens for programs and other people."`
	Config    configCmd    `cmd:"" help:"The settings."`
	Providers providersCmd `cmd:"" help:"The model sources."`
	Plugins   pluginsCmd   `cmd:"" help:"The plugins of the node."`
	Events    eventsCmd    `cmd:"" help:"Show events as they come."`
	Logs      logsCmd      `cmd:"" help:"Show the log of the node."`
	Usage     usageCmd     `cmd:"" help:"Show the tokens and the money that models took."`
	Nodes     nodesCmd     `cmd:"" help:"Show the nodes of the agent."`
	Channels  channelsCmd  `cmd:"" help:"Show the channels."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	interrupts := make(chan os.Signal, 4)
	signal.Notify(interrupts, os.Interrupt)
	c := &console{
		ctx: ctx, in: os.Stdin, out: os.Stdout, errout: os.Stderr, env: os.Getenv, interrupts: interrupts,
		color: colors(os.Stdout, os.Getenv), size: sizeOf(os.Stdout),
	}
	os.Exit(run(c, os.Args[1:]))
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
		kong.Name("waiter"), kong.Description("Speaks to a running node."),
		kong.Writers(c.out, c.errout), kong.UsageOnError(),
		kong.Vars{"version": obs.ReadBuild().String()},
		kong.Exit(func(n int) { panic(exited(n)) }), // after help and version
	)
	if err != nil {
		return c.fail(err)
	}
	k, err := p.Parse(args)
	if err != nil {
		c.json = slices.Contains(args, "--json") // what was parsed of a wrong line does not tell
		return c.fail(fmt.Errorf("%w (%s)", err, usageOf(err)))
	}
	c.json = flags.JSON
	if k.Selected().Name == "logs" { // a file: it is there when no node runs
		ctx, cancel := c.interruptible()
		defer cancel()
		c.ctx = ctx
		return c.fail(k.Run(c, &flags))
	}
	node, err := client.Open(client.Options{Data: flags.Data, Node: flags.Node, TokenFile: flags.TokenFile})
	if err != nil {
		return c.fail(err)
	}
	defer node.Close()
	if k.Selected().Name != "chat" {
		ctx, cancel := c.interruptible()
		defer cancel()
		c.ctx = ctx
	}
	return c.fail(k.Run(c, node, verb(k.Selected().Name)))
}

// usageOf names the help that tells how the wrong usage err is avoided.
func usageOf(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil {
		if at := wrong.Context.Selected(); at != nil {
			return "waiter " + at.Path() + " --help shows how"
		}
	}
	return "waiter --help shows the commands"
}

// verb is the name of the command that was given, for those that share a struct.
type verb string

// interruptible is a context that Ctrl-C ends.
func (c *console) interruptible() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.ctx)
	go func() {
		select {
		case <-c.interrupts:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// fail shows an error and returns the exit code for it; nil is exitOK.
func (c *console) fail(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUnwell):
		return exitUnwell
	case errors.Is(err, context.Canceled):
		return exitFailed
	}
	var e *client.Error
	known := errors.As(err, &e)
	switch {
	case c.json:
		if !known {
			e = new(client.Error)
			e.Code, e.Message = codeOf(err), err.Error()
		}
		b, _ := json.Marshal(e) // a struct of strings always encodes
		_, _ = fmt.Fprintf(c.errout, "%s\n", b)
	case known:
		_, _ = fmt.Fprintf(c.errout, "waiter: %s [%s]\n", e.Error(), e.Code)
	default:
		_, _ = fmt.Fprintf(c.errout, "waiter: %v\n", err)
	}
	if known && e.Status < 500 && e.Status != 401 && e.Status != 403 && e.Status != 421 {
		return exitUnwell
	}
	return exitFailed
}

// codeOf is the code of an error that no node made.
func codeOf(err error) string {
	var wrong *kong.ParseError
	switch {
	case errors.As(err, &wrong):
		return "usage"
	case errors.Is(err, client.ErrNotRunning):
		return "not_running"
	case errors.Is(err, client.ErrUnreachable):
		return "unreachable"
	}
	return "failed"
}

// printf writes to the output. A reader that went away ends the process by its own signal, or the next read.
func (c *console) printf(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format, args...) }

// show writes v as JSON when that was asked for, else by text.
func (c *console) show(v any, text func()) error {
	if !c.json {
		text()
		return nil
	}
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Command homed is one node of HomeAgent.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"homeagent/actors/kernel"
	"homeagent/internal/obs"
)

// Exit codes: exitFailed also says that what was asked about is not well, exitUsage that it could not be asked.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

type cli struct {
	Run     runCmd     `cmd:"" default:"withargs" help:"Run the node in the foreground until SIGTERM or Ctrl-C."`
	Version versionCmd `cmd:"" help:"Show what this program is."`
	Backup  backupCmd  `cmd:"" help:"Write a backup of the running node, and try it out."`
	Restore restoreCmd `cmd:"" help:"Make a new data folder from a backup."`
	Doctor  doctorCmd  `cmd:"" help:"Look at a node's files, environment and process; its store is not opened."`
	Worker  struct{}   `cmd:"" name:"adapter-worker" hidden:"" help:"Run an adapter's script for a node, on standard input and output."`
}

type runCmd struct {
	Data    string `help:"Data folder; by default the user's data folder + /homed." env:"HOMED_DATA" placeholder:"DIR"`
	Listen  string `help:"Address of the HTTP face; port 0 takes a free one." env:"HOMED_LISTEN" default:"127.0.0.1:8765" placeholder:"HOST:PORT"`
	Name    string `help:"Name of the node; by default the host's name." env:"HOMED_NAME"`
	Profile string `help:"What the node is: server or phone." env:"HOMED_PROFILE" enum:"server,phone" default:"server"`
	Log     string `help:"Form of the log lines: text or json." env:"HOMED_LOG" enum:"text,json" default:"text"`
	Reserve int64  `help:"Free disk space in bytes below which nothing is written; 0 means the default, -1 none." env:"HOMED_RESERVE" default:"0"`
	Quiet   bool   `help:"Log to the file in the data folder only."`
	Salvage bool   `help:"Open a damaged store without what is missing. What was lost is named in the log."`
}

type versionCmd struct {
	Graph bool `help:"Print the supervision table with its layers and its digest."`
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	var c cli
	parser, err := kong.New(&c, kong.Name("homed"), kong.Writers(stdout, stderr), kong.UsageOnError(),
		kong.Description("A personal AI agent that lives at home. `homed` runs the node, with the flags of `homed run`; "+
			"`waiter` talks to it."))
	if err != nil {
		fmt.Fprintln(stderr, "homed:", err)
		return exitFailed
	}
	k, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "homed: %v (homed run --help shows the flags)\n", err)
		return exitUsage
	}
	well := true
	switch k.Command() {
	case "version":
		err = c.Version.show(stdout)
	case "backup <file>":
		err = c.Backup.run(stdout)
	case "restore <file>":
		err = c.Restore.run(stdout)
	case "doctor":
		well, err = c.Doctor.run(stdout)
	case workerCommand:
		err = kernel.Worker(os.Stdin, stdout)
	default:
		err = c.Run.serve(stdout, stderr)
	}
	var unasked askError
	switch {
	case errors.As(err, &unasked):
		fmt.Fprintln(stderr, "homed:", err)
		return exitUsage
	case err != nil:
		fmt.Fprintln(stderr, "homed:", err)
		return exitFailed
	case !well:
		return exitFailed
	}
	return exitOK
}

func (v versionCmd) show(out io.Writer) error {
	b := obs.ReadBuild()
	if _, err := fmt.Fprintf(out, "homed %s (%s, %s, %s/%s)\n", b.Version, b.Revision, b.Go, b.OS, b.Arch); err != nil {
		return err
	}
	if !v.Graph {
		return nil
	}
	return kernel.Graph(out)
}

// workerCommand makes this program a worker of the node that started it.
const workerCommand = "adapter-worker"

// closeTime is how long an orderly stop may take.
const closeTime = 20 * time.Second

// serve runs the node until a signal; a second signal ends the process at once.
func (r runCmd) serve(stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opt := kernel.Options{
		Data: r.Data, Listen: r.Listen, Name: r.Name, Profile: r.Profile, Environ: os.Environ(), JSON: r.Log == "json",
		Reserve: r.Reserve, Salvage: r.Salvage,
	}
	if !r.Quiet {
		opt.Stderr = stderr
	}
	// Where the system does not tell, files that nobody has confirmed do not run.
	if path, err := os.Executable(); err == nil {
		opt.Worker = []string{path, workerCommand}
	}
	node, err := kernel.Boot(ctx, opt)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "ready http://%s node %s data %s\n", node.HTTP(), node.Name(), node.Data()); err != nil {
		return errors.Join(err, node.Close(context.Background()))
	}
	var lost error
	select {
	case <-ctx.Done():
	case lost = <-node.Lost():
	}
	stop()
	closing, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(lost, node.Close(closing))
}

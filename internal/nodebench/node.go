package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"homeagent/internal/client"
)

// patience bounds every wait; it decides nothing when all is well.
const patience = 2 * time.Minute

// build makes homed as it is released.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "homed")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "homeagent/cmd/homed")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build homed: %w\n%s", err, out)
	}
	return path, nil
}

// node is a homed that runs. One goroutine uses it.
type node struct {
	cmd    *exec.Cmd
	data   string
	client *client.Client
	stderr bytes.Buffer
	// took is the time from the start of the process to its ready line.
	took time.Duration
	rest chan struct{}
}

// start runs homed over a data folder and waits for its ready line.
func start(ctx context.Context, binary, data string) (*node, error) {
	n := &node{data: data, rest: make(chan struct{})}
	n.cmd = exec.CommandContext(ctx, binary, "run", "--data", data, "--listen", "127.0.0.1:0", "--quiet")
	n.cmd.Env, n.cmd.Stderr = environment(), &n.stderr
	n.cmd.SysProcAttr = dying()
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// The death signal follows the thread that forks.
	runtime.LockOSThread()
	began := time.Now()
	err = n.cmd.Start()
	runtime.UnlockOSThread()
	if err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	n.took = time.Since(began)
	go func() {
		defer close(n.rest)
		_, _ = io.Copy(io.Discard, lines) // nothing more is expected
	}()
	if err != nil || !strings.HasPrefix(line, "ready ") {
		return nil, errors.Join(fmt.Errorf("homed did not become ready: %q %w\n%s", line, err, &n.stderr), n.kill())
	}
	if n.client, err = client.Open(client.Options{Data: data}); err != nil {
		return nil, errors.Join(err, n.kill())
	}
	return n, nil
}

// environment is that of this process without settings of a node.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HOMED_") && !strings.HasPrefix(v, "GO") {
			env = append(env, v)
		}
	}
	return env
}

// stop ends the node in order.
func (n *node) stop() error {
	n.client.Close()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-n.rest
	if err := n.cmd.Wait(); err != nil {
		return fmt.Errorf("homed did not stop in order: %w\n%s", err, &n.stderr)
	}
	return nil
}

// kill ends the node as a power cut would.
func (n *node) kill() error {
	err := n.cmd.Process.Kill()
	<-n.rest
	_ = n.cmd.Wait() // it was killed
	return err
}

// use runs a node over a data folder for the time of a measurement.
func use(ctx context.Context, binary, data string, measure func(*node) error) error {
	n, err := start(ctx, binary, data)
	if err != nil {
		return err
	}
	if err := measure(n); err != nil {
		return errors.Join(err, n.story(), n.kill())
	}
	return n.stop()
}

// story is an error that tells what the node logged last.
func (n *node) story() error {
	b, err := os.ReadFile(n.client.Logs())
	if err != nil {
		return err
	}
	const lines = 20
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return fmt.Errorf("the node logged last:\n%s", strings.Join(all[max(0, len(all)-lines):], "\n"))
}

package e2e

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
	"sync"
	"syscall"
	"testing"
	"time"
)

// bin holds the commands under test.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "homeagent-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is the system's temporary folder's
	bin = dir
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "homeagent/cmd/homed", "homeagent/cmd/waiter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// patience bounds every wait of these tests; it decides nothing when all is well.
const patience = 60 * time.Second

// node is a homed under test.
type node struct {
	t    testing.TB
	data string
	args []string
	env  []string

	cmd    *exec.Cmd
	lines  chan string
	output *tail
	done   chan struct{}
	err    error
}

// tail keeps what a process wrote.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// newNode prepares a node over a fresh data folder; start runs it.
func newNode(t testing.TB, args ...string) *node {
	t.Helper()
	n := &node{t: t, data: shortDir(t), args: args}
	t.Cleanup(func() {
		if n.cmd != nil {
			n.kill()
		}
		if n.output != nil && strings.Contains(n.output.String(), "WARNING: DATA RACE") {
			t.Error("the node raced")
		}
		if t.Failed() && n.output != nil {
			t.Logf("homed said:\n%s", n.output)
		}
	})
	return n
}

// shortDir makes a folder whose path leaves room for a socket name.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ha-") //nolint:usetesting // TempDir holds the name of the test, a socket's name has 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "d")
}

// launch starts the process without waiting for it to be ready.
func (n *node) launch() {
	n.t.Helper()
	args := append([]string{"run", "--data", n.data, "--listen", "127.0.0.1:0"}, n.args...)
	n.cmd = exec.Command(filepath.Join(bin, "homed"), args...)
	n.cmd.Env = append(cleanEnv(), n.env...)
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	n.output = &tail{}
	n.cmd.Stderr = n.output
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	// Pdeathsig follows the thread that forks.
	runtime.LockOSThread()
	err = n.cmd.Start()
	runtime.UnlockOSThread()
	if err != nil {
		n.t.Fatal(err)
	}
	n.lines, n.done = make(chan string, 64), make(chan struct{})
	go n.watch(out)
}

func (n *node) watch(out io.Reader) {
	lines, done := n.lines, n.done
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		fmt.Fprintln(n.output, sc.Text())
		select {
		case lines <- sc.Text():
		default:
		}
	}
	n.err = n.cmd.Wait()
	close(lines)
	close(done)
}

// cleanEnv is the environment without settings of a node.
func cleanEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HOMED_") {
			env = append(env, v)
		}
	}
	return env
}

// start runs the node and waits until it says that it is ready.
func (n *node) start() {
	n.t.Helper()
	n.launch()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-n.lines:
			if !ok {
				n.t.Fatalf("homed ended before it was ready: %v\n%s", n.err, n.output)
			}
			if strings.HasPrefix(line, "ready") {
				return
			}
		case <-timer.C:
			n.t.Fatalf("homed is not ready:\n%s", n.output)
		}
	}
}

// wait awaits the end of the process and returns its exit code.
func (n *node) wait() int {
	n.t.Helper()
	select {
	case <-n.done:
	case <-time.After(patience):
		_ = n.cmd.Process.Kill() // it may have ended meanwhile
		n.t.Fatalf("homed does not end:\n%s", n.output)
	}
	n.cmd = nil
	var exit *exec.ExitError
	if errors.As(n.err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// stop ends the node in order; it must exit with 0.
func (n *node) stop() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatal(err)
	}
	if code := n.wait(); code != 0 {
		n.t.Fatalf("homed ended with %d after SIGTERM:\n%s", code, n.output)
	}
}

// kill ends the node as a power cut would.
func (n *node) kill() {
	_ = n.cmd.Process.Kill() // it may have ended meanwhile
	<-n.done
	n.cmd = nil
}

// result is what a command left behind.
type result struct {
	stdout, stderr string
	code           int
}

// waiter runs the client over the node's data folder.
func (n *node) waiter(args ...string) result {
	n.t.Helper()
	return n.waiterIn("", args...)
}

func (n *node) waiterIn(stdin string, args ...string) result {
	n.t.Helper()
	return command(n.t, stdin, "waiter", append(args, "--data", n.data)...)
}

// command runs one of the commands to its end.
func command(t testing.TB, stdin, name string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	cmd.Env = cleanEnv()
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	r := result{stdout: out.String(), stderr: errs.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		t.Fatalf("%s %v: %v", name, args, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s %v did not end:\n%s%s", name, args, r.stdout, r.stderr)
	}
	return r
}

// must fails the test unless the command ended well.
func (r result) must(t testing.TB) result {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return r
}

package self

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Command is what to start.
type Command struct {
	// Path of the program, and its arguments.
	Path string
	Args []string
	// Env is its whole environment.
	Env []string
}

// Process runs until it ends by itself, or Kill. Its Read and Write are of its
// standard output and input; each is one goroutine's at a time.
type Process struct {
	cmd     *exec.Cmd
	in, out *os.File
	err     *said
}

// lingering is how long something that the process has started may hold its pipes.
const lingering = time.Second

// Start starts a process. It inherits nothing but its three pipes.
func (c Command) Start() (*Process, error) {
	p := &Process{cmd: exec.Command(c.Path, c.Args...), err: &said{}}
	p.cmd.Env = append([]string{}, c.Env...)
	p.cmd.Dir, p.cmd.WaitDelay, p.cmd.Stderr = string(os.PathSeparator), lingering, p.err
	group(p.cmd)
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), in.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout = theirIn, theirOut
	p.in, p.out = in, out
	err = p.cmd.Start()
	err = errors.Join(err, theirIn.Close(), theirOut.Close())
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	return p, nil
}

// Read reads what it writes; io.EOF when it has ended and all was read.
func (p *Process) Read(b []byte) (int, error) { return p.out.Read(b) }

// Write writes what it reads.
func (p *Process) Write(b []byte) (int, error) { return p.in.Write(b) }

// Kill ends it at once; any goroutine, any number of times.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() } // it may have ended

// Wait returns when it has ended, with how, and the first line of what it said on
// its standard error. It is called once.
func (p *Process) Wait() string {
	_ = p.cmd.Wait() // the state tells
	how := p.cmd.ProcessState.String()
	if first, _, _ := strings.Cut(p.err.String(), "\n"); first != "" {
		how += ": " + first
	}
	return how
}

// Close gives the pipes back; after Wait.
func (p *Process) Close() { _ = errors.Join(p.in.Close(), p.out.Close()) } // nothing is left in them that anybody wants

// maxSaid is how much of its standard error is kept.
const maxSaid = 4 << 10

// said keeps the beginning of what is written to it.
type said struct {
	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer and never fails: who writes here must not wait.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(s.buf, p[:min(len(p), maxSaid-len(s.buf))]...)
	return len(p), nil
}

// String gives what was kept.
func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.buf)
}

//go:build unix

package self

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

const (
	// softMemory is where the collector of a confined process begins to work hard.
	softMemory = 128 << 20
	// share is the processor time that Renew gives.
	share = 20 * time.Second
	// exitTime is the exit code of a process that has used up its time.
	exitTime = 3
)

// group takes the process out of the terminal's group: an interrupt there is the
// node's to handle.
func group(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Confine gives up what this process does not need: it can open no file and no
// socket, write no file, leave no core, and has a bound on its memory. What is open
// stays open. memory is the bound in bytes of what it may write to; zero sets none. The
// error says what the system does not let it give up.
func Confine(memory uint64) error {
	debug.SetMemoryLimit(softMemory)
	// The runtime opens what it waits with at the first timer, and ends the process
	// where it can not.
	time.AfterFunc(time.Hour, func() {}).Stop()
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	go func() {
		<-over
		fmt.Fprintln(os.Stderr, "its processor time is used up")
		os.Exit(exitTime)
	}()
	var errs []error
	if memory > 0 {
		if err := limit(syscall.RLIMIT_DATA, memory); err != nil {
			errs = append(errs, fmt.Errorf("limit of memory: %w", err))
		}
	}
	for _, l := range []struct {
		name string
		what int
		most uint64
	}{
		{"size of files", syscall.RLIMIT_FSIZE, 0},
		{"core", syscall.RLIMIT_CORE, 0},
		// Last: a descriptor is the way to everything else.
		{"descriptors", syscall.RLIMIT_NOFILE, 0},
	} {
		if err := limit(l.what, l.most); err != nil {
			errs = append(errs, fmt.Errorf("limit of %s: %w", l.name, err))
		}
	}
	if err := Renew(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Renew gives the process another share of processor time from now on.
func Renew() error {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return fmt.Errorf("time used: %w", err)
	}
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CPU, &now); err != nil {
		return fmt.Errorf("limit of time: %w", err)
	}
	used := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	now.Cur = uint64((used + share) / time.Second)
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &now); err != nil {
		return fmt.Errorf("limit of time: %w", err)
	}
	return nil
}

func limit(what int, most uint64) error {
	l := syscall.Rlimit{Cur: most, Max: most}
	return syscall.Setrlimit(what, &l)
}

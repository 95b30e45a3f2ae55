//go:build unix

package self

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

const mode = "HOMEAGENT_SELF"

func TestMain(m *testing.M) {
	if how := os.Getenv(mode); how != "" {
		os.Exit(child(how))
	}
	goleak.VerifyTestMain(m)
}

// child tries what a confined process may not do, and writes what it could.
func child(how string) int {
	if err := Confine(bound); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	switch how {
	case "reach":
		for name, try := range map[string]func() error{
			"file":   func() error { _, err := os.Open(os.Args[0]); return err },
			"write":  func() error { return os.WriteFile(os.Getenv("HOMEAGENT_FILE"), []byte("x"), 0o600) },
			"tcp":    func() error { _, err := net.Dial("tcp", os.Getenv("HOMEAGENT_ADDR")); return err },
			"udp":    func() error { _, err := net.Dial("udp", "127.0.0.1:53"); return err },
			"listen": func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err },
			"run":    func() error { _, err := os.StartProcess(os.Args[0], nil, &os.ProcAttr{}); return err },
			"raise":  func() error { return limit(syscall.RLIMIT_NOFILE, 100) },
		} {
			if try() == nil {
				fmt.Println("can", name)
			}
		}
		for _, e := range os.Environ() {
			if !strings.HasPrefix(e, "HOMEAGENT_") {
				fmt.Println("knows", e)
			}
		}
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "memory":
		for kept := [][]byte{}; ; {
			b := make([]byte, 8<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			kept = append(kept, b)
			if len(kept) > 1000 {
				return 0
			}
		}
	case "time":
		l := syscall.Rlimit{Cur: 1, Max: 5}
		if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &l); err != nil {
			return 1
		}
		for n := 0; ; n++ {
			_ = n
		}
	}
	return 0
}

func begin(t *testing.T, how string, env ...string) *Process {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Command{Path: path, Env: append(env, mode+"="+how)}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestConfinedReachesNothing has a confined process try files, sockets and programs. As root, who may raise limits again,
// raising is possible; nothing in a worker can ask for it.
func TestConfinedReachesNothing(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	file := filepath.Join(t.TempDir(), "x")
	p := begin(t, "reach", "HOMEAGENT_ADDR="+ln.Addr().String(), "HOMEAGENT_FILE="+file)
	text, err := io.ReadAll(p)
	how := p.Wait()
	if err != nil || how != "exit status 0" {
		t.Fatalf("%v, %s", err, how)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "can raise" || os.Getuid() != 0 {
			t.Errorf("it %s", line)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it has written a file")
	}
}

// TestConfinedEnds at the limits of memory and time, and says so.
func TestConfinedEnds(t *testing.T) {
	for how, want := range map[string]string{"memory": "out of memory", "time": "processor time is used up"} {
		if how == "memory" && bound == 0 {
			continue // the race detector has more than any bound
		}
		if got := begin(t, how).Wait(); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", how, got, want)
		}
	}
}

// TestEchoAndKill speaks with a process, ends it by its input and by force.
func TestEchoAndKill(t *testing.T) {
	p := begin(t, "echo")
	if _, err := io.WriteString(p, "hello"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(p, got); err != nil || string(got) != "hello" {
		t.Errorf("%q %v", got, err)
	}
	p.Kill()
	p.Kill()
	if how := p.Wait(); !strings.Contains(how, "killed") {
		t.Error(how)
	}
	if n, err := p.Read(got); !errors.Is(err, io.EOF) || n != 0 {
		t.Errorf("%d %v", n, err)
	}
	if _, err := (Command{Path: "/nonexistent"}).Start(); err == nil {
		t.Error("nothing was started")
	}
}

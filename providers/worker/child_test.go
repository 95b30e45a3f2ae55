package worker_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"homeagent/pluginhost/self"
	"homeagent/providers"
	"homeagent/providers/providertest"
	"homeagent/providers/worker"
)

// command starts this test binary as a worker that behaves in a certain way.
func command(how string) worker.Start {
	return func() (worker.Process, error) {
		path, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return self.Command{Path: path, Env: []string{"HOMEAGENT_WORKER=" + how}}.Start()
	}
}

var start = command("well")

// child is what the binary does as a worker.
func child() int {
	if err := self.Confine(bound); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	how := os.Getenv("HOMEAGENT_WORKER")
	switch how {
	case "silent":
		select {}
	case "garbage":
		_, _ = os.Stdout.WriteString(strings.Repeat("\xff", 1<<16))
		select {}
	case "length":
		_, _ = os.Stdout.Write([]byte{0, 0, 0, 9, '{', '}'})
		select {}
	case "talks":
		for {
			_, _ = os.Stdout.Write([]byte("\x00\x00\x00\x0c{\"op\":\"log\"}"))
		}
	case "exits":
		fmt.Fprintln(os.Stderr, "I do not want to")
		return 7
	case "memory":
		var kept [][]byte
		for {
			b := make([]byte, 16<<20)
			for i := range b {
				b[i] = 1
			}
			kept = append(kept, b)
			_ = kept
		}
	}
	_ = worker.Serve(os.Stdin, os.Stdout, func() { _ = self.Renew() }) // the pipe tells
	return 0
}

// TestBrokenWorkers are workers that do not keep to the protocol: each is an error that says so, in bounded time.
func TestBrokenWorkers(t *testing.T) {
	for how, want := range map[string]string{
		"silent": "did not answer", "garbage": "bad frame", "length": "did not answer", "talks": "lines for the log",
		"exits": "I do not want to", "memory": "ended",
	} {
		if how == "memory" && bound == 0 {
			continue
		}
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			patience := time.Second
			if strings.Contains(want, "ended") {
				patience = time.Minute // it ends by its limit
			}
			a, err := worker.Patient(command(how), "acme", map[string][]byte{"acme.lua": []byte(good)}, patience)
			if err == nil {
				a.Close()
				t.Fatal("it works")
			}
			if !strings.Contains(err.Error(), want) || kind(t, err) != "adapter" {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	_, err := worker.New(func() (worker.Process, error) { return self.Command{Path: "/nonexistent"}.Start() }, "a", "a.lua", nil, nil)
	if err == nil || kind(t, err) != "adapter" {
		t.Error(err)
	}
}

// TestWorkerDies has the worker of an open call killed from outside: the call fails, the next has another worker.
func TestWorkerDies(t *testing.T) {
	var last worker.Process
	a, err := worker.New(func() (worker.Process, error) { p, err := start(); last = p; return p, err }, "acme", "acme.lua",
		map[string][]byte{"acme.lua": []byte(good)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Wait()
	defer a.Close()
	src := &providers.Source{Name: "s", Adapter: "acme", BaseURL: "http://127.0.0.1:1"}
	req := &providers.Request{CompletionRequest: providertest.Ask("x"), Stream: true}
	x, err := a.Open(t.Context(), src, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	last.Kill()
	if _, err := x.Prepare(t.Context()); err == nil || kind(t, err) != "adapter" {
		t.Errorf("%v", err)
	}
	x.Close()
	if x, err = a.Open(t.Context(), src, req, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Prepare(t.Context()); err != nil {
		t.Error(err)
	}
	x.Close()
}

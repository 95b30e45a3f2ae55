package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/*.txtar. The command
//
//	run N ARGS...
//
// runs a command line in the script's folder, which must exit with N, and keeps
// what it said in the files out and err.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"run": command},
	})
}

func command(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: run N ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i, a := range args {
		if p := ts.MkAbs(a); i > 0 && exists(p) {
			args[i] = p
		}
	}
	var out, errout bytes.Buffer
	got := run(&console{ctx: context.Background(), out: &out, errout: &errout}, args[1:])
	work := ts.Getenv("WORK")
	for name, b := range map[string]*bytes.Buffer{"out": &out, "err": &errout} {
		// The folder has another name in each run.
		text := strings.ReplaceAll(b.String(), work, "$WORK")
		ts.Check(os.WriteFile(filepath.Join(work, name), []byte(text), 0o600))
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, &out, &errout)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

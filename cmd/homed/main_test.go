package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"homeagent/actors/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// do runs the program and wants an exit code and a piece of what it says.
func do(t *testing.T, code int, want string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(args, &out, &errs); got != code {
		t.Errorf("homed %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
	}
	if said := out.String() + errs.String(); !strings.Contains(said, want) {
		t.Errorf("homed %s says %q, want %q", strings.Join(args, " "), said, want)
	}
	return out.String()
}

// folder is a data folder whose path is short enough for a socket.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ha-") //nolint:usetesting // the path of t.TempDir is too long for a socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "d")
}

func TestBackupRestoreDoctor(t *testing.T) {
	data, files := folder(t), t.TempDir()
	file := filepath.Join(files, "b.homed")
	do(t, exitUsage, "", "backup", file, "--data", data)
	node, err := kernel.Boot(context.Background(), kernel.Options{Data: data, Listen: "127.0.0.1:0", Name: "test", Reserve: -1, NoLocals: true})
	if err != nil {
		t.Fatal(err)
	}
	do(t, exitOK, "restored once to try it", "backup", file, "--data", data)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("the backup: %v, %v", info, err)
	}
	do(t, exitFailed, "is there already", "backup", file, "--data", data)
	do(t, exitOK, "a node runs", "doctor", "--data", data)
	do(t, exitFailed, "not empty", "restore", file, "--data", data)
	if err := node.Close(context.Background()); err != nil {
		t.Error(err)
	}
	other := folder(t)
	do(t, exitOK, "restored node test", "restore", file, "--data", other)
	do(t, exitUsage, "no such file", "restore", file+"x", "--data", folder(t))
	do(t, exitUsage, "--data", "restore", file)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole[len(whole)/2] ^= 1
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, exitFailed, "not a whole backup", "restore", file, "--data", folder(t))
	if left, err := os.ReadDir(files); err != nil || len(left) != 1 {
		t.Errorf("left beside the backup: %v, %v", left, err)
	}
	if err := os.Remove(filepath.Join(other, "store", "mark")); err != nil {
		t.Fatal(err)
	}
	var got kernel.Diagnosis
	if err := json.Unmarshal([]byte(do(t, exitFailed, "store_damaged", "doctor", "--data", other, "--json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Data != other || got.Running || got.Well() || got.Findings[0].Fix == "" {
		t.Errorf("diagnosis %+v", got)
	}
}

// The kernel warns of variables that it does not know, so it must know all of this program.
func TestVariablesAreThoseOfTheFlags(t *testing.T) {
	var have []string
	for f := range reflect.TypeFor[runCmd]().Fields() {
		if env := f.Tag.Get("env"); env != "" {
			have = append(have, env)
		}
	}
	slices.Sort(have)
	if known := kernel.Variables(); !slices.Equal(have, known) {
		t.Errorf("flags have %v, the kernel knows %v", have, known)
	}
}

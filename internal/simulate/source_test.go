package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// altered are bugs that only a change of a machine's source can plant: one text for another, which must occur once. from
// is where the seeds begin, near one that sees the bug where few do.
var altered = []struct {
	name, file, old, new, invariant string
	from                            int
}{
	{
		"the stack is a queue", "actors/scheduler/state_run.go",
		"		t := s.stack[n-1]\n		s.stack = s.stack[:n-1]\n", "		t := s.stack[0]\n		s.stack = s.stack[1:]\n", "lifo", 0,
	},
	{
		"an equal level is enough", "actors/scheduler/state_run.go",
		"if effective(candidate) <= defence(t, candidate) {", "if effective(candidate) < defence(t, candidate) {", "levels", 0,
	},
	{
		"there is no cooldown", "actors/scheduler/state_run.go",
		"t.lastCut.IsZero() || left <= 0", "t.lastCut.IsZero() || left <= s.p.Cooldown", "levels", 0,
	},
	{
		"the cooldown is in a person's way", "actors/scheduler/state_run.go",
		"candidate.input.GetPersonWaits() && !t.input.GetPersonWaits() {", "candidate.input.GetPersonWaits() && t.input.GetPersonWaits() && left <= 0 {", "levels", 0,
	},
	{
		"only the first in line may preempt", "actors/scheduler/state_run.go",
		"			if special(t) && s.consider(t) {", "			if special(t) && t == nil && s.consider(t) {", "levels", 0,
	},
	{
		"a call without a result runs again", "actors/turn/state_tools.go",
		"c.effect() != messages.ToolEffect_TOOL_EFFECT_ONCE {", "c.effect() != messages.ToolEffect_TOOL_EFFECT_UNSPECIFIED {", "once", 0,
	},
	{
		"what waits in the ledger at a stop is not written", "actors/ledger/state.go",
		"	if len(left) == 0 {\n		return\n	}", "	if len(left) >= 0 {\n		return\n	}", "stop", 0,
	},
	{
		"a restarted channel forgets what it had accepted", "actors/channels/state.go",
		"s.again, s.settled = first.Restarts > 0,", "s.again, s.settled = first.Restarts < 0,", "progress", 0,
	},
	{
		"inputs of agents that are not there are left", "actors/channels/state_out.go",
		"	s.orphans(m)\n", "", "progress", 0,
	},
	{
		"a suspension that was not resumed counts again", "actors/scheduler/state_run.go",
		"	if t.wasCut { // it was lost", "	if t == nil { // it was lost", "suspended = resumed", 27000,
	},
	{
		"a scheduler is restarted alone", "internal/simulate/rows.go",
		"})), whole), err", "})), core), err", "once", 0,
	},
}

// TestAltered builds the simulation over altered sources and wants it to fail. Each build takes seconds, so it runs where
// time does not matter.
func TestAltered(t *testing.T) {
	if os.Getenv("HOMEAGENT_CI") == "" && os.Getenv("HOMEAGENT_PROOF") == "" {
		t.Skip("set HOMEAGENT_CI or HOMEAGENT_PROOF")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range altered {
		t.Run(strings.ReplaceAll(a.name, " ", "_"), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(root, filepath.FromSlash(a.file))
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), a.old); n != 1 {
				t.Fatalf("%s holds %d times what is to be altered:\n%s", a.file, n, a.old)
			}
			other := filepath.Join(dir, "altered.go")
			write(t, other, []byte(strings.Replace(string(source), a.old, a.new, 1)))
			overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: other}})
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "overlay.json"), overlay)
			binary := filepath.Join(dir, "simulate")
			build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./internal/simulate")
			build.Dir = root
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("build: %v\n%s", err, out)
			}
			var out bytes.Buffer
			cmd := exec.Command(binary, "-seeds", "12000", "-from", strconv.Itoa(a.from))
			cmd.Stdout, cmd.Stderr = &out, &out
			err = cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Fatalf("it ended with %v\n%s", err, head(out.String(), 3))
			}
			if !strings.Contains(out.String(), `violates "`+a.invariant) {
				t.Fatalf("it wanted %q to be violated:\n%s", a.invariant, head(out.String(), 3))
			}
			t.Log(head(out.String(), 2))
		})
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func head(s string, lines int) string {
	all := strings.SplitN(s, "\n", lines+1)
	return strings.Join(all[:min(lines, len(all))], "\n")
}

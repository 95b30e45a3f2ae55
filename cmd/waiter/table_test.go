package main

import (
	"strings"
	"testing"
)

// sheet draws a table for a terminal of so many places; 0 for what is none.
func sheet(t *testing.T, places int) []string {
	t.Helper()
	var out strings.Builder
	c := &console{out: &out, size: func() (int, int) { return places, 0 }}
	tab := &table{head: []string{"ACTOR", "STATE", "USER", "DOES"}, right: map[int]bool{2: true}, less: []int{2, 1}}
	tab.add("agents/main", "running", 12, "管家 thinks about what there is for dinner")
	tab.add("ledger", "idle", 0, "")
	tab.write(c)
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestTablesFitTheTerminal(t *testing.T) {
	for places, want := range map[int][]string{
		0:  {"ACTOR        STATE    USER  DOES", "agents/main  running    12  管家 thinks about what there is for dinner", "ledger       idle        0"},
		60: {"ACTOR        STATE    USER  DOES", "agents/main  running    12  管家 thinks about what there is…", "ledger       idle        0"},
		48: {"ACTOR        STATE    DOES", "agents/main  running  管家 thinks about what th…", "ledger       idle"},
		40: {"ACTOR        DOES", "agents/main  管家 thinks about what the…", "ledger"},
		10: {"ACTOR        DOES", "agents/main  管…", "ledger"}, // cut no further than the heads
	} {
		got := sheet(t, places)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%d places:\n%s\nwant:\n%s", places, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, l := range got {
			if places >= 20 && columns(l) > places {
				t.Errorf("%d places are too few for %q", places, l)
			}
		}
	}
}

func TestFramesFitTheTerminal(t *testing.T) {
	rows := 0
	c := &console{size: func() (int, int) { return 80, rows }}
	for n, want := range map[int]string{
		0: "a\nb\nc\nd\n", // no terminal
		5: "\x1b[Ha\x1b[K\nb\x1b[K\nc\x1b[K\nd\x1b[K\n\x1b[J",
		4: "\x1b[Ha\x1b[K\nb\x1b[K\n… 2 more; waiter tree -w PATH shows a part\x1b[K\n\x1b[J",
	} {
		rows = n
		if got := c.frame("a\nb\nc\nd\n"); got != want {
			t.Errorf("%d lines: %q, want %q", n, got, want)
		}
	}
}

package main

import (
	"bufio"
	"bytes"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"testing"
)

// slice is how many seeds every test run covers, beside those that once failed.
const slice = 150

// TestSeeds runs a slice of seeds.
func TestSeeds(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"-seeds", strconv.Itoa(slice)}, &out, &out); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out.String())
	}
	if !strings.HasPrefix(out.String(), strconv.Itoa(slice)+" seeds, ") {
		t.Fatalf("it printed %q", out.String())
	}
}

// TestFoundBefore runs the seeds that have found something.
func TestFoundBefore(t *testing.T) {
	f, err := os.Open("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for in := bufio.NewScanner(f); in.Scan(); {
		word, why, _ := strings.Cut(strings.TrimSpace(in.Text()), " ")
		if word == "" || word == "#" {
			continue
		}
		seed, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if bad := newWorld(makePlan(seed), bug{}, nil).run(); bad != nil {
			t.Errorf("seed %d (%s): %v", seed, strings.TrimSpace(why), bad)
		}
	}
	if n == 0 {
		t.Fatal("the file names no seed")
	}
}

// TestSame shows that a seed stands for one run: its transcript is the same each time.
func TestSame(t *testing.T) {
	transcript := func(seed uint64) (uint64, uint64) {
		h := fnv.New64a()
		w := newWorld(makePlan(seed), bug{}, &recorder{out: h})
		w.run()
		return h.Sum64(), w.made()
	}
	seen := map[uint64]bool{}
	for seed := range uint64(25) {
		a, steps := transcript(seed)
		b, again := transcript(seed)
		if a != b || steps != again || steps < 100 {
			t.Fatalf("seed %d: %d steps and %d steps, transcripts %x and %x", seed, steps, again, a, b)
		}
		seen[a] = true
	}
	if len(seen) != 25 {
		t.Fatalf("25 seeds made %d different runs", len(seen))
	}
}

// TestUsage shows what the command does with wrong words.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-seeds", "0"}, {"-seeds", "x"}, {"more"}, {"-workers", "0"}} {
		var out bytes.Buffer
		if code := run(args, &out, &out); code != 2 || out.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, out.String())
		}
	}
}

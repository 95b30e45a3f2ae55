package store

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// writerChild is the process that gets killed: it commits numbered values of
// many sizes and says each number once it is synced.
func writerChild(dir string) {
	db, err := Open(dir, Options{Reserve: -1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	next := db.commit.Load()
	for {
		for range 1 + next%5 {
			next++
			value := bytes.Repeat([]byte{byte(next)}, int(next*7919%60_000))
			err := db.Update(func(txn Txn) error { return txn.Put(Event.KeyUint(next), value) })
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(4)
			}
		}
		if err := db.Sync(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(5)
		}
		fmt.Println(next)
	}
}

// TestKill kills the writer at seeded moments and wants every number it said.
func TestKill(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		said := runAndKill(t, dir, 1+rnd.IntN(120))
		db := open(t, dir, Options{Reserve: -1})
		last := db.commit.Load()
		if last < said {
			t.Fatalf("round %d: said %d, store has %d", round, said, last)
		}
		checkValues(t, db, last)
		if round%3 == 0 {
			// Leave an orderly stop behind now and then; the other rounds crash again.
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func runAndKill(t *testing.T, dir string, lines int) uint64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_WRITER_DIR="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said uint64
	scan := bufio.NewScanner(out)
	for i := 0; scan.Scan(); i++ {
		n, err := strconv.ParseUint(scan.Text(), 10, 64)
		if err != nil {
			t.Fatalf("child said %q", scan.Text())
		}
		said = n
		if i == lines {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Fatalf("child: %s", stderr.String())
	}
	return said
}

// checkValues wants the values 1 to last, each whole.
func checkValues(t *testing.T, db *DB, last uint64) {
	t.Helper()
	want := uint64(0)
	err := db.View(func(txn Txn) error {
		for item, err := range txn.Scan(Range{Space: Event}) {
			if err != nil {
				return err
			}
			want++
			if !bytes.Equal(item.FullKey(), Event.KeyUint(want)) {
				return fmt.Errorf("key %x, want number %d", item.Key(), want)
			}
			v, err := item.Value()
			if err != nil {
				return err
			}
			if len(v) != int(want*7919%60_000) {
				return fmt.Errorf("value %d has %d bytes", want, len(v))
			}
		}
		return nil
	})
	if err != nil || want != last {
		t.Fatalf("%d values of %d: %v", want, last, err)
	}
}

package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bulk writes n incompressible values of a size.
func bulk(t *testing.T, db *DB, space Space, n, size int) {
	t.Helper()
	for i := range n {
		value := make([]byte, size)
		for j := range value {
			value[j] = byte(i*31 + j*7 + j>>8*13)
		}
		if err := db.Update(func(tx Txn) error { return tx.Put(space.KeyString(fmt.Sprintf("%06d", i)), value) }); err != nil {
			t.Fatal(err)
		}
	}
}

func sizesOf(t *testing.T, db *DB) map[Space]int64 {
	t.Helper()
	got, err := db.Sizes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSizes(t *testing.T) {
	for _, where := range []string{"memory", "disk"} {
		t.Run(where, func(t *testing.T) {
			db := open(t, t.TempDir(), Options{InMemory: where == "memory"})
			bulk(t, db, Payload, 60, 400<<10)
			bulk(t, db, Journal, 100, 1<<10)
			if where == "disk" {
				if err := db.rotate(t.Context()); err != nil { // tables are written behind
					t.Fatal(err)
				}
			}
			got := sizesOf(t, db)
			between := func(s Space, low, high int64) {
				t.Helper()
				if got[s] < low || got[s] > high {
					t.Errorf("%s takes %d, want %d to %d", s, got[s], low, high)
				}
			}
			between(Payload, 60*400<<10, 61*400<<10)
			between(Journal, 100<<10, 110<<10)
			between(Event, 0, 0)
			put(t, db, Event, "e", strings.Repeat("x", 5000))
			got = sizesOf(t, db)
			between(Event, 5000, 5100)
			between(Payload, 60*400<<10, 61*400<<10)
			if where == "disk" && len(db.sizes.tables) == 0 {
				t.Error("no table was looked at: the test shows nothing of them")
			}
		})
	}
}

func TestCompactGivesSpaceBack(t *testing.T) {
	db := open(t, t.TempDir(), Options{})
	bulk(t, db, Payload, 100, 400<<10)
	put(t, db, Task, "kept", "here")
	before := db.Stats().Bytes
	for i := range 100 {
		if err := db.Reclaim(func(tx Txn) error { return tx.Delete(Payload.KeyString(fmt.Sprintf("%06d", i))) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Compact(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := db.Compact(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	after := db.Stats().Bytes
	if before < 35<<20 || after > before/2 {
		t.Errorf("%d bytes before, %d after", before, after)
	}
	if got := sizesOf(t, db)[Payload]; got > 1<<20 {
		t.Errorf("deleted payloads take %d", got)
	}
	if got := get(t, db, Task, "kept"); got != "here" {
		t.Errorf("kept %q", got)
	}
	if err := db.Compact(t.Context(), true); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func TestReclaimEatsIntoTheReserve(t *testing.T) {
	free := int64(1000)
	db := open(t, "", Options{InMemory: true, Reserve: 2000, Free: func(string) (int64, error) { return free, nil }})
	one := func(tx Txn) error { return tx.Delete(Task.KeyString("a")) }
	if err := db.Update(one); !errors.Is(err, ErrDiskLow) {
		t.Errorf("Update: %v", err)
	}
	free = 1500
	if err := db.Reclaim(one); err != nil {
		t.Errorf("Reclaim: %v", err)
	}
	free = 1000
	if err := db.Reclaim(one); !errors.Is(err, ErrDiskLow) {
		t.Errorf("Reclaim below half: %v", err)
	}
}

func TestFormat(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, Options{})
	put(t, db, Task, "a", "1")
	if db.Format() != formatVersion {
		t.Fatalf("a new store has format %d", db.Format())
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := writeFormat(dir, 1); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir, Options{})
	if db.Format() != 1 {
		t.Fatalf("format %d, want 1", db.Format())
	}
	var b bytes.Buffer
	if _, err := db.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := db.Upgraded(); err != nil || db.Format() != formatVersion {
		t.Fatalf("upgraded to %d: %v", db.Format(), err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir, Options{})
	if db.Format() != formatVersion {
		t.Errorf("format %d after the upgrade", db.Format())
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if _, err := Restore(t.Context(), restored, &b, quiet(Options{})); err != nil {
		t.Fatal(err)
	}
	if db = open(t, restored, Options{}); db.Format() != 1 || get(t, db, Task, "a") != "1" {
		t.Errorf("a backup of an old store came back as format %d", db.Format())
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(restored, formatName), []byte("homeagent store 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(restored, quiet(Options{}))
	if !errors.Is(err, ErrFormat) || Code(err) != "store_format" || !strings.Contains(err.Error(), "format 3, this program knows up to 2") {
		t.Errorf("a newer format: %v", err)
	}
}

func TestSpacesSayHowLongTheyKeep(t *testing.T) {
	for _, s := range Spaces() {
		if s.Keep == "" {
			t.Errorf("%s does not say how long it keeps", s.Name)
		}
	}
}

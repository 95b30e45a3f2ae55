package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4/options"
)

// refused opens dir, wants a DamageError that speaks of text, and wants the
// files of db unchanged.
func refused(t *testing.T, dir, text string) *DamageError {
	t.Helper()
	before := sums(t, filepath.Join(dir, dbName))
	db, err := Open(dir, quiet(Options{}))
	if err == nil {
		_ = db.Close()
		t.Fatalf("a damaged store was opened: %+v", db.Report())
	}
	var damage *DamageError
	if !errors.As(err, &damage) || Code(err) != "store_damaged" {
		t.Fatalf("err = %v", err)
	}
	if !strings.Contains(err.Error(), text) {
		t.Fatalf("err = %v, want %q in it", err, text)
	}
	if after := sums(t, filepath.Join(dir, dbName)); after != before {
		t.Errorf("files changed:\n%s\nbefore:\n%s", after, before)
	}
	return damage
}

func sums(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d %x\n", e.Name(), len(data), crcOf(data))
	}
	return b.String()
}

func crcOf(b []byte) uint32 { return binary.BigEndian.Uint32(Seal(0, nil, b)[1:5]) }

func TestUncleanStopRestoresAll(t *testing.T) {
	dir := crashed(t, 200)
	db := open(t, dir, Options{})
	if r := db.Report(); r.Clean || len(r.Cut) != 0 || r.Copy != "" {
		t.Errorf("report %+v", r)
	}
	if get(t, db, Event, "k000199") != "value 199" {
		t.Error("value lost")
	}
	if left, _ := os.ReadDir(filepath.Join(dir, asideDir)); len(left) != 0 {
		t.Errorf("copy left behind: %v", left)
	}
	fill(t, db, 200, 210)
	if n := db.Stats().Commits; n != 210 {
		t.Errorf("commits go on at %d, want 210", n)
	}
}

func TestFlippedByteInPromisedLog(t *testing.T) {
	dir := crashed(t, 200)
	wal := one(t, dir, ".mem")
	scan, err := scanWAL(wal)
	if err != nil || scan.last != 200 || scan.first != 1 || scan.torn() {
		t.Fatalf("scan %+v, %v", scan, err)
	}
	for _, at := range []int64{walHeader, walHeader + 3, scan.valid / 2, scan.valid - 5} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			bad := snapshot(t, dir)
			path := one(t, bad, ".mem")
			flip(t, path, at)
			damage := refused(t, bad, filepath.Base(path))
			if damage.Mark.Commit != 200 || damage.Items[0].To != 200 {
				t.Errorf("damage %+v", damage)
			}
			if want := readFile(t, path); !bytes.Equal(want, readFile(t, filepath.Join(damage.Copy, filepath.Base(path)))) {
				t.Error("the copy is not the file")
			}
			again := refused(t, bad, filepath.Base(path))
			if again.Copy != damage.Copy {
				t.Errorf("a second start made another copy: %s, %s", damage.Copy, again.Copy)
			}
			flip(t, path, at)
			db := open(t, bad, Options{})
			if get(t, db, Event, "k000199") != "value 199" {
				t.Error("the repaired store lacks a value")
			}
		})
	}
}

func TestTornTailIsCut(t *testing.T) {
	live := t.TempDir()
	src := open(t, live, Options{})
	fill(t, src, 0, 50)
	if err := src.Sync(); err != nil {
		t.Fatal(err)
	}
	fill(t, src, 50, 60)
	dir := snapshot(t, live)
	wal := one(t, dir, ".mem")
	scan, err := scanWAL(wal)
	if err != nil || scan.last != 60 {
		t.Fatalf("scan %+v, %v", scan, err)
	}
	flip(t, wal, scan.valid-5)
	db := open(t, dir, Options{})
	r := db.Report()
	if len(r.Cut) != 1 || r.Copy == "" || r.Cut[0].File != "db/"+filepath.Base(wal) {
		t.Fatalf("report %+v", r)
	}
	if get(t, db, Event, "k000058") != "value 58" {
		t.Error("too much was cut")
	}
	err = db.View(func(txn Txn) error { _, err := txn.Get(Event.KeyString("k000059")); return err })
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("the torn commit is there: %v", err)
	}
	if n := db.Stats().Commits; n != 59 {
		t.Errorf("commits %d, want 59", n)
	}
	fill(t, db, 59, 70)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if get(t, open(t, dir, Options{}), Event, "k000069") != "value 69" {
		t.Error("the store does not go on after a cut")
	}
}

// TestGarbageTail puts a header that asks for 4 GB behind the last commit:
// badger would allocate it.
func TestGarbageTail(t *testing.T) {
	dir := crashed(t, 20)
	wal := one(t, dir, ".mem")
	scan, err := scanWAL(wal)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(wal, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte{0x40, 0, 10, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}, scan.valid); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	db := open(t, dir, Options{})
	if r := db.Report(); len(r.Cut) != 1 {
		t.Errorf("report %+v", r)
	}
}

// commitEnd returns the offset in a write-ahead file behind a commit.
func commitEnd(t *testing.T, data []byte, commit uint64) int64 {
	t.Helper()
	w := &walFile{}
	s := walScanner{r: bufio.NewReader(bytes.NewReader(data)), size: int64(len(data)), out: w}
	if _, err := s.r.Discard(walHeader); err != nil {
		t.Fatal(err)
	}
	s.off = walHeader
	for w.last != commit {
		if err := s.step(); err != nil {
			t.Fatalf("commit %d: %v", commit, err)
		}
	}
	return w.valid
}

// TestGapBetweenLogs has two write-ahead files with commits 1 to 12 and 15 to 20.
func TestGapBetweenLogs(t *testing.T) {
	build := func(t *testing.T, promised int) string {
		t.Helper()
		live := t.TempDir()
		db := open(t, live, Options{})
		fill(t, db, 0, promised)
		if err := db.Sync(); err != nil {
			t.Fatal(err)
		}
		fill(t, db, promised, 20)
		dir := snapshot(t, live)
		first := one(t, dir, ".mem")
		data := readFile(t, first)
		from, to := commitEnd(t, data, 14), commitEnd(t, data, 20)
		second := append(bytes.Clone(data[:walHeader]), data[from:to]...)
		if err := os.WriteFile(filepath.Join(filepath.Dir(first), "00002.mem"), second, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(first, commitEnd(t, data, 12)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Run("above the mark", func(t *testing.T) {
		dir := build(t, 10)
		db := open(t, dir, Options{})
		if r := db.Report(); len(r.Cut) != 1 || r.Cut[0].File != "db/00002.mem" || r.Copy == "" {
			t.Fatalf("report %+v", r)
		}
		if n := db.Stats().Commits; n != 12 {
			t.Errorf("%d commits, want 12", n)
		}
	})
	t.Run("below the mark", func(t *testing.T) {
		damage := refused(t, build(t, 19), "commits are missing before 00002.mem (13 to 14)")
		if damage.Copy == "" {
			t.Error("no copy")
		}
	})
}

func TestMissingLog(t *testing.T) {
	dir := crashed(t, 30)
	if err := os.Remove(one(t, dir, ".mem")); err != nil {
		t.Fatal(err)
	}
	damage := refused(t, dir, "*.mem")
	if d := damage.Items[0]; d.From != 1 || d.To != 30 {
		t.Errorf("damage %+v", d)
	}
}

// tabled returns a store whose commits are in tables, stopped in order or not.
func tabled(t *testing.T, clean bool) string {
	t.Helper()
	dir := t.TempDir()
	db := open(t, dir, Options{})
	fill(t, db, 0, 300)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if clean {
		return dir
	}
	db = open(t, dir, Options{})
	fill(t, db, 300, 310)
	if err := db.Sync(); err != nil {
		t.Fatal(err)
	}
	return snapshot(t, dir)
}

func TestDamagedTable(t *testing.T) {
	for _, clean := range []bool{true, false} {
		dir := tabled(t, clean)
		size := int64(len(readFile(t, one(t, dir, ".sst"))))
		for _, at := range []int64{0, size / 3, size / 2, size - 200, size - 20, size - 9, size - 2, size - 1} {
			t.Run(fmt.Sprintf("clean=%v/%d", clean, at), func(t *testing.T) {
				bad := snapshot(t, dir)
				table := one(t, bad, ".sst")
				flip(t, table, at)
				damage := refused(t, bad, filepath.Base(table))
				if damage.Copy == "" {
					t.Error("no copy was kept")
				}
				flip(t, table, at)
				if get(t, open(t, bad, Options{}), Event, "k000299") != "value 299" {
					t.Error("value lost")
				}
			})
		}
	}
}

func TestMissingFiles(t *testing.T) {
	cases := []struct {
		name string
		path func(t *testing.T, dir string) string
		text string
	}{
		{"table", func(t *testing.T, dir string) string { return one(t, dir, ".sst") }, ".sst: missing"},
		{"manifest", func(_ *testing.T, dir string) string { return filepath.Join(dir, dbName, manifestName) }, "MANIFEST: missing"},
		{"mark", func(_ *testing.T, dir string) string { return filepath.Join(dir, markName) }, "mark: missing"},
		{"format", func(_ *testing.T, dir string) string { return filepath.Join(dir, formatName) }, "format: missing"},
	}
	for _, c := range cases {
		for _, clean := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/clean=%v", c.name, clean), func(t *testing.T) {
				dir := tabled(t, clean)
				path := c.path(t, dir)
				data := readFile(t, path)
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				damage := refused(t, dir, c.text)
				if _, err := os.Stat(damage.Copy); damage.Copy == "" || err != nil {
					t.Errorf("no copy was kept: %q, %v", damage.Copy, err)
				}
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				if get(t, open(t, dir, Options{}), Event, "k000299") != "value 299" {
					t.Error("value lost")
				}
			})
		}
	}
}

// TestManifestFlips flips every byte of a manifest in turn: each is damage.
func TestManifestFlips(t *testing.T) {
	dir := tabled(t, true)
	path := filepath.Join(dir, dbName, manifestName)
	size := int64(len(readFile(t, path)))
	if size < 20 {
		t.Fatalf("manifest of %d bytes", size)
	}
	for at := range size {
		bad := snapshot(t, dir)
		flip(t, filepath.Join(bad, dbName, manifestName), at)
		_ = refused(t, bad, "")
	}
}

func TestMarkSlots(t *testing.T) {
	dir := crashed(t, 10)
	path := filepath.Join(dir, markName)
	for _, at := range []int64{0, slotSize} {
		bad := snapshot(t, dir)
		flip(t, filepath.Join(bad, markName), at+20)
		open(t, bad, Options{})
	}
	flip(t, path, 20)
	flip(t, path, slotSize+20)
	_ = refused(t, dir, "mark: unreadable")
}

// TestHalfCreatedLogs leaves empty files as a kill inside badger does: badger
// alone does not open them.
func TestHalfCreatedLogs(t *testing.T) {
	dir := crashed(t, 10)
	for _, name := range []string{"00099.mem", "000099.vlog"} {
		if err := os.WriteFile(filepath.Join(dir, dbName, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, dir, Options{})
	if get(t, db, Event, "k000009") != "value 9" {
		t.Error("value lost")
	}
}

func TestSalvage(t *testing.T) {
	cases := []struct {
		name   string
		break_ func(t *testing.T, dir string)
		lost   string
		// has is a key that must still be there.
		has string
	}{
		{"log", func(t *testing.T, dir string) {
			p := one(t, dir, ".mem")
			s, _ := scanWAL(p)
			flip(t, p, s.valid-5)
		}, ".mem", "k000308"},
		{"table", func(t *testing.T, dir string) { flip(t, one(t, dir, ".sst"), 10) }, ".sst", "k000309"},
		{"missing table", func(t *testing.T, dir string) { _ = os.Remove(one(t, dir, ".sst")) }, ".sst", "k000309"},
		{"manifest", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, dbName, manifestName)) }, "MANIFEST", "k000299"},
		{"mark", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, markName)) }, "mark", "k000309"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := tabled(t, false)
			c.break_(t, dir)
			_ = refused(t, dir, c.lost)
			db := open(t, dir, Options{Salvage: true})
			if r := db.Report(); len(r.Lost) == 0 || !strings.Contains(r.Lost[0].String(), c.lost) {
				t.Fatalf("report %+v", r)
			}
			get(t, db, Event, c.has)
			put(t, db, Event, "after", "1")
			if err := db.Sync(); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if get(t, open(t, dir, Options{}), Event, "after") != "1" {
				t.Error("the salvaged store does not go on")
			}
		})
	}
}

func TestVerifyTables(t *testing.T) {
	dir := tabled(t, true)
	db := open(t, dir, Options{})
	if d, err := db.VerifyTables(t.Context()); err != nil || len(d) != 0 {
		t.Fatalf("sound tables: %v, %v", d, err)
	}
	table := one(t, dir, ".sst")
	flip(t, table, 10)
	d, err := db.VerifyTables(t.Context())
	if err != nil || len(d) != 1 || d[0].File != "db/"+filepath.Base(table) {
		t.Fatalf("damaged table: %v, %v", d, err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzScanWAL(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 64))
	f.Add(append(make([]byte, 20), 0x40, 0, 10, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 1, 2, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "00001.mem")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := scanWAL(path)
		if err != nil {
			t.Fatal(err)
		}
		if w.valid > w.size || w.tail > w.size {
			t.Fatalf("offsets beyond the file: %+v", w)
		}
	})
}

func FuzzParseMark(f *testing.F) {
	f.Add(encodeMark(3, Mark{1, 2, 3}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if g, m, err := parseMark(data); err == nil && !bytes.Contains(data, encodeMark(g, m)) {
			t.Fatalf("mark %+v is not in the bytes", m)
		}
	})
}

// FuzzCheckTable changes a real table at one place: whatever is changed must
// show, and badger must not end the process over it.
func FuzzCheckTable(f *testing.F) {
	dir := f.TempDir()
	db, err := Open(dir, quiet(Options{}))
	if err != nil {
		f.Fatal(err)
	}
	for i := range 50 {
		err := db.Update(func(txn Txn) error { return txn.Put(Event.KeyUint(uint64(i)), []byte("some value")) })
		if err != nil {
			f.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		f.Fatal(err)
	}
	names, err := numbered(filepath.Join(dir, dbName), ".sst")
	if err != nil || len(names) != 1 {
		f.Fatalf("tables %v, %v", names, err)
	}
	table, err := os.ReadFile(filepath.Join(dir, dbName, names[0]))
	if err != nil {
		f.Fatal(err)
	}
	for back := range 64 {
		f.Add(uint(len(table)-1-back), []byte{0xff})
		f.Add(uint(len(table)-1-back), []byte{0})
	}
	f.Add(uint(0), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, at uint, with []byte) {
		data := bytes.Clone(table)
		copy(data[at%uint(len(data)):], with)
		path := filepath.Join(t.TempDir(), "000001.sst")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := new(checker).table(path, 1, options.None, true)
		if same := bytes.Equal(data, table); same != (err == nil) {
			t.Fatalf("unchanged: %v, err = %v", same, err)
		}
	})
}

package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestBackupAndRestore(t *testing.T) {
	db := open(t, t.TempDir(), Options{})
	fill(t, db, 0, 3000)
	put(t, db, Secret, "token", "hidden")
	big := bytes.Repeat([]byte("b"), MaxValue)
	if err := db.Update(func(txn Txn) error { return txn.Put(Payload.KeyString("big"), big) }); err != nil {
		t.Fatal(err)
	}
	db.Promise(5, 6)
	var stream bytes.Buffer
	info, err := db.Backup(t.Context(), &stream, Secret)
	if err != nil || info.Pairs != 3001 || info.Commit != 3002 {
		t.Fatalf("info %+v, %v", info, err)
	}
	data := stream.Bytes()
	dir := filepath.Join(t.TempDir(), "new")
	back, err := Restore(t.Context(), dir, bytes.NewReader(data), quiet(Options{}))
	if err != nil || back.Pairs != info.Pairs {
		t.Fatalf("restore %+v, %v", back, err)
	}
	again := open(t, dir, Options{})
	if get(t, again, Event, "k002999") != "value 2999" || get(t, again, Payload, "big") != string(big) {
		t.Error("a value is missing")
	}
	if m := again.Promised(); m.Inbox != 5 || m.Journal != 6 || m.Commit == 0 {
		t.Errorf("mark %+v", m)
	}
	err = again.View(func(txn Txn) error { _, err := txn.Get(Secret.KeyString("token")); return err })
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("a space left out is there: %v", err)
	}
	if _, err := Restore(t.Context(), dir, bytes.NewReader(data), quiet(Options{})); err == nil {
		t.Error("restored over a store")
	}
	for _, bad := range [][]byte{nil, data[:len(data)-1], data[:len(data)/2], flipped(data, 10), flipped(data, len(data)/2), flipped(data, len(data)-1)} {
		target := filepath.Join(t.TempDir(), "bad")
		if _, err := Restore(t.Context(), target, bytes.NewReader(bad), quiet(Options{})); err == nil {
			t.Errorf("a backup of %d bytes that is not whole was restored", len(bad))
		}
		if left, _ := os.ReadDir(filepath.Dir(target)); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func flipped(data []byte, at int) []byte {
	out := bytes.Clone(data)
	out[at] ^= 1
	return out
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte{})
	f.Add(append([]byte{0, 0, 0, byte(len(backupMagic) + 2)}, backupMagic+"{}"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := splitPair(data); err == nil && len(data) < 2 {
			t.Fatal("a pair out of nothing")
		}
		if _, err := Restore(t.Context(), filepath.Join(t.TempDir(), "s"), bytes.NewReader(data), quiet(Options{})); err == nil {
			t.Fatal("random bytes pass as a backup")
		}
	})
}

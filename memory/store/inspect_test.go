package store

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// listing is every file below dir with its size and time.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			out[path] = info.ModTime().String() + info.Mode().String()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestInspectChangesNothing(t *testing.T) {
	cases := []struct {
		name string
		do   func(t *testing.T, dir string)
		want func(i Inspection, err error) bool
	}{
		{"crashed", func(*testing.T, string) {}, func(i Inspection, err error) bool {
			return err == nil && !i.Clean && i.Format == formatVersion && i.Last >= i.Mark.Commit && i.Mark.Commit > 0 && len(i.Damage) == 0
		}},
		{"clean", func(t *testing.T, dir string) {
			db := open(t, dir, Options{})
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}, func(i Inspection, err error) bool { return err == nil && i.Clean && i.Tables > 0 && i.Verified > 0 }},
		{"no mark", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, markName)); err != nil {
				t.Fatal(err)
			}
		}, func(i Inspection, err error) bool {
			return err == nil && len(i.Damage) == 1 && i.Damage[0].File == markName
		}},
		{"no manifest", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, dbName, manifestName)); err != nil {
				t.Fatal(err)
			}
		}, func(i Inspection, err error) bool { return err == nil && len(i.Damage) > 0 }},
		{"write-ahead file gone", func(t *testing.T, dir string) {
			if err := os.Remove(one(t, dir, ".mem")); err != nil {
				t.Fatal(err)
			}
		}, func(i Inspection, err error) bool { return err == nil && len(i.Damage) == 1 }},
		{"damaged tail", func(t *testing.T, dir string) {
			w, err := scanWAL(one(t, dir, ".mem"))
			if err != nil {
				t.Fatal(err)
			}
			flip(t, one(t, dir, ".mem"), w.valid+3)
		}, func(i Inspection, err error) bool { return err == nil && len(i.Damage) == 0 && len(i.Torn) == 1 }},
		{"newer", func(t *testing.T, dir string) {
			if err := writeFormat(dir, 99); err != nil {
				t.Fatal(err)
			}
		}, func(_ Inspection, err error) bool { return errors.Is(err, ErrFormat) }},
		{"nothing", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}, func(i Inspection, err error) bool { return err == nil && i.Fresh }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := crashed(t, 50)
			c.do(t, dir)
			before := listing(t, dir)
			got, err := Inspect(dir, 1<<30)
			if !c.want(got, err) {
				t.Errorf("%+v, %v", got, err)
			}
			if after := listing(t, dir); !maps.Equal(before, after) {
				t.Errorf("files changed from %v to %v", before, after)
			}
		})
	}
}

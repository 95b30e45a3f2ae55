package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// Inspection is what a look at the files of a store shows.
type Inspection struct {
	// Fresh is true when there is no store yet.
	Fresh bool
	// Format is the version of the layout; zero when it cannot be told.
	Format int
	// Clean is true when the store was closed in order.
	Clean bool
	// Mark is what was promised, Last the highest commit found.
	Mark Mark
	Last uint64
	// Damage is what is missing of what was promised, and keeps the store from opening;
	// Torn is what Open will cut, since nobody was promised it.
	Damage, Torn []Damage
	// Copies are the folders with copies of write-ahead files; Kept are those among
	// them that hold data which the store lost.
	Copies, Kept []string
	// Tables is their number, Verified the bytes of them whose checksums were compared.
	Tables   int
	Verified int64
	// Bytes is what the database occupies.
	Bytes int64
}

// Inspect looks at the files of the store in dir and changes nothing. The store must
// not be open: a running node moves its files while they are looked at. At most verify
// bytes of tables are read whole. A format newer than this program is ErrFormat, with
// what could be told.
func Inspect(dir string, verify int64) (Inspection, error) {
	g := &guard{
		root: dir, db: filepath.Join(dir, dbName), log: slog.New(slog.DiscardHandler), budget: verify, dry: true,
	}
	out := Inspection{Bytes: occupied(g.db)}
	out.Copies, out.Kept = copies(dir)
	damage, err := g.look()
	out.Fresh, out.Format, out.Clean, out.Mark, out.Last = g.report.Fresh, g.format, g.clean, g.promised, g.last
	if g.tables != nil {
		out.Tables, out.Verified = g.tables.tables, g.tables.verified
	}
	var found *DamageError
	if errors.As(err, &found) {
		damage, err = found.Items, nil
	}
	out.Damage = damage
	for _, c := range g.cuts {
		if c.what != "empty" {
			out.Torn = append(out.Torn, Damage{File: dbName + "/" + c.name, What: c.what})
		}
	}
	if err != nil {
		return out, fmt.Errorf("inspect store %s: %w", dir, err)
	}
	return out, nil
}

// look is the part of prepare that only reads.
func (g *guard) look() ([]Damage, error) {
	fresh, err := g.checkFormat()
	if err != nil || fresh {
		g.report.Fresh = fresh
		return nil, err
	}
	if err := g.readMarks(); err != nil {
		return nil, err
	}
	if g.tables, err = inspectTables(g.db, g.budget); err != nil {
		return nil, err
	}
	if err := g.scanWALs(); err != nil {
		return nil, err
	}
	return g.judge(), nil
}

// copies lists what lies aside.
func copies(root string) (all, kept []string) {
	entries, err := os.ReadDir(filepath.Join(root, asideDir))
	if err != nil {
		return nil, nil
	}
	for _, e := range entries {
		path := filepath.Join(root, asideDir, e.Name())
		if !e.IsDir() {
			continue
		}
		all = append(all, path)
		if exists(filepath.Join(path, keepNote)) {
			kept = append(kept, path)
		}
	}
	return all, kept
}

// Format is the version of the layout that this program writes.
const Format = formatVersion

// FreeSpace returns the bytes that a normal process may still write below dir.
func FreeSpace(dir string) (int64, error) { return freeSpace(dir) }

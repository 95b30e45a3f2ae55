package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// formatVersion is the version of the layout that this program writes. 1: the
	// first. 2: journals stay after the end of their task and are listed by it, sent
	// outputs are listed by time, the ledger counts idempotency keys removed.
	formatVersion = 2
	formatPrefix  = "homeagent store "
	formatName    = "format"
	markName      = "mark"
	cleanName     = "clean"
	dbName        = "db"
)

// guard inspects a store's folder before badger may touch it.
type guard struct {
	root, db string
	log      *slog.Logger
	budget   int64
	salvage  bool
	// dry changes nothing.
	dry bool

	// format is that of the data.
	format   int
	clean    bool
	promised Mark
	tables   *tableReport
	wals     []*walFile
	report   Report
	// last is the highest commit found.
	last uint64
	cuts []cut
}

// cut is what is to be removed from the end of a write-ahead file.
type cut struct {
	name string
	// at is the new size; negative removes the file.
	at   int64
	what string
}

// Report tells what Open found.
type Report struct {
	// Fresh is true when the store was created.
	Fresh bool
	// Clean is true when the store had been closed in order.
	Clean bool
	// Cut names torn tails that nobody was promised and that were removed.
	Cut []Damage
	// Lost names promised data that is gone; only with Options.Salvage.
	Lost []Damage
	// Copy is the folder with the copy of the write-ahead files, empty when
	// nothing was cut.
	Copy string
	// Tables and Verified are the number of tables and the bytes of them whose
	// checksums were checked.
	Tables   int
	Verified int64
	// Unverified are the bytes of tables over Options.VerifyBytes, which VerifyTables
	// checks later.
	Unverified int64
}

// prepare brings the folder into a state that badger may open, or returns a
// *DamageError and has changed nothing of it.
func (g *guard) prepare() error {
	fresh, err := g.checkFormat()
	if err != nil {
		return err
	}
	if fresh {
		g.report.Fresh, g.report.Clean = true, true
		return g.create()
	}
	if err := g.readMarks(); err != nil {
		return err
	}
	if g.tables, err = inspectTables(g.db, g.budget); err != nil {
		return err
	}
	g.report.Tables, g.report.Verified, g.report.Unverified = g.tables.tables, g.tables.verified, g.tables.unverified
	if err := g.scanWALs(); err != nil {
		return err
	}
	if !g.clean {
		if err := g.copy(); err != nil {
			return err
		}
	}
	damage := g.judge()
	if len(damage) > 0 && !g.salvage {
		return g.damaged(damage)
	}
	g.report.Lost = damage
	return g.apply()
}

// checkFormat refuses a newer format and tells whether there is no store yet.
func (g *guard) checkFormat() (fresh bool, err error) {
	data, err := os.ReadFile(filepath.Join(g.root, formatName))
	switch {
	case err == nil:
		text := strings.TrimSpace(string(data))
		n, perr := strconv.Atoi(strings.TrimPrefix(text, formatPrefix))
		if perr != nil || !strings.HasPrefix(text, formatPrefix) || n < 1 {
			return false, g.damaged([]Damage{{File: formatName, What: "unreadable"}})
		}
		if n > formatVersion {
			return false, fmt.Errorf("%w: the store has format %d, this program knows up to %d", ErrFormat, n, formatVersion)
		}
		g.format = n
		return false, nil
	case !os.IsNotExist(err):
		return false, err
	case exists(filepath.Join(g.db, manifestName)):
		return false, g.damaged([]Damage{{File: formatName, What: "missing"}})
	}
	return true, nil
}

// create lays out a new store; the format comes last, so that a crash in between
// leaves no store.
func (g *guard) create() error {
	if err := os.MkdirAll(g.db, 0o700); err != nil {
		return err
	}
	if err := createMark(filepath.Join(g.root, markName)); err != nil {
		return err
	}
	g.format = formatVersion
	return writeFormat(g.root, formatVersion)
}

func writeFormat(root string, n int) error {
	return writeDurable(filepath.Join(root, formatName), fmt.Appendf(nil, "%s%d\n", formatPrefix, n))
}

// readMarks reads what was promised and whether the last stop was clean.
func (g *guard) readMarks() error {
	data, err := os.ReadFile(filepath.Join(g.root, markName))
	if err == nil {
		_, g.promised, err = parseMark(data)
	}
	if err != nil {
		what := "unreadable"
		if os.IsNotExist(err) {
			what = "missing"
		} else if !errors.Is(err, errMark) {
			return err
		}
		if !g.salvage {
			return g.damaged([]Damage{{File: markName, What: what}})
		}
		g.report.Lost = append(g.report.Lost, Damage{File: markName, What: what})
		if err := createMark(filepath.Join(g.root, markName)); err != nil {
			return err
		}
	}
	data, err = os.ReadFile(filepath.Join(g.root, cleanName))
	if err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err == nil {
		g.clean, g.report.Clean = true, true
		g.promised.Commit = max(g.promised.Commit, n)
	}
	return nil
}

// scanWALs reads every write-ahead file in the order of writing.
func (g *guard) scanWALs() error {
	names, err := numbered(g.db, ".mem")
	if err != nil {
		return err
	}
	for _, name := range names {
		w, err := scanWAL(filepath.Join(g.db, name))
		if err != nil {
			return err
		}
		g.wals = append(g.wals, w)
	}
	return nil
}

// copy copies the write-ahead files aside.
func (g *guard) copy() error {
	var names []string
	if exists(filepath.Join(g.db, manifestName)) {
		names = append(names, manifestName)
	}
	for _, suffix := range []string{".mem", ".vlog"} {
		files, err := numbered(g.db, suffix)
		if err != nil {
			return err
		}
		names = append(names, files...)
	}
	var err error
	g.report.Copy, err = copyAside(g.root, g.db, names)
	return err
}

// judge decides what is damage and what is to be cut.
func (g *guard) judge() []Damage {
	damage := append(g.report.Lost, g.tables.damage...)
	if g.clean && g.tables.manifestEnd < g.tables.manifestSize {
		damage = append(damage, Damage{File: "db/" + manifestName, What: "damaged after an orderly stop"})
	}
	// Without all tables the start of the chain is not known.
	known := len(g.tables.damage) == 0
	g.last = g.tables.stamp
	tornFile := ""
	dropRest := false
	for _, w := range g.wals {
		switch {
		case dropRest:
			g.cuts = append(g.cuts, cut{w.name, -1, "follows a gap above the mark"})
			continue
		case w.size < walHeader:
			// Badger does not open a file that was created or removed halfway.
			g.cuts = append(g.cuts, cut{w.name, -1, "empty"})
			continue
		}
		if w.gapTo != 0 {
			damage = append(damage, Damage{"db/" + w.name, "commits are missing inside", w.gapFrom, w.gapTo})
		}
		if known && w.first > g.last+1 {
			if g.last+1 > g.promised.Commit {
				dropRest = true
				g.cuts = append(g.cuts, cut{w.name, -1, "follows a gap above the mark"})
				continue
			}
			damage = append(damage, Damage{"db/" + tornFile, "commits are missing before " + w.name, g.last + 1, w.first - 1})
		}
		g.last = max(g.last, w.last)
		if w.torn() {
			tornFile = w.name
			g.cuts = append(g.cuts, cut{w.name, w.valid, fmt.Sprintf("torn at byte %d", w.valid)})
		}
	}
	if known && g.last < g.promised.Commit {
		damage = append(damage, g.missing(tornFile))
	}
	return damage
}

// missing names a chain that ends below the mark.
func (g *guard) missing(tornFile string) Damage {
	d := Damage{From: g.last + 1, To: g.promised.Commit}
	if tornFile != "" {
		d.File, d.What = "db/"+tornFile, "damaged; promised commits are missing"
	} else {
		d.What = "a file of db (*.mem or *.sst) is missing: promised commits are in none"
	}
	return d
}

func (g *guard) damaged(items []Damage) error {
	if g.report.Copy == "" && !g.dry {
		if err := g.copy(); err != nil {
			g.log.Error("write-ahead files were not copied aside", "error", err)
		}
	}
	if g.report.Copy != "" {
		// A failure to mark the copy only means that it may be pruned later.
		_ = os.WriteFile(filepath.Join(g.report.Copy, keepNote), nil, 0o600)
	}
	for _, d := range items {
		g.log.Error("store damaged", "damage", d.String())
	}
	return &DamageError{Items: items, Copy: g.report.Copy, Mark: g.promised}
}

// apply cuts torn tails, repairs what salvage gave up, and leaves files that
// badger opens.
func (g *guard) apply() error {
	if len(g.report.Lost) > 0 {
		if err := g.salvageTables(); err != nil {
			return err
		}
	}
	for _, c := range g.cuts {
		if err := g.cut(c); err != nil {
			return err
		}
	}
	if err := g.cleanLogs(); err != nil {
		return err
	}
	if err := g.settleCopy(); err != nil {
		return err
	}
	if err := removeDurable(filepath.Join(g.root, cleanName)); err != nil {
		return err
	}
	return syncDir(g.db)
}

func (g *guard) cut(c cut) error {
	path := filepath.Join(g.db, c.name)
	if c.at < 0 {
		if err := os.Remove(path); err != nil {
			return err
		}
	} else {
		if err := os.Truncate(path, c.at); err != nil {
			return err
		}
		if err := syncFile(path); err != nil {
			return err
		}
	}
	if c.what == "empty" {
		return nil
	}
	d := Damage{File: "db/" + c.name, What: c.what}
	g.report.Cut = append(g.report.Cut, d)
	g.log.Warn("store cut a torn tail that was not promised", "damage", d.String(), "copy", g.report.Copy)
	return nil
}

// salvageTables makes badger open without the tables that are gone.
func (g *guard) salvageTables() error {
	for _, d := range g.report.Lost {
		g.log.Error("store salvaged without", "damage", d.String())
	}
	if g.tables.manifestBad {
		dropped, err := rebuildManifest(g.db)
		if err != nil {
			return err
		}
		for _, name := range dropped {
			g.report.Lost = append(g.report.Lost, Damage{File: "db/" + name, What: "table damaged"})
		}
		return g.moveTables(dropped)
	}
	if len(g.tables.bad) == 0 {
		return nil
	}
	names := make([]string, len(g.tables.bad))
	for i, id := range g.tables.bad {
		names[i] = fmt.Sprintf("%06d.sst", id)
	}
	if err := g.moveTables(names); err != nil {
		return err
	}
	return dropTables(g.db, g.tables.manifestEnd, g.tables.bad)
}

// moveTables keeps damaged tables where badger does not see them.
func (g *guard) moveTables(names []string) error {
	dir := filepath.Join(g.root, asideDir, "tables")
	for _, name := range names {
		if !exists(filepath.Join(g.db, name)) {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		_ = os.WriteFile(filepath.Join(dir, keepNote), nil, 0o600)
		if err := os.Rename(filepath.Join(g.db, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// cleanLogs removes files that hold no data and on which badger would fail: its
// statistics of garbage, and value logs, which stay empty here (see MaxValue), if
// they were created halfway.
func (g *guard) cleanLogs() error {
	if err := os.Remove(filepath.Join(g.db, "DISCARD")); err != nil && !os.IsNotExist(err) {
		return err
	}
	names, err := numbered(g.db, ".vlog")
	if err != nil {
		return err
	}
	for _, name := range names {
		w, err := scanWAL(filepath.Join(g.db, name))
		if err != nil {
			return err
		}
		switch {
		case w.size < walHeader:
			err = g.cut(cut{name, -1, "empty"})
		case w.torn():
			err = g.cut(cut{name, w.valid, fmt.Sprintf("torn at byte %d", w.valid)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settleCopy keeps the copy only if something was cut or lost.
func (g *guard) settleCopy() error {
	switch {
	case g.report.Copy == "":
		return nil
	case len(g.report.Lost) > 0:
		_ = os.WriteFile(filepath.Join(g.report.Copy, keepNote), nil, 0o600)
		return nil
	case len(g.report.Cut) > 0:
		return pruneAside(g.root)
	}
	copied := g.report.Copy
	g.report.Copy = ""
	if exists(filepath.Join(copied, keepNote)) {
		return nil
	}
	return os.RemoveAll(copied)
}

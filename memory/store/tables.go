package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"
)

const manifestName = badger.ManifestFilename

// tableReport is what the inspection of manifest and tables found.
type tableReport struct {
	// stamp is the highest commit held by the tables.
	stamp uint64
	// tables and verified count tables and the bytes whose checksums were checked.
	tables   int
	verified int64
	// unverified are the bytes that were over the budget.
	unverified int64
	// manifestEnd is the offset of the last whole entry of the manifest,
	// manifestSize its size.
	manifestEnd, manifestSize int64
	damage                    []Damage
	// bad holds the ids of tables that are missing or damaged.
	bad []uint64
	// manifestBad is set when the manifest itself cannot be used.
	manifestBad bool

	check checker
}

// inspectTables reads the manifest and every table it names, without changing
// anything. Checksums of blocks are checked for the newest tables up to budget
// bytes; indexes always.
func inspectTables(dir string, budget int64) (*tableReport, error) {
	r := &tableReport{}
	file, err := os.Open(filepath.Join(dir, manifestName))
	if err != nil {
		if !os.IsNotExist(err) {
			return nil, err
		}
		r.manifestFault("missing")
		return r, nil
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	r.manifestSize = info.Size()
	manifest, end, err := badger.ReplayManifestFile(file, 0, badger.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		r.manifestFault(err.Error())
		return r, nil
	}
	r.manifestEnd = end
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(manifest.Tables))) {
		if err := r.inspect(dir, id, manifest.Tables[id].Compression, budget); err != nil {
			return nil, err
		}
	}
	r.check = checker{} // the report lives on, its buffer need not
	return r, nil
}

func (r *tableReport) manifestFault(what string) {
	r.manifestBad = true
	r.damage = append(r.damage, Damage{File: "db/" + manifestName, What: what})
}

// inspect checks one table named by the manifest.
func (r *tableReport) inspect(dir string, id uint64, c options.CompressionType, budget int64) error {
	r.tables++
	path := table.NewFilename(id, dir)
	info, err := os.Stat(path)
	if err == nil {
		var stamp uint64
		full := r.verified+info.Size() <= budget
		if stamp, err = r.check.table(path, id, c, full); err == nil {
			r.stamp = max(r.stamp, stamp)
			if full {
				r.verified += info.Size()
			} else {
				r.unverified += info.Size()
			}
			return nil
		}
	}
	what := "missing"
	if !os.IsNotExist(err) {
		if !errors.Is(err, errTable) {
			return err
		}
		what = err.Error()
	}
	r.bad = append(r.bad, id)
	r.damage = append(r.damage, Damage{File: "db/" + filepath.Base(path), What: what})
	return nil
}

// errTable marks what is wrong with the content of a table.
var errTable = errors.New("table damaged")

// checker reads tables one after another into one buffer: with a buffer for each,
// a node that opens a large store would begin its life with all of it as garbage.
type checker struct{ buf []byte }

// read reads a file whole; what it returns is valid until the next call.
func (c *checker) read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	c.buf = slices.Grow(c.buf[:0], int(info.Size()))[:info.Size()]
	n, err := io.ReadFull(file, c.buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // it shrank meanwhile; what is missing shows as damage
	}
	return c.buf[:n], err
}

// table verifies a table and returns the highest stamp in it. The file is read, not
// mapped, so that a bad sector is an error and not a signal.
func (c *checker) table(path string, id uint64, compression options.CompressionType, full bool) (stamp uint64, err error) {
	data, err := c.read(path)
	if err != nil {
		return 0, err
	}
	defer func() {
		// Badger trusts the lengths in the footer and panics where they lie.
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: unreadable", errTable)
		}
	}()
	t, err := table.OpenInMemoryTable(data, id, &table.Options{Compression: compression, BlockSize: 4 << 10})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errTable, err)
	}
	if full {
		if err := t.VerifyChecksum(); err != nil {
			return 0, fmt.Errorf("%w: %w", errTable, err)
		}
	}
	it := t.NewIterator(0)
	defer func() { _ = it.Close() }()
	it.Seek(y.KeyWithTs(stampKey, math.MaxUint64))
	if it.Valid() && y.SameKey(it.Key(), y.KeyWithTs(stampKey, 0)) {
		if v := it.Value().Value; len(v) == 8 {
			stamp = binary.BigEndian.Uint64(v)
		}
	}
	return stamp, nil
}

// VerifyTables checks the checksum of every table on disk. It reads all data
// and may run beside everything else; it stops when ctx ends. Tables that a
// compaction removes meanwhile are passed over.
func (db *DB) VerifyTables(ctx context.Context) ([]Damage, error) {
	if db.opt.InMemory {
		return nil, nil
	}
	if err := db.enter(); err != nil {
		return nil, err
	}
	defer db.leave()
	var out []Damage
	var check checker
	for _, info := range db.b.Tables() {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		path := table.NewFilename(info.ID, db.files)
		_, err := check.table(path, info.ID, options.None, true)
		switch {
		case err == nil, os.IsNotExist(err):
		case errors.Is(err, errTable):
			if size, serr := os.Stat(path); serr == nil && size.Size() > 0 {
				out = append(out, Damage{File: "db/" + filepath.Base(path), What: err.Error()})
			}
		default:
			return out, err
		}
	}
	return out, nil
}

// dropTables makes the manifest forget tables, so that badger opens without
// them.
func dropTables(dir string, end int64, ids []uint64) error {
	changes := make([]*pb.ManifestChange, len(ids))
	for i, id := range ids {
		changes[i] = &pb.ManifestChange{Id: id, Op: pb.ManifestChange_DELETE}
	}
	file, err := os.OpenFile(filepath.Join(dir, manifestName), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := file.Truncate(end); err != nil {
		return err
	}
	record, err := manifestRecord(changes)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(record, end); err != nil {
		return err
	}
	return file.Sync()
}

// rebuildManifest writes a manifest that puts every readable table into level 0,
// where tables may overlap; badger sorts them out by compaction.
func rebuildManifest(dir string) (dropped []string, err error) {
	files, err := numbered(dir, ".sst")
	if err != nil {
		return nil, err
	}
	var changes []*pb.ManifestChange
	var check checker
	for _, name := range files {
		id, _ := fileNumber(name, ".sst")
		if _, err := check.table(filepath.Join(dir, name), id, options.None, true); err != nil {
			dropped = append(dropped, name)
			continue
		}
		changes = append(changes, &pb.ManifestChange{Id: id, Op: pb.ManifestChange_CREATE})
	}
	record, err := manifestRecord(changes)
	if err != nil {
		return nil, err
	}
	const manifestVersion = 8
	head := binary.BigEndian.AppendUint16([]byte{'B', 'd', 'g', 'r', 0, 0}, manifestVersion)
	return dropped, writeDurable(filepath.Join(dir, manifestName), append(head, record...))
}

func manifestRecord(changes []*pb.ManifestChange) ([]byte, error) {
	body, err := proto.Marshal(&pb.ManifestChangeSet{Changes: changes})
	if err != nil {
		return nil, err
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = binary.BigEndian.AppendUint32(out, crc32.Checksum(body, castagnoli))
	return append(out, body...), nil
}

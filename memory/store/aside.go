package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
)

const (
	asideDir = "aside"
	// asideKept is how many copies of torn write-ahead files are kept.
	asideKept = 3
)

// copyAside copies the manifest and the write-ahead files of db into a folder
// named after their content, durably, and returns it. A copy that is already
// there is used: a start that fails again adds nothing.
func copyAside(root, db string, names []string) (string, error) {
	tmp := filepath.Join(root, asideDir, "tmp")
	if err := os.RemoveAll(tmp); err != nil {
		return "", err
	}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range names {
		fmt.Fprintf(sum, "%s\x00", name)
		if err := copySparse(filepath.Join(tmp, name), filepath.Join(db, name), sum); err != nil {
			_ = os.RemoveAll(tmp)
			return "", fmt.Errorf("copy %s aside: %w", name, err)
		}
	}
	if err := syncDir(tmp); err != nil {
		return "", err
	}
	out := filepath.Join(root, asideDir, hex.EncodeToString(sum.Sum(nil)[:8]))
	if exists(out) {
		return out, os.RemoveAll(tmp)
	}
	if err := os.Rename(tmp, out); err != nil {
		return "", err
	}
	return out, syncDir(filepath.Join(root, asideDir))
}

// copySparse copies what is not zero at the end of src and gives the copy the
// full size: write-ahead files are mostly holes.
func copySparse(dst, src string, sum hash.Hash) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	end, err := lastByte(in, info.Size())
	if err != nil {
		return err
	}
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.MultiWriter(out, sum), io.NewSectionReader(in, 0, end))
	if err == nil {
		err = out.Truncate(info.Size())
	}
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// keepNote marks a copy that holds data the store lost; it is never removed.
const keepNote = "KEEP"

// pruneAside removes the oldest copies beyond asideKept that are not marked.
func pruneAside(root string) error {
	entries, err := os.ReadDir(filepath.Join(root, asideDir))
	if err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return err
	}
	type dir struct {
		path string
		at   int64
	}
	var dirs []dir
	for _, e := range entries {
		path := filepath.Join(root, asideDir, e.Name())
		info, err := e.Info()
		if err != nil || !e.IsDir() || exists(filepath.Join(path, keepNote)) {
			continue
		}
		dirs = append(dirs, dir{path, info.ModTime().UnixNano()})
	}
	slices.SortFunc(dirs, func(a, b dir) int { return int(b.at - a.at) })
	for i := asideKept; i < len(dirs); i++ {
		if err := os.RemoveAll(dirs[i].path); err != nil {
			return err
		}
	}
	return nil
}

// KeepAside writes records into a folder of their own beside the database, durably,
// and marks it as one that is never removed: for an engine that is about to give up
// records it cannot use. It returns the folder, empty for a store in memory. The file
// in it holds for each record the length of its key in two bytes and that of its value
// in four (big end first), key and value.
func (db *DB) KeepAside(name string, list []Write) (string, error) {
	if db.opt.InMemory || len(list) == 0 {
		return "", nil
	}
	dir := filepath.Join(db.root, asideDir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	var out []byte
	for _, w := range list {
		key := w.Space.Key(w.Key)
		out = binary.BigEndian.AppendUint16(out, uint16(len(key)))
		out = binary.BigEndian.AppendUint32(out, uint32(len(w.Value)))
		out = append(append(out, key...), w.Value...)
	}
	if err := writeDurable(filepath.Join(dir, "records"), out); err != nil {
		return "", err
	}
	if err := writeDurable(filepath.Join(dir, keepNote), nil); err != nil {
		return "", err
	}
	return dir, syncDir(filepath.Join(db.root, asideDir))
}

package store

import (
	"crypto/sha256"
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

package store

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// writeDurable writes a file so that after a crash there is the old one or the
// whole new one, and after it returned only the new one.
func writeDurable(path string, data []byte) error {
	tmp := path + ".tmp"
	file, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// removeDurable removes a file; one that is not there is no error.
func removeDurable(path string) error {
	if err := os.Remove(path); err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return err
	}
	return syncDir(filepath.Dir(path))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// numbered returns the names in dir that are a number followed by suffix, in the
// order of the numbers.
func numbered(dir, suffix string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, nil
		}
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if _, ok := fileNumber(e.Name(), suffix); ok {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		x, _ := fileNumber(a, suffix)
		y, _ := fileNumber(b, suffix)
		return int(int64(x) - int64(y))
	})
	return out, nil
}

// fileNumber returns the number in a name such as 00012.mem.
func fileNumber(name, suffix string) (uint64, bool) {
	base, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(base, 10, 32)
	return n, err == nil
}

func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = file.Sync()
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return err
}

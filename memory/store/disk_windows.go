package store

import (
	"os"

	"golang.org/x/sys/windows"
)

// freeSpace returns the bytes a normal process may still write below dir.
func freeSpace(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, &os.PathError{Op: "diskfree", Path: dir, Err: err}
	}
	return int64(free), nil
}

// usedSpace returns the size of a file.
func usedSpace(info os.FileInfo) int64 { return info.Size() }

// syncDir does nothing: the system has no such operation and keeps names in its
// own journal.
func syncDir(string) error { return nil }

package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"homeagent/configs"
	"homeagent/memory/store"
)

// folder looks at the data folder; false means that there is nothing more to see in it.
func (d *doctor) folder() bool {
	data := d.layout.Data()
	info, err := os.Stat(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add(SeverityNote, "data_missing", data+" does not exist yet", "homed run makes it")
		return false
	case err != nil:
		d.add(SeverityError, "data_unreadable", err.Error(), "run as the user that the node runs as")
		return false
	case !info.IsDir():
		d.add(SeverityError, "data_no_folder", data+" is no folder", "choose another one with --data")
		return false
	}
	for _, dir := range []string{data, d.layout.Store(), d.layout.Run()} {
		d.rights(dir)
	}
	if _, err := os.ReadDir(data); err != nil {
		d.add(SeverityError, "data_unreadable", err.Error(), "run as the user that the node runs as")
		return false
	}
	return true
}

// rights looks at who may enter or write in a folder.
func (d *doctor) rights(dir string) {
	info, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" {
		return
	}
	if user, ok := ownerOf(info); ok && user != os.Getuid() && os.Getuid() != 0 {
		d.add(SeverityError, "data_owner", fmt.Sprintf("%s belongs to user %d, and this is user %d", dir, user, os.Getuid()),
			"run as that user, or give the folder to this one")
	}
	mode := info.Mode().Perm()
	switch {
	case mode&0o002 != 0:
		d.add(SeverityError, "data_open", fmt.Sprintf("everybody may write in %s (mode %#o)", dir, mode), "chmod 700 "+dir)
	case mode&0o077 != 0:
		d.add(SeverityWarning, "data_readable", fmt.Sprintf("others may look into %s (mode %#o)", dir, mode), "chmod 700 "+dir)
	}
}

// secrets looks at the files that nobody else may read.
func (d *doctor) secrets() {
	for _, f := range []struct{ id, path string }{
		{"secret_key_mode", d.layout.SecretKey()}, {"token_mode", d.layout.Token()}, {"socket_mode", d.layout.Socket()},
	} {
		info, err := os.Lstat(f.path)
		if err != nil || runtime.GOOS == "windows" {
			continue
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			d.add(SeverityError, f.id, fmt.Sprintf("others may use %s (mode %#o)", f.path, mode), "chmod 600 "+f.path)
		}
	}
}

// doctorVerify is how many bytes of tables are read whole.
const doctorVerify = 1 << 30

// store looks at the files of the store while no node moves them.
func (d *doctor) store() {
	if there, err := d.layout.Exists(); err != nil || !there {
		return
	}
	if d.out.Running || d.held() {
		d.add(SeverityNote, "store_in_use", "a node has the store open, so its files were not looked at", "waiter status shows what that node knows of them")
		return
	}
	got, err := store.Inspect(d.layout.Store(), doctorVerify)
	switch {
	case errors.Is(err, store.ErrFormat):
		d.add(SeverityError, "store_format", err.Error(), "use the newer homed that wrote it, or restore a backup into another folder")
		return
	case err != nil:
		d.add(SeverityError, "store_unreadable", err.Error(), "check the disk and the rights on the folder")
		return
	}
	for _, f := range got.Damage {
		d.add(SeverityError, "store_damaged", f.String(),
			"check the disk first; put the file back or restore a backup, or start once with --salvage to go on without what is missing")
	}
	for _, f := range got.Torn {
		d.add(SeverityNote, "store_torn", f.String()+": nobody was promised it", "homed cuts it at its next start and keeps a copy")
	}
	if !got.Fresh && !got.Clean && len(got.Damage) == 0 {
		d.add(SeverityNote, "store_unclean", fmt.Sprintf("the last stop was not in order; promised up to commit %d, found %d", got.Mark.Commit, got.Last),
			"nothing: the next start checks everything")
	}
	if !got.Fresh && got.Format < store.Format {
		d.add(SeverityNote, "store_older", fmt.Sprintf("the store has format %d, this program writes %d", got.Format, store.Format),
			"make a backup first if you may want to go back: the next start upgrades it")
	}
	for _, c := range got.Kept {
		d.add(SeverityWarning, "aside_kept", c+" holds files of a store that lost something", "remove the folder when nobody needs it any more")
	}
	if n := len(got.Copies) - len(got.Kept); n > 0 {
		d.add(SeverityNote, "aside_copies", fmt.Sprintf("%d copies of torn write-ahead files lie in store/aside", n), "the store keeps the last few")
	}
}

// disk compares the free space with the reserve.
func (d *doctor) disk() {
	reserve := int64(store.DefaultReserve)
	for _, name := range []string{"HOMED_RESERVE", configs.EnvName(configs.KeyStoreReserve)} {
		if n, err := configs.ParseSize(d.env(name)); err == nil && n > 0 {
			reserve = n
			break
		}
	}
	free := d.Free
	if free == nil {
		free = store.FreeSpace
	}
	n, err := free(d.layout.Data())
	switch {
	case err != nil:
		d.add(SeverityWarning, "disk_unknown", "the free space cannot be read: "+err.Error(), "")
	case n < reserve:
		d.add(SeverityError, "disk_low", fmt.Sprintf("%d MiB are free, and below %d MiB nothing is written", n>>20, reserve>>20), "make room on the disk of the data folder")
	case n < 2*reserve:
		d.add(SeverityWarning, "disk_tight", fmt.Sprintf("%d MiB are free; below %d MiB nothing is written", n>>20, reserve>>20), "make room on the disk of the data folder")
	}
}

// texts looks at the files that a person writes.
func (d *doctor) texts() {
	d.personal()
	entries, err := os.ReadDir(d.layout.Adapters())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.add(SeverityError, "adapters_unreadable", err.Error(), "give this user the right to read the folder")
	}
	for _, e := range entries {
		path := filepath.Join(d.layout.Adapters(), e.Name())
		if filepath.Ext(path) != ".lua" {
			d.add(SeverityWarning, "adapter_name", path+" does not end in .lua, so it is not read", "rename or remove it")
			continue
		}
		if f, err := os.Open(path); err != nil {
			d.add(SeverityError, "adapter_unreadable", err.Error(), "give this user the right to read the file")
		} else {
			_ = f.Close()
		}
	}
}

func (d *doctor) personal() {
	path := d.layout.Personal()
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		d.add(SeverityWarning, "personal_unreadable", err.Error(), "give this user the right to read the file")
		return
	case !info.Mode().IsRegular():
		d.add(SeverityWarning, "personal_no_file", path+" is no plain file, so it is not read", "put a text file in its place")
		return
	case info.Size() > maxPersonal:
		d.add(SeverityWarning, "personal_long", fmt.Sprintf("%s has %d bytes, of which the first %d are used", path, info.Size(), maxPersonal), "shorten it")
	}
	b, err := readBounded(path, 16<<20)
	switch {
	case err != nil:
		d.add(SeverityWarning, "personal_unreadable", err.Error(), "give this user the right to read the file")
	case !utf8.Valid(b):
		d.add(SeverityWarning, "personal_encoding", path+" is not UTF-8", "save it as UTF-8")
	case strings.TrimSpace(string(b)) == "":
		d.add(SeverityNote, "personal_empty", path+" is empty", "write in it what the agent should know of you, or remove it")
	}
}

// leftovers looks for folders of restores and verifications that were cut off.
func (d *doctor) leftovers() {
	for _, pattern := range []string{".homed-restore-*", ".homed-verify-*"} {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(d.layout.Data()), pattern))
		if err != nil {
			continue // the pattern is ours, the folder's name may hold a bracket
		}
		for _, path := range found {
			d.add(SeverityNote, "leftover", path+" was left by a restore or backup that was cut off", "remove it when none is under way")
		}
	}
}

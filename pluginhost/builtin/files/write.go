package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"homeagent/messages"
	"homeagent/pluginhost"
)

type writeArgs struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding"`
	Mode     string `json:"mode"`
}

type writtenJSON struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
	Size  int64  `json:"size"`
	// Unchanged says that the file held just that before.
	Unchanged bool `json:"unchanged,omitempty"`
}

// begin reads the arguments of a write and makes the folders on its way.
func (r *run) begin() (a writeArgs, at place, root *os.Root, content []byte, bad *messages.ToolResult) {
	if bad = pluginhost.Arguments(r.call, &a); bad != nil {
		return a, at, nil, nil, bad
	}
	content = []byte(a.Content)
	if a.Encoding == "base64" {
		var err error
		if content, err = base64.StdEncoding.DecodeString(a.Content); err != nil {
			return a, at, nil, nil, pluginhost.Failed(pluginhost.ReasonType, "content", "The content is not base64.", "")
		}
	}
	if int64(len(content)) > r.set.maxWrite {
		return a, at, nil, nil, pluginhost.Failed(pluginhost.ReasonType, "content",
			fmt.Sprintf("The content has %d bytes; one call writes at most %d.", len(content), r.set.maxWrite), "Write the rest with "+toolAppend+".")
	}
	if at, bad = find(r.set.folders, a.Path); bad != nil {
		return a, at, nil, nil, bad
	}
	if at.rel == "." || strings.HasSuffix(a.Path, "/") {
		return a, at, nil, nil, pluginhost.Failed(pluginhost.ReasonType, "path", a.Path+" is a folder.", "Name a file in it.")
	}
	if isTemp(path.Base(at.rel)) {
		return a, at, nil, nil, pluginhost.Failed(pluginhost.ReasonDenied, "path", "Names of this form are the node's own.", "Choose another name.")
	}
	root, err := at.folder.open(r.data)
	if err != nil {
		return a, at, nil, nil, at.failure(err)
	}
	if dir := path.Dir(at.rel); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			closing(root)
			return a, at, nil, nil, at.failure(err)
		}
	}
	return a, at, root, content, nil
}

func (r *run) write() *messages.ToolResult {
	a, at, root, content, bad := r.begin()
	if bad != nil {
		return bad
	}
	defer closing(root)
	mode := fs.FileMode(0o600)
	temp := tempName(at.rel, r.call.GetCall().GetCallId())
	info, err := root.Lstat(at.rel)
	switch {
	case err == nil && info.IsDir():
		return plain(at, info)
	case err == nil && info.Mode().IsRegular():
		if same(root, at.rel, info, content) {
			_ = root.Remove(temp) // an earlier run of this very call may have been cut before it did
			return done(at, content, info.Size(), true)
		}
		mode = info.Mode().Perm()
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return at.failure(err)
	}
	if err == nil && a.Mode != "overwrite" {
		return exists(at)
	}
	if err := fill(root, temp, content, mode); err != nil {
		_ = root.Remove(temp) // the first error is the one that counts
		return at.failure(err)
	}
	if bad := r.givenUp(); bad != nil {
		_ = root.Remove(temp) // as above
		return bad
	}
	return put(root, temp, at, content, a.Mode == "overwrite")
}

// put moves a written file to its place; a file that came there meanwhile is not replaced unless that was asked for.
func put(root *os.Root, temp string, at place, content []byte, overwrite bool) *messages.ToolResult {
	var err error
	if !overwrite {
		if err = root.Link(temp, at.rel); err == nil || errors.Is(err, fs.ErrExist) {
			_ = root.Remove(temp) // a name that nobody sees
			if err != nil {
				return exists(at)
			}
			return settled(root, at, content)
		}
		// This file system has no links: look, then rename.
		if _, seen := root.Lstat(at.rel); seen == nil {
			_ = root.Remove(temp) // as above
			return exists(at)
		}
	}
	if err = root.Rename(temp, at.rel); err != nil {
		_ = root.Remove(temp) // as above
		return at.failure(err)
	}
	return settled(root, at, content)
}

// settled has the folder's new entry on disk before the call says that it was written.
func settled(root *os.Root, at place, content []byte) *messages.ToolResult {
	if err := syncFolder(root, path.Dir(at.rel)); err != nil {
		return at.failure(err)
	}
	return done(at, content, int64(len(content)), false)
}

func syncFolder(root *os.Root, rel string) error {
	dir, err := root.Open(rel)
	if err != nil {
		return err
	}
	defer closing(dir)
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrPermission) {
		return err // some file systems do not sync folders
	}
	return nil
}

func exists(at place) *messages.ToolResult {
	return pluginhost.Failed(pluginhost.ReasonFailed, "path", at.shown()+" exists already and holds something else.",
		"Choose another name, read it first, or write with mode overwrite to replace it.")
}

func done(at place, content []byte, size int64, unchanged bool) *messages.ToolResult {
	return pluginhost.Succeeded(writtenJSON{Path: at.shown(), Bytes: len(content), Size: size, Unchanged: unchanged}, messages.Taint_TAINT_TRUSTED)
}

// fill writes a new file and has it on disk.
func fill(root *os.Root, name string, content []byte, mode fs.FileMode) error {
	_ = root.Remove(name) // what an earlier run of this very call has left
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}

// same tells whether a file holds just this content.
func same(root *os.Root, rel string, info fs.FileInfo, content []byte) bool {
	if info.Size() != int64(len(content)) {
		return false
	}
	f, err := openPlain(root, rel)
	if err != nil {
		return false
	}
	defer closing(f)
	got, err := readAt(f, 0, info.Size()+1)
	return err == nil && bytes.Equal(got, content)
}

func (r *run) append() *messages.ToolResult {
	_, at, root, content, bad := r.begin()
	if bad != nil {
		return bad
	}
	defer closing(root)
	f, err := root.OpenFile(at.rel, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.EISDIR) {
		return pluginhost.Failed(pluginhost.ReasonType, "path", at.shown()+" is a folder, not a file.", "List it with "+toolList+".")
	}
	if errors.Is(err, syscall.ENXIO) { // a pipe that nobody reads
		return pluginhost.Failed(pluginhost.ReasonDenied, "path", at.shown()+" is no ordinary file.", "Pipes, devices and sockets are not used.")
	}
	if err != nil {
		return at.failure(err)
	}
	defer closing(f)
	info, err := f.Stat()
	if err != nil {
		return at.failure(err)
	}
	if bad := plain(at, info); bad != nil {
		return bad
	}
	if bad := r.givenUp(); bad != nil {
		return bad
	}
	n, err := f.Write(content)
	if err = errors.Join(err, f.Sync()); err != nil {
		if n > 0 {
			return pluginhost.Failed(pluginhost.ReasonUnknown, "path", fmt.Sprintf("Only part of it may have been written to %s.", at.shown()), "Read the end of the file before you write again.")
		}
		return at.failure(err)
	}
	return done(at, content, info.Size()+int64(n), false)
}

// Names of files that are being written.
const (
	tempPrefix = ".homed-"
	tempSuffix = ".part"
)

func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// tempName is beside the file, and of its call alone.
func tempName(rel, call string) string {
	sum := sha256.Sum256([]byte(call + "\x00" + rel))
	return path.Join(path.Dir(rel), tempPrefix+hex.EncodeToString(sum[:8])+tempSuffix)
}

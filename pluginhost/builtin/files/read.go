package files

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"homeagent/messages"
	"homeagent/pluginhost"
)

type entryJSON struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Size     *int64 `json:"size,omitempty"`
	Modified string `json:"modified,omitempty"`
}

type listJSON struct {
	Path    string      `json:"path,omitempty"`
	Entries []entryJSON `json:"entries"`
	More    bool        `json:"more,omitempty"`
}

// maxScan bounds how many entries of a folder are looked at.
const maxScan = 20_000

func (r *run) list() *messages.ToolResult {
	var a struct {
		Path  string `json:"path"`
		Limit int    `json:"limit"`
	}
	if bad := pluginhost.Arguments(r.call, &a); bad != nil {
		return bad
	}
	if clean := path.Clean(a.Path); clean == "." || clean == "/" {
		return r.listFolders()
	}
	limit := r.set.maxEntries
	if a.Limit > 0 {
		limit = min(limit, a.Limit)
	}
	at, f, info, bad := r.opened(a.Path)
	if bad != nil {
		return bad
	}
	defer closing(f)
	if !info.IsDir() {
		return pluginhost.Failed(pluginhost.ReasonType, "path", at.shown()+" is a file, not a folder.", "Read it with "+toolRead+".")
	}
	return r.listed(at, f, limit)
}

// listFolders lists the allowed folders themselves.
func (r *run) listFolders() *messages.ToolResult {
	out := listJSON{Entries: []entryJSON{}}
	for _, f := range r.set.folders {
		kind := "folder"
		if _, err := os.Stat(f.dir); err != nil && !f.made {
			kind = "folder, not there now"
		}
		out.Entries = append(out.Entries, entryJSON{Name: f.name, Kind: kind})
	}
	return pluginhost.Succeeded(out, messages.Taint_TAINT_TRUSTED)
}

func (r *run) listed(at place, f *os.File, limit int) *messages.ToolResult {
	all, err := f.ReadDir(maxScan)
	if err != nil && !errors.Is(err, io.EOF) {
		return at.failure(err)
	}
	if bad := r.givenUp(); bad != nil {
		return bad
	}
	all = slices.DeleteFunc(all, func(e fs.DirEntry) bool { return isTemp(e.Name()) })
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	out := listJSON{Path: at.shown(), Entries: []entryJSON{}, More: len(all) > limit || len(all) == maxScan}
	for _, e := range all[:min(len(all), limit)] {
		out.Entries = append(out.Entries, entryOf(e))
	}
	// Names may be the words of whoever wrote the files.
	return pluginhost.Succeeded(out, messages.Taint_TAINT_FOREIGN)
}

func entryOf(e fs.DirEntry) entryJSON {
	out := entryJSON{Name: strings.ToValidUTF8(e.Name(), "\uFFFD"), Kind: "other"}
	switch {
	case e.IsDir():
		out.Kind = "folder"
	case e.Type().IsRegular():
		out.Kind = "file"
	case e.Type()&fs.ModeSymlink != 0:
		out.Kind = "link"
	}
	if info, err := e.Info(); err == nil { // it may be gone
		out.Modified = info.ModTime().UTC().Format(time.RFC3339)
		if size := info.Size(); out.Kind == "file" {
			out.Size = &size
		}
	}
	return out
}

// openPlain opens a file or folder for reading. It does not wait for anybody: a pipe without a writer opens at once.
func openPlain(root *os.Root, rel string) (*os.File, error) {
	return root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// opened opens what a path names below an allowed folder; the caller closes the file.
func (r *run) opened(path string) (place, *os.File, fs.FileInfo, *messages.ToolResult) {
	at, bad := find(r.set.folders, path)
	if bad != nil {
		return at, nil, nil, bad
	}
	root, err := at.folder.open(r.data)
	if err != nil {
		return at, nil, nil, at.failure(err)
	}
	defer closing(root)
	f, err := openPlain(root, at.rel)
	if err != nil {
		return at, nil, nil, at.failure(err)
	}
	info, err := f.Stat()
	if err != nil {
		closing(f)
		return at, nil, nil, at.failure(err)
	}
	return at, f, info, nil
}

type readJSON struct {
	Path       string `json:"path"`
	Size       int64  `json:"size"`
	Offset     int64  `json:"offset,omitempty"`
	Content    string `json:"content"`
	Encoding   string `json:"encoding,omitempty"`
	NextOffset int64  `json:"next_offset,omitempty"`
}

func (r *run) read() *messages.ToolResult {
	var a struct {
		Path     string `json:"path"`
		Offset   int64  `json:"offset"`
		Limit    int64  `json:"limit"`
		Encoding string `json:"encoding"`
	}
	if bad := pluginhost.Arguments(r.call, &a); bad != nil {
		return bad
	}
	at, f, info, bad := r.opened(a.Path)
	if bad != nil {
		return bad
	}
	defer closing(f)
	if bad := plain(at, info); bad != nil {
		return bad
	}
	if a.Offset > info.Size() {
		return pluginhost.Failed(pluginhost.ReasonType, "offset", fmt.Sprintf("%s has %d bytes.", at.shown(), info.Size()), "Give a smaller offset.")
	}
	limit := r.set.maxRead
	if a.Limit > 0 {
		limit = min(limit, a.Limit)
	}
	head, err := readAt(f, 0, sniffed)
	if err != nil {
		return at.failure(err)
	}
	body, err := readAt(f, a.Offset, limit)
	if err != nil {
		return at.failure(err)
	}
	if bad := r.givenUp(); bad != nil {
		return bad
	}
	out := readJSON{Path: at.shown(), Size: info.Size(), Offset: a.Offset}
	if a.Encoding == "base64" {
		out.Encoding, out.Content = "base64", base64.StdEncoding.EncodeToString(body)
		return finished(out, len(body))
	}
	whole, ok := wholeText(head, body, a.Offset+int64(len(body)) >= info.Size())
	if !ok {
		return pluginhost.Failed(pluginhost.ReasonType, "path",
			fmt.Sprintf("%s is no text but %s, %d bytes.", at.shown(), typeOf(at.rel, head), info.Size()), "Ask for its bytes with encoding base64 if you need them.")
	}
	out.Content = string(whole)
	return finished(out, len(whole))
}

// plain refuses what is no regular file.
func plain(at place, info fs.FileInfo) *messages.ToolResult {
	switch {
	case info.IsDir():
		return pluginhost.Failed(pluginhost.ReasonType, "path", at.shown()+" is a folder, not a file.", "List it with "+toolList+".")
	case !info.Mode().IsRegular():
		return pluginhost.Failed(pluginhost.ReasonDenied, "path", at.shown()+" is no ordinary file.", "Pipes, devices and sockets are not used.")
	}
	return nil
}

// finished is the result of a read of n bytes. What people and programs have written into a file is foreign.
func finished(out readJSON, n int) *messages.ToolResult {
	if end := out.Offset + int64(n); end < out.Size && n > 0 {
		out.NextOffset = end
	}
	return pluginhost.Succeeded(out, messages.Taint_TAINT_FOREIGN)
}

// sniffed is how much of a file tells its kind.
const sniffed = 512

func readAt(f *os.File, at, limit int64) ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(f, at, limit))
}

// wholeText cuts a piece of a file at characters; ok is false when it is no text. last says that the piece reaches the
// end of the file.
func wholeText(head, body []byte, last bool) ([]byte, bool) {
	if strings.IndexByte(string(head), 0) >= 0 {
		return nil, false
	}
	for i := 0; i < utf8.UTFMax && len(body) > 0 && !utf8.RuneStart(body[0]); i++ {
		body = body[1:] // the offset lay within a character, which the piece before has shown
	}
	if !last {
		for i := 1; i <= min(utf8.UTFMax, len(body)); i++ {
			if b := body[len(body)-i:]; utf8.RuneStart(b[0]) {
				if !utf8.FullRune(b) {
					body = body[:len(body)-i]
				}
				break
			}
		}
	}
	if !utf8.Valid(body) || strings.IndexByte(string(body), 0) >= 0 {
		return nil, false
	}
	return body, true
}

// typeOf names the media type of a file by its content, or by its name where the content says little.
func typeOf(name string, head []byte) string {
	kind := http.DetectContentType(head)
	if kind == "application/octet-stream" || strings.HasPrefix(kind, "text/plain") {
		if by := mime.TypeByExtension(path.Ext(name)); by != "" {
			return by
		}
	}
	return kind
}

// closing closes what was only read from, or was closed with its error looked at before.
func closing(c io.Closer) { _ = c.Close() }

package kernel

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"homeagent/configs/paths"
	"homeagent/memory/store"
)

// A backup of a node is one stream:
//
//	magic, length of the manifest in four bytes (big end first), manifest (JSON)
//	the files of the manifest, one after another
//	the store's own backup in pieces: a length in four bytes, that many bytes; length zero ends it
//	SHA-256 of all before it
//
// It holds what a person would miss and no program can make again: the store, personal.md, adapters and skills. Plugins and
// knowledge are installed again; logs stay.
const (
	backupMagic   = "homeagent node backup\n"
	backupVersion = 1
	// maxManifest bounds the manifest, maxPiece a piece of the store's backup, maxFiles all files together, in bytes. A
	// file over the bound is named in the manifest as left out.
	maxManifest = 1 << 20
	maxPiece    = 1 << 20
	maxFiles    = 64 << 20
)

// ErrBackup refuses a file that is not a whole backup of a node.
var ErrBackup = errors.New("not a whole backup")

// ErrNotEmpty refuses to restore into a folder with something in it.
var ErrNotEmpty = errors.New("the folder is not empty")

// Manifest heads a backup.
type Manifest struct {
	// Version of the stream; a newer one is refused.
	Version int `json:"version"`
	// Node and Program are the node's name and the version of its program.
	Node    string `json:"node"`
	Program string `json:"program"`
	// At is when it was made, UTC.
	At time.Time `json:"at"`
	// WithKey says that the key of the secrets is among the files.
	WithKey bool `json:"with_key"`
	// Files lie in the stream in this order.
	Files []BackupFile `json:"files"`
	// LeftOut are files that were too large, or could not be read.
	LeftOut []string `json:"left_out,omitempty"`
}

// BackupFile is one file, by its path in the data folder with slashes.
type BackupFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Backed says what a backup holds.
type Backed struct {
	Manifest Manifest
	// Store is the head of the store's backup, with the number of keys.
	Store store.BackupInfo
	// Bytes of the stream.
	Bytes int64
}

// backup writes the node to out while it goes on.
func (w *world) backup(ctx context.Context, out io.Writer, withKey bool) error {
	sum := sha256.New()
	to := bufio.NewWriterSize(io.MultiWriter(out, sum), 64<<10)
	m, contents := w.backupFiles(withKey)
	head, err := json.Marshal(m)
	if err != nil {
		return err
	}
	// A bufio.Writer keeps its first error and Flush returns it.
	_, _ = to.WriteString(backupMagic)
	_, _ = to.Write(binary.BigEndian.AppendUint32(nil, uint32(len(head))))
	_, _ = to.Write(head)
	for _, c := range contents {
		_, _ = to.Write(c)
	}
	if _, err := w.db.Backup(ctx, pieces{to}); err != nil {
		return err
	}
	_, _ = to.Write(make([]byte, 4))
	if err := to.Flush(); err != nil {
		return err
	}
	_, err = out.Write(sum.Sum(nil))
	return err
}

// pieces writes each piece with its length before it.
type pieces struct{ w io.Writer }

// Write implements io.Writer.
func (p pieces) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		piece := b[done:min(done+maxPiece, len(b))]
		if _, err := p.w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(piece)))); err != nil {
			return done, err
		}
		n, err := p.w.Write(piece)
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// backupFiles reads the files into memory, so that the manifest can tell their sizes.
func (w *world) backupFiles(withKey bool) (Manifest, [][]byte) {
	m := Manifest{
		Version: backupVersion, Node: w.opt.Name, Program: w.build.Version, At: time.Now().UTC(), WithKey: withKey, Files: []BackupFile{},
	}
	roots := []string{w.layout.Personal(), w.layout.Adapters(), w.layout.Skills()}
	if withKey {
		roots = append(roots, w.layout.SecretKey())
	}
	var contents [][]byte
	room := int64(maxFiles)
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			name, rerr := filepath.Rel(w.layout.Data(), path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err == nil && (d.IsDir() || !d.Type().IsRegular() && d.Type() != 0):
				return nil // links and pipes are no content
			case err != nil || rerr != nil:
				m.LeftOut = append(m.LeftOut, filepath.ToSlash(name))
				return nil //nolint:nilerr // what cannot be read is named, and the rest is worth having
			}
			b, err := readBounded(path, room)
			if err != nil {
				m.LeftOut = append(m.LeftOut, filepath.ToSlash(name))
				return nil //nolint:nilerr // as above
			}
			room -= int64(len(b))
			m.Files = append(m.Files, BackupFile{Name: filepath.ToSlash(name), Size: int64(len(b))})
			contents = append(contents, b)
			return nil
		})
	}
	if withKey && !slices.ContainsFunc(m.Files, func(f BackupFile) bool { return f.Name == filepath.Base(w.layout.SecretKey()) }) {
		m.WithKey = false // a node that keeps no secret has no key
	}
	return m, contents
}

var errTooLarge = errors.New("too large")

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, errTooLarge
	}
	return b, nil
}

// intake reads a backup and sums what it has read.
type intake struct {
	r   *bufio.Reader
	sum hash.Hash
	n   int64
	// left is what remains of the current piece; over is set behind the last one.
	left uint32
	over bool
}

func (in *intake) full(b []byte) error {
	if _, err := io.ReadFull(in.r, b); err != nil {
		return fmt.Errorf("%w: it ends after %d bytes", ErrBackup, in.n)
	}
	in.sum.Write(b)
	in.n += int64(len(b))
	return nil
}

func (in *intake) manifest() (m Manifest, err error) {
	magic := make([]byte, len(backupMagic))
	if err := in.full(magic); err != nil || string(magic) != backupMagic {
		return m, fmt.Errorf("%w: it does not begin like one", ErrBackup)
	}
	var size [4]byte
	if err := in.full(size[:]); err != nil {
		return m, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxManifest {
		return m, fmt.Errorf("%w: a manifest of %d bytes", ErrBackup, n)
	}
	text := make([]byte, n)
	if err := in.full(text); err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: its manifest cannot be read", ErrBackup)
	}
	if m.Version > backupVersion {
		return m, fmt.Errorf("%w: the backup has version %d, this program knows up to %d; use a newer homed", store.ErrFormat, m.Version, backupVersion)
	}
	return m, checkFiles(m.Files)
}

// checkFiles refuses names that would leave the data folder.
func checkFiles(files []BackupFile) error {
	room := int64(maxFiles)
	for _, f := range files {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) || f.Size < 0 || f.Size > room {
			return fmt.Errorf("%w: file %q of %d bytes", ErrBackup, f.Name, f.Size)
		}
		room -= f.Size
	}
	return nil
}

// Read gives the pieces of the store's backup as one stream.
func (in *intake) Read(b []byte) (int, error) {
	for in.left == 0 {
		if in.over {
			return 0, io.EOF
		}
		var size [4]byte
		if err := in.full(size[:]); err != nil {
			return 0, err
		}
		in.left = binary.BigEndian.Uint32(size[:])
		if in.left > maxPiece {
			return 0, fmt.Errorf("%w: a piece of %d bytes", ErrBackup, in.left)
		}
		in.over = in.left == 0
	}
	n, err := in.r.Read(b[:min(len(b), int(in.left))])
	in.sum.Write(b[:n])
	in.n += int64(n)
	in.left -= uint32(n)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: it ends after %d bytes", ErrBackup, in.n)
	}
	return n, err
}

// end compares the digest and wants nothing behind it.
func (in *intake) end() error {
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	want := in.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(in.r, got); err != nil {
		return fmt.Errorf("%w: it ends after %d bytes", ErrBackup, in.n)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%w: its digest does not fit, so bytes of it were changed", ErrBackup)
	}
	if _, err := in.r.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows its end", ErrBackup)
	}
	in.n += int64(len(got))
	return nil
}

// Restore makes a data folder from the backup in r. The folder must be new or empty. All of the backup is checked and the
// store in it opened before the folder gets its name: on an error nothing is left.
func Restore(ctx context.Context, r io.Reader, data string) (Backed, error) {
	// The layout is resolved as by homed run, so that the folder is the one that a node would use.
	layout, err := paths.Resolve(data, func(string) string { return "" })
	if err != nil {
		return Backed{}, err
	}
	data = layout.Data()
	if left, err := os.ReadDir(data); err == nil && len(left) > 0 {
		return Backed{}, fmt.Errorf("%w: %s; give a new one with --data", ErrNotEmpty, data)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Backed{}, err
	}
	if err := os.MkdirAll(filepath.Dir(data), 0o700); err != nil {
		return Backed{}, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(data), ".homed-restore-*")
	if err != nil {
		return Backed{}, err
	}
	b, err := restoreInto(ctx, r, tmp)
	if err == nil {
		if err = os.Remove(data); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(tmp, data)
	}
	if err != nil {
		return Backed{}, errors.Join(err, os.RemoveAll(tmp))
	}
	return b, nil
}

// VerifyBackup tries the backup in r out: it is restored into a folder below dir, which needs the room, opened like a
// node would, and removed again.
func VerifyBackup(ctx context.Context, r io.Reader, dir string) (Backed, error) {
	tmp, err := os.MkdirTemp(dir, ".homed-verify-*")
	if err != nil {
		return Backed{}, err
	}
	b, err := restoreInto(ctx, r, tmp)
	return b, errors.Join(err, os.RemoveAll(tmp))
}

func restoreInto(ctx context.Context, r io.Reader, dir string) (b Backed, err error) {
	in := &intake{r: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
	if b.Manifest, err = in.manifest(); err != nil {
		return b, err
	}
	for _, f := range b.Manifest.Files {
		if err := in.file(dir, f); err != nil {
			return b, err
		}
	}
	at := filepath.Join(dir, "store")
	if b.Store, err = store.Restore(ctx, at, in, store.Options{}); err != nil {
		return b, err
	}
	if err := in.end(); err != nil {
		return b, err
	}
	b.Bytes = in.n
	return b, tryStore(at)
}

// file writes one file with mode 0600 in folders with 0700.
func (in *intake) file(dir string, f BackupFile) error {
	content := make([]byte, f.Size)
	if err := in.full(content); err != nil {
		return err
	}
	path := filepath.Join(dir, filepath.FromSlash(f.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return errors.Join(err, out.Sync(), out.Close())
}

// tryStore opens a restored store with the guards of a node's start.
func tryStore(dir string) error {
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		return err
	}
	return errors.Join(tryLedger(db), db.Close())
}

package configs

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"
)

// The sealed record, all of it authenticated:
//
//	byte 0       record version, 1
//	bytes 1-4    which key file: the first bytes of a hash of its key
//	bytes 5-28   nonce, random per record
//	rest         XChaCha20-Poly1305 of the text, with the version, the key
//	             mark and the dotted name as associated data
const (
	sealVersion  = 1
	keyMarkSize  = 4
	sealOverhead = 1 + keyMarkSize + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead
	keyFileHead  = "homed secret key 1\n"
	maxKeyFile   = 4 << 10
)

// Vault seals the values of secret keys under the key of one file. The file is
// read at first need and kept in memory; it is created at the first Seal, with
// mode 0600, and refused when others than its owner may read it. A Vault is safe
// for concurrent use.
type Vault struct {
	path string

	mu  sync.Mutex
	key []byte // nil until read or created
}

// NewVault returns a vault over the key file at path. Nothing is read yet.
func NewVault(path string) *Vault { return &Vault{path: path} }

// Path returns where the key file is.
func (v *Vault) Path() string { return v.path }

// Exists reports whether there is a key file. Errors other than absence are
// returned as *Error.
func (v *Vault) Exists() (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	err := v.load()
	if errors.Is(err, &Error{Code: CodeKeyFileMissing}) {
		return false, nil
	}
	return err == nil, err
}

// Seal encrypts text for the key with the dotted name. It creates the key file
// when there is none.
func (v *Vault) Seal(name, text string) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	err := v.load()
	if errors.Is(err, &Error{Code: CodeKeyFileMissing}) {
		err = v.create()
	}
	if err != nil {
		return nil, err
	}
	aead, err := chacha20poly1305.NewX(v.key)
	if err != nil {
		return nil, &Error{Code: CodeKeyFileBad, Key: name, Message: "the key of the secrets cannot be used", Err: err}
	}
	record := make([]byte, 1+keyMarkSize+chacha20poly1305.NonceSizeX, sealOverhead+len(text))
	record[0] = sealVersion
	mark := keyMark(v.key)
	copy(record[1:], mark)
	nonce := record[1+keyMarkSize:]
	_, _ = rand.Read(nonce) // never fails: the runtime ends the process instead
	return aead.Seal(record, nonce, []byte(text), sealContext(mark, name)), nil
}

// Open decrypts what Seal made for the same name. A record that was changed, or
// made for another name, is CodeDamaged; one made under another key file is
// CodeWrongKey; without a key file it is CodeKeyFileMissing.
func (v *Vault) Open(name string, record []byte) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	damaged := &Error{
		Code: CodeDamaged, Key: name,
		Message: "the sealed value of " + name + " is damaged or belongs to another key",
		Hint:    "set it again with `waiter config set " + name + "`",
	}
	if len(record) < sealOverhead || record[0] != sealVersion {
		return "", damaged
	}
	if err := v.load(); err != nil {
		return "", err
	}
	mark := keyMark(v.key)
	if string(record[1:1+keyMarkSize]) != string(mark) {
		return "", &Error{
			Code: CodeWrongKey, Key: name,
			Message: "the value of " + name + " was sealed under another key file than " + v.path,
			Hint:    "put the key file back, or set the value again",
		}
	}
	aead, err := chacha20poly1305.NewX(v.key)
	if err != nil {
		return "", &Error{Code: CodeKeyFileBad, Key: name, Message: "the key of the secrets cannot be used", Err: err}
	}
	body := record[1+keyMarkSize:]
	text, err := aead.Open(nil, body[:chacha20poly1305.NonceSizeX], body[chacha20poly1305.NonceSizeX:], sealContext(mark, name))
	if err != nil {
		return "", damaged
	}
	return string(text), nil
}

// fingerprint hides text behind the key, so that a digest over settings says
// whether a secret changed and nothing else. Without a key file the process's own
// random key serves.
func (v *Vault) fingerprint(name, text string) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := v.key
	if key == nil {
		key = processKey()
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, "homed digest 1\x00"+name+"\x00"+text)
	return mac.Sum(nil)
}

var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, chacha20poly1305.KeySize)
	_, _ = rand.Read(key)
	return key
})

func sealContext(mark []byte, name string) []byte {
	return append(append([]byte{sealVersion}, mark...), "homed secret\x00"+name...)
}

func keyMark(key []byte) []byte {
	sum := sha256.Sum256(append([]byte("homed key mark 1\x00"), key...))
	return sum[:keyMarkSize]
}

// load reads the key file once. The caller holds the lock.
func (v *Vault) load() error {
	if v.key != nil {
		return nil
	}
	// Opening a pipe would wait for ever.
	if info, err := os.Stat(v.path); err == nil && !info.Mode().IsRegular() {
		return badKeyFile(v.path, "is not a plain file", nil)
	}
	file, err := os.Open(v.path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{
			Code: CodeKeyFileMissing, Message: "there is no key file at " + v.path,
			Hint: "put the key file back, or unset the secrets and set them again",
		}
	}
	if err != nil {
		return badKeyFile(v.path, "cannot be opened", err)
	}
	defer file.Close() //nolint:errcheck // only read
	if err := checkKeyFileMode(file, v.path); err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxKeyFile))
	if err != nil {
		return badKeyFile(v.path, "cannot be read", err)
	}
	text, headed := strings.CutPrefix(string(content), keyFileHead)
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if !headed || err != nil || len(key) != chacha20poly1305.KeySize {
		return badKeyFile(v.path, "is not a key file", nil)
	}
	v.key = key
	return nil
}

// checkKeyFileMode looks at the opened file, not at the path, so that it cannot
// be exchanged in between.
func checkKeyFileMode(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return badKeyFile(path, "cannot be examined", err)
	}
	if !info.Mode().IsRegular() {
		return badKeyFile(path, "is not a plain file", nil)
	}
	// Windows has no such mode bits; there the user's own folder guards the file.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return &Error{
			Code:    CodeKeyFileMode,
			Message: "the key file " + path + " may be read by others than its owner (mode " + modeText(mode) + ")",
			Hint:    "run chmod 600 on it; if others had access, set the secrets anew",
		}
	}
	return nil
}

func modeText(mode fs.FileMode) string {
	const digits = "01234567"
	return "0" + string([]byte{digits[mode>>6&7], digits[mode>>3&7], digits[mode&7]})
}

func badKeyFile(path, what string, err error) error {
	return &Error{
		Code: CodeKeyFileBad, Message: "the key file " + path + " " + what,
		Hint: "put the right file back, or move it away and set the secrets anew", Err: err,
	}
}

// create makes a new key and its file. The caller holds the lock. The file gets
// its final name only when it is whole and on disk; an existing one is never
// replaced.
func (v *Vault) create() error {
	key := make([]byte, chacha20poly1305.KeySize)
	_, _ = rand.Read(key)
	failed := func(err error) error { return badKeyFile(v.path, "cannot be created", err) }
	folder := filepath.Dir(v.path)
	file, err := os.CreateTemp(folder, ".secret-key-*") // mode 0600
	if err != nil {
		return failed(err)
	}
	defer os.Remove(file.Name()) //nolint:errcheck // gone already when all went well
	_, err = file.WriteString(keyFileHead + hex.EncodeToString(key) + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return failed(err)
	}
	if err := os.Link(file.Name(), v.path); err != nil {
		// File systems without links: the node's folder lock keeps others away.
		if _, statErr := os.Lstat(v.path); !errors.Is(statErr, fs.ErrNotExist) {
			return failed(fs.ErrExist)
		}
		if err := os.Rename(file.Name(), v.path); err != nil {
			return failed(err)
		}
	}
	if err := syncFolder(folder); err != nil {
		return failed(err)
	}
	v.key = key
	return nil
}

// syncFolder makes a new name in folder survive a power cut, where the platform
// can say so.
func syncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Package paths knows where a node keeps its files: the data folder, the names
// inside it, and the file by which clients find a running node.
package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"homeagent/configs"
)

// DataVariable is the environment variable that names the data folder.
const DataVariable = "HOMED_DATA"

// maxSocketPath is how long the path of a local socket may be, in bytes, without
// the final zero: 108 bytes hold both on Linux, 104 on the BSDs and macOS.
func maxSocketPath(goos string) int {
	switch goos {
	case "darwin", "freebsd", "netbsd", "openbsd", "dragonfly", "ios":
		return 103
	}
	return 107
}

// Layout is the data folder of one node. It is an immutable value; its methods
// only join names and touch no disk, unless they say so.
type Layout struct{ data string }

// Resolve finds the data folder: the flag when it is not empty, else
// $HOMED_DATA, else the platform's folder for user data and homed below it. The
// result is absolute. getenv is os.Getenv, or a table in tests.
func Resolve(flag string, getenv func(string) string) (Layout, error) {
	chosen := flag
	if chosen == "" {
		chosen = getenv(DataVariable)
	}
	if chosen == "" {
		base, err := userData(runtime.GOOS, getenv)
		if err != nil {
			return Layout{}, err
		}
		chosen = filepath.Join(base, "homed")
	}
	absolute, err := filepath.Abs(chosen)
	if err != nil {
		return Layout{}, pathError("the data folder "+chosen+" cannot be resolved", "give an absolute path with --data", err)
	}
	return Layout{data: absolute}, nil
}

// userData returns the folder in which programs of the platform keep the data of
// their user.
func userData(goos string, getenv func(string) string) (string, error) {
	var variable, below string
	switch goos {
	case "windows":
		variable = "LocalAppData"
	case "darwin", "ios":
		variable, below = "HOME", filepath.Join("Library", "Application Support")
	default:
		if folder := getenv("XDG_DATA_HOME"); filepath.IsAbs(folder) {
			return folder, nil // a relative one is to be ignored, says its specification
		}
		variable, below = "HOME", filepath.Join(".local", "share")
	}
	base := getenv(variable)
	if base == "" {
		return "", pathError("there is no place for the data folder: "+variable+" is not set", "give one with --data or "+DataVariable, nil)
	}
	return filepath.Join(base, below), nil
}

// Data is the data folder itself.
func (l Layout) Data() string { return l.data }

// Lock is the file that the running node holds locked.
func (l Layout) Lock() string { return l.join("run", "homed.lock") }

// Store is the folder of the database.
func (l Layout) Store() string { return l.join("store") }

// Run is the folder of what exists while the node runs.
func (l Layout) Run() string { return l.join("run") }

// Socket is the local socket; see CheckSocket.
func (l Layout) Socket() string { return l.join("run", "homed.sock") }

// Token is the file with the credential of the HTTP interface.
func (l Layout) Token() string { return l.join("run", "admin.token") }

// State is the file by which clients find the running node.
func (l Layout) State() string { return l.join("run", "homed.json") }

// SecretKey is the key file of the secrets. A backup leaves it out.
func (l Layout) SecretKey() string { return l.join("secret.key") }

// Personal is the file of what the agent should know about its people.
func (l Layout) Personal() string { return l.join("personal.md") }

// Adapters is the folder of the user's own provider adapters.
func (l Layout) Adapters() string { return l.join("adapters") }

// Plugins is the folder of installed plugins.
func (l Layout) Plugins() string { return l.join("plugins") }

// Skills is the folder of skills.
func (l Layout) Skills() string { return l.join("skills") }

// Knowledge is the folder of documents the agent may read.
func (l Layout) Knowledge() string { return l.join("knowledge") }

// Logs is the folder of logs.
func (l Layout) Logs() string { return l.join("logs") }

func (l Layout) join(names ...string) string {
	return filepath.Join(append([]string{l.data}, names...)...)
}

// CheckSocket reports whether the socket's path is short enough for the platform.
// Longer ones cannot be bound, and the system's own message does not say why.
func (l Layout) CheckSocket() error {
	if most := maxSocketPath(runtime.GOOS); len(l.Socket()) > most {
		return pathError(
			fmt.Sprintf("the path of the local socket, %s, has %d bytes; the system allows %d", l.Socket(), len(l.Socket()), most),
			"choose a data folder with a shorter path", nil)
	}
	return nil
}

// Create makes the data folder and the folders inside it, each with mode 0700
// where it does not exist yet, and checks that the socket's path is usable. It
// refuses a data folder that is no folder, or in which everybody may write.
func (l Layout) Create() error {
	if err := l.CheckSocket(); err != nil {
		return err
	}
	for _, folder := range []string{
		l.data, l.Store(), l.Run(), l.Adapters(), l.Plugins(), l.Skills(), l.Knowledge(), l.Logs(),
	} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return pathError("the folder "+folder+" cannot be created", "choose another data folder, or give this user the right to write there", err)
		}
		if err := checkFolder(folder); err != nil {
			return err
		}
	}
	return nil
}

func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return pathError("the folder "+folder+" cannot be examined", "", err)
	}
	if mode := info.Mode().Perm(); mode&0o002 != 0 && runtime.GOOS != "windows" {
		return pathError(fmt.Sprintf("everybody may write in the folder %s (mode %#o)", folder, mode), "run chmod o-w on it", nil)
	}
	return nil
}

// Exists reports whether there is a node's data in the folder, which is whether
// it has a store with something in it.
func (l Layout) Exists() (bool, error) {
	entries, err := os.ReadDir(l.Store())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, pathError("the folder "+l.Store()+" cannot be read", "", err)
	}
	return len(entries) > 0, nil
}

func pathError(message, hint string, err error) error {
	return &configs.Error{Code: configs.CodePath, Message: message, Hint: hint, Err: err}
}

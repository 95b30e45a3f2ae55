package paths

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// State is what a running node writes down for its clients, as run/homed.json. It
// holds no credential.
type State struct {
	// PID is the process id.
	PID int `json:"pid"`
	// Version is the version of the program.
	Version string `json:"version"`
	// HTTP is the address of the HTTP interface as host:port, empty when it has none.
	HTTP string `json:"http"`
	// Socket is the path of the local socket.
	Socket string `json:"socket"`
	// Node is the name of the node.
	Node string `json:"node"`
	// StartedAt is when the process started, in UTC.
	StartedAt time.Time `json:"started_at"`
}

// ErrNotRunning says that there is no state file: no node runs on the data
// folder.
var ErrNotRunning = errors.New("paths: no node runs on this data folder")

// WriteState writes the state file with mode 0600, replacing an older one as a
// whole: a reader sees the old or the new one.
func (l Layout) WriteState(state State) error {
	state.StartedAt = state.StartedAt.UTC()
	content, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return pathError("the state of the node cannot be written down", "", err)
	}
	failed := func(err error) error {
		return pathError("the file "+l.State()+" cannot be written", "check the rights on the folder and the room on its disk", err)
	}
	file, err := os.CreateTemp(filepath.Dir(l.State()), ".homed-json-*") // mode 0600
	if err != nil {
		return failed(err)
	}
	defer os.Remove(file.Name()) //nolint:errcheck // gone already when all went well
	_, err = file.Write(append(content, '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return failed(err)
	}
	if err := os.Rename(file.Name(), l.State()); err != nil {
		return failed(err)
	}
	return nil
}

// ReadState reads the state file. Without one it returns ErrNotRunning; that
// there is one does not prove that the node still runs.
func (l Layout) ReadState() (State, error) {
	content, err := os.ReadFile(l.State())
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, ErrNotRunning
	}
	if err != nil {
		return State{}, pathError("the file "+l.State()+" cannot be read", "run as the user the node runs as", err)
	}
	var state State
	if err := json.Unmarshal(content, &state); err != nil {
		return State{}, pathError("the file "+l.State()+" is damaged", "restart the node; it writes the file anew", err)
	}
	return state, nil
}

// RemoveState removes the state file when it is that of the process pid, so that
// an old process never removes the file of its successor. No file is no error.
func (l Layout) RemoveState(pid int) error {
	state, err := l.ReadState()
	if errors.Is(err, ErrNotRunning) || (err == nil && state.PID != pid) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Remove(l.State()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pathError("the file "+l.State()+" cannot be removed", "", err)
	}
	return nil
}

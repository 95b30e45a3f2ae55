package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/pluginhost"
)

// folder is one allowed folder.
type folder struct {
	name string // first part of the paths of the model
	dir  string // absolute
	made bool   // the node's own folder, made on first use
}

// folders are the allowed folders with unique names.
func folders(dirs []string, home string) ([]folder, error) {
	if len(dirs) == 0 {
		return []folder{{name: filepath.Base(home), dir: home, made: true}}, nil
	}
	taken := map[string]bool{}
	var out []folder
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("%s holds %q, which is no absolute path", configs.KeyFilesRoots, dir)
		}
		dir = filepath.Clean(dir)
		name := filepath.Base(dir)
		if name == string(filepath.Separator) || name == "." {
			return nil, fmt.Errorf("%s holds %q; name a folder below it", configs.KeyFilesRoots, dir)
		}
		for n := 2; taken[name]; n++ {
			name = filepath.Base(dir) + "-" + strconv.Itoa(n)
		}
		taken[name] = true
		out = append(out, folder{name: name, dir: dir})
	}
	return out, nil
}

// open opens the folder. It is opened anew for each call, so that a disk that comes and goes is followed.
func (f folder) open(data string) (*os.Root, error) {
	if f.made {
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return nil, err
		}
	}
	real, err := filepath.EvalSymlinks(f.dir)
	if err != nil {
		return nil, err
	}
	if !f.made {
		if err := apart(real, data); err != nil {
			return nil, err
		}
	}
	return os.OpenRoot(real)
}

var errOwnData = errors.New("it holds the node's own data")

// apart refuses a folder that lies in the node's data, or the data in it.
func apart(dir, data string) error {
	data, err := filepath.EvalSymlinks(data)
	if err != nil {
		return err
	}
	for _, p := range [][2]string{{dir, data}, {data, dir}} {
		rel, err := filepath.Rel(p[0], p[1])
		if err != nil {
			continue // on another drive
		}
		if rel == "." || rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return errOwnData
		}
	}
	return nil
}

// place is a path of the model that was found to lie in a folder.
type place struct {
	folder folder
	rel    string // slashes, "." for the folder itself
}

// shown is the path as the model sees it.
func (p place) shown() string { return path.Join(p.folder.name, p.rel) }

// maxPath is the longest path in bytes.
const maxPath = 4096

// find finds the folder of a path.
func find(all []folder, text string) (place, *messages.ToolResult) {
	if len(text) > maxPath || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return place{}, pluginhost.Failed(pluginhost.ReasonType, "path", "The path is too long or holds control characters.", "")
	}
	clean := text
	if filepath.IsAbs(text) {
		var ok bool
		if clean, ok = relative(all, filepath.Clean(text)); !ok {
			return place{}, outside(all, text)
		}
	}
	clean = path.Clean(filepath.ToSlash(clean))
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return place{}, outside(all, text)
	}
	first, rest, _ := strings.Cut(clean, "/")
	for _, f := range all {
		if f.name == first {
			return place{f, path.Join(".", rest)}, nil
		}
	}
	if len(all) == 1 {
		return place{all[0], clean}, nil
	}
	return place{}, pluginhost.Failed(pluginhost.ReasonNotFound, "path", fmt.Sprintf("There is no folder %q.", first),
		"Begin the path with one of: "+names(all)+".")
}

// relative turns an absolute path below a folder into one of the model.
func relative(all []folder, abs string) (string, bool) {
	for _, f := range all {
		if rel, err := filepath.Rel(f.dir, abs); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(f.name, rel), true
		}
	}
	return "", false
}

func outside(all []folder, text string) *messages.ToolResult {
	return pluginhost.Failed(pluginhost.ReasonDenied, "path", fmt.Sprintf("%q lies outside of the folders that may be used.", text),
		"These may be used: "+names(all)+". The owner of the node can allow others with the key "+configs.KeyFilesRoots+".")
}

func names(all []folder) string {
	var out []string
	for _, f := range all {
		out = append(out, f.name)
	}
	return strings.Join(out, ", ")
}

// failure explains an error of the file system to the model.
func (p place) failure(err error) *messages.ToolResult {
	switch {
	case errors.Is(err, errOwnData):
		return pluginhost.Failed(pluginhost.ReasonDenied, "path", "The folder "+p.folder.name+" holds the node's own data and is not used.",
			"The owner of the node can name another one with the key "+configs.KeyFilesRoots+".")
	case errors.Is(err, fs.ErrNotExist):
		return pluginhost.Failed(pluginhost.ReasonNotFound, "path", fmt.Sprintf("There is no %s.", p.shown()), "Look with files_list what is there.")
	case errors.Is(err, fs.ErrPermission):
		return pluginhost.Failed(pluginhost.ReasonDenied, "path", fmt.Sprintf("The node may not use %s.", p.shown()), "")
	case strings.Contains(err.Error(), "path escapes from parent"): // os.Root has no name for it
		return pluginhost.Failed(pluginhost.ReasonDenied, "path", fmt.Sprintf("%s leads out of its folder.", p.shown()),
			"Links that lead out of the allowed folders are not followed.")
	case noSpace(err):
		return pluginhost.Failed(pluginhost.ReasonFailed, "", "The disk is full; nothing was changed.", "Tell the person.")
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // without the absolute path
	}
	return pluginhost.Failed(pluginhost.ReasonFailed, "path", fmt.Sprintf("%s: %v.", p.shown(), err), "")
}

package paths

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"homeagent/configs"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestResolve(t *testing.T) {
	base := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	cases := []struct {
		name, flag string
		env        func(string) string
		want       string
	}{
		{"flag first", at("flag"), environment("HOMED_DATA", at("env")), at("flag")},
		{"then the variable", "", environment("HOMED_DATA", at("env"), "HOME", base), at("env")},
	}
	for _, c := range cases {
		l, err := Resolve(c.flag, c.env)
		if err != nil || l.Data() != c.want {
			t.Errorf("%s: %q, %v", c.name, l.Data(), err)
		}
	}
	if l, err := Resolve("relative", environment()); err != nil || !filepath.IsAbs(l.Data()) {
		t.Errorf("relative: %q, %v", l.Data(), err)
	}
	if _, err := Resolve("", environment()); configs.CodeOf(err) != configs.CodePath {
		t.Errorf("no place at all: %v", err)
	}
}

func TestUserData(t *testing.T) {
	cases := []struct {
		goos string
		env  func(string) string
		want string
	}{
		{"linux", environment("HOME", "/h"), "/h/.local/share"},
		{"linux", environment("HOME", "/h", "XDG_DATA_HOME", "/x"), "/x"},
		{"linux", environment("HOME", "/h", "XDG_DATA_HOME", "x"), "/h/.local/share"},
		{"android", environment("HOME", "/h"), "/h/.local/share"},
		{"darwin", environment("HOME", "/h", "XDG_DATA_HOME", "/x"), "/h/Library/Application Support"},
		{"windows", environment("LocalAppData", "/l", "HOME", "/h"), "/l"},
		{"linux", environment(), ""},
	}
	for _, c := range cases {
		got, err := userData(c.goos, c.env)
		if filepath.ToSlash(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", c.goos, got, err, c.want)
		}
	}
}

func TestCreate(t *testing.T) {
	l, err := Resolve(filepath.Join(t.TempDir(), "a", "data"), environment())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Create(); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{l.Data(), l.Store(), l.Run(), l.Adapters(), l.Plugins(), l.Skills(), l.Knowledge(), l.Logs()} {
		info, err := os.Stat(folder)
		if err != nil || !info.IsDir() || (runtime.GOOS != "windows" && info.Mode().Perm() != 0o700) {
			t.Errorf("%s: %v, %v", folder, info, err)
		}
	}
	if exists, err := l.Exists(); exists || err != nil {
		t.Errorf("an empty store exists: %v, %v", exists, err)
	}
	if err := os.WriteFile(filepath.Join(l.Store(), "MANIFEST"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if exists, err := l.Exists(); !exists || err != nil {
		t.Errorf("a store does not exist: %v, %v", exists, err)
	}
}

func TestCreateRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Layout{data: file}).Create(); configs.CodeOf(err) != configs.CodePath {
		t.Errorf("a file as data folder: %v", err)
	}
	if runtime.GOOS != "windows" {
		open := filepath.Join(t.TempDir(), "open")
		if err := os.Mkdir(open, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(open, 0o777); err != nil { //nolint:gosec // what is to be refused
			t.Fatal(err)
		}
		if err := (Layout{data: open}).Create(); configs.CodeOf(err) != configs.CodePath || !strings.Contains(err.Error(), "chmod") {
			t.Errorf("a folder open to everybody: %v", err)
		}
	}
	long := Layout{data: filepath.Join(t.TempDir(), strings.Repeat("d", 110))}
	if err := long.Create(); configs.CodeOf(err) != configs.CodePath || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("a long path: %v", err)
	}
	if _, err := os.Stat(long.Data()); err == nil {
		t.Error("the folder was made although its socket is unusable")
	}
	if got := maxSocketPath("linux"); got != 107 {
		t.Errorf("linux allows %d", got)
	}
}

func TestState(t *testing.T) {
	l := Layout{data: t.TempDir()}
	if err := l.WriteState(State{}); configs.CodeOf(err) != configs.CodePath {
		t.Errorf("writing without the folder: %v", err)
	}
	if err := l.Create(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReadState(); err != ErrNotRunning { //nolint:errorlint // the contract says this very value
		t.Errorf("without a file: %v", err)
	}
	if err := l.RemoveState(1); err != nil {
		t.Errorf("removing none: %v", err)
	}
	want := State{PID: 42, Version: "1", HTTP: "127.0.0.1:8765", Socket: l.Socket(), Node: "attic", StartedAt: time.Unix(1700000000, 0).UTC()}
	if err := l.WriteState(want); err != nil {
		t.Fatal(err)
	}
	if got, err := l.ReadState(); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	content, _ := os.ReadFile(l.State())
	for _, name := range []string{`"pid": 42`, `"version"`, `"http"`, `"socket"`, `"node"`, `"started_at": "2023-11-14T22:13:20Z"`} {
		if !strings.Contains(string(content), name) {
			t.Errorf("no %s in %s", name, content)
		}
	}
	if err := l.RemoveState(41); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReadState(); err != nil {
		t.Error("the file of another process was removed")
	}
	if err := l.RemoveState(42); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.State(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReadState(); configs.CodeOf(err) != configs.CodePath {
		t.Errorf("a damaged file: %v", err)
	}
}

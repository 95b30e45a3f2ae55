package obs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestLogReachesBothOutlets(t *testing.T) {
	var screen bytes.Buffer
	path := filepath.Join(t.TempDir(), "homed.log")
	l := open(t, Options{Format: FormatJSON, Stderr: &screen, File: path})
	l.Logger("store").Info("opened", "records", 3)
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, screen.Bytes()) {
		t.Fatalf("file %q and screen %q differ", kept, screen.Bytes())
	}
	var line struct {
		Level, Msg, Component string
		Records               int
	}
	if err := json.Unmarshal(kept, &line); err != nil {
		t.Fatal(err)
	}
	if line.Level != "INFO" || line.Msg != "opened" || line.Component != "store" || line.Records != 3 {
		t.Fatalf("line is %+v", line)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("log file is %v, %v; want mode 0600", info.Mode(), err)
	}
}

func TestLevelChangesAtRunTime(t *testing.T) {
	var out bytes.Buffer
	l := open(t, Options{Stderr: &out})
	log := l.Logger("x") // made before the change, and must follow it
	log.Debug("first line")
	l.SetLevel(slog.LevelDebug)
	log.Debug("second line")
	l.SetLevel(slog.LevelError)
	log.Warn("third line")
	if got := out.String(); strings.Contains(got, "first") || !strings.Contains(got, "second") || strings.Contains(got, "third") {
		t.Fatalf("log is %q", got)
	}
	if l.Level() != slog.LevelError {
		t.Fatalf("level is %v", l.Level())
	}
}

func TestRuntimeLoggerIsDemoted(t *testing.T) {
	var out bytes.Buffer
	l := open(t, Options{Stderr: &out})
	log := l.Runtime("actors")().With("pid", "a").WithGroup("g")
	log.Info("dead letter")
	log.Warn("restarting")
	if got := out.String(); strings.Contains(got, "dead letter") || !strings.Contains(got, "level=WARN") {
		t.Fatalf("at info: %q", got)
	}
	out.Reset()
	l.SetLevel(slog.LevelDebug)
	log.Info("dead letter", "n", 1)
	if got := out.String(); !strings.Contains(got, "level=DEBUG") || !strings.Contains(got, "g.n=1") || !strings.Contains(got, "component=actors") {
		t.Fatalf("at debug: %q", got)
	}
}

func TestOpenRefusesUnknownFormatAndMissingFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "homed.log")
	if _, err := Open(Options{Format: "xml", File: path}); !errors.Is(err, ErrFormat) {
		t.Fatalf("format xml: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a refused log left a file: %v", err)
	}
	if _, err := Open(Options{File: filepath.Join(path, "deeper", "x.log")}); err == nil {
		t.Fatal("a missing folder was accepted")
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]slog.Level{
		"debug": slog.LevelDebug, "INFO": slog.LevelInfo, " warn ": slog.LevelWarn, "Error": slog.LevelError,
	} {
		if got, err := ParseLevel(text); err != nil || got != want {
			t.Errorf("ParseLevel(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "warning", "info+1", "4"} {
		if _, err := ParseLevel(text); !errors.Is(err, ErrLevel) {
			t.Errorf("ParseLevel(%q): %v", text, err)
		}
	}
	if f, err := ParseFormat("JSON"); err != nil || f != FormatJSON {
		t.Errorf("ParseFormat(JSON) = %v, %v", f, err)
	}
	if _, err := ParseFormat(""); !errors.Is(err, ErrFormat) {
		t.Errorf("ParseFormat of nothing: %v", err)
	}
}

type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestFailingOutletIsCountedAndDoesNotSilenceTheOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "homed.log")
	l := open(t, Options{Stderr: gone{}, File: path})
	l.Logger("x").Info("still here")
	kept, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(kept), "still here") {
		t.Fatalf("file holds %q, %v", kept, err)
	}
	if l.Lost() != 1 {
		t.Fatalf("lost %d, want 1", l.Lost())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Logger("x").Info("after close")
	if l.Lost() != 3 {
		t.Fatalf("lost %d after close, want 3 (both outlets)", l.Lost())
	}
}

func TestRotationKeepsEveryLineWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "homed.log")
	l := open(t, Options{File: path, MaxBytes: 400, Keep: 100})
	const writers, lines = 4, 25
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() {
			for i := range lines {
				l.Logger("x").Info("line", "id", fmt.Sprintf("<%d-%d>", w, i))
			}
		})
	}
	done.Wait()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 3 {
		t.Fatalf("only %v, %v: nothing was rotated", files, err)
	}
	var all strings.Builder
	for _, f := range files {
		part, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if len(part) > 400 {
			t.Errorf("%s has %d bytes", f, len(part))
		}
		all.Write(part)
	}
	for w := range writers {
		for i := range lines {
			if want := fmt.Sprintf("<%d-%d>", w, i); strings.Count(all.String(), want) != 1 {
				t.Errorf("%q is not there exactly once", want)
			}
		}
	}
}

func TestRotationDropsTheOldestAndGoesOnAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "homed.log")
	for i := range 5 { // each run starts a new process as far as the file is concerned
		r, err := openRotator(path, 10, 2)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(r, "run%d....\n", i); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{path: "run4....\n", path + ".1": "run3....\n", path + ".2": "run2....\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := os.Stat(path + ".3"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a third file was kept: %v", err)
	}
}

func BenchmarkLine(b *testing.B) {
	for _, secrets := range []int{0, 20} {
		b.Run(fmt.Sprintf("secrets=%d", secrets), func(b *testing.B) {
			l, err := Open(Options{Stderr: io.Discard})
			if err != nil {
				b.Fatal(err)
			}
			for i := range secrets {
				l.Secrets().Add(fmt.Sprintf("sk-secret-value-%d", i))
			}
			log := l.Logger("bench")
			b.ReportAllocs()
			for b.Loop() {
				log.Info("task ended", "task", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "outcome", "answered")
			}
		})
	}
}

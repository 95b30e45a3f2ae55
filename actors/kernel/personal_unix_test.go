//go:build unix

package kernel

import (
	"log/slog"
	"syscall"
	"testing"
	"time"

	"homeagent/configs/paths"
)

func TestPipeIsNotPersonal(t *testing.T) {
	layout, err := paths.Resolve(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	w := &world{layout: layout, logger: slog.New(slog.DiscardHandler)}
	if err := syscall.Mkfifo(w.layout.Personal(), 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() { read <- w.personal() }()
	select {
	case text := <-read:
		if text != "" {
			t.Errorf("read %q", text)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a turn waits for personal.md")
	}
}

//go:build unix

package admin

import (
	"errors"
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestPipeIsNoToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.token")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := readToken(path, slog.New(slog.DiscardHandler))
		read <- err
	}()
	select {
	case err := <-read:
		if !errors.Is(err, ErrToken) {
			t.Errorf("err = %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the start waits for the token")
	}
}

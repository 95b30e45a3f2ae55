//go:build unix

package configs_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"homeagent/configs"
)

func TestPipeIsNoKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	sealed := make(chan error, 1)
	go func() {
		_, err := configs.NewVault(path).Seal("core.a", "x")
		sealed <- err
	}()
	select {
	case err := <-sealed:
		wantError(t, err, configs.CodeKeyFileBad, path)
	case <-time.After(10 * time.Second):
		t.Fatal("the key file is waited for")
	}
}

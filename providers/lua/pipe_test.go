package lua

import (
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
)

func TestPipeIsNoAdapter(t *testing.T) {
	files := fstest.MapFS{"pipe.lua": {Data: []byte("return 5"), Mode: fs.ModeNamedPipe | 0o600}}
	b := &book{key: "pipe", name: "pipe.lua", file: "adapters/pipe.lua", files: files, log: slog.New(slog.DiscardHandler)}
	if _, err := b.open(); err == nil || !strings.Contains(err.Error(), "no plain file") {
		t.Errorf("opened with %v", err)
	}
}

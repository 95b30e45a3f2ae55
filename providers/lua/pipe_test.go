package lua

import (
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
)

func TestPipeIsNoAdapter(t *testing.T) {
	e := &Engine{log: slog.New(slog.DiscardHandler)}
	loaded := map[string]*entry{}
	files := fstest.MapFS{"pipe.lua": {Data: []byte("return 5"), Mode: fs.ModeNamedPipe | 0o600}}
	if err := e.load(loaded, files, "adapters/"); err != nil {
		t.Fatal(err)
	}
	if got := loaded["pipe"]; got == nil || got.err == nil || !strings.Contains(got.err.Message, "no plain file") {
		t.Errorf("loaded %+v", got)
	}
}

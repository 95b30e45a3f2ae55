package config

import (
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"homeagent/configs"
	"homeagent/messages"
)

func newPerformer(t *testing.T, environ ...string) performer {
	t.Helper()
	r, err := configs.Open(configs.Options{
		Values: configs.NewMapKV(), Secrets: configs.NewMapKV(),
		Vault: configs.NewVault(filepath.Join(t.TempDir(), "secret.key")), Environ: environ, Now: start,
	})
	if err != nil {
		t.Fatal(err)
	}
	return performer{registry: r}
}

func TestWriteAndRead(t *testing.T) {
	p := newPerformer(t)
	owner := &messages.Principal{Id: "owner"}
	done := p.write(write{By: owner, Entries: setTo(
		"core.llm.sources.home.adapter", "openai", "core.llm.sources.home.api_key", "sk-very-secret",
		"core.agent.tool_timeout", "90s", "core.admin.event_ring", "500",
	).GetEntries()})
	if done.Err != nil || done.Version != 2 || len(done.Restart) != 1 {
		t.Fatalf("written %+v", done)
	}
	shown := map[string]string{}
	for _, v := range done.Shown {
		shown[v.GetKey()] = v.GetValue()
	}
	for key, want := range map[string]string{
		"core.agent.tool_timeout": "1m30s", "core.admin.event_ring": "2000", "core.llm.sources.home.api_key": "set",
	} {
		if shown[key] != want {
			t.Errorf("%s is shown as %q, want %q", key, shown[key], want)
		}
	}
	var changed []string
	for _, v := range done.Changed {
		changed = append(changed, v.GetKey())
	}
	want := []string{"core.agent.tool_timeout", "core.llm.sources.home.adapter", "core.llm.sources.home.api_key"}
	if !slices.Equal(changed, want) {
		t.Errorf("changed %q, want %q", changed, want)
	}

	got := p.read(read{Key: "core.admin.event_ring"})
	if got.Err != nil || len(got.List) != 1 {
		t.Fatalf("read %+v", got)
	}
	ring := got.List[0]
	if !ring.GetWaiting() || ring.GetPending() != "500" || ring.GetLive() || ring.GetSetUs() != start().UnixMicro() ||
		!proto.Equal(ring.GetSetBy(), owner) || ring.GetMin() != "100" || ring.GetNameZh() == "" ||
		ring.GetEnvironment() != "HOMED_CORE_ADMIN_EVENT_RING" {
		t.Errorf("event_ring %v", ring)
	}

	gone := p.write(write{Entries: []*messages.ConfigEntry{{Key: "core.llm.sources.home"}}})
	if gone.Err != nil || len(gone.Changed) == 0 {
		t.Fatalf("unset %+v", gone)
	}
	for _, v := range gone.Changed {
		if v.GetKey() == "core.llm.sources.home.adapter" && v.GetValue() != "" {
			t.Errorf("a removed source still has %v", v)
		}
	}
	if left := p.read(read{Prefixes: []string{configs.SourcePrefix}}); len(left.List) != 0 {
		t.Errorf("left %v", left.List)
	}
}

func TestRefusalsAreExplained(t *testing.T) {
	p := newPerformer(t, "HOMED_CORE_AGENT_NAME=Fixed")
	for key, code := range map[string]string{
		"core.agent.nam": "unknown_key", "core.llm.model": "dropped_key", "core.agent.name": "overridden_key",
		"core.agent.queue_limit": "bad_value",
	} {
		done := p.write(write{Entries: setTo(key, "x").GetEntries()})
		if done.Err.GetCode() != code || done.Err.GetHint() == "" || done.Err.GetDetails()["key"] != key || len(done.Changed) != 0 {
			t.Errorf("%s: %+v", key, done)
		}
	}
	if got := p.read(read{Key: "core.agent.nam"}); got.Err.GetCode() != "unknown_key" {
		t.Errorf("read %+v", got)
	}
	if s := p.survey(); s.Version != 1 || s.Keys == 0 || len(s.Problems) != 0 {
		t.Errorf("survey %+v", s)
	}
}

package configs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"homeagent/configs"
)

// failing is a store that fails on demand.
type failing struct {
	*configs.MapKV
	after int // writes that still succeed
}

func (f *failing) Put(key string, value []byte) error {
	if f.after--; f.after < 0 {
		return errors.New("disk is gone")
	}
	return f.MapKV.Put(key, value)
}

func (f *failing) Delete(key string) error {
	if f.after--; f.after < 0 {
		return errors.New("disk is gone")
	}
	return f.MapKV.Delete(key)
}

func TestDeleteFailure(t *testing.T) {
	kv := &failing{MapKV: configs.NewMapKV(), after: 3}
	r, err := configs.Open(configs.Options{Values: kv, Secrets: configs.NewMapKV(), Vault: configs.NewVault("none")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Set(nil, edits("core.llm.sources.a.base_url", "http://x", "core.llm.sources.a.adapter", "openai")...); err != nil {
		t.Fatal(err)
	}
	// One delete succeeds: it must be that of the key without which there is no source.
	_, err = r.Set(nil, configs.Edit{Key: "core.llm.sources.a.base_url", Unset: true}, configs.Edit{Key: "core.llm.sources.a.adapter", Unset: true})
	wantError(t, err, configs.CodeStore)
	if names := r.Snapshot().Instances(configs.SourcePrefix); len(names) != 0 {
		t.Errorf("a source without its address exists: %q", names)
	}
}

func TestNearest(t *testing.T) {
	cases := []struct {
		name string
		from []string
		want []string
	}{
		{"tiemout", []string{"timeout", "time"}, []string{"timeout"}},
		{"ab", []string{"ba"}, []string{"ba"}},
		{"abcdef", []string{"ghijkl"}, []string{}},
		{"core.x.queue_limit", []string{"core.agent.queue_limit", "core.y.other"}, []string{"core.agent.queue_limit"}},
		{"wörter", []string{"worter", "wörtre"}, []string{"worter", "wörtre"}},
		{"", []string{"a", "abc"}, []string{"a"}},
	}
	for _, c := range cases {
		if got := configs.Nearest(c.name, c.from, 3); !slices.Equal(got, c.want) {
			t.Errorf("Nearest(%q) = %q, want %q", c.name, got, c.want)
		}
	}
	// One swap of neighbours is one edit, and beats two replacements.
	if got := configs.Nearest("abcd", []string{"axyd", "acbd"}, 2); got[0] != "acbd" {
		t.Errorf("order %q", got)
	}
	if got := configs.Nearest("abcde", []string{"xbcde", "badce"}, 2); len(got) != 2 {
		t.Errorf("two swaps are not within two edits: %q", got)
	}
}

func TestWriteFailure(t *testing.T) {
	kv := &failing{MapKV: configs.NewMapKV(), after: 1}
	r, err := configs.Open(configs.Options{Values: kv, Secrets: configs.NewMapKV(), Vault: configs.NewVault("none")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Set(nil, edits("core.llm.sources.a.adapter", "openai", "core.llm.sources.a.model", "m", "core.llm.sources.a.priority", "1")...)
	wantError(t, err, configs.CodeStore, "disk is gone")
	if names := r.Snapshot().Instances(configs.SourcePrefix); len(names) != 0 {
		t.Errorf("half a source exists: %q", names)
	}
	if len(r.Problems()) != 1 {
		t.Errorf("the half is not reported: %+v", r.Problems())
	}
}

func TestDocumentation(t *testing.T) {
	file := filepath.Join("..", "docs", "config.md")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != configs.Markdown() {
		t.Error("docs/config.md is not what the declarations say; run go generate ./configs")
	}
}

func TestDroppedKeysAreGone(t *testing.T) {
	for _, gone := range configs.DroppedKeys() {
		for _, key := range configs.Keys() {
			if key.Name == gone.Name || strings.HasSuffix(gone.Name, "*") && strings.HasPrefix(key.Name, strings.TrimSuffix(gone.Name, "*")) {
				t.Errorf("%s is declared and dropped", key.Name)
			}
		}
		if gone.Hint == "" {
			t.Errorf("%s has no hint", gone.Name)
		}
	}
}

func TestPersona(t *testing.T) {
	facts := configs.Placeholders{AgentName: "{{node_name}}", NodeName: "attic", KernelVersion: "1.2"}
	text := facts.Expand(configs.Persona())
	if !strings.Contains(text, `the node "attic"`) || !strings.Contains(text, "You are {{node_name}},") {
		t.Errorf("persona expands to %.120q", text)
	}
	if got := facts.Expand("v{{ kernel_version }} {{nope}}"); got != "v1.2 {{nope}}" {
		t.Errorf("got %q", got)
	}
	n := newNode(t)
	n.set(configs.KeyAgentSystemPrompt, configs.Persona())
	if n.Snapshot().String(configs.KeyAgentSystemPrompt) != configs.Persona() {
		t.Error("the persona does not survive being set")
	}
}

func TestMessage(t *testing.T) {
	n := newNode(t)
	_, err := n.Set(nil, edits("core.agent.queue_limit", "x", "core.agent.tool_timeout", "y")...)
	m := configs.Message(err)
	if m.GetCode() != "bad_value" || m.GetDetails()["key"] != "core.agent.queue_limit" || m.GetHint() == "" ||
		!strings.Contains(m.GetMessage(), "core.agent.tool_timeout") {
		t.Errorf("message %v", m)
	}
	if configs.Message(nil) != nil {
		t.Error("no error has a message")
	}
	if m := configs.Message(errors.New("dial tcp 10.0.0.1")); m.GetCode() != "internal" || strings.Contains(m.GetMessage(), "10.0") {
		t.Errorf("foreign error: %v", m)
	}
}

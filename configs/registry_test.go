package configs_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"homeagent/configs"
	"homeagent/messages"
)

// node is a registry over stores that outlive it, as over restarts.
type node struct {
	t               *testing.T
	values, secrets *configs.MapKV
	keyFile         string
	*configs.Registry
}

func newNode(t *testing.T, environ ...string) *node {
	t.Helper()
	n := &node{t: t, values: configs.NewMapKV(), secrets: configs.NewMapKV(), keyFile: filepath.Join(t.TempDir(), "secret.key")}
	n.restart(environ...)
	return n
}

func (n *node) open(environ ...string) (*configs.Registry, error) {
	return configs.Open(configs.Options{
		Values: n.values, Secrets: n.secrets, Vault: configs.NewVault(n.keyFile), Environ: environ, Now: clock,
	})
}

func clock() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func (n *node) restart(environ ...string) {
	n.t.Helper()
	r, err := n.open(environ...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.Registry = r
}

func (n *node) set(pairs ...string) *configs.Change {
	n.t.Helper()
	change, err := n.Set(nil, edits(pairs...)...)
	if err != nil {
		n.t.Fatalf("Set(%q): %v", pairs, err)
	}
	return change
}

func edits(pairs ...string) []configs.Edit {
	var list []configs.Edit
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, configs.Edit{Key: pairs[i], Value: pairs[i+1]})
	}
	return list
}

func wantError(t *testing.T, err error, code configs.Code, parts ...string) {
	t.Helper()
	if configs.CodeOf(err) != code {
		t.Fatalf("error %v has code %q, want %q", err, configs.CodeOf(err), code)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func TestDefaults(t *testing.T) {
	s := newNode(t).Snapshot()
	checks := []struct {
		name      string
		got, want any
	}{
		{"max_tool_turns", s.Int(configs.KeyAgentMaxToolTurns), 25},
		{"queue_limit", s.Int(configs.KeyAgentQueueLimit), 256},
		{"tool_timeout", s.Duration(configs.KeyAgentToolTimeout), time.Minute},
		{"cooldown", s.Duration(configs.KeySchedulerCooldown), 2 * time.Second},
		{"duplicate_window", s.Duration(configs.KeyInputDuplicateWindow), 10 * time.Second},
		{"max_body", s.Size(configs.KeyAdminMaxBody), int64(32 << 20)},
		{"event_ring", s.Int(configs.KeyAdminEventRing), 2000},
		{"heartbeat", s.Duration(configs.KeyAdminHeartbeat), 15 * time.Second},
		{"log_level", s.String(configs.KeyLogLevel), "info"},
		{"context_ratio", s.Float(configs.KeyAgentContextRatio), 0.8},
		{"denied", len(s.List(configs.KeyToolsDenied)), 0},
		{"system_prompt", s.IsSet(configs.KeyAgentSystemPrompt), false},
		{"sources", len(s.Sources()), 0},
		{"location", s.Location(), time.Local},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestPrecedence(t *testing.T) {
	n := newNode(t)
	look := func(text string, origin configs.Origin) {
		t.Helper()
		e, err := n.Get(configs.KeyAgentMaxToolTurns)
		if err != nil || e.Value != text || e.Origin != origin {
			t.Fatalf("got %q from %s, %v; want %q from %s", e.Value, e.Origin, err, text, origin)
		}
	}
	look("25", configs.OriginDefault)
	n.set(configs.KeyAgentMaxToolTurns, " 40 ")
	look("40", configs.OriginStored)
	n.restart("HOMED_CORE_AGENT_MAX_TOOL_TURNS=7", "HOMED_CORE_AGENT_QUEUE_LIMIT=", "HOMED_DATA=/x", "HOMED_LISTEN=y", "PATH=/bin")
	look("7", configs.OriginEnvironment)
	_, err := n.Set(nil, edits(configs.KeyAgentMaxToolTurns, "9")...)
	wantError(t, err, configs.CodeOverridden, "HOMED_CORE_AGENT_MAX_TOOL_TURNS")
	n.restart()
	look("40", configs.OriginStored)
	if _, err := n.Set(nil, configs.Edit{Key: configs.KeyAgentMaxToolTurns, Unset: true}); err != nil {
		t.Fatal(err)
	}
	look("25", configs.OriginDefault)
}

func TestRefusedEdits(t *testing.T) {
	cases := []struct {
		name, key, value string
		code             configs.Code
		says             []string
	}{
		{"typo", "core.agent.max_tool_turn", "3", configs.CodeUnknownKey, []string{"core.agent.max_tool_turns"}},
		{"swapped letters", "core.agnet.queue_limit", "3", configs.CodeUnknownKey, []string{"core.agent.queue_limit"}},
		{"wrong part", "core.queue_limit", "3", configs.CodeUnknownKey, []string{"core.agent.queue_limit"}},
		{"far", "core.zzzzzzzzz.qqqqqqqqqqqqq", "3", configs.CodeUnknownKey, []string{"config list"}},
		{"empty name", "", "3", configs.CodeUnknownKey, nil},
		{"slip in a field", "core.llm.sources.home.modle", "x", configs.CodeUnknownKey, []string{"core.llm.sources.home.model"}},
		{"plugin that is not there", "plugin.web.port", "1", configs.CodeUnknownKey, []string{"no plugin named web"}},
		{"dropped", "core.llm.api_key", "sk-very-secret", configs.CodeDroppedKey, []string{"core.llm.sources.<name>.api_key"}},
		{"dropped family", "core.defaults.snapshot.max_snapshots", "1", configs.CodeDroppedKey, []string{"copy the data folder"}},
		{"dropped field", "core.llm.sources.a.adapter_path", "x", configs.CodeDroppedKey, []string{"adapters/"}},
		{"not a number", "core.agent.queue_limit", "many", configs.CodeBadValue, []string{"core.agent.queue_limit", `"many"`, "from 1 to 100000"}},
		{"below", "core.agent.queue_limit", "0", configs.CodeBadValue, []string{"below the minimum 1"}},
		{"above", "core.agent.queue_limit", "100001", configs.CodeBadValue, []string{"above the maximum 100000"}},
		{"too long a number", "core.agent.queue_limit", "99999999999999999999", configs.CodeBadValue, nil},
		{"duration", "core.agent.tool_timeout", "60", configs.CodeBadValue, []string{"core.agent.tool_timeout", "1w2d3h", "larger units first, from 1s to 1d"}},
		{"duration above", "core.agent.tool_timeout", "2d", configs.CodeBadValue, []string{"above the maximum 1d"}},
		{"duration overflow", "core.agent.tool_timeout", "99999w", configs.CodeBadValue, []string{"too large"}},
		{"size", "core.admin.max_body_bytes", "2g", configs.CodeBadValue, []string{"KiB"}},
		{"enum", "core.daemon.log_level", "inf", configs.CodeBadValue, []string{"debug, info, warn, error", "did you mean info?"}},
		{"bool", "core.llm.sources.box.enabled", "maybe", configs.CodeBadValue, []string{"true or false"}},
		{"float", "core.agent.context_ratio", "NaN", configs.CodeBadValue, nil},
		{"url", "core.llm.sources.a.base_url", "localhost:11434", configs.CodeBadValue, []string{"http"}},
		{"url with password", "core.llm.sources.a.base_url", "https://u:p@host/v1", configs.CodeBadValue, []string{"secret key"}},
		{"zone", "core.agent.timezone", "Beijing", configs.CodeBadValue, []string{"Asia/Shanghai or Europe/Berlin (correct it, or leave the key unset)"}},
		{"language", "core.agent.language", "中文", configs.CodeBadValue, []string{"zh-CN"}},
		{"placeholder", "core.agent.system_prompt", "I am {{agent}}", configs.CodeBadValue, []string{"{{agent_name}}"}},
		{"two lines", "core.agent.name", "a\nb", configs.CodeBadValue, []string{"one line"}},
		{"empty", "core.agent.name", "  ", configs.CodeBadValue, []string{"is empty (unset the key instead: waiter config set --default core.agent.name)"}},
		{"bad UTF-8", "core.agent.name", "a\xff", configs.CodeBadValue, []string{"UTF-8"}},
		{"origin", "core.admin.allowed_origins", "https://a.example,*", configs.CodeBadValue, []string{`"*"`}},
		{"source name", "core.llm.sources.Home.adapter", "openai", configs.CodeBadName, []string{"lower-case"}},
		{"ambiguous source name", "core.llm.sources.my-thinking.adapter", "openai", configs.CodeBadName, []string{"_thinking"}},
		{"half a source", "core.llm.sources.a.model", "m", configs.CodeRequired, []string{"core.llm.sources.a.adapter"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t)
			before := n.Snapshot()
			_, err := n.Set(nil, edits(c.key, c.value)...)
			wantError(t, err, c.code, c.says...)
			wantError(t, n.Check(edits(c.key, c.value)...), c.code)
			if strings.Contains(err.Error(), "very-secret") {
				t.Error("the error shows the value")
			}
			if n.Snapshot() != before {
				t.Error("a refused edit made a new snapshot")
			}
			var e *configs.Error
			if !errors.As(err, &e) || e.Hint == "" {
				t.Errorf("no hint in %v", err)
			}
		})
	}
}

func TestSetIsAllOrNothing(t *testing.T) {
	n := newNode(t)
	_, err := n.Set(nil, edits("core.agent.queue_limit", "5", "core.agent.tool_timeout", "x", "core.nope", "1")...)
	wantError(t, err, configs.CodeBadValue, "core.agent.tool_timeout", "core.nope")
	if got := n.Snapshot().Int(configs.KeyAgentQueueLimit); got != 256 {
		t.Fatalf("the legal half was written: %d", got)
	}
	_, err = n.Set(nil, edits("core.agent.queue_limit", "5", "core.agent.queue_limit", "6")...)
	wantError(t, err, configs.CodeBadValue, "twice")
}

func TestChange(t *testing.T) {
	n := newNode(t)
	first := n.Snapshot()
	change := n.set("core.agent.queue_limit", "5", "core.admin.event_ring", "500", "core.agent.tool_timeout", "60s")
	want := []configs.Changed{{Key: "core.agent.queue_limit", Old: "256", New: "5", Origin: configs.OriginStored}}
	if !slices.Equal(change.Changed, want) {
		t.Errorf("changed %+v, want %+v", change.Changed, want)
	}
	if !slices.Equal(change.Restart, []string{"core.admin.event_ring"}) {
		t.Errorf("restart %q", change.Restart)
	}
	if change.Before != first || change.After != n.Snapshot() || change.After.Version() != first.Version()+1 {
		t.Error("the snapshots of the change are not those before and after")
	}
	if first.Int(configs.KeyAgentQueueLimit) != 256 {
		t.Error("an old snapshot changed")
	}
	e, _ := n.Get("core.admin.event_ring")
	if e.Value != "2000" || !e.Waiting || e.Pending != "500" || n.Snapshot().Int(configs.KeyAdminEventRing) != 2000 {
		t.Errorf("a restart key is in force before the restart: %+v", e)
	}
	n.restart()
	if n.Snapshot().Int(configs.KeyAdminEventRing) != 500 {
		t.Error("the restart key is not in force after the restart")
	}
	if again := n.set("core.agent.queue_limit", "5"); len(again.Changed) != 0 || len(again.Restart) != 0 {
		t.Errorf("an edit to the same value changed %+v", again)
	}
}

func TestStoredFacts(t *testing.T) {
	n := newNode(t)
	owner := &messages.Principal{Id: "owner", Kind: messages.PrincipalKind_PRINCIPAL_KIND_OWNER}
	if _, err := n.Set(owner, edits("core.agent.name", "Hearth")...); err != nil {
		t.Fatal(err)
	}
	n.restart()
	e, err := n.Get("core.agent.name")
	if err != nil || !proto.Equal(e.Stored.By, owner) || !e.Stored.At.Equal(clock()) {
		t.Errorf("stored %+v, %v", e.Stored, err)
	}
	if e, _ := n.Get("core.agent.language"); e.Stored.By != nil || !e.Stored.At.IsZero() {
		t.Errorf("a default was set by %+v", e.Stored)
	}
}

func TestDigest(t *testing.T) {
	n := newNode(t)
	start := n.Snapshot().Digest()
	n.set("core.agent.queue_limit", "5", "core.llm.sources.a.adapter", "openai", "core.llm.sources.a.api_key", "one")
	with := n.Snapshot().Digest()
	if with == start || len(with) != 32 {
		t.Fatalf("digest %q after %q", with, start)
	}
	n.restart()
	if n.Snapshot().Digest() != with {
		t.Error("the digest is not the same after a restart")
	}
	n.set("core.llm.sources.a.api_key", "two")
	if n.Snapshot().Digest() == with {
		t.Error("another secret has the same digest")
	}
	if _, err := n.Set(nil, configs.Edit{Key: "core.llm.sources.a", Unset: true}, configs.Edit{Key: "core.agent.queue_limit", Unset: true}); err != nil {
		t.Fatal(err)
	}
	if n.Snapshot().Digest() != start {
		t.Error("the digest did not come back")
	}
}

func TestSources(t *testing.T) {
	n := newNode(t,
		"HOMED_CORE_LLM_SOURCES_CLOUD_ADAPTER=openai", "HOMED_CORE_LLM_SOURCES_CLOUD_THINKING_ENABLED=yes",
		"HOMED_CORE_LLM_SOURCES_CLOUD_API_KEY=sk-env", "HOMED_CORE_LLM_SOURCES_CLOUD_TIMEOUT_FIRST_BYTE=3s",
		"HOMED_CORE_LLM_SOURCES_CLOUD_PRIORITY=5")
	n.set("core.llm.sources.my-box.model", "qwen3:8b", "core.llm.sources.my-box.base_url", "http://127.0.0.1:11434/v1/",
		"core.llm.sources.my-box.adapter", "openai", "core.llm.sources.my-box.temperature", "0.30",
		"core.llm.sources.a.adapter", "offline", "core.llm.sources.a.priority", "9")
	sources := n.Snapshot().Sources()
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.Name
	}
	if !slices.Equal(names, []string{"my-box", "cloud", "a"}) {
		t.Fatalf("order %q", names)
	}
	box, cloud := sources[0], sources[1]
	if box.Model != "qwen3:8b" || box.BaseURL != "http://127.0.0.1:11434/v1" || box.Temperature == nil || *box.Temperature != 0.3 ||
		!box.Enabled || box.MaxConcurrent != 8 || box.APIKey.IsSet() {
		t.Errorf("my-box is %+v", box)
	}
	if cloud.APIKey.Reveal() != "sk-env" || !cloud.Thinking || cloud.TimeoutFirstByte != 3*time.Second || cloud.Temperature != nil {
		t.Errorf("cloud is %+v", cloud)
	}
	_, err := n.Set(nil, edits("core.llm.sources.my_box.adapter", "openai")...)
	wantError(t, err, configs.CodeBadName, `"my-box"`)
	_, err = n.Set(nil, configs.Edit{Key: "core.llm.sources.my-box.adapter", Unset: true})
	wantError(t, err, configs.CodeRequired)

	n.restart("HOMED_CORE_LLM_SOURCES_MY_BOX_MODEL=other")
	if e, err := n.Get("core.llm.sources.my-box.model"); err != nil || e.Value != "other" || e.Origin != configs.OriginEnvironment {
		t.Errorf("the variable of a name with a hyphen: %+v, %v", e, err)
	}
	n.restart()
	if _, err := n.Set(nil, configs.Edit{Key: "core.llm.sources.my-box", Unset: true}); err != nil {
		t.Fatal(err)
	}
	if names := n.Snapshot().Instances(configs.SourcePrefix); !slices.Equal(names, []string{"a"}) {
		t.Errorf("left %q", names)
	}
	_, err = n.Set(nil, configs.Edit{Key: "core.llm.sources.my-box", Unset: true})
	wantError(t, err, configs.CodeUnknownKey)
}

func TestToolRules(t *testing.T) {
	n := newNode(t)
	n.set("core.tools.denied", "shell\nweb_*, shell", "core.tools.timeout.web_search", "5s")
	s := n.Snapshot()
	if got := s.List(configs.KeyToolsDenied); !slices.Equal(got, []string{"shell", "web_*"}) {
		t.Errorf("list %q", got)
	}
	for tool, want := range map[string]bool{"shell": true, "shell2": false, "web_search": true, "memory_recall": false} {
		if s.ToolDenied(tool) != want {
			t.Errorf("%s denied: %v", tool, !want)
		}
	}
	if s.ToolTimeout("web_search") != 5*time.Second || s.ToolTimeout("Other.Tool") != time.Minute {
		t.Error("wrong tool timeouts")
	}
}

func TestEnvironmentStopsTheStart(t *testing.T) {
	cases := []struct {
		name, variable string
		code           configs.Code
		says           []string
	}{
		{"typo", "HOMED_CORE_AGENT_QUEUE_LIMITS=3", configs.CodeUnknownKey, []string{"HOMED_CORE_AGENT_QUEUE_LIMIT"}},
		{"value", "HOMED_CORE_AGENT_QUEUE_LIMIT=x", configs.CodeBadValue, []string{"HOMED_CORE_AGENT_QUEUE_LIMIT", "from 1 to"}},
		{"half a source", "HOMED_CORE_LLM_SOURCES_A_MODEL=m", configs.CodeRequired, []string{"core.llm.sources.a.adapter"}},
		{"no name", "HOMED_CORE_LLM_SOURCES__MODEL=m", configs.CodeUnknownKey, nil},
		{"bad name", "HOMED_CORE_LLM_SOURCES_ÄÖ_ADAPTER=openai", configs.CodeBadName, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t)
			_, err := n.open(c.variable)
			wantError(t, err, c.code, c.says...)
		})
	}
}

func TestStoredProblems(t *testing.T) {
	n := newNode(t)
	put := func(kv *configs.MapKV, key, record string) {
		if err := kv.Put(key, []byte(record)); err != nil {
			t.Fatal(err)
		}
	}
	record := func(value string) string {
		r, err := proto.Marshal(&messages.ConfigRecord{Value: value, SetUs: 1})
		if err != nil {
			t.Fatal(err)
		}
		return string(r)
	}
	put(n.values, "core.agent.queue_limit", record("0"))
	put(n.values, "core.agent.tool_timeout", record("30s")[1:])
	put(n.values, "core.llm.model", record("m"))
	put(n.values, "core.llm.sources.a.model", record("m"))
	put(n.values, "core.llm.sources.b.api_key", record("sk-plain"))
	put(n.values, "core.llm.sources.b.adapter", record("offline"))
	put(n.values, "plugin.later.port", record("80"))
	put(n.secrets, "core.agent.name", record("sealed?"))
	put(n.secrets, "core.llm.sources.b.api_key", record("not base64!"))
	n.restart()
	want := map[string]configs.Code{
		"core.agent.queue_limit":     configs.CodeBadValue,
		"core.agent.tool_timeout":    configs.CodeDamaged,
		"core.llm.model":             configs.CodeDroppedKey,
		"core.llm.sources.a.adapter": configs.CodeRequired,
		"core.llm.sources.b.api_key": configs.CodeDamaged, // twice: unsealed, and a damaged seal
		"core.agent.name":            configs.CodeDamaged,
	}
	problems := n.Problems()
	for _, p := range problems {
		if want[p.Key] != p.Err.Code || p.Err.Hint == "" || strings.Contains(p.Err.Error(), "sk-plain") {
			t.Errorf("problem %s: %v", p.Key, p.Err)
		}
	}
	if len(problems) != len(want)+1 {
		t.Errorf("%d problems, want %d", len(problems), len(want)+1)
	}
	s := n.Snapshot()
	if s.Int(configs.KeyAgentQueueLimit) != 256 || s.Duration(configs.KeyAgentToolTimeout) != time.Minute {
		t.Error("an illegal stored value is in force")
	}
	if names := s.Instances(configs.SourcePrefix); !slices.Equal(names, []string{"b"}) {
		t.Errorf("instances %q: a source without adapter exists", names)
	}
	if e, _ := n.Get("core.agent.queue_limit"); e.Problem == nil || e.Origin != configs.OriginDefault {
		t.Errorf("the entry hides the problem: %+v", e)
	}
	n.set("core.agent.queue_limit", "9", "core.llm.sources.a.adapter", "offline", "core.llm.sources.b.api_key", "sk-new",
		"core.agent.tool_timeout", "9s")
	if _, err := n.Set(nil, configs.Edit{Key: "core.llm.model", Unset: true}, configs.Edit{Key: "core.agent.name", Unset: true}); err != nil {
		t.Fatal(err)
	}
	n.restart()
	if left := n.Problems(); len(left) != 0 {
		t.Errorf("problems left: %+v", left)
	}
}

func TestListShowsNoSecret(t *testing.T) {
	n := newNode(t)
	n.set("core.llm.sources.a.adapter", "openai", "core.llm.sources.a.api_key", "sk-very-secret")
	list := n.List("")
	plain := slices.DeleteFunc(configs.Keys(), func(k configs.Key) bool { return strings.Contains(k.Name, "<name>") })
	if len(list) < len(plain) {
		t.Fatalf("%d entries", len(list))
	}
	var found bool
	for _, e := range list {
		if e.Key == "core.llm.sources.a.api_key" {
			found = true
			if e.Value != "set" || e.Origin != configs.OriginStored {
				t.Errorf("entry %+v", e)
			}
		}
	}
	if !found || !slices.IsSortedFunc(list, func(a, b configs.Entry) int { return strings.Compare(a.Key, b.Key) }) {
		t.Error("the secret is missing, or the list is not sorted")
	}
	if e, _ := n.Get("core.llm.sources.nobody.api_key"); e.Value != "unset" {
		t.Errorf("unset secret shows %q", e.Value)
	}
	if got := n.List("core.admin."); len(got) != 5 {
		t.Errorf("%d admin keys", len(got))
	}
	change := n.set("core.llm.sources.a.api_key", "sk-other-secret")
	text, err := json.Marshal(change.Changed)
	if err != nil || strings.Contains(string(text), "sk-") || len(change.Changed) != 1 {
		t.Errorf("the change shows %s, %v", text, err)
	}
	for _, kv := range []*configs.MapKV{n.values, n.secrets} {
		err := kv.Iterate("", func(key string, value []byte) error {
			if strings.Contains(string(value), "secret") {
				t.Errorf("%s is stored in plain", key)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrongUseOfASnapshotPanics(t *testing.T) {
	s := newNode(t).Snapshot()
	for name, use := range map[string]func(){
		"unknown": func() { s.Int("core.nope.nope") },
		"type":    func() { s.Int(configs.KeyAgentName) },
		"set":     func() { s.IsSet("core.nope.nope") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			use()
		}()
	}
}
